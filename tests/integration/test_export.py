#!/usr/bin/env python3
"""Models in the formats of others hold the same numbers and predict the same."""

import importlib.util
import json
import math
import shutil
import statistics
import sys
from fractions import Fraction

from harness import (BAD_DATA, CREATE, USAGE, Skip, dml, lines_of, main, run, shared, small_job,
                     test, train, write_job)
from row_hash import row_hash


def exported(model, form, *more):
    finished = dml('export', model, '--format', form, *more)
    assert finished.status == 0, finished
    return finished


def read_liblinear(text):
    """The header as a dict, and the lines of weights as exact numbers."""
    head, weights = text.split('\nw\n')
    lines = dict(line.split(' ', 1) for line in head.splitlines())
    rows = [[Fraction(float(word)) for word in line.split()] for line in weights.splitlines()]
    with_bias = lines['bias'] == '1'
    assert len(rows) == int(lines['nr_feature']) + with_bias, (lines, len(rows))
    return lines, rows


def margins_of(rows, bias, line, column=0):
    """Exact: no rounding but that of the written numbers."""
    total = rows[-1][column] if bias else Fraction(0)
    for pair in line.split()[1:]:
        index, value = pair.split(':')
        if int(index) <= len(rows) - bias:
            total += rows[int(index) - 1][column] * Fraction(float(value))
    return float(total)


def liblinear_predict(folder, data, model, *options):
    program = shutil.which('liblinear-predict') or shutil.which('predict')
    if not program:
        raise Skip('liblinear-predict is not installed (package liblinear-tools)')
    finished = run(program, *options, data, model, folder / 'out')
    assert finished.status == 0, finished
    return (folder / 'out').read_text().splitlines()


def check_binary(folder, state, data, lines):
    text = exported(state, 'liblinear').stdout
    (folder / 'exported').write_text(text)
    head, rows = read_liblinear(text)
    assert head['solver_type'] == 'L2R_LR' and head['nr_class'] == '2', head
    assert head['label'] == '1 -1' and head['bias'] == '1', head
    chances = [float(line) for line in dml('predict', state, data).stdout.splitlines()]
    assert len(chances) == len(lines)
    for line, chance in zip(lines, chances):
        expected = 1 / (1 + math.exp(-margins_of(rows, True, line)))
        assert abs(chance - expected) <= 1e-12, (line, chance, expected)
    printed = liblinear_predict(folder, data, folder / 'exported', '-b', '1')
    assert printed[0] == 'labels 1 -1', printed[0]
    for row, chance in zip(printed[1:], chances, strict=True):
        label, first, second = row.split()
        assert label == ('1' if chance > 0.5 else '-1'), (row, chance)
        assert math.isclose(float(first), chance, rel_tol=6e-6), (row, chance)
        assert math.isclose(float(second), 1 - chance, rel_tol=6e-6, abs_tol=1e-15), (row, chance)


@test
def liblinear_predicts_as_we_do_on_a_small_set(folder):
    train(small_job(folder))
    data = folder / 'small.libsvm'
    check_binary(folder, folder / 'job.state', data, lines_of(data))


@test
def liblinear_predicts_as_we_do_on_a9a(folder):
    lines = lines_of(shared('a9a.t.gz'))
    (folder / 'test').write_text('\n'.join(lines) + '\n')
    train(write_job(folder, data=[shared('a9a.gz')], l2=1e-6, loss_tolerance=1e-6))
    check_binary(folder, folder / 'job.state', folder / 'test', lines)


@test
def liblinear_predicts_the_classes_and_values_that_we_do(folder):
    rows = [f'{k % 3 + 5} {k % 5 + 1}:1 {k % 3 + 6}:{k % 4} 12:{k * 7 % 11}\n' for k in range(60)]
    (folder / 'data').write_text(''.join(rows))
    for objective, solver in ('softmax', 'MCSVM_CS'), ('squared', 'L2R_L2LOSS_SVR'):
        train(write_job(folder, objective, data=['data'], objective=objective, l2=1e-3))
        state = folder / f'{objective}.state'
        text = exported(state, 'liblinear').stdout
        assert text.startswith(f'solver_type {solver}\n') and '\nnr_feature 12\n' in text, text
        (folder / 'exported').write_text(text)
        printed = liblinear_predict(folder, folder / 'data', folder / 'exported')
        predicted = dml('predict', state, folder / 'data').stdout.splitlines()
        for ours, theirs in zip(predicted, printed, strict=True):
            numbers = [float(word) for word in ours.split()]
            if objective == 'softmax':
                assert int(theirs) == 5 + numbers.index(max(numbers)), (ours, theirs)
            else:
                assert math.isclose(float(theirs), numbers[0], rel_tol=6e-6), (ours, theirs)


@test
def a_softmax_over_two_classes_is_a_logistic_model_for_liblinear(folder):
    train(small_job(folder, objective='softmax'))
    text = exported(folder / 'job.state', 'liblinear').stdout
    (folder / 'exported').write_text(text)
    assert text.startswith('solver_type L2R_LR\nnr_class 2\nlabel 1 -1\n'), text
    data = folder / 'small.libsvm'
    printed = liblinear_predict(folder, data, folder / 'exported', '-b', '1')[1:]
    predicted = dml('predict', folder / 'job.state', data).stdout.splitlines()
    for ours, theirs in zip(predicted, printed, strict=True):
        assert math.isclose(float(theirs.split()[1]), float(ours.split()[1]), rel_tol=6e-6)


def named_job(folder, **settings):
    """Labels that are texts, and columns with names that want care."""
    rows = [f'{"M" if k * 7 % 5 < 2 else "B"},{k % 9},{k * 31 % 17},{k % 4}' for k in range(60)]
    (folder / 'named.csv').write_text('diag,radius,"a\tb","größe ""x"""\n' + '\n'.join(rows) + '\n')
    return write_job(folder, 'named', data=['named.csv'], l2=1e-2, csv={'label': 'diag'},
                     **settings)


@test
def labels_that_are_texts_are_numbered_for_liblinear_with_a_note(folder):
    train(named_job(folder))
    finished = exported(folder / 'named.state', 'liblinear')
    assert 'label 1 0\n' in finished.stdout, finished
    assert '0 stands for "B"' in finished.stderr and '1 stands for "M"' in finished.stderr, finished


def check_refused(folder, reason):
    finished = dml('export', folder / 'job.state', '--format', 'liblinear', '-o', folder / 'out')
    assert finished.status == BAD_DATA and reason in finished.stderr, finished
    assert 'tsv' in finished.stderr, finished
    assert not list(folder.glob('out*')), list(folder.iterdir())


@test
def a_model_too_large_for_liblinear_is_refused_and_nothing_is_written(folder):
    for index, reason in (4000000000, '4000000000'), (600000000, '1.7 GiB'):
        (folder / 'data').write_text(f'1 5:2 {index}:1\n-1 5:1 {index}:2\n')
        train(write_job(folder, data=['data'], l2=1e-2), '--fresh')
        check_refused(folder, reason)
        assert f'\n{index}\t' in exported(folder / 'job.state', 'tsv').stdout


@test
def a_feature_0_is_refused_for_liblinear(folder):
    train(small_job(folder))
    path = folder / 'job.state/models/current/model.safetensors'
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[:8], 'little')
    at = 8 + length + json.loads(content[8:8 + length])['feature_id']['data_offsets'][0]
    content[at:at + 8] = bytes(8)
    path.write_bytes(content)
    described = path.with_name('model.json')
    members = json.loads(described.read_text())
    described.write_text(json.dumps({name: value for name, value in members.items()
                                     if name not in ('tensors_sha256', 'json_sha256')}))
    check_refused(folder, 'feature 0')


@test
def top_lists_the_heaviest_weights_by_name(folder):
    train(named_job(folder))
    rows = [line.split('\t') for line in
            exported(folder / 'named.state', 'tsv').stdout.splitlines()[1:]]
    weights = {name: float(weight) for name, weight, _ in rows}
    deviations = {name: float(deviation or 0) for name, _, deviation in rows}
    intercept = weights.pop('(intercept)')
    heaviest = sorted(weights, key=lambda name: -abs(weights[name]))
    finished = dml('export', folder / 'named.state', '--top', '2')
    expected = ['        weight  of deviation  feature', 'towards class M; negative ones towards B']
    expected += [f'{weights[name]:14.6g}  {weights[name] * deviations[name]:12.4g}  {name}'
                 for name in heaviest[:2]]
    expected += [f'{intercept:14.6g}{"":16}(intercept)']
    assert finished.stdout.splitlines() == expected, finished
    for top in '3', '1000000':
        longer = dml('export', folder / 'named.state', '--top', top, '-o', folder / 'out')
        assert longer.status == 0, longer
        assert (folder / 'out').read_text().count('\n') == 6, top
    for wrong in ('0',), ('-1',), ('x',), ('1e3',), ('9999999',), ('2', '--json'):
        finished = dml('export', folder / 'named.state', '--top', *wrong)
        assert finished.status == USAGE and '`--top' in finished.stderr, finished


@test
def top_finds_the_heaviest_of_each_class_among_many(folder):
    rows = [f'{k % 3 + 5} {k % 50 + 1}:1 {k % 3 + 60}:{k % 4} 99:{k * 7 % 11}\n' for k in range(300)]
    (folder / 'data').write_text(''.join(rows))
    train(write_job(folder, data=['data'], objective='softmax', l2=1e-3))
    table = [line.split('\t') for line in
             exported(folder / 'job.state', 'tsv').stdout.splitlines()[1:]]
    lines = dml('export', folder / 'job.state', '--top', '3').stdout.splitlines()[1:]
    for name, block in zip('567', (lines[0:5], lines[6:11], lines[12:17]), strict=True):
        weights = [(float(row[2]), row[0]) for row in table
                   if row[1] == name and row[0] != '(intercept)']
        weights.sort(key=lambda pair: -abs(pair[0]))
        assert block[0] == f'class {name}', lines
        assert [line.split()[::2] for line in block[1:4]] == \
            [[f'{weight:.6g}', feature] for weight, feature in weights[:3]], (block, weights[:3])


@test
def tsv_has_a_row_a_feature_by_name_and_the_intercept(folder):
    train(small_job(folder))
    rows = [line.split('\t')
            for line in exported(folder / 'job.state', 'tsv').stdout.splitlines()]
    weights = json.loads(exported(folder / 'job.state', 'json').stdout)
    assert rows[0] == ['feature', 'weight', 'deviation'], rows[0]
    assert rows[1:-1] == [[str(f['id']), repr17(f['weights'][0]), repr17(f['deviation'])]
                          for f in weights['features']]
    assert rows[-1] == ['(intercept)', repr17(weights['intercepts'][0]), ''], rows
    train(named_job(folder))
    lines = exported(folder / 'named.state', 'tsv').stdout.splitlines()
    assert [line.split('\t')[0] for line in lines] == [
        'feature', 'radius', 'a\\tb', 'größe "x"', '(intercept)'], lines
    train(named_job(folder, objective='softmax'), '--fresh')
    lines = exported(folder / 'named.state', 'tsv').stdout.splitlines()
    assert lines[0] == 'feature\tclass\tweight\tdeviation' and len(lines) == 1 + 2 * 4, lines
    assert lines[1].startswith('radius\tB\t') and lines[2].startswith('radius\tM\t'), lines


def columns_of(text):
    """The values of each feature, 0 where there is none, and the weights of the rows, all 1."""
    rows = [dict((int(j), float(v)) for j, v in (word.split(':') for word in line.split()[1:]))
            for line in text.splitlines()]
    return {j: [row.get(j, 0.0) for row in rows] for row in rows for j in row}


@test
def deviations_are_those_of_the_training_rows_as_long_as_these_are_there(folder):
    job = small_job(folder, holdout=0.25)
    result = train(job)
    kept = [line for line in (folder / 'small.libsvm').read_text().splitlines()
            if row_hash(line) >= 0.25 * 2 ** 64]
    assert len(kept) == result['examples'] < 60, result
    table = {row[0]: row[2] for row in (line.split('\t') for line in exported(
        folder / 'job.state', 'tsv').stdout.splitlines()[1:])}
    for feature, values in columns_of('\n'.join(kept)).items():
        expected = statistics.pstdev(values)
        assert abs(float(table[str(feature)]) - expected) < 1e-12 * expected, (feature, table)
    elsewhere = folder / 'copy'
    shutil.copytree(folder / 'job.state/models/1', elsewhere)
    for path in folder.glob('job.state/packs/*.set'):
        path.write_bytes(path.read_bytes()[:-1])
    for place in elsewhere, folder / 'job.state':
        lines = exported(place, 'tsv').stdout.splitlines()
        assert all(line.endswith('\t') for line in lines[1:]), lines
        top = dml('export', place, '--top', '2')
        assert top.status == 0 and 'deviation' not in top.stdout, top
        assert 'deviation' not in exported(place, 'json').stdout


def repr17(number):
    return f'{number:.17g}'


@test
def json_has_objective_classes_names_and_weights(folder):
    result = train(named_job(folder))
    finished = exported(folder / 'named.state', 'json')
    model = json.loads(finished.stdout)
    assert model['objective'] == 'logistic' and model['classes'] == ['B', 'M'], model
    assert model['model_sha256'] == result['model_sha256'], model
    assert [(f['id'], f['name']) for f in model['features']] == [
        (2, 'radius'), (3, 'a\tb'), (4, 'größe "x"')], model
    assert len(model['intercepts']) == 1 and all(len(f['weights']) == 1 for f in model['features'])
    assert dml('export', folder / 'named.state', '--json').stdout == finished.stdout
    train(small_job(folder, intercept=False))
    assert 'intercepts' not in json.loads(exported(folder / 'job.state', 'json').stdout)


@test
def the_safetensors_package_reads_the_weights_that_json_has(folder):
    if not all(importlib.util.find_spec(name) for name in ('safetensors', 'numpy')):
        raise Skip('the Python packages safetensors and numpy are not installed')
    from safetensors.numpy import load_file
    train(small_job(folder, objective='softmax'))
    tensors = load_file(folder / 'job.state/models/current/model.safetensors')
    model = json.loads(exported(folder / 'job.state', 'json').stdout)
    assert tensors['feature_id'].tolist() == [f['id'] for f in model['features']]
    assert tensors['weight'].T.tolist() == [f['weights'] for f in model['features']]
    assert tensors['bias'].tolist() == model['intercepts']


@test
def a_file_appears_whole_and_replaces_another(folder):
    train(small_job(folder))
    out = folder / 'model.tsv'
    out.write_text('old')
    finished = exported(folder / 'job.state', 'tsv', '-o', out)
    assert finished.stdout == '' and finished.stderr == '', finished
    assert out.read_text() == exported(folder / 'job.state', 'tsv', '--output', '-').stdout
    assert [path.name for path in folder.glob('model.tsv*')] == ['model.tsv']
    nowhere = dml('export', folder / 'job.state', '--format', 'tsv', '-o', folder / 'no/where')
    assert nowhere.status == CREATE and 'no/where' in nowhere.stderr, nowhere
    device = dml('export', folder / 'job.state', '--format', 'tsv', '-o', '/dev/null')
    assert device.status == CREATE and 'no regular file' in device.stderr, device


@test
def the_format_must_be_one_of_those_known(folder):
    train(small_job(folder))
    for words in [], ['--format', 'pmml'], ['--format', 'tsv', '--json']:
        finished = dml('export', folder / 'job.state', *words)
        assert finished.status == USAGE and finished.stdout == '', finished
        assert 'json' in finished.stderr, finished


sys.exit(main())
