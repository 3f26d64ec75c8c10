"""A small network of machines for tests. Each machine has its own network, host name, processes,
/tmp and ssh server; a switch joins them, and all reach one shared folder.

A machine is a process (its init, an ssh server) in namespaces of its own. When that process ends,
the kernel ends all others of the machine and removes its network and its mounts; and it ends when
the test does, however that ends. So nothing is left to be removed, and several tests may use the
same names and addresses at once.

Machines may also be apart: then the first alone has the folder, and each has a disk of its own.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

for folder in 'fault', 'integration':
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))

from harness import BUILD, DEADLINE_SECONDS, Process, Skip, need, output_of  # noqa: E402

PROGRAMS = {'ip': 'iproute2', 'iptables': 'iptables', 'sshd': 'openssh-server',
            'ssh': 'openssh-client', 'sshfs': 'sshfs', 'unshare': 'util-linux'}
PLACE = pathlib.Path('/run/dml')  # the folder of all machines that has these two
BIN = PLACE / 'bin'
SHARED = PLACE / 'shared'
DISK = pathlib.Path('/var/tmp')  # of a machine that is apart: gone with its power
DISK_SIZE = '16m'
SUBNET = '10.77.0'
STORAGE = 254  # the last number of the address of the machine that has the shared folder

SSHD_CONFIG = '''ListenAddress 0.0.0.0
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/id.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PidFile none
MaxStartups 1000
Subsystem sftp internal-sftp
'''
SSH_CONFIG = '''Host *
IdentityFile /etc/ssh/id
UserKnownHostsFile /etc/ssh/known_hosts
LogLevel ERROR
'''

# What a machine does before its init becomes the ssh server. It sees our disk, but what is private
# to a machine is its own. What is bound may lie below what is hidden then.
BOOT = '''set -e
hostname "$1"
mount -t tmpfs none /run
mkdir -p /run/sshd /run/dml/bin /run/dml/shared
mount --bind "$BUILD" /run/dml/bin
[ -z "$FOLDER" ] || mount --bind "$FOLDER" /run/dml/shared
for name in hosts shadow ssh; do mount --bind "$ETC/$name" /etc/$name; done
[ -z "$DISK" ] || mount -t tmpfs -o "size=$DISK_SIZE" none "$DISK"
[ -z "$DISK" ] || mount -t tmpfs none "$HIDDEN"
for folder in /tmp /dev/shm "$HOME"; do mount -t tmpfs none "$folder"; done
ip link set lo up
exec "$SSHD" -D -e -f /etc/ssh/sshd_config
'''


def check_possible():
    """Skips the test where machines cannot be made."""
    need(PROGRAMS, 'needs root')
    tried = subprocess.run(
        ['unshare', '--net', '--uts', '--mount', '--pid', '--fork', 'sh', '-ec',
         'ip link add eth1 type bridge; ip link add eth2 type veth; mount -t tmpfs none /run;'
         'iptables -A INPUT -m statistic --mode random --probability 0.05 -j DROP'],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if tried.returncode:
        raise Skip(f'needs namespaces with iptables: {tried.stderr.strip()}')


def home():
    return os.path.expanduser('~root')


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f'{what}: not within {seconds} s'
        time.sleep(0.1)  # to look at all processes is dear
    return answer


def is_alive(pid):
    """And not dead with nobody having asked yet how it ended."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    return False


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
    return ''


class Machine:
    """`init` is the id of its first process; None while it is off."""

    def __init__(self, network, name, number):
        self.network, self.name, self.number = network, name, number
        self.address = f'{SUBNET}.{number}'
        self.unshare = self.init = self.namespace = None
        self.started = []

    def __repr__(self):
        return self.name

    @property
    def is_on(self):
        return self.init is not None

    # ---- power ----

    def power_on(self):
        """Returns once its ssh server listens and it has the shared folder, if it is to have it."""
        network = self.network
        bound = self.number == STORAGE or not network.remote_storage
        sees = bound and (not network.apart or self is network.machines[0])
        self.unshare = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'KILL', 'unshare', '--net', '--uts', '--mount', '--pid',
             '--ipc', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', BOOT, 'boot', self.name],
            stdin=subprocess.DEVNULL, stdout=network.log, stderr=network.log,
            env={**os.environ, 'BUILD': str(BUILD), 'ETC': str(network.etc), 'HOME': home(),
                 'FOLDER': str(network.shared) if sees else '', 'SSHD': shutil.which('sshd'),
                 'DISK': str(DISK) if network.apart else '', 'DISK_SIZE': DISK_SIZE,
                 'HIDDEN': str(network.folder)})
        self.init = wait_for(self.first_process, f'{self} has a process')
        self.namespace = os.readlink(f'/proc/{self.init}/ns/pid')
        self.plug_in()
        wait_for(self.listens, f'the ssh server of {self} listens')
        if not bound:
            self.mount_storage()

    def first_process(self):
        assert self.unshare.poll() is None, self.network.log_text()
        children = f'/proc/{self.unshare.pid}/task/{self.unshare.pid}/children'
        found = pathlib.Path(children).read_text().split()
        return int(found[0]) if found else None

    def listens(self):
        """Port 22 (0x16) is in the state LISTEN (0A)."""
        assert self.unshare.poll() is None, self.network.log_text()
        lines = pathlib.Path(f'/proc/{self.init}/net/tcp').read_text().splitlines()[1:]
        return any(line.split()[1].endswith(':0016') and line.split()[3] == '0A' for line in lines)

    def plug_in(self):
        switch = self.network.storage
        if self is switch:  # without an address of its own it would take that of one of the ports
            self.on_net('ip', 'link', 'add', 'eth0', 'address', '02:00:00:00:00:fe', 'type', 'bridge')
        else:
            port = f'port{self.number}'
            switch.on_net('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0',
                          'netns', self.init)
            switch.on_net('ip', 'link', 'set', port, 'master', 'eth0', 'up')
        self.on_net('ip', 'addr', 'add', f'{self.address}/24', 'dev', 'eth0')
        self.on_net('ip', 'link', 'set', 'eth0', 'up')

    def mount_storage(self):
        """Over the network: locks are not seen by other machines, and files that were open when
        the storage was out of reach answer EIO, as after the lease of a file server has ended."""
        self.run('sshfs', f'{self.network.storage}:{SHARED}', SHARED, '-o',
                 'dir_cache=no,attr_timeout=0,entry_timeout=0,negative_timeout=0,reconnect,'
                 'ServerAliveInterval=5,ServerAliveCountMax=2')

    def power_off(self, silently=True):
        """All processes end at once. Unless `silently`, others hear that connections are closed."""
        if not self.is_on:
            return
        if silently:
            self.pull_out()
        self.init = None
        self.unshare.kill()  # takes its child along, and that the whole machine
        self.unshare.wait()
        self.go_on()
        wait_for(lambda: not self.processes(), f'{self} is off')
        self.pull_out()  # the kernel removes what is left some time later

    def pull_out(self):
        if self.network.storage.is_on:
            with contextlib.suppress(AssertionError):  # it is gone already
                self.network.storage.on_net('ip', 'link', 'del', f'port{self.number}')

    # ---- processes ----

    def start(self, *command, **environment):
        prefix = ('nsenter', '-t', self.init, '-m', '-u', '-n', '-p', '-i', '--wd=/')
        self.started.append(Process(*command, prefix=prefix, HOME=home(), **environment))
        return self.started[-1]

    def run(self, *command):
        process = self.start(*command)
        finished = process.wait()
        assert finished.status == 0, f'on {self}: {finished}'
        return finished.stdout

    def has(self, path):
        """Whether there is such a file on it."""
        return pathlib.Path(f'/proc/{self.init}/root{path}').exists()

    def on_net(self, *command):
        """A command on its network that sees our processes and files."""
        return output_of(['nsenter', '-t', self.init, '-n', *command], timeout=DEADLINE_SECONDS)

    def processes(self, name=''):
        """Ids, as we see them, of its processes whose names begin with `name`."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError):
                if os.readlink(f'/proc/{pid}/ns/pid') == self.namespace:
                    found.append(int(pid))
        return [pid for pid in found if is_alive(pid) and name_of(pid).startswith(name)]

    def kill(self, name):
        self.signal(name, signal.SIGKILL)

    def signal(self, name, number):
        for pid in self.processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self):
        """Nothing on it runs any more; its kernel still answers."""
        self.signal('', signal.SIGSTOP)

    def thaw(self):
        self.signal('', signal.SIGCONT)
        self.go_on()

    def go_on(self):
        """What started its commands from outside stops with them, and does not go on with them."""
        for process in self.started:
            process.signal(signal.SIGCONT)

    # ---- its disk, if it is apart ----

    def files(self):
        """All that is on its disk."""
        return [path for path in pathlib.Path(f'/proc/{self.init}/root{DISK}').rglob('*')
                if path.is_file()]

    def fill_disk(self):
        """No byte is left on it; what is there can be read."""
        with open(f'/proc/{self.init}/root{DISK}/filler', 'wb', buffering=0) as file:
            with contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass

    def drain_disk(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f'/proc/{self.init}/root{DISK}/filler')

    # ---- faults of its link ----

    def cut(self, direction='both', peers=()):
        """Drops what it sends ('out'), what it gets ('in') or both; with `peers` only of these."""
        chains = {'in': [('INPUT', '-i', '-s')], 'out': [('OUTPUT', '-o', '-d')]}
        for chain, device, side in chains.get(direction) or chains['in'] + chains['out']:
            for peer in peers or (None,):
                where = (side, peer.address) if peer else ()
                self.on_net('iptables', '-A', chain, device, 'eth0', *where, '-j', 'DROP')

    def lose(self, share):
        """Loses that share of the packets that come in, except those of the storage."""
        self.on_net('iptables', '-A', 'INPUT', '-i', 'eth0', '!', '-s', self.network.storage.address,
                    '-m', 'statistic', '--mode', 'random', '--probability', share, '-j', 'DROP')

    def unplug(self):
        self.network.storage.on_net('ip', 'link', 'set', f'port{self.number}', 'down')

    def slow(self, rate):
        """Sends no more than that, as '2mbit'."""
        self.on_net('tc', 'qdisc', 'replace', 'dev', 'eth0', 'root', 'tbf', 'rate', rate, 'burst',
                    '64kb', 'latency', '400ms')

    def heal(self):
        """Its link is as it was at the beginning. Nothing is done while it is off."""
        if not self.is_on:
            return
        self.on_net('iptables', '-F')
        self.on_net('ip', 'link', 'set', 'eth0', 'up')
        self.network.storage.on_net('ip', 'link', 'set', f'port{self.number}', 'up')
        with contextlib.suppress(AssertionError):  # there is none
            self.on_net('tc', 'qdisc', 'del', 'dev', 'eth0', 'root')


class Network:
    """Machines h1, h2, … and the storage, which is on as long as the network is. What is in
    `shared`, all find in SHARED. With `remote_storage` they reach it over the network, else as if
    the file server never failed. If they are `apart`, only h1 has it, whose power it survives.
    `environment` is that of all that is started by ssh."""

    def __init__(self, count=4, remote_storage=False, environment=None, apart=False):
        check_possible()
        self.remote_storage, self.apart = remote_storage, apart
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='dml-hosts-'))
        self.shared, self.etc = self.folder / 'shared', self.folder / 'etc'
        self.log = open(self.folder / 'log', 'w+')
        self.storage = Machine(self, 'storage', STORAGE)
        self.machines = [Machine(self, f'h{i}', i) for i in range(1, count + 1)]
        self.write_files(environment or {})

    def write_files(self, environment):
        self.shared.mkdir()
        ssh = self.etc / 'ssh'
        ssh.mkdir(parents=True)
        lines = [f'{machine.address} {machine.name}\n' for machine in self.all()]
        (self.etc / 'hosts').write_text('127.0.0.1 localhost\n' + ''.join(lines))
        (self.etc / 'shadow').write_text('root:*:1::::::\nsshd:*:1::::::\n')
        for name in 'host_key', 'id':
            output_of(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', ssh / name])
        key = (ssh / 'host_key.pub').read_text()
        (ssh / 'known_hosts').write_text(f'{",".join(machine.name for machine in self.all())} {key}')
        (ssh / 'ssh_config').write_text(SSH_CONFIG)
        settings = ''.join(f' {name}={value}' for name, value in environment.items())
        (ssh / 'sshd_config').write_text(SSHD_CONFIG + (f'SetEnv{settings}\n' if settings else ''))

    def all(self):
        return [self.storage, *self.machines]

    def __enter__(self):
        try:
            for machine in self.all():
                machine.power_on()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for machine in reversed(self.all()):
            machine.power_off()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log_text(self):
        return (self.folder / 'log').read_text()
