"""The runs of a state folder: which there are, how two of them differ, and which model is live."""

from __future__ import annotations

import html
import json
import os
import subprocess
import warnings
from typing import Any, Dict, List, Optional, Union

from dml import _programs
from dml._run import Run
from dml._train import TrainingWarning

Path = Union[str, 'os.PathLike[str]']


def answer(*arguments):
    """The standard output of a call of dml-coordinator. What the program warns of becomes a warning."""
    done = subprocess.run([_programs.find(), *map(os.fspath, arguments)], capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, errors='surrogateescape')
    if done.returncode:
        raise _programs.failure(done.returncode, done.stderr.splitlines())
    for line in done.stderr.splitlines():
        logged = _programs.LOG_LINE.match(line)
        if logged and logged[1] == 'warning':
            warnings.warn(logged[2], TrainingWarning, 3)
    return done.stdout


class Comparison(dict):
    """What compare() answers: the members that `dml-coordinator jobs --diff --json` prints. It is shown as the
    table of that command, which is its `text`."""

    def __init__(self, members, text):
        super().__init__(members)
        self.text = text

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return f'<pre>{html.escape(self.text)}</pre>'


def jobs(state: Path) -> List[Dict[str, Any]]:
    """List the runs of a state folder, oldest first, as the list of runs of dml-status(7).

    Parameters
    ----------
    state : path
        The state folder.

    Returns
    -------
    list of dict
        A dict for each run: its number as `run`, its `reason`, figures, and as `publication` whether it is live.

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 7 > 2} for i in range(70)]
    >>> run = dml.train(rows, 'bought', l2=0.01, state='listed.state')
    >>> [(each['run'], each['publication']) for each in dml.jobs('listed.state')]
    [(1, 'live')]
    """
    return json.loads(answer('jobs', state, '--json'))['folders'][0]['runs']


def compare(a: Union[Run, int, Path], b: Union[Run, int, Path], state: Optional[Path] = None) -> Comparison:
    """Compare two runs: settings, data, figures, and the coefficients that differ most.

    Parameters
    ----------
    a, b : Run, int, str or path
        A run, a state folder for its live run, the folder of a model, or the number or tag of a run in `state`.
    state : path, optional
        The state folder of runs that are named by number or tag.

    Returns
    -------
    Comparison
        A dict of the members that ``dml-coordinator jobs --diff --json`` prints, shown as the table of that command.

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 7 > 2} for i in range(70)]
    >>> run = dml.train(rows, 'bought', l2=0.01, state='compared.state')
    >>> other = dml.train(rows, 'bought', l2=0.1, state='compared.state')
    >>> [(each['key'], each['values']) for each in dml.compare(run, other)['settings']]
    [('l2', [0.01, 0.1])]
    """
    names = [run.path if isinstance(run, Run) else str(run) if isinstance(run, int) else run for run in (a, b)]
    operands = ['jobs', '--diff', *names, *([state] if state is not None else [])]
    return Comparison(json.loads(answer(*operands, '--json')), answer(*operands))


def publish(run: Union[Run, int, str], state: Optional[Path] = None, *, threshold: Union[None, str, float] = None,
            cost_false_positive: Optional[float] = None, cost_false_negative: Optional[float] = None,
            tag: Optional[str] = None, note: Optional[str] = None, force: bool = False) -> Dict[str, Any]:
    """Make the model of a run live, with another threshold if one is given.

    A model with another threshold is that of a run of its own. Nothing is trained for it.

    Parameters
    ----------
    run : Run, int or str
        A run, or the number or tag of one in `state`.
    state : path, optional
        The state folder; by default that of the Run.
    threshold : float or str, optional
        The probability from which on the positive class is predicted, or a rule such as ``'f1'``, ``'recall >= 0.9'``
        or ``'cost'``, which finds it on the rows that were held out.
    cost_false_positive, cost_false_negative : float, optional
        What the two kinds of wrong answers cost, for ``threshold='cost'``.
    tag, note : str, optional
        A name for the run, and a note to store with it.
    force : bool
        Whether a model that the gate refused goes live, too.

    Returns
    -------
    dict
        The members that ``dml-coordinator publish --json`` prints: `run` is the run whose model is live, and
        `previous_run` the one before.

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 7 > 2} for i in range(70)]
    >>> run = dml.train(rows, 'bought', l2=0.01, holdout=0.3, state='published.state')
    >>> dml.publish(run, threshold=0.3)['run']
    2
    """
    if isinstance(run, Run):
        run, state = run.number, run.state if state is None else state
    if state is None:
        raise TypeError('publish() needs the state folder of the run')
    keys = {'threshold': threshold, 'cost.false_positive': cost_false_positive,
            'cost.false_negative': cost_false_negative}
    options = [word for key, value in keys.items() if value is not None for word in ('--set', f'{key}={value}')]
    for option, text in ('--tag', tag), ('--note', note):
        options += [option, text] if text is not None else []
    return json.loads(answer('publish', str(run), state, '--json', *options, *['--force'] * force))


def rollback(state: Path, to: Union[None, int, str] = None) -> Dict[str, Any]:
    """Make the version before the live one live again.

    Parameters
    ----------
    state : path
        The state folder.
    to : int or str, optional
        The number or tag of the run whose model becomes live instead.

    Returns
    -------
    dict
        As of dml.publish().

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 7 > 2} for i in range(70)]
    >>> run = dml.train(rows, 'bought', l2=0.01, holdout=0.3, state='back.state')
    >>> dml.publish(run, threshold=0.3)['run'], dml.rollback('back.state')['run']
    (2, 1)
    """
    return json.loads(answer('rollback', state, '--json', *(['--to', str(to)] if to is not None else [])))
