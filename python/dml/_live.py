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
    """The runs of a state folder, oldest first: the list of runs of dml-status(7)."""
    return json.loads(answer('jobs', state, '--json'))['folders'][0]['runs']


def compare(a: Union[Run, int, Path], b: Union[Run, int, Path], state: Optional[Path] = None) -> Comparison:
    """Compares two runs: settings, data, figures, and the coefficients that differ most.

    Each is a Run, a state folder, which stands for its live run, the folder of a model, or the number or the tag of
    a run in the folder `state`."""
    names = [run.path if isinstance(run, Run) else str(run) if isinstance(run, int) else run for run in (a, b)]
    operands = ['jobs', '--diff', *names, *([state] if state is not None else [])]
    return Comparison(json.loads(answer(*operands, '--json')), answer(*operands))


def publish(run: Union[Run, int, str], state: Optional[Path] = None, *, threshold: Union[None, str, float] = None,
            cost_false_positive: Optional[float] = None, cost_false_negative: Optional[float] = None,
            tag: Optional[str] = None, note: Optional[str] = None, force: bool = False) -> Dict[str, Any]:
    """Makes the model of a run live: a Run, or the number or the tag of a run in the folder `state`.

    With `threshold`, a probability or a rule such as 'f1' or 'cost', the model gets that threshold first, without
    training, as the model of a run of its own. Returns the object that `dml-coordinator publish --json` prints: `run`
    is the run whose model is live, `previous_run` the one before."""
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
    """Makes the version before the live one live again, or that of the run `to`, named by number or tag. Returns
    what publish() returns."""
    return json.loads(answer('rollback', state, '--json', *(['--to', str(to)] if to is not None else [])))
