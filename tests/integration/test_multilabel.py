#!/usr/bin/env python3
"""Rows with any number of classes: a logistic model for each class, the same bits over replicas,
shards, threads and kills, from LIBSVM and CSV, with figures and predictions of lists."""

import json
import math
import random
import sys

from harness import BAD_DATA, CONFIG, dml, main, test, train, write_job
from wide import killed_at, wide_data

L2, FEATURES, ROWS = 1e-2, 4, 600
CLASSES = ['7', '20', '100']  # in numeric order
TAGS = ['new york', 'oslo', 'rome']  # in that of texts
EXACT = {'l2': L2, 'gradient_tolerance': 1e-10, 'loss_tolerance': 0}


def draw_rows(count=ROWS):
    """(classes, values); some rows have no class, and some have all."""
    source = random.Random(9)
    rows = []
    for _ in range(count):
        x = [round(source.uniform(-1, 1), 4) for _ in range(FEATURES)]
        margins = [3 * x[0] - 0.5, x[1] - 2 * x[2], 2 * x[3] - 1]
        rows.append(([m + source.gauss(0, 1) > 0 for m in margins], x))
    return rows


def label_of(has, names=CLASSES, separator=','):
    return separator.join(name for name, one in zip(names, has) if one)


def write_libsvm(folder, rows, label, name='data'):
    with open(folder / name, 'w') as file:
        for has, x in rows:
            file.write(f'{label(has)} ' + ' '.join(f'{i + 1}:{v}' for i, v in enumerate(x)) + '\n')
    return folder / name


def write_csv(folder, rows, name='data.csv'):
    with open(folder / name, 'w') as file:
        file.write('a,b,c,d,tags\n')
        for has, x in rows:
            file.write(','.join(map(str, x)) + ',"' + label_of(has, TAGS, ', ') + '"\n')
    return folder / name


@test
def each_class_has_the_logistic_model_of_its_own_data(folder):
    rows = draw_rows()
    data = write_libsvm(folder, rows, label_of)
    whole = train(write_job(folder, data=[data], objective='multilabel', **EXACT))
    found = [json.loads(line) for line in
             dml('predict', folder / 'job.state', data, '--json').stdout.splitlines()]
    loss = 0
    for k, name in enumerate(CLASSES):
        one = write_libsvm(folder, rows, lambda has: 1 if has[k] else -1, f'of-{name}')
        loss += train(write_job(folder, name, data=[one], objective='logistic', **EXACT))['loss']
        chances = dml('predict', folder / f'{name}.state', one).stdout.split()
        for line, chance in zip(found, chances):
            assert abs(line['probabilities'][k] - float(chance)) < 1e-7, (k, line, chance)
    assert abs(whole['loss'] - loss) <= 1e-10 * loss, (whole['loss'], loss)
    for line in found:
        likely = [c for c, p in zip(CLASSES, line['probabilities']) if p > 0.5]
        assert line['classes'] == likely, line
    labels = dml('predict', folder / 'job.state', data, '--labels').stdout.splitlines()
    assert labels == [','.join(line['classes']) for line in found]
    figures = dml('evaluate', folder / 'job.state', data, '--json').json
    guessed = [[c in line['classes'] for c in CLASSES] for line in found]
    pairs = [(g, h) for guess, (has, _) in zip(guessed, rows) for g, h in zip(guess, has)]
    hits = sum(g and h for g, h in pairs)
    assert math.isclose(figures['accuracy'], sum(
        guess == has for guess, (has, _) in zip(guessed, rows)) / ROWS), figures
    assert math.isclose(figures['hamming'], sum(g != h for g, h in pairs) / len(pairs)), figures
    assert math.isclose(figures['micro_precision'], hits / sum(g for g, _ in pairs)), figures
    assert math.isclose(figures['micro_recall'], hits / sum(h for _, h in pairs)), figures
    assert [c['class'] for c in figures['classes']] == CLASSES, figures
    assert [c['examples'] for c in figures['classes']] == [
        sum(has[k] for has, _ in rows) for k in range(3)], figures
    assert 'confusion' not in figures and 'log_loss' not in figures, figures


@test
def a_cell_of_a_table_holds_the_same_lists(folder):
    rows = draw_rows()
    table = train(write_job(folder, 'table', data=[write_csv(folder, rows)], objective='multilabel',
                            **EXACT))
    # The order of these names is that of the tags.
    lines = write_libsvm(folder, rows, lambda has: label_of(has, ['1', '2', '3']))
    plain = train(write_job(folder, 'plain', data=[lines], objective='multilabel', **EXACT))
    assert table['model_sha256'] == plain['model_sha256'], (table, plain)
    state = folder / 'table.state'
    labels = dml('predict', state, folder / 'data.csv', '--labels', '--header').stdout.splitlines()
    numbers = dml('predict', folder / 'plain.state', lines, '--labels').stdout.splitlines()
    names = dict(zip('123', TAGS))
    assert labels[0] == 'classes'
    assert labels[1:] == [','.join(names[n] for n in line.split(',') if n) for line in numbers]
    unlabelled = folder / 'unlabelled.csv'
    unlabelled.write_text('a,b,c,d\n' + ''.join(
        ','.join(map(str, x)) + '\n' for _, x in rows))
    assert dml('predict', state, unlabelled, '--labels').stdout.splitlines() == labels[1:]
    other = folder / 'other.csv'
    other.write_text('a,b,c,d,tags\n1,0,0,0,"oslo,paris"\n0,1,0,0,rome\n')
    figures = dml('evaluate', state, other, '--json').json
    assert figures['examples'] == 2 and figures['unseen_labels'] == 1, figures


@test
def another_separator_is_another_run_and_stays_with_the_model(folder):
    rows = draw_rows(200)
    path = folder / 'data.csv'
    path.write_text(''.join(','.join(map(str, x)) + ',' + label_of(has, TAGS, ' | ') + '\n'
                            for has, x in rows))
    job = write_job(folder, data=[path], objective='multilabel', multilabel={'separator': '|'}, l2=L2)
    result = train(job)
    model = json.loads((folder / 'job.state/models/current/model.json').read_text())
    assert model['separator'] == '|' and model['classes'] == TAGS, model
    labels = dml('predict', folder / 'job.state', path, '--labels').stdout.splitlines()
    assert 'new york|oslo' in labels, labels[:20]
    assert dml('evaluate', folder / 'job.state', path, '--json').json['accuracy'] > 0.3
    changed = train(job, '--set', 'multilabel.separator=;')
    assert changed['run'] != result['run'], changed
    assert any('|' in name for name in json.loads(
        (folder / 'job.state/models/current/model.json').read_text())['classes'])
    del model['separator'], model['json_sha256']
    (folder / 'job.state/models/1/model.json').write_text(json.dumps(model))
    finished = dml('predict', folder / 'job.state/models/1', path)
    assert finished.status == BAD_DATA and 'must have a `separator`' in finished.stderr, finished


@test
def what_lists_cannot_have_is_refused(folder):
    (folder / 'data').write_text('1,2 1:1\n3 1:2\n1,x 1:3\n')
    (folder / 'sound').write_text('1,2 1:1\n3 1:2\n')
    (folder / 'none').write_text(' 1:1\n 1:2\n')
    for data, text, status, error in [
            ('data', '', BAD_DATA, 'data:3: the label "1,x" is no list of finite numbers'),
            ('none', '', BAD_DATA, 'none: no row has a label'),
            ('sound', 'class_weight = balanced', CONFIG,
             'key `class_weight`: needs an objective with one class for each row'),
            ('sound', 'multilabel { separator = ab }', CONFIG, 'key `multilabel.separator`'),
            ('sound', 'multilabel { separator = "." }', CONFIG, 'key `multilabel.separator`'),
            ('sound', 'holdout = 0.5\ngate = "log_loss <= 1"', CONFIG, 'micro_f1')]:
        (folder / 'job.conf').write_text(f'data = {data}\nobjective = multilabel\n{text}\n')
        finished = dml('run', folder / 'job.conf')
        assert finished.status == status and error in finished.stderr, (text, finished)
    (folder / 'job.conf').write_text('data = sound\nmultilabel { separator = ";" }\n')
    finished = dml('check', folder / 'job.conf')
    assert finished.status == CONFIG, finished
    assert 'key `multilabel.separator`: is for another objective' in finished.stderr, finished
    finished = dml('run', write_job(folder, data=[folder / 'sound'], objective='one_vs_rest'))
    assert finished.status == BAD_DATA, finished
    assert 'set objective = multilabel' in finished.stderr, finished


@test
def retrain_compares_micro_figures_and_takes_classes_that_come(folder):
    rows = draw_rows()
    data = write_libsvm(folder, rows, label_of)
    job = write_job(folder, data=[data], objective='multilabel', holdout='0.2', l2=L2,
                    gate=['micro_f1 >= 0.5', 'hamming <= 1.1 * live'], early_stopping=20)
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    with open(data, 'a') as file:
        file.writelines(f'7,900 1:{i % 7 - 3}\n' for i in range(40))
    second = dml('retrain', job, '--json')
    assert second.status == 0 and second.json['published'], second
    names = json.loads((folder / 'job.state/models/current/model.json').read_text())['classes']
    assert names == [*CLASSES, '900'], names


@test
def lists_have_the_same_bits_over_replicas_shards_threads_and_kills(folder):
    wide = folder / wide_data(folder, label=lambda rng: ','.join(
        str(k) for k in range(4) if rng.random() < 0.3))
    settings = {'data': [wide], 'objective': 'multilabel', 'l2': L2, 'max_steps': 12}
    hashes = set()
    for replicas, shards, threads in [(1, 1, 1), (3, 2, 1), (2, 3, 2)]:
        job = write_job(folder, f'job-{replicas}-{shards}', replicas=replicas, shards=shards,
                        threads=threads, checkpoint_seconds=0, **settings)
        hashes.add(train(job)['model_sha256'])
    killed_at('send_EVALUATE:5', job, '--state', folder / 'killed.state')
    hashes.add(train(job, '--state', folder / 'killed.state')['model_sha256'])
    assert len(hashes) == 1, hashes


sys.exit(main())
