"""Raw tables, as they were exported, for peers.py --tables: the files, what a user of either program
writes, and what comes of it. adult and kddcup have test files of their own; of the others every fifth
row is one for testing."""

import csv
import gzip
import io
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import COORDINATOR  # noqa: E402

# ---- the files ----


def lines_of(path):
    with (gzip.open if path.suffix == '.gz' else open)(path, 'rt') as file:
        return [line for line in file if line.strip()]


def split(path, header):
    lines = lines_of(path)
    head, rows = (lines[:1], lines[1:]) if header else ([], lines)
    return (head + [row for i, row in enumerate(rows) if i % 5],
            head + [row for i, row in enumerate(rows) if i % 5 == 0])


def adult(data):
    """The labels of the test file end with a dot, which is taken off."""
    test = [line.rstrip().rstrip('.') + '\n' for line in lines_of(data / 'adult.test.gz')]
    return lines_of(data / 'adult.data.gz'), test


def kddcup(data):
    return lines_of(data / 'kddcup.train.csv.gz'), lines_of(data / 'kddcup.test.csv.gz')


def housing(data):
    return split(data / 'cal_housing.csv.gz', True)


def covtype(data):
    return split(data / 'covtype.20k.csv.gz', False)


def wdbc(data):
    return split(data / 'wdbc.csv', True)


def sms(data):
    """Messages: a label and a sentence each."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator='\n')
    with open(data / 'sms_spam.tsv', newline='') as file:
        for line in file:
            writer.writerow(line.rstrip('\r\n').split('\t', 1))
    lines = rows.getvalue().splitlines(keepends=True)
    head = ['label,message\n']
    return (head + [row for i, row in enumerate(lines) if i % 5],
            head + [row for i, row in enumerate(lines) if i % 5 == 0])


# ---- what a user of scikit-learn writes ----

READ = '''
import pandas
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
train = pandas.read_csv('train.csv', {options})
test = pandas.read_csv('test.csv', {options})
'''

PIPELINE = '''
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
texts = make_column_selector(dtype_exclude='number')
columns = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), texts),
                                  remainder=StandardScaler())
label = train.columns[-1]
x, y, x_test, y_test = (train.drop(columns=label), train[label],
                        test.drop(columns=label), test[label])
model = make_pipeline(columns, LogisticRegression(C={C}, max_iter=1000)).fit(x, y)
print('accuracy', accuracy_score(y_test, model.predict(x_test)))
'''

AUC = '''
print('auc', roc_auc_score(y_test, model.predict_proba(x_test)[:, 1]))
'''

BINS = '''
from sklearn.preprocessing import KBinsDiscretizer
numbers = make_column_selector(dtype_include='number')
columns = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), texts),
                                  (StandardScaler(), numbers),
                                  (KBinsDiscretizer(32), numbers))
'''

RIDGE = '''
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
label = train.columns[-1]
x, y, x_test, y_test = (train.drop(columns=label), train[label],
                        test.drop(columns=label), test[label])
model = make_pipeline(StandardScaler(), Ridge(alpha={alpha})).fit(x, y)
print('r2', r2_score(y_test, model.predict(x_test)))
'''


SENTENCES = '''
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
model.fit(train.message, train.label)
print('accuracy', accuracy_score(test.label, model.predict(test.message)))
'''


def logistic(options, rows, l2, *more):
    return READ.format(options=options) + PIPELINE.format(C=1 / (rows * l2)) + ''.join(more)


def binned(options, rows, l2):
    """Its columns replace those of the pipeline before."""
    before, after = logistic(options, rows, l2, AUC).split('label = ', 1)
    return before + BINS.lstrip() + 'label = ' + after


# ---- the rows ----

class Row:
    def __init__(self, name, files, job, script, figures):
        self.name, self.files, self.job = name, files, job
        self.script, self.figures = script, figures


FILES = '''
data = { "train.csv" }
test = { "test.csv" }
'''
PLAIN = "header=None, skipinitialspace=True"

ROWS = [
    Row('adult', adult, FILES + 'l2 = 1e-4\n', logistic(PLAIN, 32561, 1e-4, AUC),
        ('auc', 'accuracy')),
    Row('adult, 32 bins', adult, FILES + 'l2 = 1e-4\ncsv { bins = 32 }\n',
        binned(PLAIN, 32561, 1e-4), ('auc', 'accuracy')),
    Row('kddcup', kddcup, FILES + 'objective = softmax\nl2 = 1e-6\n',
        logistic(PLAIN, 494021, 1e-6), ('accuracy',)),
    Row('cal_housing', housing, FILES + 'objective = squared\n',
        READ.format(options="") + RIDGE.format(alpha=0), ('r2',)),
    Row('covtype', covtype, FILES + 'objective = softmax\nl2 = 1e-4\nstandardise = true\n',
        logistic("header=None", 16000, 1e-4), ('accuracy',)),
    Row('wdbc', wdbc, FILES + 'l2 = 1e-4\nstandardise = true\ncsv {\nlabel = diag\nskip = { id }\n}\n',
        logistic("usecols=lambda name: name != 'id'", 455, 1e-4, AUC)
        .replace('train.columns[-1]', "'diag'"), ('auc', 'accuracy')),
    Row('sms', sms, FILES + 'csv {\nlabel = label\ntext = message\n}\n',
        READ.format(options='keep_default_na=False') + SENTENCES, ('accuracy',)),
]


def user_lines(text):
    return sum(1 for line in text.splitlines() if line.strip() and not line.startswith('#'))


# ---- running ----

def timed(command, folder):
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done, time.monotonic() - start


def run_dml(row, folder):
    (folder / 'job.conf').write_text(row.job)
    done, seconds = timed([COORDINATOR, 'run', 'job.conf', '--fresh', '--json'], folder)
    if done.returncode:
        return None, seconds, done.stderr.strip().splitlines()[-1]
    result = json.loads(done.stdout.splitlines()[-1])
    figures = {name: result['test'].get(name) for name in row.figures}
    note = f'{result["reason"]}, {result["evaluations"]} evaluations'
    return figures, seconds, note if result['converged'] else 'not converged: ' + note


def run_sklearn(python, row, folder):
    (folder / 'fit.py').write_text(row.script)
    done, seconds = timed([python, 'fit.py'], folder)
    if done.returncode:
        return None, seconds, done.stderr.strip().splitlines()[-1]
    said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    note = 'did not converge' if 'ConvergenceWarning' in done.stderr else ''
    return {name: float(said[name]) for name in row.figures}, seconds, note


def told(figures):
    return ', '.join(f'{name} {value:.4f}' for name, value in (figures or {}).items())


def measured(row, python, options):
    folder = options.work / row.files.__name__
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in zip(('train.csv', 'test.csv'), row.files(options.data)):
        (folder / name).write_text(''.join(lines))
    figures, seconds, note = run_dml(row, folder)
    yield row.name, 'dml', str(user_lines(row.job) + 1), f'{seconds:.2f}', told(figures), note
    figures, seconds, note = run_sklearn(python, row, folder)
    yield (row.name, 'scikit-learn', str(user_lines(row.script)), f'{seconds:.2f}', told(figures),
           note)


COLUMNS = ('table', 'by', 'lines', 'seconds', 'on the test file', '')
