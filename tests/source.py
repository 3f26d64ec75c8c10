"""Finds the source tree and its files, for the tests that read it."""

import os
import pathlib

ROOT = pathlib.Path(os.environ.get('DML_SOURCE') or pathlib.Path(__file__).resolve().parents[1])
FOLDERS = ('base', 'wire', 'device', 'numeric', 'data', 'plugin', 'objective', 'model', 'library',
           'store', 'optimizer', 'coordinator', 'shard', 'replica', 'cuda', 'python', 'examples', 'bench', 'tests')


def c_files(folders=FOLDERS):
    """Every C file and header below the folders, as (path relative to the root, text)."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob('*')):
            if path.suffix in ('.c', '.h', '.def', '.cu'):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def fragments():
    """The parts of the Makefile."""
    return [ROOT / 'Makefile.am', *sorted((ROOT / folder / 'local.mk') for folder in
                                          (*FOLDERS, 'man', 'completion')),
            *sorted((ROOT / 'tests').glob('*/*.mk'))]


def suites_on_a_device():
    """(unit program, suite) of the tests that DML_TEST_DEVICE sends to a device: those that include
    the fixture for it, themselves or by another fixture."""
    texts = {path.name: path.read_text() for path in (ROOT / 'tests/unit').glob('*.[ch]')}
    fixtures = {'device_fixture.h'}
    while more := {name for name, text in texts.items() if name.endswith('.h')
                   and any(f'tests/unit/{fixture}"' in text for fixture in fixtures)} - fixtures:
        fixtures |= more
    programs = {path.stem: path.read_text() for path in (ROOT / 'tests/unit').glob('*.mk')}
    return sorted((f'tests/unit/{folder}_tests', name[len('test_'):-2])
                  for name, text in texts.items() for folder, files in programs.items()
                  if name.startswith('test_') and name.endswith('.c') and f'tests/unit/{name}' in files
                  and any(f'tests/unit/{fixture}"' in text for fixture in fixtures))


def report(cases):
    """Prints one TAP line for each (name, violations) and the violations as diagnostics; a name
    with " # SKIP why" in it is a skip."""
    failed = False
    print(f'1..{len(cases)}')
    for number, (name, violations) in enumerate(cases, 1):
        failed = failed or bool(violations)
        print(f'{"not ok" if violations else "ok"} {number} - {name}')
        for violation in violations:
            print(f'# {violation}')
    return int(failed)
