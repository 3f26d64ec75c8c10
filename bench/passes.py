#!/usr/bin/env python3
"""How many passes over the data training needs to come near the optimum, by the default settings.

    bench/passes.py [--data FOLDER] [--beside FILE] [--set KEY=VALUE]... [ROW...]

Each row is a problem of problems.py, chosen by a part of its name; all without any. The columns:

    evaluations   when F first came within the problem's gap of the optimum, relatively
    passes        the same, with an evaluation of the curvature counted as what it costs in passes
                  for a gradient, as the coordinator estimates it; with common directions a
                  product of the rows, or a gradient of their derivatives, as half a pass, and so
                  the first evaluation of any run: its weights are 0, and rows have no product
    measured      the same, by the seconds that a refresh of the preconditioner took here
    all, gap      evaluations of the whole run, and how near the optimum it ended
    seconds       of the whole command, other load included
    taken         the preconditioner: a full block, a leading one, the diagonal, or none
    reason        why it ended

A run that ends before it comes near enough is repeated without tolerances; its evaluations and
passes then have a star, and a '>' if that does not come near enough either. --beside reads what an
earlier call printed, and adds its passes and the ratio to them. Run it in the build folder, like
the tests.
"""

import argparse
import pathlib
import re
import sqlite3
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import (COORDINATOR, SHARED, Process, heed_interrupts, words,  # noqa: E402
                     write_job)
from problems import PROBLEMS, Missing  # noqa: E402

WITHOUT_TOLERANCES = {'gradient_tolerance': 0, 'loss_tolerance': 0, 'max_steps': 3000,
                      'max_seconds': 120}
NAME = 28
BLOCK = 1024  # the default of precondition_block
COLUMNS = ('evaluations', 'passes', 'measured', 'all', 'gap', 'seconds', 'taken', 'reason')
CURVATURE = 'curvature'  # the outcome of such an evaluation
HALVES = ('product', 'margins')
NO_PRODUCTS = ('labels', 'weights')
REFRESH = re.compile(r'refresh \d+, .* in ([\d.]+) s, about ([\d.e+-]+) pass')


def trace(state):
    """Of every evaluation, in order: its loss, its outcome, and what it cost in passes, as
    estimated and as measured."""
    with sqlite3.connect(state / 'dml.db') as store:
        rows = store.execute('SELECT loss, outcome, seconds, step FROM evaluations '
                             'ORDER BY attempt, evaluation').fetchall()
        events = store.execute('SELECT text FROM events ORDER BY event').fetchall()
    refreshes = [REFRESH.search(text) for text, in events if REFRESH.search(text)]
    others = (CURVATURE, *HALVES, *NO_PRODUCTS)
    gradient = statistics.median([seconds for _, outcome, seconds, _ in rows if outcome not in others])
    halved = any(outcome in HALVES for _, outcome, _, _ in rows)  # a step is accepted by its second half
    found = []
    for loss, outcome, seconds, step in rows:
        half = outcome in HALVES or (outcome == 'accepted' and (halved or step == 0))
        estimate = measured = 0.0 if outcome in NO_PRODUCTS else 0.5 if half else 1.0
        if outcome == CURVATURE:
            # One that gave no preconditioner has no event.
            refresh = refreshes.pop(0) if refreshes else None
            measured = (float(refresh[1]) if refresh else seconds) / gradient
            estimate = float(refresh[2]) if refresh else measured
        found.append((loss, outcome, estimate, measured))
    return found


def trained(job, state, settings):
    """The result of a run, and its evaluations. A model that did not converge is a result, too."""
    finished = Process(COORDINATOR, 'run', job, '--json', '--fresh', '--state', state,
                       *words(settings)).wait(900)
    assert finished.status == 0, finished
    return finished.json, trace(state)


def reached(evaluations, problem):
    """How many evaluations and passes there were when F is near enough, or None."""
    enough, passes, seconds = problem.optimum * (1 + problem.gap), 0.0, 0.0
    for number, (loss, outcome, estimate, measured) in enumerate(evaluations, 1):
        passes, seconds = passes + estimate, seconds + measured
        if outcome == 'accepted' and loss is not None and loss <= enough:
            return number, f'{passes:.1f}', f'{seconds:.1f}'
    return None


def preconditioner_of(result):
    kind = result['preconditioner']['kind']
    if kind != 'block':
        return kind
    return 'full' if result['parameters'] <= BLOCK else 'leading'


def measured(problem, data, folder, settings):
    job = write_job(folder, name='job', **{**problem.settings,
                                           'data': [problem.text(data, folder)]})
    result, evaluations = trained(job, folder / 'default.state', settings)
    counts = reached(evaluations, problem)
    if not counts:
        _, longer = trained(job, folder / 'longer.state', {**WITHOUT_TOLERANCES, **settings})
        counts = [f'{count}*' for count in reached(longer, problem) or [f'>{len(longer)}'] * 3]
    return {'evaluations': counts[0], 'passes': counts[1], 'measured': counts[2],
            'all': len(evaluations), 'gap': f'{result["loss"] / problem.optimum - 1:.1e}',
            'seconds': f'{result["seconds"]["total"]:.2f}', 'taken': preconditioner_of(result),
            'reason': result['reason']}


def read_earlier(path):
    """The passes of each row in what an earlier call printed."""
    found = {}
    for line in path.read_text().splitlines():
        fields = line[NAME:].split()
        if len(fields) >= 2 and fields[0] not in ('evaluations', 'skipped:'):
            found[line[:NAME].strip()] = fields[1]
    return found


def beside(row, before):
    if before is None:
        return ''
    old, new = (float(str(word).strip('>*')) for word in (before, row['passes']))
    return f'  {before:>8}  {new / old:>5.2f}'


def line_of(name, row, more):
    return (f'{name:{NAME}}{row["evaluations"]:>12}{row["passes"]:>9}{row["measured"]:>10}'
            f'{row["all"]:>7}{row["gap"]:>9}{row["seconds"]:>9}{row["taken"]:>10}{more}  '
            f'{row["reason"]}')


def main(problems, description):
    heed_interrupts()
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='*', metavar='ROW')
    parser.add_argument('--data', type=pathlib.Path, default=SHARED)
    parser.add_argument('--beside', type=pathlib.Path, metavar='FILE')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    options = parser.parse_args()
    settings = dict(word.split('=', 1) for word in options.set)
    earlier = read_earlier(options.beside) if options.beside else {}
    header = {name: name for name in COLUMNS}
    print(line_of('', header, '    before  ratio' if earlier else ''), flush=True)
    for problem in problems:
        if options.rows and not any(row in problem.name for row in options.rows):
            continue
        with tempfile.TemporaryDirectory(prefix='dml-passes-') as folder:
            try:
                row = measured(problem, options.data, pathlib.Path(folder), settings)
            except Missing as why:
                print(f'{problem.name:{NAME}}skipped: {why}', flush=True)
                continue
            print(line_of(problem.name, row, beside(row, earlier.get(problem.name))), flush=True)


if __name__ == '__main__':
    main(PROBLEMS, __doc__)
