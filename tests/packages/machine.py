"""A small Debian in a folder, in which systemd runs: what a package does to a machine is seen there.

It has the network of nobody but itself. When systemd-nspawn ends, all its processes do.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

from harness import DEADLINE_SECONDS, Skip, need, output_of  # noqa: E402

PROGRAMS = {'debootstrap': 'debootstrap', 'systemd-nspawn': 'systemd-container', 'nsenter': 'util-linux'}
# What changes by itself while a system runs, and what apt and dpkg keep of packages that were there.
ITS_OWN = ('dev', 'proc', 'run', 'sys', 'tmp', 'var/cache', 'var/lib/apt', 'var/lib/dpkg', 'var/log',
           'var/tmp')
USERS = 'passwd', 'group', 'shadow', 'gshadow'


def this_release():
    """Name and address of the release that this machine has its packages from."""
    with open('/etc/os-release') as file:
        name = next(line.partition('=')[2].strip() for line in file if line.startswith('VERSION_CODENAME='))
    targets = output_of(['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages',
                         f'Codename: {name}'])
    if not targets:
        raise Skip('apt has no list of packages of this release')
    return name, targets.split()[0]


class Machine:
    """with Machine(FOLDER, ...) as machine: booted at boot(), gone at the end."""

    def __init__(self, folder, packages):
        """A system with these packages besides the least ones."""
        need(PROGRAMS, 'to boot a system needs root')
        self.root = folder
        self.nspawn = None
        name, address = this_release()
        output_of(['debootstrap', '--variant=minbase', f'--include={",".join(packages)}', name, folder, address])

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.nspawn:
            self.nspawn.kill()
            self.nspawn.wait()

    def fetch(self, *arguments):
        """apt-get, while it is not booted: with the network of this machine."""
        assert not self.nspawn
        return output_of(['chroot', self.root, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-y',
                          '--no-install-recommends', *arguments])

    def boot(self):
        self.nspawn = subprocess.Popen(
            ['systemd-nspawn', '-q', '-D', self.root, '--boot', '--register=no', '--keep-unit',
             '--private-network', '--kill-signal=SIGKILL', f'--machine=dml-test-{os.getpid()}'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: self.leader(), 'its first process')
        self.until(lambda: self.says('systemctl', 'is-system-running') in ('running', 'degraded'),
                   'an end of its start')

    def leader(self):
        with contextlib.suppress(OSError), open(f'/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children') as file:
            return file.read().split()[:1]

    def within(self, command):
        return ['nsenter', '-t', *self.leader(), '-a', '-r', '-w', 'env', '-i', 'LC_ALL=C.UTF-8',
                'DEBIAN_FRONTEND=noninteractive', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', *command]

    def run(self, *command):
        """What a command there wrote, which must succeed."""
        return output_of(self.within(command))

    def says(self, *command):
        """The same of one that may fail."""
        return subprocess.run(self.within(command), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.strip()

    def until(self, condition, what):
        end = time.monotonic() + DEADLINE_SECONDS
        while not (answer := condition()):
            assert time.monotonic() < end, f'the machine has not come to {what}'
            time.sleep(0.1)
        return answer

    def property(self, unit, name):
        return self.run('systemctl', 'show', '--value', '-p', name, unit).strip()

    def content(self):
        """{path: what can be told of it} of all that is not its own affair."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            below = pathlib.Path(folder).relative_to(self.root)
            folders[:] = [name for name in folders if str(below / name) not in ITS_OWN]
            for name in folders + files:
                path = pathlib.Path(folder) / name
                status = path.lstat()
                found[str(below / name)] = (status.st_mode, status.st_uid, status.st_gid)
        for name in USERS:
            found[f'etc/{name}'] += ((self.root / 'etc' / name).read_text(),)
        return found
