"""Makes a wheel of the package and of the library that was built beside it, for `pip install
./python`; where the system has the library, of the package alone. It needs nothing but Python, so that
no package index is asked."""

import base64
import hashlib
import pathlib
import re
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def library():
    """The bytes of the one that was built; None where the system has it, which needs no copy."""
    namespace = {'__file__': str(HERE / 'dml/_library.py'), '__name__': 'dml._library'}
    exec((HERE / 'dml/_library.py').read_text(), namespace)
    try:
        path = namespace['load']()._name
    except ImportError as error:
        raise SystemExit(f'error: {error}') from None
    return None if path == namespace['NAME'] else pathlib.Path(path).read_bytes()


def version():
    return re.search(r'AC_INIT\(\[dml\], \[([^]]+)\]', (HERE.parent / 'configure.ac').read_text())[1]


def entry(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    return f'{name},sha256={digest},{len(data)}\n'


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    built = library()
    platform = re.sub('[-.]', '_', sysconfig.get_platform()) if built else 'any'
    info, tag = f'dml-{version()}.dist-info', f'py3-none-{platform}'
    files = {f'dml/{path.name}': path.read_bytes() for path in sorted((HERE / 'dml').glob('*.py'))}
    if built:
        files['dml/libdml.so.0'] = built
    files[f'{info}/METADATA'] = (f'Metadata-Version: 2.1\nName: dml\nVersion: {version()}\n'
                                 'Summary: Scores rows with the models of dml\n'
                                 'Requires-Python: >=3.9\n').encode()
    files[f'{info}/WHEEL'] = ('Wheel-Version: 1.0\nGenerator: dml\n'
                              f'Root-Is-Purelib: {str(not built).lower()}\nTag: {tag}\n').encode()
    record = ''.join(entry(*file) for file in files.items()) + f'{info}/RECORD,,\n'
    name = f'dml-{version()}-{tag}.whl'
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, 'w', zipfile.ZIP_DEFLATED) as wheel:
        for path, data in [*files.items(), (f'{info}/RECORD', record.encode())]:
            wheel.writestr(path, data)
    return name
