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
    """What compare() answers: the object that `dml-coordinator jobs --diff --json` prints. Printed, it is the
    table of that command."""

    def __init__(self, members, text):
        super().__init__(members)
        self.text = text

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return f'<pre>{html.escape(self.text)}</pre>'


def jobs(state: Path) -> List[Dict[str, Any]]:
    """List the runs of a state folder, oldest first, as dml-status(7) has them.

    Parameters
    ----------
    state : path
        The state folder.

    Returns
    -------
    list of dict
    """
    return json.loads(answer('jobs', state, '--json'))['folders'][0]['runs']


def compare(a: Union[Run, int, Path], b: Union[Run, int, Path], state: Optional[Path] = None) -> Comparison:
    """Compare two runs: settings, data, figures, and the coefficients that differ most.

    Parameters
    ----------
    a, b : Run, path, int or str
        A Run, a state folder, which stands for its live run, the folder of a model, or the number or the tag of a run
        in the folder `state`.
    state : path, optional
        The state folder.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> rows = [{'size': i % 5, 'bought': i % 5 > 2} for i in range(30)]
    >>> runs = [dml.train(rows, 'bought', l2=l2, state='two.state') for l2 in (0.1, 0.01)]
    >>> [(setting['key'], setting['values']) for setting in dml.compare(*runs)['settings']]
    [('l2', [0.1, 0.01])]
    """
    names = [run.path if isinstance(run, Run) else str(run) if isinstance(run, int) else run for run in (a, b)]
    operands = ['jobs', '--diff', *names, *([state] if state is not None else [])]
    return Comparison(json.loads(answer(*operands, '--json')), answer(*operands))


def publish(run: Union[Run, int, str], state: Optional[Path] = None, *, threshold: Union[None, str, float] = None,
            cost_false_positive: Optional[float] = None, cost_false_negative: Optional[float] = None,
            tag: Optional[str] = None, note: Optional[str] = None, force: bool = False) -> Dict[str, Any]:
    """Make the model of a run live.

    Parameters
    ----------
    run : Run, int or str
        A Run, or the number or the tag of a run in the folder `state`.
    state : path, optional
        The state folder; by default that of the Run.
    threshold : float or str, optional
        A probability, or a rule such as 'f1' or 'cost'. The model gets that threshold first, without training, as the
        model of a run of its own.
    cost_false_positive, cost_false_negative : float, optional
        The costs for the rule 'cost'.
    tag, note : str, optional
        They are stored with the decision.
    force : bool
        Whether even a model that the gate refused is made live.

    Returns
    -------
    dict
        What `dml-coordinator publish --json` prints: `run` is the run whose model is live, `previous_run` the one
        before.
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
    """Make an earlier model live again.

    Parameters
    ----------
    state : path
        The state folder.
    to : int or str, optional
        The number or the tag of its run; by default the model that was live before.

    Returns
    -------
    dict
        As of publish().
    """
    return json.loads(answer('rollback', state, '--json', *(['--to', str(to)] if to is not None else [])))
