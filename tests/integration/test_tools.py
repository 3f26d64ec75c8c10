#!/usr/bin/env python3
"""What does not train: check, pack, inspect, predict and evaluate."""

import math
import re
import sys

from harness import (BAD_DATA, dml, main, read_safetensors, small_data, small_job, test, train,
                     write_job)

# ---- check, pack, inspect ----

@test
def check_prints_every_setting_as_a_job_file_and_starts_nothing(folder):
    job = small_job(folder)
    finished = dml('check', job, '--set', 'history=7')
    assert finished.status == 0, finished
    assert re.search(r'^history\s*=\s*7\b', finished.stdout, re.MULTILINE), finished
    assert re.search(r'^max_steps\s*=\s*1000\b', finished.stdout, re.MULTILINE), finished
    # A tolerance that a job gives is kept to otherwise than one that it leaves.
    assert re.search(r'^# gradient_tolerance\s*=\s*1e-0?5\b', finished.stdout, re.MULTILINE), finished
    assert not (folder / 'job.state').exists()
    (folder / 'again.conf').write_text(finished.stdout)
    again = dml('check', folder / 'again.conf')
    assert again.status == 0 and again.stdout == finished.stdout, (finished, again)


@test
def run_n_is_check(folder):
    job = small_job(folder)
    assert dml('run', '-n', job).stdout == dml('check', job).stdout
    assert not (folder / 'job.state').exists()


@test
def check_gives_the_settings_as_json(folder):
    settings = dml('check', small_job(folder), '--json').json
    assert settings['objective'] == 'logistic' and settings['l2'] == 1e-3, settings


@test
def a_pack_is_reused_until_its_source_changes(folder):
    job = small_job(folder)
    packs = lambda: {path: path.stat().st_mtime_ns
                     for path in (folder / 'job.state').rglob('*.pack')}
    assert dml('pack', job).status == 0
    first = packs()
    assert len(first) == 1, first
    assert dml('pack', job).status == 0
    assert packs() == first
    before = train(job)['model_sha256']
    assert packs() == first
    small_data(folder, seed=2)
    assert train(job)['model_sha256'] != before
    assert packs() != first


@test
def inspect_says_what_a_pack_holds(folder):
    job = small_job(folder)
    assert dml('pack', job).status == 0
    pack = next((folder / 'job.state').rglob('*.pack'))
    finished = dml('inspect', pack)
    assert finished.status == 0 and 'small.libsvm' in finished.stdout, finished
    what = dml('inspect', pack, '--json').json
    assert what['rows'] == 60 and what['values'] == 240, what


def named_csv(folder, header='a,label,größe,c', name='named.csv'):
    rows = [f'{k % 9},{k * 7 % 5 < 2:d},{k * 31 % 17},{k % 4}' for k in range(60)]
    (folder / name).write_text('\n'.join([header, *rows, '']))
    return write_job(folder, 'named', data=[name], l2=1e-2, csv={'label': 'label'})


@test
def features_have_the_names_of_the_header_wherever_they_are_shown(folder):
    job = named_csv(folder)
    train(job)
    for path in [*folder.rglob('*.pack'), *folder.rglob('*.set')]:
        assert dml('inspect', path, '--json').json['columns'] == ['a', 'größe', 'c'], path
        assert re.search('^columns +a, größe, c$', dml('inspect', path).stdout, re.M), path
    with open(folder / 'named.csv', 'a') as file:
        file.write('1,,2,3\n')
    finished = dml('run', job)
    assert finished.status == BAD_DATA and 'column 2 (label)' in finished.stderr, finished
    named_csv(folder)
    with open(folder / 'named.csv', 'a') as file:
        file.write('1,1,"2,3\n')
    finished = dml('run', job)
    assert finished.status == BAD_DATA and 'column 3 (größe)' in finished.stderr, finished


@test
def predict_finds_columns_by_name_and_refuses_missing_ones(folder):
    train(named_csv(folder))
    rows = [line.split(',') for line in (folder / 'named.csv').read_text().splitlines()]
    (folder / 'swapped.csv').write_text(
        ''.join(f'{size},{label},{c},{a}\n' for a, label, size, c in rows))
    given, swapped = (dml('predict', folder / 'named.state', folder / name)
                      for name in ('named.csv', 'swapped.csv'))
    assert swapped.status == 0 and swapped.stdout == given.stdout, (given, swapped)
    (folder / 'short.csv').write_text('a,label,größe\n1,1,2\n')
    finished = dml('predict', folder / 'named.state', folder / 'short.csv')
    assert finished.status == BAD_DATA and finished.stdout == '', finished
    assert 'short.csv:1: the column "c" is missing' in finished.stderr, finished


# ---- predict, evaluate ----

@test
def predict_prints_the_probability_of_the_positive_class(folder):
    job = small_job(folder)
    train(job)
    finished = dml('predict', folder / 'job.state', folder / 'small.libsvm')
    assert finished.status == 0, finished
    arrays = read_safetensors(folder / 'job.state/models/current/model.safetensors')
    weight = dict(zip(arrays['feature_id'][1], arrays['weight'][1]))
    rows = (folder / 'small.libsvm').read_text().splitlines()
    printed = [float(line) for line in finished.stdout.splitlines()]
    assert len(printed) == len(rows) == 60
    for line, probability in zip(rows, printed):
        pairs = (pair.split(':') for pair in line.split()[1:])
        margin = arrays['bias'][1][0] + sum(weight[int(j)] * float(v) for j, v in pairs)
        assert abs(probability - 1 / (1 + math.exp(-margin))) < 1e-12, (line, probability, margin)


@test
def predict_takes_rows_without_labels_and_features_never_seen(folder):
    train(small_job(folder))
    (folder / 'new').write_text('1:0.5 2:1\n1:0.5 2:1 900:3\n')
    finished = dml('predict', folder / 'job.state', folder / 'new')
    assert finished.status == 0, finished
    first, second = finished.stdout.splitlines()
    assert first == second, finished


@test
def predict_gives_a_probability_for_each_class_and_values_for_squared_loss(folder):
    rows = [f'{k % 3} {k % 5 + 1}:1 {k % 3 + 6}:{k % 4}\n' for k in range(60)]
    (folder / 'data').write_text(''.join(rows))
    train(write_job(folder, 'classes', data=['data'], objective='softmax', l2=1e-3))
    for line in dml('predict', folder / 'classes.state', folder / 'data').stdout.splitlines():
        probabilities = [float(word) for word in line.split()]
        assert len(probabilities) == 3 and abs(sum(probabilities) - 1) < 1e-12, line
    train(write_job(folder, 'values', data=['data'], objective='squared', l2=1e-3))
    values = dml('predict', folder / 'values.state', folder / 'data').stdout.splitlines()
    assert len(values) == 60 and all(len(line.split()) == 1 for line in values)


@test
def evaluate_agrees_with_the_predictions(folder):
    train(small_job(folder))
    model, data = folder / 'job.state/models/current', folder / 'small.libsvm'
    figures = dml('evaluate', model, data, '--json').json
    labels = [line.startswith('1') for line in data.read_text().splitlines()]
    chances = [float(line) for line in dml('predict', model, data).stdout.splitlines()]
    loss = -math.fsum(math.log(p if y else 1 - p) for p, y in zip(chances, labels)) / len(labels)
    pairs = [(p > q) + (p == q) / 2 for p, y in zip(chances, labels) if y
             for q, z in zip(chances, labels) if not z]
    assert figures['examples'] == 60, figures
    assert abs(figures['loss'] - loss) < 1e-12, (figures, loss)
    assert abs(figures['auc'] - sum(pairs) / len(pairs)) < 1e-12, figures
    right = sum((p > 0.5) == y for p, y in zip(chances, labels))
    assert abs(figures['accuracy'] - right / 60) < 1e-12, figures


@test
def a_label_that_training_never_saw_counts_as_wrong_and_is_reported(folder):
    train(small_job(folder))
    data = folder / 'small.libsvm'
    before = dml('evaluate', folder / 'job.state', data, '--json').json
    data.write_text(data.read_text() + '7 1:1\n')
    after = dml('evaluate', folder / 'job.state', data, '--json').json
    assert abs(after['accuracy'] * 61 - before['accuracy'] * 60) < 1e-9, (before, after)
    assert after['unseen_labels'] == 1, after


sys.exit(main())
