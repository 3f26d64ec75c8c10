"""What a call of train() leaves: figures, steps, events, and the model."""

from __future__ import annotations

import contextlib
import html
import json
import math
import os
import shutil
import sqlite3
from typing import Any, Dict, List, Optional

from dml import _model, _programs

STEPS = ('step', 'loss', 'gradient_max', 'step_length', 'trials', 'history', 'holdout_loss', 'holdout_accuracy')
EPOCHS = ('epoch', 'minibatches', 'rows', 'loss', 'holdout_loss', 'holdout_accuracy', 'seconds')
EVENTS = ('kind', 'text')
SHOWN = ('loss', 'accuracy', 'auc', 'rmse', 'r2')  # figures in a line


class Summary:
    """Estimates with errors and tests. `columns` has them by name, as a DataFrame takes them; `fit` and `notes` are
    as `dml-coordinator summary --json` has them."""

    def __init__(self, text, described):
        self.text, self.fit, self.notes = text, described['fit'], described['notes']
        names = dict.fromkeys(name for row in described['rows'] for name in row)
        self.columns = {name: [row.get(name) for row in described['rows']] for name in names}

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return f'<pre>{html.escape(self.text)}</pre>'


class Run:
    """A run that has ended.

    Attributes
    ----------
    result : dict
        The members that `dml-coordinator run --json` prints.
    reason : str
        Why it ended.
    converged : bool
    loss : float
    figures : dict
        The figures on the rows that were held out, and on those of the test.
    model_sha256 : str
        Equal hashes mean the same model.
    warnings : list of str
    state : str
        The state folder.
    """

    def __init__(self, result, folder, warned):
        self.result, self.folder, self.warnings = result, folder, warned
        self.state, self.number = folder.path, result['run']
        self.reason, self.converged, self.loss = result['reason'], result['converged'], result['loss']
        self.model_sha256 = result.get('model_sha256')
        self.figures = {name: result[name] for name in ('holdout', 'test') if result.get(name)}
        self.opened = None

    def __repr__(self):
        state = 'converged' if self.converged else 'not converged'
        figures = [f'; {name} {", ".join(f"{key} {values[key]:.6g}" for key in SHOWN if values.get(key) is not None)}'
                   for name, values in self.figures.items()]
        return f'<dml.Run {self.number}: {self.reason}, {state}, loss {self.loss:.9g}{"".join(figures)}>'

    @property
    def path(self) -> str:
        """The folder of the model."""
        return os.path.join(self.state, 'models', str(self.number))

    @property
    def model(self) -> _model.Model:
        """The model, open."""
        if self.opened is None:
            self.opened = _model.open(self.path)
            self.opened.folder = self.folder  # which may be private, and must stay
        return self.opened

    def save(self, path: str) -> None:
        """Copy the model, for dml.open().

        Parameters
        ----------
        path : path
            A folder, which must not exist.
        """
        shutil.copytree(self.path, path)

    # ---- what the database has ----

    def select(self, table, columns, order):
        with contextlib.closing(sqlite3.connect(f'file:{_quoted(self.state)}/dml.db?mode=ro', uri=True)) as database:
            began, = database.execute('SELECT started_ms FROM runs WHERE run = ?', (self.number,)).fetchone()
            rows = database.execute(f'SELECT {", ".join(columns)}, (wall_ms - {began}) / 1000.0 FROM {table} '
                                    f'WHERE run = ? ORDER BY {order}', (self.number,)).fetchall()
        names = [*columns, 'seconds_after']
        return dict(zip(names, map(list, zip(*rows)))) if rows else {name: [] for name in names}

    @property
    def steps(self) -> Dict[str, List[Any]]:
        """The steps of L-BFGS as columns, which pandas.DataFrame() takes."""
        return self.select('steps', STEPS, 'step')

    @property
    def epochs(self) -> Dict[str, List[Any]]:
        """The epochs of Downpour as columns."""
        return self.select('downpour_epochs', EPOCHS, 'epoch')

    @property
    def events(self) -> Dict[str, List[Any]]:
        """What happened beside the steps, such as a worker that was lost, as columns."""
        return self.select('events', EVENTS, 'event')

    @property
    def settings(self) -> Dict[str, Any]:
        """The keys of the job with the values that were in force, as `dml-coordinator status --json` has them."""
        return json.loads(_programs.ask('status', '--json', self.state))['settings']

    def names_of_weights(self):
        """The name of each weight, in the order of the model's features."""
        exported = json.loads(_programs.ask('export', '--format', 'json', self.path))
        return [feature.get('name', str(feature['id'])) for feature in exported['features']]

    # ---- what is shown ----

    def summary(self, **options: Any) -> Summary:
        """Return the estimates with errors and tests, of a run with summary="model" or "robust".

        Parameters
        ----------
        **options
            Those of `dml-coordinator summary`, as level=0.9.

        Returns
        -------
        Summary

        Examples
        --------
        >>> rows = [{'size': float(i), 'price': 3.0 * i + i % 3} for i in range(12)]
        >>> run = dml.train(rows, 'price', objective='squared', l2=0, summary='model')
        >>> [round(estimate, 3) for estimate in run.summary().columns['estimate']]
        [0.692, 3.056]
        """
        flags = [f'--{name.replace("_", "-")}' + ('' if value is True else f'={value}')
                 for name, value in options.items() if value not in (None, False)]
        return Summary(_programs.ask('summary', *flags, self.path),
                       json.loads(_programs.ask('summary', '--json', *flags, self.path)))

    def report(self, path: Optional[str] = None) -> Optional[str]:
        """Write the report as one page of HTML.

        Parameters
        ----------
        path : path, optional
            The file. By default the page is returned.
        """
        if path is None:
            return _programs.ask('report', self.state)
        _programs.ask('report', '-o', path, self.state)
        return None

    def _repr_html_(self):
        rows = [('ended', f'{self.reason}{"" if self.converged else " (not converged)"}'), ('loss', f'{self.loss:.9g}'),
                ('steps', self.result['steps']), ('examples', self.result['examples']),
                ('features', self.result['features']), ('seconds', f'{self.result["seconds"]["total"]:.2f}')]
        for name, figures in self.figures.items():
            rows += [(f'{name} {figure}', f'{value:.6g}') for figure, value in figures.items()
                     if isinstance(value, float) and not math.isnan(value)][:6]
        cells = ''.join(f'<tr><th style="text-align:left">{html.escape(name)}</th>'
                        f'<td>{html.escape(str(value))}</td></tr>' for name, value in rows)
        return f'<table>{cells}</table>{curve_of(self.steps)}'


def _quoted(path):
    return path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')


def curve_of(steps, width=360, height=120):
    """The curves of the loss and of the loss on the holdout, as SVG."""
    lines = []
    for name, color in ('loss', '#36c'), ('holdout_loss', '#c63'):
        points = [(step, loss) for step, loss in zip(steps['step'], steps[name])
                  if loss is not None and math.isfinite(loss)]
        if len(points) > 1:
            lines.append((name, color, points))
    if not lines:
        return ''
    least = min(loss for _, _, points in lines for _, loss in points)
    most = max(loss for _, _, points in lines for _, loss in points)
    last = max(points[-1][0] for _, _, points in lines)
    drawn = ''
    for number, (name, color, points) in enumerate(lines):
        places = ' '.join(f'{step / last * width:.1f},{height - (loss - least) / ((most - least) or 1) * height:.1f}'
                          for step, loss in points)
        drawn += (f'<polyline points="{places}" fill="none" stroke="{color}"/>'
                  f'<text x="{width - 4}" y="{12 + 14 * number}" text-anchor="end" font-size="11" fill="{color}">'
                  f'{name.replace("_", " ")}</text>')
    return (f'<svg width="{width}" height="{height + 4}" viewBox="-2 -2 {width + 4} {height + 4}" role="img" '
            f'aria-label="loss by step">{drawn}</svg>')
