#!/usr/bin/env python3
"""How a run by the default settings comes to the optimum: how many passes over the data it needs to come
near, and whether its end means what it says.

    bench/optima.py [--hard] [--data FOLDER] [--beside FILE] [--set KEY=VALUE]... [ROW...]

Each row is a problem of problems.py, whose optimum an independent method found, or with --hard one of
hard.py, whose optimum newton.py or a run without tolerances finds. ROW is a part of its name; all
without any. The columns:

    evaluations   when F first came within the problem's gap of the optimum, relatively
    passes        the same, with an evaluation of the curvature counted as what it costs in passes
                  for a gradient, as the coordinator estimates it; with common directions a
                  product of the rows, or a gradient of their derivatives, as half a pass, and so
                  the first evaluation of any run: its weights are 0, and rows have no product
    measured      the same, by the seconds that a refresh of the preconditioner took here
    all           evaluations of the whole run
    gap           how far F at the end is above its minimum, relative to the larger of it and what the
                  tolerance refers to
    estimate      the estimate at the end over the true gap; '-' where that is rounding or there is none
    seconds       of the whole command, other load included
    taken         the preconditioner: a full block, a leading one, the diagonal, or none
    optimum       what its finder says that it lacks, relatively; known; or found by a run without tolerances
    end           converged, or not, and the reason

A '!' stands before what must not be: converged, with an estimate below a tenth of the gap or a gap
of more than ten tolerances. A problem of problems.py whose run ends before it comes near enough is
run again without tolerances; its evaluations and passes then have a star, and a '>' if that does not
come near enough either. --beside reads what an earlier call printed, and adds its passes and the ratio
to them. It needs numpy, scipy and scikit-learn. Run it in the build folder, like the tests.
"""

import argparse
import pathlib
import re
import sqlite3
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import hard  # noqa: E402
from harness import COORDINATOR, SHARED, Process, heed_interrupts, words  # noqa: E402
from problems import PROBLEMS, Missing  # noqa: E402

WITHOUT_TOLERANCES = {'gradient_tolerance': 0, 'loss_tolerance': 0, 'max_steps': 3000,
                      'max_seconds': 120}
LONG = {'gradient_tolerance': 0, 'loss_tolerance': 1e-14, 'gap_tolerance': 1e-13,
        'max_steps': 20000, 'max_seconds': 60}
TOLERANCE = 1e-6
ROUNDING = 1e-12  # of the loss: gaps below are not compared
NAME = 54
BLOCK = 1024  # the default of precondition_block
COLUMNS = ('evaluations', 'passes', 'measured', 'all', 'gap', 'estimate', 'seconds', 'taken', 'optimum', 'end')
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


def reached(evaluations, enough):
    """How many evaluations and passes there were when F is near enough, or None."""
    passes, seconds = 0.0, 0.0
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
    job, solver = problem.prepared(data, folder)
    result, evaluations = trained(job, folder / 'default.state', settings)
    least, lacks = solver() if solver else (trained(job, folder / 'long.state', LONG)[0]['loss'], None)
    enough = least * (1 + problem.gap)
    counts = reached(evaluations, enough)
    if not counts and problem in PROBLEMS:
        _, longer = trained(job, folder / 'longer.state', {**WITHOUT_TOLERANCES, **settings})
        counts = [f'{count}*' for count in reached(longer, enough) or [f'>{len(longer)}'] * 3]
    unit = max(least, hard.LOSS_LEAST)
    gap = max(result['loss'] - least, 0) / unit
    told = result['gap_estimate'] is not None and gap > ROUNDING
    ratio = result['gap_estimate'] / unit / gap if told else None
    wrong = result['converged'] and gap > ROUNDING and (
        (told and ratio < 0.1) or gap > 10 * max(TOLERANCE, problem.gap))
    evaluations_near, passes, passes_measured = counts or '---'
    return {'mark': '!' if wrong else ' ', 'evaluations': evaluations_near, 'passes': passes,
            'measured': passes_measured, 'all': len(evaluations), 'gap': f'{gap:.1e}',
            'estimate': f'{ratio:.2g}' if told else '-',
            'seconds': f'{result["seconds"]["total"]:.2f}', 'taken': preconditioner_of(result),
            'optimum': 'long run' if lacks is None else f'{lacks:.0e}' if lacks else 'known',
            'end': ('' if result['converged'] else 'not converged: ') + result['reason']}


def read_earlier(path):
    """The passes of each row in what an earlier call printed."""
    found = {}
    for line in path.read_text().splitlines():
        fields = line[NAME:].split()
        if len(fields) >= 2 and fields[0] not in ('evaluations', 'skipped:'):
            found[line[1:NAME].strip()] = fields[1]
    return found


def beside(row, before):
    if before is None or row['passes'] == '-' or before == '-':
        return ''
    old, new = (float(str(word).strip('>*')) for word in (before, row['passes']))
    return f'  {before:>8}  {new / old:>5.2f}'


def line_of(name, row, more):
    return (f'{row["mark"]}{name:{NAME - 1}}{row["evaluations"]:>12}{row["passes"]:>9}{row["measured"]:>10}'
            f'{row["all"]:>7}{row["gap"]:>9}{row["estimate"]:>10}{row["seconds"]:>9}{row["taken"]:>10}'
            f'{row["optimum"]:>10}{more}  {row["end"]}')


def main():
    heed_interrupts()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='*', metavar='ROW')
    parser.add_argument('--hard', action='store_true')
    parser.add_argument('--data', type=pathlib.Path, default=SHARED)
    parser.add_argument('--beside', type=pathlib.Path, metavar='FILE')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    options = parser.parse_args()
    settings = dict(word.split('=', 1) for word in options.set)
    earlier = read_earlier(options.beside) if options.beside else {}
    header = {'mark': ' ', **{name: name for name in COLUMNS}}
    print(line_of('', header, '    before  ratio' if earlier else ''), flush=True)
    for problem in hard.problems() if options.hard else PROBLEMS:
        if options.rows and not any(row in problem.name for row in options.rows):
            continue
        with tempfile.TemporaryDirectory(prefix='dml-optima-') as folder:
            try:
                row = measured(problem, options.data, pathlib.Path(folder), settings)
            except Missing as why:
                print(f' {problem.name:{NAME - 1}}skipped: {why}', flush=True)
                continue
            print(line_of(problem.name, row, beside(row, earlier.get(problem.name))), flush=True)


if __name__ == '__main__':
    main()
