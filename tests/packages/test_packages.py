#!/usr/bin/env python3
"""The packages for Debian: built of what is released, put on a machine of their own, used as
README.Debian says, upgraded and purged. By make check-packages; takes minutes, root and a network."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from machine import Machine

from harness import BUILD, SOURCE, Skip, main, need, output_of, test

BUILDERS = {'dpkg-buildpackage': 'dpkg-dev', 'dh': 'debhelper', 'dh_python3': 'dh-python'}
OURS = 'dml', 'libdml0', 'libdml-dev', 'python3-dml'
NEWER = '+upgrade'
SHORT_WATCHDOG = '[Service]\nWatchdogSec=10\n'

work = pathlib.Path(tempfile.mkdtemp(prefix='dml-packages-'))


def build():
    """The folder of the packages, built once, of what would be in the tarball."""
    if not (work / 'source').exists():
        need(BUILDERS, 'to try packages needs root')
        output_of(['make', '-C', BUILD, '--quiet', 'distdir', f'distdir={work / "source"}'])
        environment = {**os.environ, 'PATH': '/usr/lib/ccache:' + os.environ['PATH'],
                       'DEB_BUILD_OPTIONS': f'parallel={os.cpu_count()}'}
        output_of(['dpkg-buildpackage', '-b', '-us', '-uc'], cwd=work / 'source', env=environment)
    return work


def field(package, name):
    return output_of(['dpkg-deb', '-f', package, name]).strip()


def ours(folder):
    """The files of those that users install: no symbols for debuggers."""
    return [path for path in sorted(folder.glob('*.deb')) if field(path, 'Package') in OURS]


def dependencies(packages):
    """Of all of them, in the words of dpkg, but for each other."""
    needed = ', '.join(filter(None, (field(path, 'Depends') for path in packages)))
    return ', '.join(word for word in needed.split(', ') if word.split()[0] not in OURS)


def newer(packages, folder):
    """The same packages with a higher version."""
    folder.mkdir()
    for number, path in enumerate(packages):
        tree = work / f'tree-{number}'
        output_of(['dpkg-deb', '-R', path, tree])
        control = tree / 'DEBIAN/control'
        control.write_text(control.read_text().replace(version := field(path, 'Version'), version + NEWER))
        output_of(['dpkg-deb', '--root-owner-group', '-b', tree, folder])
    return folder


def three_commands():
    """The ones that README.Debian promises."""
    text = (SOURCE / 'debian/dml.README.Debian').read_text()
    commands = re.findall(r'^    (\S.*)', text, re.M)
    assert len(commands) == 3, commands
    return commands


def write_people(path, rows):
    """Whether somebody buys, by age and town."""
    lines = ['age,town,buys']
    for row in range(rows):
        age, town = 18 + row * 7 % 60, ('Rome', 'Oslo', 'Cork')[row * 5 % 3]
        lines.append(f'{age},{town},{int(age + 20 * (town == "Oslo") + row * 11 % 29 > 60)}')
    path.write_text('\n'.join(lines) + '\n')


def versions(machine):
    """The number of the live model, and its bytes."""
    current = machine.root / 'var/lib/dml/people.state/models/current'
    return os.readlink(current), (machine.root / 'var/lib/dml/people.state/models' / os.readlink(current) /
                                  'model.safetensors').read_bytes()


def make_live(machine):
    """The three commands, as root in a shell."""
    (machine.root / 'data').mkdir(mode=0o755)
    write_people(machine.root / 'data/people.csv', 400)
    machine.run('sh', '-ec', '\n'.join(three_commands()))
    assert versions(machine)[0] == '1', versions(machine)[0]
    assert machine.property('dml-retrain@people.timer', 'ActiveState') == 'active'
    assert machine.property('dml-retrain@people.timer', 'UnitFileState') == 'enabled'


def pass_a_night(machine, rows):
    """More rows came; what the timer starts makes a version of them live, within its sandbox."""
    before = versions(machine)
    write_people(machine.root / 'data/people.csv', rows)
    machine.run('systemctl', 'start', 'dml-retrain@people.service')
    assert machine.property('dml-retrain@people.service', 'Result') == 'success'
    after = versions(machine)
    assert after[0] != before[0] and after[1] != before[1], (before[0], after[0])


def serve(machine):
    """The pages are there as soon as systemd says that the service is, and come back when it hangs."""
    override = machine.root / 'etc/systemd/system/dml-serve.service.d'
    override.mkdir(parents=True)
    (override / 'short.conf').write_text(SHORT_WATCHDOG)
    machine.run('systemctl', 'daemon-reload')
    machine.run('systemctl', 'enable', '--now', 'dml-serve')
    look(machine)
    first = machine.property('dml-serve', 'MainPID')
    machine.run('systemctl', 'kill', '--signal=STOP', 'dml-serve')
    machine.until(lambda: machine.property('dml-serve', 'MainPID') not in ('0', first), 'another server')
    machine.until(lambda: machine.property('dml-serve', 'ActiveState') == 'active', 'a server again')
    look(machine)
    shutil.rmtree(override)
    machine.run('systemctl', 'daemon-reload')


def look(machine):
    """The server knows which model is live."""
    text = machine.run('python3', '-c', 'import urllib.request\n'
                       'print(urllib.request.urlopen("http://127.0.0.1:8630/api/v1/runs").read().decode())')
    live = [run['run'] for run in json.loads(text)['runs'] if run['publication'] == 'live']
    assert [str(run) for run in live] == [versions(machine)[0]], (text, versions(machine)[0])


def score(machine):
    """By the library, from Python, as its user would."""
    text = machine.run('python3', '-c', 'import dml\n'
                       'print(dml.open("/var/lib/dml/people.state").predict_proba('
                       '[{"age": 70, "town": "Oslo"}, {"age": 20, "town": "Rome"}]))')
    (_, high), (_, low) = json.loads(text)
    assert high > 0.9 and low < 0.1, text


def upgrade(machine):
    """The server is a new one, timer and models are as they were."""
    before, server = versions(machine), machine.property('dml-serve', 'MainPID')
    machine.run('sh', '-c', 'dpkg --install /packages/newer/*.deb')
    assert NEWER in machine.run('dpkg-query', '-W', 'dml')
    assert versions(machine) == before
    assert machine.property('dml-serve', 'MainPID') not in ('0', server)
    assert machine.property('dml-retrain@people.timer', 'ActiveState') == 'active'
    look(machine)


def remove(machine):
    """Nothing runs any more, and the models are kept."""
    before = versions(machine)
    machine.run('dpkg', '--remove', 'dml')
    for unit in 'dml-serve.service', 'dml-retrain@people.timer':
        assert machine.says('systemctl', 'is-active', unit) != 'active', unit
    assert versions(machine) == before


def difference(before, after):
    return {path: (before.get(path), after.get(path)) for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)}


@test
def lintian_finds_nothing_to_say_of_the_packages(folder):
    if not shutil.which('lintian'):
        raise Skip('not installed: lintian')
    build()
    said = subprocess.run(['lintian', '--allow-root', '--fail-on', 'error,warning', *work.glob('*.changes')],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert said.returncode == 0, said.stdout


@test
def installed_packages_keep_their_promises_and_leave_nothing_behind_once_purged(folder):
    packages = ours(build())
    assert len(packages) == len(OURS), packages
    with Machine(folder / 'root', ['systemd-sysv', 'dbus', 'python3']) as machine:
        machine.fetch('update')
        machine.fetch('satisfy', dependencies(packages))
        inside = machine.root / 'packages'
        inside.mkdir()
        for path in packages:
            shutil.copy(path, inside)
        newer(packages, inside / 'newer')
        machine.boot()
        before = machine.content()
        machine.run('dpkg', '--install', *(f'/packages/{path.name}' for path in packages))
        make_live(machine)
        pass_a_night(machine, 500)
        serve(machine)
        score(machine)
        upgrade(machine)
        pass_a_night(machine, 600)
        remove(machine)
        machine.run('dpkg', '--purge', *reversed(OURS))
        shutil.rmtree(machine.root / 'data')
        after = machine.content()
    assert not difference(before, after), difference(before, after)


if __name__ == '__main__':
    try:
        status = main()
    finally:
        shutil.rmtree(work)
    sys.exit(status)
