#!/usr/bin/env python3
"""How many passes over the data training needs to come near the optimum, by the default settings.

    bench/passes.py [--data FOLDER] [--beside FILE] [--set KEY=VALUE]... [ROW...]

Each row is a problem of problems.py, chosen by a part of its name; all without any. The columns:

    evaluations   when F first came within the problem's gap of the optimum, relatively
    passes        the same with what evaluations of curvature cost, counted in gradient passes
    all, gap      evaluations of the whole run, and how near the optimum it ended
    seconds       of the whole command, other load included
    reason        why it ended

A run that ends before it comes near enough is repeated without tolerances; its evaluations and
passes then have a star, and a '>' if that does not come near enough either. --beside reads what an
earlier call printed, and adds its passes and the ratio to them. Run it in the build folder, like the
tests.
"""

import argparse
import pathlib
import sqlite3
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import (COORDINATOR, SHARED, Process, heed_interrupts, words,  # noqa: E402
                     write_job)
from problems import PROBLEMS, Missing  # noqa: E402

WITHOUT_TOLERANCES = {'gradient_tolerance': 0, 'loss_tolerance': 0, 'max_steps': 3000,
                      'max_seconds': 120}
NAME = 28


def trace(state):
    """(loss, outcome) of every evaluation, in order."""
    with sqlite3.connect(state / 'dml.db') as store:
        return store.execute('SELECT loss, outcome FROM evaluations '
                             'ORDER BY attempt, evaluation').fetchall()


def trained(job, state, settings):
    """The result of a run, and its evaluations. A model that did not converge is a result, too."""
    finished = Process(COORDINATOR, 'run', job, '--json', '--fresh', '--state', state,
                       *words(settings)).wait(900)
    assert finished.status == 0, finished
    return finished.json, trace(state)


def reached(evaluations, problem):
    """How many evaluations and passes there were when F is near enough, or None."""
    enough = problem.optimum * (1 + problem.gap)
    for number, (loss, outcome) in enumerate(evaluations, 1):
        if outcome == 'accepted' and loss is not None and loss <= enough:
            return number, number
    return None


def measured(problem, data, folder, settings):
    job = write_job(folder, name='job', **{**problem.settings,
                                           'data': [problem.text(data, folder)]})
    result, evaluations = trained(job, folder / 'default.state', settings)
    counts = reached(evaluations, problem)
    if not counts:
        _, longer = trained(job, folder / 'longer.state', {**WITHOUT_TOLERANCES, **settings})
        counts = [f'{count}*' for count in reached(longer, problem) or [f'>{len(longer)}'] * 2]
    return {'evaluations': counts[0], 'passes': counts[1],
            'all': len(evaluations), 'gap': f'{result["loss"] / problem.optimum - 1:.1e}',
            'seconds': f'{result["seconds"]["total"]:.2f}', 'reason': result['reason']}


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
    return (f'{name:{NAME}}{row["evaluations"]:>12}{row["passes"]:>9}{row["all"]:>7}'
            f'{row["gap"]:>9}{row["seconds"]:>9}{more}  {row["reason"]}')


def main():
    heed_interrupts()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='*', metavar='ROW')
    parser.add_argument('--data', type=pathlib.Path, default=SHARED)
    parser.add_argument('--beside', type=pathlib.Path, metavar='FILE')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    options = parser.parse_args()
    settings = dict(word.split('=', 1) for word in options.set)
    earlier = read_earlier(options.beside) if options.beside else {}
    header = {'evaluations': 'evaluations', 'passes': 'passes', 'all': 'all', 'gap': 'gap',
              'seconds': 'seconds', 'reason': 'reason'}
    print(line_of('', header, '    before  ratio' if earlier else ''), flush=True)
    for problem in PROBLEMS:
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
    main()
