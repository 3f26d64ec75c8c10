"""Training from Python: the programs run as processes, and a Run is what they leave."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import time
import warnings
import weakref
from typing import Any, Optional, Sequence, Union

from dml import _job, _programs
from dml._model import Error
from dml._progress import Progress
from dml._run import Run
from dml._spool import BESIDE, Part

Path = Union[str, 'os.PathLike[str]']
SHORT_LIVED = object()  # a state folder for a call that nobody would resume
MEMORY = '/dev/shm'
MEMORY_BYTES = 64 << 20  # so much data, at the most, is packed in memory for such a call
PRIVATE = 'private'  # the file that says so in the folder `python` of a state folder
KEPT_SECONDS = 7 * 24 * 3600  # so long a private folder of an interpreter that was killed waits for its call


class TrainingWarning(UserWarning):
    """What the program warns of."""


class ConvergenceWarning(TrainingWarning):
    """Training ended before the loss was at its minimum: it says by how much, and what helps."""


# ---- folders ----

class Folder:
    """A state folder, with the job file and the data that came from memory in its folder `python`. One call at
    a time works in it, which has its lock. A private folder stays locked while its Run is used, and is then
    removed; if the process is killed before, the same call finds the folder, and resumes the run."""

    def __init__(self, path, private):
        self.path, self.private, self.kept = os.path.abspath(path), private, False
        self.own = os.path.join(self.path, 'python')
        os.makedirs(self.path, 0o700, exist_ok=True)
        os.makedirs(self.own, 0o700, exist_ok=True)
        if private:  # also to resume(), by whatever process
            pathlib.Path(self.own, PRIVATE).touch()
        path = os.path.join(self.own, 'lock')
        self.lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(path).st_ino != os.fstat(self.lock).st_ino:
                raise BlockingIOError(f'{self.path} was removed meanwhile')
        except OSError:
            os.close(self.lock)
            raise
        self.end = weakref.finalize(self, leave, os.getpid(), self.lock, self.path if private else None)

    @property
    def job(self):
        return os.path.join(self.own, 'job.conf')

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        """A call that failed leaves no data, unless it can be resumed. Its exception keeps this object alive, as a prompt
        keeps the exception, so the lock cannot wait for the last reference: dml.resume() needs it."""
        if kind and not self.kept and not self.private:
            self.remove_data()
        if kind or not self.private:
            self.end()

    def keep(self):
        """From now on the folder stays when the process ends."""
        self.kept = True
        self.end.detach()
        self.end = weakref.finalize(self, leave, os.getpid(), self.lock, None)

    def remove_data(self):
        """Packs have it."""
        for name in os.listdir(self.own):
            if name not in ('job.conf', 'lock', PRIVATE):
                os.remove(os.path.join(self.own, name))
        if self.private:
            for name in 'packs', 'shards':
                shutil.rmtree(os.path.join(self.path, name), ignore_errors=True)


def leave(process, lock, path):
    """Gives a folder up. A process that was forked leaves what its parent has; it shares the lock, which its
    parent therefore releases."""
    if os.getpid() == process:
        if path:
            shutil.rmtree(path, ignore_errors=True)
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def private_folder(job, data):
    """One whose name is that of the call, so that the same call finds it; or another one if some call works in it."""
    root = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'dml')
    try:
        os.makedirs(root, 0o700, exist_ok=True)
        remove_old(root)
        name = hashlib.sha256(repr((sorted(job.items(), key=str), shape_of(data))).encode()).hexdigest()[:24]
        return Folder(os.path.join(root, name), True)
    except OSError:
        return Folder(tempfile.mkdtemp(prefix='dml-'), True)


def memory_folder():
    """Where temporary files are in memory; None: there is no such place, and they are where others are."""
    return MEMORY if os.access(MEMORY, os.W_OK) else None


def short_lived_folder(data):
    """In memory while the data is small, as a disk takes longer to make a step durable than all steps take."""
    small = getattr(data, 'nbytes', MEMORY_BYTES + 1) <= MEMORY_BYTES
    return Folder(tempfile.mkdtemp(prefix='dml-', dir=memory_folder() if small else None), True)


def remove_old(root):
    for entry in os.scandir(root):
        try:
            if entry.stat().st_mtime < time.time() - KEPT_SECONDS:
                Folder(entry.path, True).end()
        except OSError:
            pass  # another process works in it, or has removed it


def shape_of(data):
    """What identifies a call before its data is read. The program compares the content afterwards."""
    return (type(data).__name__, getattr(data, 'shape', None), [str(name) for name in getattr(data, 'columns', ())],
            str(data) if _job.is_paths(data) else '')


# ---- calls ----

def train(data: Any, label: Union[str, Sequence, None] = None, *, test: Any = None, holdout: Any = None,
          weights: Optional[Sequence[float]] = None, offsets: Optional[Sequence[float]] = None,
          exposures: Optional[Sequence[float]] = None, state: Optional[Path] = None, progress: Optional[bool] = None,
          fresh: bool = False, start: Optional[Path] = None, tag: Optional[str] = None, note: Optional[str] = None,
          **keys: Any) -> Run:
    """Train a model, and return its Run.

    Parameters
    ----------
    data : DataFrame, table, array, sparse matrix, or paths
        A DataFrame of pandas or polars, what else has Arrow's C stream interface, dicts of columns or a list of
        dicts of cells; an array of numbers or a sparse matrix; or paths and patterns of files as in dml.conf(5).
    label : str or sequence
        The column of a table or of files that is the label, or a label for each row. By default it is the last column.
    test, holdout : as `data`, or a tuple of it and its labels
        The tuple may have a third part, a dict with the weights, offsets and exposures of these rows. `holdout` may be
        a share of the rows, such as 0.2.
    weights, offsets, exposures : sequences of numbers, optional
        A number for each row. Columns of a table are named by csv_weight, offset and exposure.
    state : path, optional
        The state folder, which keeps models, their history and what an interrupted run needs. Without it the
        folder is private, and removed with the Run.
    progress : bool, optional
        Whether a line shows what is done. By default it does in a terminal and in a notebook.
    fresh : bool
        A new run begins even if an unfinished one could be resumed.
    start : path, optional
        The model from whose parameters training starts.
    tag, note : str, optional
        They are stored with the run.
    **keys
        The keys of dml.conf(5). A key of a section is written csv_text="title", or csv={"text": "title"}.

    Raises
    ------
    JobError
        A key or the data is not as it must be.
    Stopped
        Ctrl-C was pressed: dml.resume(state), or the same call, resumes the run.

    Examples
    --------
    >>> import numpy
    >>> rows = numpy.arange(40.0).reshape(20, 2) % 7
    >>> run = dml.train(rows, rows[:, 0] > rows[:, 1], l2=0.01)
    >>> run
    <dml.Run 1: gradient tolerance, converged, loss 0.0243811...>
    >>> run.model.predict(rows[:3])
    array(['0', '0', '0'], dtype='<U1')
    """
    job = _job.by_sections(keys)
    folder = folder_of(state, job, data, label)
    beside = dict(zip(BESIDE, (weights, offsets, exposures)))
    options = [*(['--fresh'] if fresh else []), *(['--publish'] if folder.private else [])]
    for option, value in ('--start', start), ('--tag', tag), ('--note', note):
        options += [option, os.fspath(value)] if value is not None else []
    with folder:
        job.update(spooled(folder, data, label, test, holdout, beside, job))
        job.setdefault('name', 'job' if folder.private else pathlib.Path(folder.path).name.removesuffix('.state'))
        _job.write(folder.job, job)
        return run(folder, options, progress)


def resume(state: Path, *, progress: Optional[bool] = None) -> Run:
    """Resume the run of a state folder that was stopped, or whose process was killed, and return its Run.

    Parameters
    ----------
    state : path
        The folder, as dml.Stopped names it.
    progress : bool, optional
        As of dml.train().
    """
    if not os.path.exists(os.path.join(state, 'python', 'job.conf')):
        raise Error(f'{state} has no call of dml.train() that could be resumed', -69)
    with folder_of(state, {}, None, None) as folder:
        return run(folder, ['--publish'] if folder.private else [], progress)


def folder_of(state, job, data, label):
    if state is SHORT_LIVED:
        return short_lived_folder(data)
    if state is None:
        return private_folder({**job, 'label': label if isinstance(label, str) else ''}, data)
    try:
        return Folder(state, os.path.exists(os.path.join(state, 'python', PRIVATE)))
    except BlockingIOError:
        raise Error(f'{state}: another call works in this folder', -_programs.STOPPED) from None
    except OSError as error:
        raise Error(f'{state}: {error.strerror}', -73) from error


def spooled(folder, data, label, test, holdout, beside, job):
    """Writes what is in memory to files, and returns the keys that name them."""
    part = Part(folder.own, 'data')
    part.put(data, label, **beside)
    keys = dict(part.keys)
    label = part.label
    if label is not None:
        job.setdefault('csv', {})['label'] = label
    for name, given in ('test', test), ('holdout', holdout):
        if isinstance(given, (int, float)) or isinstance(given, (list, tuple)) and not given:  # a share, or none
            keys[name] = given
        elif given is not None:
            rows, labels, *numbers = given if isinstance(given, tuple) and len(given) in (2, 3) else (given, label)
            part = Part(folder.own, name)
            part.put(rows, None if _job.is_paths(rows) and labels is label else labels, **(numbers[0] if numbers else {}))
            keys.update(part.keys)
    return keys


def run(folder, options, progress):
    """Runs the program to its end, and shows its progress."""
    warned = []
    call = _programs.Call('run', '--json', '--state', folder.path, *options, folder.job)
    lines = []
    try:
        with Progress(progress) as shown:
            for line in call.lines():
                lines.append(line)
                told = _programs.LOG_LINE.match(line)
                text = told and told[2].replace(f'{folder.own}/', '').replace(f'{folder.path}/', '')
                if told and told[1] == 'warning':
                    warned.append(text)
                elif told:
                    shown.show(text)
                    del lines[-1]
        output = call.output()
    except BaseException as error:
        folder.keep()
        try:
            call.stop()
        except KeyboardInterrupt:  # pressed again: a run whose program is killed can be resumed as well
            call.kill()
        if isinstance(error, KeyboardInterrupt):
            raise _programs.Stopped(f'training was stopped; dml.resume({folder.path!r}) resumes it',
                                    folder.path) from None
        raise
    if call.status:
        if call.status == _programs.STOPPED:
            folder.keep()
        raise _programs.failure(call.status, lines, folder.own)
    warn(warned, folder)
    folder.remove_data()
    return Run(json.loads(output), folder, warned)


def warn(warned, folder):
    """A run that has not converged gets one warning, however many lines the program logs about it; and so do malformed
    lines. Run.warnings has them all."""
    before, missed, skipped = 'not converged: ', [], []
    for text in warned:
        if text.startswith(before):
            missed.append(text.removeprefix(before))
        elif text.startswith('skipped: '):
            skipped.append(text)
        elif not (folder.private and 'is not live' in text):
            warnings.warn(text, TrainingWarning, 4)
    if skipped:
        more = f'; {len(skipped) - 1} more such lines are in Run.warnings' if len(skipped) > 1 else ''
        warnings.warn(skipped[0] + more, TrainingWarning, 4)
    if missed:
        warnings.warn(f'{before}{"; ".join(missed)}', ConvergenceWarning, 4)
