"""Runs the real programs and reports in TAP.

A test is a function decorated with @test and named after the behaviour it holds. It gets a folder
of its own as a Path and fails by an exception (an `assert`, as a rule); Skip names why it cannot
run here. The last line of a script is `sys.exit(main())`.
"""

import contextlib
import gzip
import json
import os
import pathlib
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import uuid

SOURCE = pathlib.Path(os.environ.get('DML_SOURCE') or pathlib.Path(__file__).resolve().parents[2])
BUILD = pathlib.Path(os.environ.get('DML_BUILD') or os.getcwd())
SHARED = pathlib.Path(os.environ.get('DML_SHARED') or SOURCE / '../shared').resolve() / 'data'
COORDINATOR = BUILD / 'dml-coordinator'
SHARD = BUILD / 'dml-shard'
REPLICA = BUILD / 'dml-replica'

# Far beyond what anything here takes: only a hang reaches it.
DEADLINE_SECONDS = 300

USAGE, BAD_DATA, UNAVAILABLE, INTERNAL, CREATE, IO = 64, 65, 69, 70, 73, 74
AGAIN, PERMISSION, CONFIG = 75, 77, 78

# make check-faults runs everything, make check a part of it.
ALL = os.environ.get('DML_FAULTS') == 'all'

tests = []


class Skip(Exception):
    """Why a test cannot run here."""


def test(function):
    tests.append(function)
    return function


def long_test(function):
    """A test of make check-faults only."""
    return test(function) if ALL else function


def some(cases, every=3):
    """Every third of a list of cases, or every so many; make check-faults runs all of them."""
    return cases if ALL else cases[::every]


def need(programs, why):
    """Skips the test unless this is root and the programs, each with its package, are there. Daemons may
    be among them: they are in PATH from then on."""
    search = os.environ['PATH'] + ':/usr/sbin:/sbin'
    lacking = [package for program, package in programs.items() if not shutil.which(program, path=search)]
    if lacking:
        raise Skip(f'not installed: {" ".join(lacking)}')
    if os.geteuid() != 0:
        raise Skip(why)
    os.environ['PATH'] = search


def output_of(command, **options):
    """What a command of the system, which must succeed, writes to standard output."""
    finished = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, **options)
    assert finished.returncode == 0, f'{command}: {finished.returncode}\n{finished.stdout}{finished.stderr}'
    return finished.stdout


def exception_of(kind, function, *arguments, **more):
    """The exception of this kind that the call must end with."""
    try:
        function(*arguments, **more)
    except kind as error:
        return error
    raise AssertionError(f'nothing was raised: {arguments}')


def heed_interrupts():
    """As under a person's shell. Whatever starts the tests in the background may ignore SIGINT or
    SIGHUP, and an ignored signal stays ignored in every program started from here."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def processor_seconds():
    """Of this process, and of those that ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main():
    """Runs the tests whose names contain one of the arguments (all without any). Says of each what it
    cost."""
    heed_interrupts()
    chosen = [t for t in tests if not sys.argv[1:] or any(a in t.__name__ for a in sys.argv[1:])]
    print(f'1..{len(chosen)}', flush=True)
    failed = False
    for number, function in enumerate(chosen, 1):
        name = function.__name__
        name = name if ' ' in name else name.replace('_', ' ')
        folder = pathlib.Path(tempfile.mkdtemp(prefix='dml-test-'))
        before = processor_seconds()
        try:
            function(folder)
            print(f'ok {number} - {name}', flush=True)
        except Skip as why:
            print(f'ok {number} - {name} # SKIP {why}', flush=True)
        except Exception:  # whatever it is, the other tests still run
            failed = True
            print(f'not ok {number} - {name}')
            print(''.join(f'# {line}\n' for line in traceback.format_exc().splitlines()), end='',
                  flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            print(f'# {processor_seconds() - before:.1f} s of processors', flush=True)
    return int(failed)


# ---- processes ----

class Finished:
    """A command that has ended: status, stdout, stderr."""

    def __init__(self, command, status, stdout, stderr):
        self.command, self.status, self.stdout, self.stderr = command, status, stdout, stderr

    @property
    def json(self):
        """The object on the last line of standard output."""
        lines = self.stdout.strip().splitlines()
        assert lines, f'{self} printed nothing'
        return json.loads(lines[-1])

    def __str__(self):
        return f'{" ".join(self.command)}\nstatus {self.status}\n{self.stdout}\n{self.stderr}'


class Process:
    """A command that runs. It and its children carry a mark in their environment by which
    survivors are found."""

    def __init__(self, *command, cwd=None, prefix=(), user=None,
                 stdin=subprocess.DEVNULL, **environment):
        self.command = [str(word) for word in (*prefix, *command)]
        self.mark = uuid.uuid4().hex
        self.output = tempfile.TemporaryFile('w+')
        self.errors = tempfile.TemporaryFile('w+')
        self.older = set(os.listdir('/proc'))  # none of these descends from it
        self.popen = subprocess.Popen(
            self.command, cwd=cwd, stdin=stdin, stdout=self.output,
            stderr=self.errors, user=user, group=user, extra_groups=None if user is None else (),
            env={**os.environ, **environment, 'DML_TEST_MARK': self.mark})

    @property
    def pid(self):
        return self.popen.pid

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, seconds=DEADLINE_SECONDS):
        if self.popen.poll() is None:
            descriptor = os.pidfd_open(self.pid)  # Popen.wait(seconds) looks every 50 ms
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            ended.poll(1000 * seconds)
            os.close(descriptor)
        status = self.popen.poll()
        if status is None:
            self.end()
            raise AssertionError(f'no end after {seconds} s: {self.finished(None)}')
        return self.finished(status)

    def until(self, condition, what):
        """Polls until `condition` holds and returns what it answered; the end of the process or a
        minute without it is a failure."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            answer = condition()
            if answer:
                return answer
            status = self.popen.poll()
            assert status is None, f'ended before {what}: {self.finished(status)}'
            time.sleep(0.02)
        raise AssertionError(f'{what}: not within a minute: {self.finished(None)}')

    def finished(self, status):
        return Finished(self.command, status, self.so_far(self.output), self.so_far(self.errors))

    @staticmethod
    def so_far(file):
        return os.pread(file.fileno(), 1 << 26, 0).decode(errors='replace')

    def survivors(self):
        """Ids of living processes that descend from the command, and itself, rising."""
        needle = f'DML_TEST_MARK={self.mark}'.encode()
        found = []
        for pid in filter(str.isdigit, set(os.listdir('/proc')) - self.older):  # asked often
            with contextlib.suppress(OSError), open(f'/proc/{pid}/environ', 'rb', 0) as file:
                if needle in file.read():
                    found.append(int(pid))
        return sorted(found)

    def deserted(self, seconds=60):
        """Waits until nothing of it lives: workers see by themselves, but not in the same instant,
        that their coordinator is gone. Whether that came."""
        end = time.monotonic() + seconds
        while self.survivors():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def end(self):
        """Kills the command and what descends from it, each by its id."""
        for pid in self.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.popen.wait()


def is_stopped(pid):
    """Whether it stands still after SIGSTOP. To be waited for before SIGCONT: a process that comes to
    a failpoint `stop` later than that would stand still for good."""
    with contextlib.suppress(OSError), open(f'/proc/{pid}/stat') as file:
        return file.read().rpartition(')')[2].split()[0] == 'T'
    return False


def run(*command, seconds=DEADLINE_SECONDS, **options):
    """Runs a command to its end and sees that nothing it started outlives it. The workers
    of a killed command have a while to see that it is gone."""
    process = Process(*command, **options)
    finished = process.wait(seconds)
    if not process.deserted(10 if finished.status < 0 else 0):
        left = process.survivors()
        process.end()
        raise AssertionError(f'processes {left} outlive {finished}')
    return finished


def dml(*arguments, **options):
    return run(COORDINATOR, *arguments, **options)


def train(job, *arguments, **options):
    """Trains, makes the model live and returns the members of the result."""
    finished = dml('run', job, '--json', '--publish', *arguments, **options)
    assert finished.status == 0, finished
    return finished.json


def ordinary_user(folder):
    """Whom to run a command as that must not be root, for `user`; the folder becomes theirs."""
    if os.geteuid() != 0:
        return None
    nobody = 65534
    for path in [folder, *folder.rglob('*')]:
        os.chown(path, nobody, nobody)
    try:
        run(COORDINATOR, '--version', user=nobody, cwd='/')
    except PermissionError:
        raise Skip('this is root, and others may not run the programs here') from None
    return nobody


# ---- data and jobs ----

def shared(name):
    """A file of the shared data sets; its absence skips the test."""
    path = SHARED / name
    if not path.exists():
        raise Skip(f'{name} is not in {SHARED}')
    return path


def lines_of(path):
    with (gzip.open if path.suffix == '.gz' else open)(path, 'rt') as file:
        return file.read().splitlines()


def write_job(folder, name='job', **settings):
    """Writes NAME.conf; a list becomes { "a", "b" }, a str a quoted string. A dict is a section."""
    def written(value):
        if isinstance(value, (list, tuple)):
            return '{ ' + ', '.join(written(str(item)) for item in value) + ' }'
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (str, pathlib.Path)):
            return f'"{value}"'
        return repr(value)

    lines = []
    for key, value in settings.items():
        if isinstance(value, dict):
            inner = ''.join(f'    {k} = {written(v)}\n' for k, v in value.items())
            lines.append(f'{key} {{\n{inner}}}\n')
        else:
            lines.append(f'{key} = {written(value)}\n')
    path = folder / f'{name}.conf'
    path.write_text(''.join(lines))
    return path


def small_data(folder, name='small.libsvm', rows=60, seed=1):
    """A little binary data set of 20 features that no plane separates."""
    rng = random.Random(seed)
    with open(folder / name, 'w') as file:
        for _ in range(rows):
            values = {j: round(rng.gauss(0, 1), 3) for j in sorted(rng.sample(range(1, 21), 4))}
            margin = sum(v if j % 2 else -v for j, v in values.items()) + rng.gauss(0, 2)
            file.write(f'{1 if margin > 0 else -1} ' +
                       ' '.join(f'{j}:{v}' for j, v in values.items()) + '\n')
    return folder / name


def pairs_of_words(folder, rows=1500, words=60, seed=1):
    """Rows of two words out of many; the label says whether they are of the same half."""
    rng = random.Random(seed)
    with open(folder / 'words.libsvm', 'w') as file:
        for _ in range(rows):
            first, second = sorted(rng.sample(range(1, words + 1), 2))
            file.write(f'{first % 2 ^ second % 2} {first}:1 {second}:1\n')
    return 'words.libsvm'


def emulated_for_auto(folder=BUILD):
    """The environment in which `auto` takes the emulated device: it has the mark of one that was checked."""
    environment = {'DML_AUTO_DEVICE': 'emulated', 'DML_DEVICE_MARK': str(folder / 'tests-emulated.mark')}
    subprocess.run([BUILD / 'tests/cuda/device_list', '--mark', 'emulated'], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    return environment


def small_job(folder, **settings):
    """A job that trains on small_data() in a blink."""
    data = small_data(folder)
    return write_job(folder, **{'data': [data.name], 'l2': 1e-3, **settings})


def words(settings):
    """Settings as words of a command line."""
    return [word for key, value in settings.items() for word in ('--set', f'{key}={value}')]


# A run that goes on until it is told to stop.
ENDLESS = {'gradient_tolerance': 0, 'loss_tolerance': 0, 'max_steps': 100000000}


def endless_job(folder, **settings):
    """Columns from 0.6 down to 1e-4 and a single curvature pair: steps get ever smaller, but there
    is always another."""
    data = small_data(folder, rows=3000)
    data.write_text(re.sub(r'\b(\d+):(\S+)',
                           lambda m: f'{m[1]}:{float(m[2]) * 10 ** (-0.2 * int(m[1]))!r}',
                           data.read_text()))
    return write_job(folder, data=[data.name], history=1, **{**ENDLESS, **settings})


def url_of(process):
    """Of the status server of a run, once it listens."""
    found = process.until(lambda: re.search(r'status server: (http://\S+)',
                                            process.so_far(process.errors)), 'it listens')
    return found[1]


def read_safetensors(path):
    """The arrays of a model, as a dict of name to (shape, list of numbers)."""
    content = path.read_bytes()
    length = struct.unpack('<Q', content[:8])[0]
    arrays = {}
    for name, what in json.loads(content[8:8 + length]).items():
        if name == '__metadata__':
            continue
        first, end = what['data_offsets']
        raw = content[8 + length + first:8 + length + end]
        kind = {'F64': 'd', 'U64': 'Q'}[what['dtype']]
        arrays[name] = (what['shape'], list(struct.unpack(f'<{len(raw) // 8}{kind}', raw)))
    return arrays
