#!/usr/bin/env python3
"""Makes tests/integration/version_1.tar.xz: files of every format, with what this version makes of
them. test_versions.py reads them with the present programs. Run once for a version of a format,
with the programs of DML_BUILD; what a release has written is not made again."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

from harness import COORDINATOR, dml

CSV = '''csv {
    categories = { "color" }
    amounts = { "price" }
    dates = { "day" }
    text = { "review" }
    bins = 4
    positive = "yes"
}
cross = { "size*color" }
data = "data.csv"
'''
JOBS = {
    'table': CSV + 'l2 = 1e-2\nholdout = 0.2\nsummary = model\ncalibrate = platt\n',
    # It leaves pairs, from which the next one starts, which ended at its limit and can go on.
    'pairs': CSV + 'l2 = 1e-2\nprecondition = none\nhistory = 3\nmax_steps = 6\n',
    'started': CSV + 'l2 = 1e-4\nprecondition = none\nmax_steps = 3\ncheckpoint_seconds = 0\n',
    'network': '''data = "data.csv"
objective = network
network {
    layers = { 3 }
    loss = logistic
}
csv {
    categories = { "color" }
    skip = { "day", "review", "price" }
    positive = "yes"
}
max_steps = 5
'''}
START = '--start', 'pairs.state/models/1'


def write_rows(path):
    rng, lines = random.Random(1), ['size,color,day,price,review,y']
    for _ in range(100):
        size = '' if rng.random() < .1 else f'{rng.gauss(0, 1):.3f}'
        color = rng.choice(['red', 'blue', '7', '77', ''])
        words = ' '.join(rng.choice(['good', 'bad', 'fine', 'slow', 'quick']) for _ in range(4))
        margin = float(size or 0) + (color == 'red') + words.count('good') - words.count('bad')
        lines.append(f'{size},{color},2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02},'
                     f'"$1,{rng.randrange(100, 999)}.50",{words},'
                     f'{"yes" if margin + rng.gauss(0, 1) > 0 else "no"}')
    path.write_text('\n'.join(lines) + '\n')


def outcomes(folder):
    """What programs make of the files; the folder is left as it is, but for what they write."""
    told = {f'predictions of {name}': dml('predict', folder / f'{name}.state', folder / 'data.csv').stdout
            for name in JOBS}
    told['summary'] = dml('summary', folder / 'table.state', '--json').json
    told['continued'] = dml('run', folder / 'started.conf', '--start', folder / START[1],
                            '--set', 'max_steps=9', '--json').json['model_sha256']
    return told


def make(archive):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_rows(folder / 'data.csv')
        for job, text in JOBS.items():
            (folder / f'{job}.conf').write_text(text)
            subprocess.run([COORDINATOR, 'run', f'{job}.conf', *(START if job == 'started' else ())],
                           cwd=folder, check=True, capture_output=True)
        pack = ['tar', 'cJf', archive, '--owner=0', '--group=0', '--numeric-owner', '--exclude=lock',
                *(f'--exclude={job}.state/{part}' for job in ('pairs', 'network')
                  for part in ('packs', 'shards'))]
        names = ['data.csv', *(f'{job}.{ending}' for job in JOBS for ending in ('conf', 'state'))]
        subprocess.run(['cp', '-a', folder, folder / '../copy'], check=True)
        (folder / 'outcomes.json').write_text(json.dumps(outcomes(folder / '../copy')))
        subprocess.run([*pack, *names, 'outcomes.json'], cwd=folder, check=True)
        subprocess.run(['rm', '-r', folder / '../copy'], check=True)


if __name__ == '__main__':
    make(pathlib.Path(sys.argv[1]).absolute())
