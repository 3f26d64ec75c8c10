"""The problems on which optima.py and peers.py measure, each with the optimum of F that an
independent method found.

A problem is a text file, made from the data sets if it is not there already, and the settings of a
job. `F(w, b) = mean loss + l2/2 |w|^2`; the intercept b is not regularised.
"""

import dataclasses
import gzip
import math
import pathlib
import random
import re
import struct
import sys
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import made_rows  # noqa: E402
from harness import lines_of, write_job  # noqa: E402
from wide_text import documents, write_wide_text  # noqa: E402


class Missing(Exception):
    """Which file of the data sets is not here."""


@dataclasses.dataclass(frozen=True)
class Problem:
    name: str
    source: str           # a file of the data sets; '' if generated
    make: Callable        # (source path, path of the text file to write)
    objective: str
    l2: float
    optimum: float | None  # of F; None: newton.py finds it
    gap: float = 1e-6     # relative, (F - F*) / F*
    csv: dict = dataclasses.field(default_factory=dict)

    @property
    def file_name(self):
        """Problems that differ only in l2 share a text file."""
        return f'{self.name.split()[0]}.{"csv" if self.csv else "libsvm"}'

    @property
    def settings(self):
        extra = {'csv': self.csv} if self.csv else {}
        return {'data': [self.file_name], 'objective': self.objective, 'l2': self.l2, **extra}

    def prepared(self, data, folder):
        """The job, and what answers F* and what that lacks."""
        job = write_job(folder, name='job', **{**self.settings, 'data': [self.text(data, folder)]})
        return job, lambda: (self.optimum, 0.0)

    def text(self, data, folder):
        """The text file in `folder`, made unless it is there."""
        path, source = folder / self.file_name, data / self.source
        if self.source and not source.exists():
            raise Missing(f'{self.source} is not in {data}')
        if not path.exists():
            unfinished = path.with_suffix('.unfinished')
            self.make(source, unfinished)
            unfinished.rename(path)
        return path


# ---- text files ----

def copied(source, target):
    target.write_text('\n'.join(lines_of(source)) + '\n')


def numeric_attacks(source, target):
    """The numeric columns of the KDD Cup table, and whether the connection is normal."""
    categorical = (1, 2, 3)
    with target.open('w') as file:
        for line in lines_of(source):
            *fields, label = line.split(',')
            kept = [field for i, field in enumerate(fields) if i not in categorical]
            file.write(','.join(kept) + f',{int(label != "normal.")}\n')


def standardised(source, target):
    """Columns with mean 0 and population deviation 1, constant ones 0; the last column is kept."""
    *columns, label = zip(*(map(float, line.split(',')) for line in lines_of(source)))
    scaled = []
    for column in columns:
        mean = math.fsum(column) / len(column)
        deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in column) / len(column))
        scaled.append([(x - mean) / deviation if deviation else 0.0 for x in column])
    with target.open('w') as file:
        for *row, y in zip(*scaled, label):
            file.write(','.join(map(repr, row)) + f',{y:g}\n')


def idx(path, dimensions):
    """The sides of an array of bytes in an IDX file, and its content."""
    with gzip.open(path) as file:
        content = file.read()
    end = 4 + 4 * dimensions
    return struct.unpack(f'>{dimensions}I', content[4:end]), content[end:]


def images(source, target):
    """Pixels as shares of 255, to four digits; those that are 0 are left out."""
    (count, *sides), pixels = idx(source, 3)
    _, labels = idx(source.with_name(source.name.replace('images-idx3', 'labels-idx1')), 1)
    size = math.prod(sides)
    words = [[f' {j}:{value / 255:.4g}' for value in range(256)] for j in range(1, size + 1)]
    with target.open('w') as file:
        for row in range(count):
            image = pixels[row * size:(row + 1) * size]
            file.write(str(labels[row]) + ''.join(words[j][v] for j, v in enumerate(image) if v)
                       + '\n')


def wide_text(source, target):
    write_wide_text(source, target, binary=True)


def dense_table(_, target):
    """400,000 × 40: columns share eight factors, and a noisy linear rule makes the label."""
    rng = random.Random(1)
    gauss, columns, factors = rng.gauss, range(40), range(8)
    rule = [gauss(0, 0.5) for _ in columns]
    loads = [[gauss(0, 1) for _ in factors] for _ in columns]
    with target.open('w') as file:
        for _ in range(400_000):
            shared = [gauss(0, 1) for _ in factors]
            row = [gauss(0, 0.5) + sum(a * b for a, b in zip(load, shared)) for load in loads]
            margin = gauss(0, 2) + sum(a * b for a, b in zip(rule, row))
            file.write(('1' if margin > 0 else '-1')
                       + ''.join(f' {j}:{v:.4g}' for j, v in enumerate(row, 1)) + '\n')


def of_lines(make):
    """What writes the lines that `make` answers, of a table or of nothing."""
    def write(source, target):
        target.write_text(''.join(make(source)))
    return write


def news20_two(source):
    """Its first ten classes and the others, as tf-idf."""
    return made_rows.tf_idf([(1 if label <= 10 else -1, dict(terms))
                             for label, terms in documents(source)])


def messages(source):
    rows, number = [], {}
    for line in source.read_text().splitlines():
        label, text = line.split('\t', 1)
        counts = {}
        for word in re.findall(r'\w\w+', text.lower()):
            j = number.setdefault(word, len(number) + 1)
            counts[j] = counts.get(j, 0) + 1
        rows.append((1 if label == 'spam' else -1, counts))
    return made_rows.tf_idf(rows)


def adult(source):
    rows = [line.split(', ') for line in lines_of(source) if line]
    return made_rows.one_hot([(row[-1], row[:-1]) for row in rows], '>50K',
                             numbers=(0, 2, 4, 10, 11, 12))


def avazu(source):
    """All its columns are codes."""
    rows = [line.split(',') for line in lines_of(source)[1:]]
    return made_rows.one_hot([(row[1], row[2:]) for row in rows], '1')


# ---- problems ----

# The optima of wdbc, housing, covtype, kddcup and fashion are what newton.py finds (at the end half
# the squared Newton decrement is below 1e-9 of F). A damped Newton-CG in double precision found the
# others (gradient norm at the end 1e-13 or below); newton.py finds the same.
PROBLEMS = [
    Problem('heart_scale 1e-2', 'heart_scale', copied, 'logistic', 1e-2, 0.369595638067),
    Problem('heart_scale 1e-4', 'heart_scale', copied, 'logistic', 1e-4, 0.3332468880896),
    Problem('a9a 1e-4', 'a9a.gz', copied, 'logistic', 1e-4, 0.324413044112),
    Problem('a9a 1e-6', 'a9a.gz', copied, 'logistic', 1e-6, 0.3226701779074),
    Problem('agaricus 1e-4', 'agaricus.txt.train.gz', copied, 'logistic', 1e-4, 0.01144906953321),
    Problem('agaricus 1e-6', 'agaricus.txt.train.gz', copied, 'logistic', 1e-6, 0.0003976556959185),
    Problem('ijcnn1 1e-4', 'ijcnn1.gz', copied, 'logistic', 1e-4, 0.2012969656371),
    Problem('ijcnn1 1e-6', 'ijcnn1.gz', copied, 'logistic', 1e-6, 0.1833767141185),
    Problem('farm_ads 1e-4', 'farm_ads.libsvm.gz', copied, 'logistic', 1e-4, 0.03479567630111),
    Problem('farm_ads 1e-6', 'farm_ads.libsvm.gz', copied, 'logistic', 1e-6, 0.003677562293913),
    Problem('news20 1e-4', 'news20.libsvm.gz', copied, 'softmax', 1e-4, 0.214719531955),
    Problem('wdbc 1e-6', 'wdbc.csv', copied, 'logistic', 1e-6, 0.04662403974827712,
            csv={'label': 'diag', 'skip': ['id']}),
    Problem('housing 1e-6', 'cal_housing.csv.gz', copied, 'squared', 1e-6, 2416063217.4457483,
            csv={'header': 'yes'}),
    Problem('covtype 1e-4', 'covtype.20k.csv.gz', copied, 'softmax', 1e-4, 0.6490489385800833,
            csv={'header': 'no'}),
    Problem('covtype-standardised 1e-4', 'covtype.20k.csv.gz', standardised, 'softmax', 1e-4,
            0.655990071241, csv={'header': 'no'}),
    Problem('kddcup 1e-6', 'kddcup.train.csv.gz', numeric_attacks, 'logistic', 1e-6,
            0.016156086985516894, csv={'header': 'no'}),
    Problem('fashion 1e-4', 'fashion_mnist/train-images-idx3-ubyte.gz', images, 'softmax', 1e-4,
            0.3794770326167885, gap=1e-4),
]

def named(name):
    found, = (problem for problem in PROBLEMS if problem.name == name)
    return found


# What peers.py runs. Where no optimum is given, newton.py finds it, as it does for all of these
# with a regularised intercept.
PEERS = [
    named('a9a 1e-4'), named('a9a 1e-6'), named('ijcnn1 1e-4'), named('ijcnn1 1e-6'),
    named('farm_ads 1e-4'), named('farm_ads 1e-6'),
    Problem('wide 1e-5', 'news20.libsvm.gz', wide_text, 'logistic', 1e-5, None),
    Problem('dense 1e-6', '', dense_table, 'logistic', 1e-6, None),
    dataclasses.replace(named('fashion 1e-4'), gap=1e-3),
    Problem('adult 3e-5', 'adult.data.gz', of_lines(adult), 'logistic', 3e-5, None),
    Problem('avazu 2e-5', 'avazu.train.csv.gz', of_lines(avazu), 'logistic', 2e-5, None),
    Problem('clicks 1e-5', '', of_lines(lambda _: made_rows.clicks()), 'logistic', 1e-5, None),
    Problem('sms 2e-4', 'sms_spam.tsv', of_lines(messages), 'logistic', 2e-4, None),
    Problem('news20-two 1e-5', 'news20.libsvm.gz', of_lines(news20_two), 'logistic', 1e-5, None),
]
