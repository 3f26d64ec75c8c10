"""A Slurm cluster on loopback: munged, slurmctld and some slurmd in a folder of their own, with
their own ports. Nothing of it is installed or touches a Slurm that this machine may belong to.
"""

import contextlib
import ctypes
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

from harness import Finished, main, need, test  # noqa: E402, F401

NEEDED = {'munged': 'munge', 'slurmctld': 'slurmctld', 'slurmd': 'slurmd', 'sbatch': 'slurm-client'}
PORTS = range(20000, 32000)  # below those that the system gives to connections
START_TRIES = 3  # with other ports: somebody else may take one between the look and the start
PATIENCE_SECONDS = 180  # of a machine with much else to do

# Short times, so that what fails is noticed soon. cred_expire is also how long a requeued job waits.
CONF = """
ClusterName=dmltest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
SlurmdTimeout=5
SlurmctldTimeout=5
KillWait=2
OverTimeLimit=0
MessageTimeout=5
TCPTimeout=2
UnkillableStepTimeout=10
MinJobAge=300
{more}
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def die_with_parent():
    """In a child: a test that is killed leaves no daemons behind."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def free_ports(count):
    """Ports of loopback that nobody listens on now."""
    found = []
    while len(found) < count:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            if port not in found:
                found.append(port)
    return found


class Cluster:
    """`with Cluster() as cluster:`; the nodes are n1, n2 … with `cpus` CPUs each."""

    def __init__(self, nodes=4, cpus=2, conf=''):
        need(NEEDED, 'the daemons of Slurm need root')
        self.names = [f'n{i}' for i in range(1, nodes + 1)]
        self.cpus, self.conf = cpus, conf
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='dml-slurm-'))
        self.folder.chmod(0o755)  # munged and the jobs' users pass through it
        self.environment = {'SLURM_CONF': str(self.folder / 'slurm.conf')}
        self.daemons = {}

    def __enter__(self):
        try:
            self.start_munged()
            for last in range(START_TRIES):
                if self.start_slurm():
                    return self
                self.end_daemons()
            raise AssertionError(f'Slurm does not start:\n{self.logs()}')
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.end_daemons()
        munged = self.daemons.pop('munged', None)
        if munged:
            munged.kill()
            munged.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- daemons ----

    def start(self, name, *command):
        """Each process of a node carries the node's name in its environment, and its tasks do so
        too: they are found by it (processes_of)."""
        with open(self.folder / f'{name}.out', 'ab') as out:
            self.daemons[name] = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                cwd='/', env={**os.environ, **self.environment, 'DML_SLURM_NODE': name},
                preexec_fn=die_with_parent)

    def start_munged(self):
        key = self.folder / 'munge.key'
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        self.start('munged', 'munged', '--foreground', '--force', f'--key-file={key}',
                   *(f'--{what}={self.folder}/munge.{end}' for what, end in
                     (('socket', 'sock'), ('pid-file', 'pid'), ('seed-file', 'seed'))))
        self.until(lambda: (self.folder / 'munge.sock').exists(), 'munged listens')

    def start_slurm(self):
        ports = free_ports(1 + len(self.names))
        host = socket.gethostname().split('.')[0]
        nodes = '\n'.join(f'NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} '
                          f'CPUs={self.cpus} RealMemory=2000 State=UNKNOWN'
                          for name, port in zip(self.names, ports[1:]))
        for name in 'state', *(f'spool-{node}' for node in self.names):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / 'slurm.conf').write_text(CONF.format(
            folder=self.folder, host=host, ports=ports, nodes=nodes, more=self.conf))
        self.start_controller('-c')
        for name in self.names:
            self.start_node(name)
        with contextlib.suppress(AssertionError):
            self.until(lambda: self.states() == ['idle'] * len(self.names), 'all nodes are idle')
            return True
        return False

    def start_controller(self, *options):
        self.start('slurmctld', 'slurmctld', '-D', *options)

    def start_node(self, name):
        self.start(name, 'slurmd', '-D', '-N', name)

    def kill_controller(self):
        self.daemons['slurmctld'].kill()
        self.daemons['slurmctld'].wait()

    def processes_of(self, name):
        """Ids of the node's slurmd, the keepers of its steps, and their tasks."""
        return self.marked(f'DML_SLURM_NODE={name}', f'SLURMD_NODENAME={name}')

    def marked(self, *marks):
        """Ids of the processes of this cluster with one of these variables."""
        own = f'SLURM_CONF={self.environment["SLURM_CONF"]}'
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    variables = (entry / 'environ').read_text(errors='replace').split('\0')
                    if own in variables and any(mark in variables for mark in marks or [own]):
                        found.append(int(entry.name))
        return found

    def commands_with(self, text):
        """Ids of the processes of this cluster that were started with this in a word."""
        found = []
        for pid in self.marked():
            with contextlib.suppress(OSError):
                if text in pathlib.Path(f'/proc/{pid}/cmdline').read_text(errors='replace'):
                    found.append(pid)
        return found

    def kill_node(self, name):
        """Its slurmd and all that runs there, at once: what a power cut leaves."""
        self.kill(lambda: self.processes_of(name))
        self.daemons[name].wait()

    def kill_slurmd(self, name):
        """What runs there lives on, and Slurm can no longer end it."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def end_daemons(self):
        """All but munged, and every job."""
        munged = self.daemons['munged'].pid
        self.kill(lambda: [pid for pid in self.marked() if pid != munged])
        for name in [name for name in self.daemons if name != 'munged']:
            self.daemons.pop(name).wait()

    @staticmethod
    def kill(those):
        """A process may start another while it is being killed."""
        while pids := those():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
            for pid in pids:
                with contextlib.suppress(ChildProcessError, OSError):
                    os.waitpid(pid, os.WNOHANG)

    def logs(self):
        return '\n'.join(f'---- {path.name}\n{path.read_text(errors="replace")[-2000:]}'
                         for path in sorted(self.folder.glob('*.log')))

    # ---- what users do ----

    def command(self, *words, **options):
        """A command of Slurm, as a user of the cluster would give it. Not run(): the jobs of a
        command outlive it."""
        command = [str(word) for word in words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, **self.environment, **options}, check=False)
        return Finished(command, done.returncode, done.stdout, done.stderr)

    def states(self):
        listed = self.command('sinfo', '-h', '-N', '-o', '%T')
        return listed.stdout.split()

    def sbatch(self, script, *options, after=(), **environment):
        """The number of a new job; `after` are words for the script."""
        submitted = self.command('sbatch', '--parsable', *options, script, *after, **environment)
        assert submitted.status == 0, submitted
        return int(submitted.stdout.split(';')[0])

    def job(self, number):
        """What Slurm says of a job, as a dict of words such as JobState."""
        shown = self.command('scontrol', 'show', 'job', '--oneliner', number)
        assert shown.status == 0, shown
        return dict(word.split('=', 1) for word in shown.stdout.split() if '=' in word)

    def until(self, condition, what, seconds=PATIENCE_SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = condition()
            if answer:
                return answer
            time.sleep(0.05)
        raise AssertionError(f'{what}: not within {seconds} s\n{self.logs()}')
