"""The programs of dml: where they are, and one call of `dml-coordinator` from its start to its end."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

from dml._library import HERE, build_folders
from dml._model import Error

COORDINATOR = 'dml-coordinator'
LOG_LINE = re.compile(r'\d{4}-\d\d-\d\dT\S+ coordinator (error|warning|info|debug): (.*)')

USAGE, BAD_DATA, STOPPED, BAD_JOB = 64, 65, 75, 78


class JobError(Error, ValueError):
    """A key, its value or the data are not as they must be: the text says which, where, and what to do."""


class Stopped(KeyboardInterrupt):
    """Training was interrupted at a step from which it can be resumed: by dml.resume(state), or by the same
    call of dml.train(). `state` is the folder."""

    def __init__(self, text, state):
        super().__init__(text)
        self.state = state


def find(name=COORDINATOR):
    """The path of a program: what the environment names, beside this file as in a wheel, in the build folder
    of a source tree, and wherever the system has it."""
    if os.environ.get('DML_COORDINATOR'):
        return os.environ['DML_COORDINATOR']
    for folder in [HERE / 'bin', *build_folders()]:
        if os.access(folder / name, os.X_OK) and (folder / name).is_file():
            return str(folder / name)
    found = shutil.which(name)
    if not found:
        raise Error(f'{name} was not found: install the programs of dml (Debian: dml, of the version of python3-dml), '
                    f'build them in the source tree with `./bootstrap && mkdir build && cd build && ../configure && '
                    f'make`, or set DML_COORDINATOR to the path of {name}', -69)
    return found


def failure(status, lines, folder=None):
    """The exception for a call that failed: the program's last sentence, without its name and without the folder
    of the files that were made for it."""
    said = [line for line in lines if line.strip() and not LOG_LINE.match(line)]
    logged = [LOG_LINE.match(line)[2] for line in lines if LOG_LINE.match(line)]
    text = (said or logged or [f'{COORDINATOR} ended with status {status} and said nothing'])[-1].strip()
    kind = JobError if status in (USAGE, BAD_DATA, BAD_JOB) else Error
    text = text.removeprefix(f'{COORDINATOR}: ')
    if folder:
        text = re.sub('^job.conf:[0-9]+: ', '', text.replace(f'{folder}/', ''))
    return kind(text, -status if status > 0 else -70)


def ask(*arguments):
    """The standard output of a call that needs no attention while it runs."""
    done = subprocess.run([find(), *map(os.fspath, arguments)], capture_output=True, stdin=subprocess.DEVNULL,
                          text=True, errors='surrogateescape')
    if done.returncode:
        raise failure(done.returncode, done.stderr.splitlines())
    return done.stdout


class Call:
    """A call that runs. It has a session of its own, so that Ctrl-C reaches this process alone, which stops it
    where it can be resumed; and it stops so by itself when the thread that started it ends without it, as
    when the interpreter is killed."""

    def __init__(self, *arguments):
        environment = {**os.environ, 'DML_PARENT': str(os.getpid())}
        self.printed = tempfile.TemporaryFile('w+', errors='surrogateescape')  # a pipe might be too small for it
        self.process = subprocess.Popen([find(), *map(os.fspath, arguments)], stdin=subprocess.DEVNULL,
                                        stdout=self.printed, stderr=subprocess.PIPE, env=environment,
                                        text=True, errors='surrogateescape', start_new_session=True)

    def lines(self):
        """What the program logs, line by line, until it ends."""
        return self.process.stderr

    def output(self):
        """All of its standard output, once it has ended."""
        with self.process, self.printed:
            self.process.wait()
            self.printed.seek(0)
            return self.printed.read()

    @property
    def status(self):
        return self.process.returncode

    def stop(self):
        """Stops it as Ctrl-C does, and waits until it has made its last step durable."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        self.printed.close()

    def kill(self):
        self.process.kill()
        self.process.communicate()
        self.printed.close()
