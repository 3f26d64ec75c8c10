#!/usr/bin/env python3
"""Columns of sentences: dml beside scikit-learn's TfidfVectorizer and LogisticRegression, each from
the CSV files to the accuracy on the test file, in seconds of processor time of the whole command.

    bench/texts.py [ROWS [WORDS]]    generated reviews: 200000 rows, and 300000 words that they know

Run it in the build folder, with a Python that has numpy, pandas and scikit-learn.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy

COORDINATOR = pathlib.Path(os.environ.get('DML_BUILD') or os.getcwd()) / 'dml-coordinator'
PEER = """
import sys
import pandas
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
train, test = (pandas.read_csv(path, keep_default_na=False) for path in sys.argv[1:])
model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
print(model.fit(train.review, train.label).score(test.review, test.label))
"""


def vocabulary(words):
    """Made-up words, and which way each says a review goes, if at all."""
    draw = numpy.random.default_rng(1)
    made = {}
    while len(made) < words:
        made[''.join(draw.choice(list('bcdfghjklmnprstvwz')) + draw.choice(list('aeiou'))
                     for _ in range(draw.integers(1, 6)))] = None
    return list(made), draw.normal(size=words) * (draw.random(words) < 0.2) * 1.5


def write_reviews(path, rows, words, tilt, seed):
    """Words by Zipf's law."""
    draw = numpy.random.default_rng(seed)
    share = numpy.cumsum(1 / (numpy.arange(len(words)) + 10.0) ** 1.05)
    with open(path, 'w') as file:
        file.write('review,label\n')
        for _ in range(rows):
            picked = numpy.searchsorted(share, share[-1] * draw.random(
                int(draw.lognormal(4.2, 0.7)) + 1)).clip(0, len(words) - 1)
            good = draw.random() < 1 / (1 + numpy.exp(-tilt[picked].sum() / 2))
            text = ' '.join(words[i] for i in picked).capitalize()
            file.write(f'"{text}.",{"good" if good else "bad"}\n')


def timed(*command):
    """What it prints, and the seconds of processor time that it took with all it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    one_thread = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, **one_thread})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    rows, words = (list(map(int, sys.argv[1:])) + [200000, 300000][len(sys.argv) - 1:])[:2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        known = vocabulary(words)
        write_reviews(folder / 'train.csv', rows, *known, seed=2)
        write_reviews(folder / 'test.csv', rows // 5, *known, seed=3)
        (folder / 'job.conf').write_text('data = "train.csv"\ntest = "test.csv"\n'
                                         'objective = logistic\ncsv { text = review }\n')
        text, ours = timed(str(COORDINATOR), 'run', str(folder / 'job.conf'), '--json')
        result = json.loads(text.splitlines()[-1])
        text, theirs = timed(sys.executable, '-c', PEER, str(folder / 'train.csv'),
                             str(folder / 'test.csv'))
    print(f'{result["examples"]} rows, {result["features"]} words, {result["values"]} values')
    print(f'dml           accuracy {result["test"]["accuracy"]:.4f} in {ours:.2f} s')
    print(f'scikit-learn  accuracy {float(text):.4f} in {theirs:.2f} s')


main()
