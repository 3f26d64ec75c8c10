#!/usr/bin/env python3
"""Offsets and exposures of rows: what they add, where they come from, and what is refused."""

import itertools
import json
import math
import random
import sys
from pathlib import Path

from divided import (goes_on_from_a_model, has_one_path, has_the_bits_of_a_device, one_model,
                     survives, survives_its_coordinators)
from harness import BAD_DATA, CONFIG, USAGE, dml, main, test, train, write_job
from sweeps import rows_of

CLOSE = {'gradient_tolerance': 1e-13, 'loss_tolerance': 0, 'l2': 0}
ROWS = 400
OWN = ['weight', 'offset', 'exposure']
LOSSES = ['poisson', 'gamma', 'tweedie', 'logistic', 'squared']

# Of statsmodels 0.15.0, GLM with freq_weights, offset and exposure of the rows of made_rows(): a, b,
# c, the intercept. By objective, and by what of `OWN` is given.
STATSMODELS = {
    ('poisson', 'exposure'):
        [0.282358474938302, -0.29433002364345, 0.345893558643373, 0.770679203938332],
    ('poisson', 'offset', 'exposure', 'weight'):
        [0.248148121815957, -0.245028807281995, 0.385286338763263, 0.445935353585388],
    ('gamma', 'offset', 'exposure'):
        [0.317311113331439, -0.211528436018542, 0.46671427931216, 0.419435837754302],
    ('gamma', 'exposure', 'weight'):
        [0.326963380217293, -0.316629481517268, 0.337503660019452, 0.74506513420631],
    ('tweedie', 'offset', 'exposure'):
        [0.231609322974529, -0.108805650451206, 0.45880730849584, 0.116606629639059],
    ('tweedie', 'exposure', 'weight'):
        [0.267897890912669, -0.14557286524082, 0.329653833577208, 0.425866012674889],
    ('logistic', 'offset'):
        [0.360516865785538, -0.0951457334357385, 0.389906792209802, 0.248631654298163],
    ('logistic', 'offset', 'weight'):
        [0.406035551269972, -0.099666501037572, 0.318777548082501, 0.209043259822284],
    ('squared', 'offset'):
        [0.368779548536701, -0.133382026276136, 0.531375536583366, 0.422739742132544],
    ('squared', 'offset', 'weight'):
        [0.395226693752309, -0.114785809285051, 0.545971353591192, 0.403532474277624],
}


def made_rows():
    """A dictionary for each row: features a, b and c, what it has of its own, and a label for each
    loss."""
    rng = random.Random(20)
    rows = []
    for _ in range(ROWS):
        row = {name: round(rng.gauss(0, 1), 3) for name in 'abc'}
        row.update(weight=rng.randrange(1, 4), offset=round(rng.gauss(0, 0.7), 3),
                   exposure=round(rng.uniform(0.2, 8), 3))
        margin = 0.3 * row['a'] - 0.2 * row['b'] + 0.5 * row['c'] + 0.4 + row['offset']
        mean = row['exposure'] * math.exp(margin)
        amount = mean * (rng.expovariate(1) + rng.expovariate(1)) / 2
        row.update(poisson=int(amount + rng.random()), gamma=round(amount, 4) + 1e-4,
                   tweedie=round(amount, 4) if rng.random() < 0.7 else 0,
                   logistic=int(rng.random() < 1 / (1 + math.exp(-margin))),
                   squared=round(margin + rng.gauss(0, 1), 4))
        rows.append(row)
    return rows


def write_table(folder, rows, name='rows.csv', leave_out=()):
    names = [name for name in rows[0] if name not in leave_out]
    (folder / name).write_text('\n'.join(
        [','.join(names), *(','.join(str(row[n]) for n in names) for row in rows)]) + '\n')
    return names


def table_settings(names, label, own):
    skip = [n for n in names if n in LOSSES + OWN and n != label and n not in own]
    csv = {'label': label, 'skip': skip, **({'weight': 'weight'} if 'weight' in own else {})}
    return {'data': ['rows.csv'], 'objective': label, 'csv': csv,
            **{key: key for key in own if key != 'weight'}}


def write_lines(folder, rows, label, name='rows.libsvm'):
    """LIBSVM, and a file for each number of a row's own."""
    (folder / name).write_text(''.join(
        f'{row[label]} ' + ' '.join(f'{j}:{row[n]}' for j, n in enumerate('abc', 1) if row[n])
        + '\n' for row in rows))
    for own in OWN:
        (folder / f'{name}.{own}s').write_text(''.join(f'{row[own]}\n' for row in rows))


def line_settings(label, own, name='rows.libsvm'):
    return {'data': [name], 'objective': label, **{f'{key}s': [f'{name}.{key}s'] for key in own}}


def coefficients(model):
    exported = json.loads(dml('export', '--format', 'json', model).stdout)
    return [f['weights'][0] for f in exported['features']] + exported['intercepts']


def assert_near(one, other, tolerance):
    assert len(one) == len(other) and all(abs(a - b) <= tolerance * max(1, abs(b))
                                          for a, b in zip(one, other)), (one, other)


@test
def coefficients_are_those_of_statsmodels(folder):
    names = write_table(folder, made_rows())
    for (objective, *own), expected in STATSMODELS.items():
        settings = {**table_settings(names, objective, own), **CLOSE}
        for number, more in enumerate([{}, {'directions': 4, 'precondition': 'none'},
                                       {'directions': 0, 'precondition': 'none'}]):
            result = train(write_job(folder, f'job{number}', **settings, **more), '--fresh')
            assert_near(coefficients(result['model']), expected, 1e-10)


# The same of these: what a summary has of the fit, and the standard errors.
FITS = {
    ('poisson', 'exposure'):
        (4239.70566338, 5399.59583911, -2780.93362188,
         [0.0166123255413, 0.0152299059573, 0.0156014415747, 0.0182288924889]),
    ('gamma', 'offset', 'exposure'):
        (223.963995051, 372.171998464, -1023.90910287,
         [0.0382119731827, 0.0366657998544, 0.0367693883728, 0.0370849314697]),
    ('logistic', 'offset'):
        (486.717489594, 512.393618215, -243.358744797,
         [0.114696641543, 0.108452192091, 0.111300984939, 0.109206466809]),
}


@test
def the_summary_of_a_fit_has_the_offsets_of_statsmodels(folder):
    names = write_table(folder, made_rows())
    for (objective, *own), (deviance, null_deviance, likelihood, errors) in FITS.items():
        model = train(write_job(folder, **table_settings(names, objective, own), **CLOSE,
                                summary='model'), '--fresh')['model']
        summary = dml('summary', model, '--json').json
        fit = summary['fit']
        assert_near([fit['deviance'], fit['null_deviance'], fit['log_likelihood']],
                    [deviance, null_deviance, likelihood], 1e-9)
        found = {row['name']: row['error'] for row in summary['rows']}
        assert_near([found[name] for name in ('a', 'b', 'c', '(intercept)')], errors, 1e-9)


@test
def columns_and_files_give_one_model(folder):
    rows = made_rows()
    names = write_table(folder, rows)
    for label, own in (('poisson', ['exposure']), ('logistic', ['offset']),
                       ('gamma', ['offset', 'exposure', 'weight'])):
        write_lines(folder, rows, label)
        hashes = {train(write_job(folder, **settings), '--fresh')['model_sha256'] for settings in (
            table_settings(names, label, own), line_settings(label, own))}
        assert len(hashes) == 1, (label, own, hashes)


@test
def an_exposure_is_an_offset_of_its_logarithm(folder):
    rows = made_rows()
    names = write_table(folder, rows)
    first = train(write_job(folder, **table_settings(names, 'poisson', ['exposure'])))
    for row in rows:
        row['offset'] = math.log(row['exposure'])
    write_table(folder, rows)
    second = train(write_job(folder, **table_settings(names, 'poisson', ['offset'])), '--fresh')
    assert_near(coefficients(first['model']), coefficients(second['model']), 1e-9)


@test
def residual_losses_see_labels_less_their_offsets(folder):
    """Offsets may be far larger than what they leave: nothing that labels decide sees them."""
    close = {'gradient_tolerance': 1e-12, 'loss_tolerance': 0}
    for scale, objective in itertools.product((1, 1000), ('squared', 'huber', 'quantile')):
        rows = [dict(row, offset=round(scale * row['offset'], 3)) for row in made_rows()]
        sums = [dict(row, **{objective: round(row['squared'] + row['offset'], 4)}) for row in rows]
        plain = [dict(row, **{objective: row['squared']}) for row in rows]
        found, decided = [], []
        for table, own in (sums, ['offset']), (plain, []):
            write_lines(folder, table, objective)
            result = train(write_job(folder, **line_settings(objective, own), **close), '--fresh')
            parameters = json.loads((Path(result['model']) / 'model.json').read_text())
            decided.append([result['l2'], *parameters.get('objective_parameters', {}).values()])
            found.append(coefficients(result['model']))
        assert_near(*decided, 1e-9)
        assert_near(*found, 1e-9)


@test
def ordered_classes_and_hinges_have_the_optimum_of_scipy(folder):
    """Of scipy 1.17.1, minimize() of Σ log(1 + e^±(x·w + b_k + offset)) and of squared hinges, BFGS."""
    rows, rng = made_rows(), random.Random(5)
    for row in rows:
        margin = (0.5 * row['a'] - 0.3 * row['b'] + 0.2 * row['c'] + row['offset'] + rng.gauss(0, 1))
        row['ordinal'] = 0 if margin < -0.5 else 1 if margin < 0.6 else 2
        row['squared_hinge'] = int(row['ordinal'] > 0)
    for objective, more, expected in (
            ('ordinal', {'ordinal': {'order': ['0', '1', '2']}},
             [0.70672473, -0.50324822, 0.21479019, 0.68550759, -0.84939784]),
            ('squared_hinge', {}, [0.39791628, -0.2205598, 0.15992251, 0.33384123])):
        write_lines(folder, rows, objective)
        model = train(write_job(folder, **line_settings(objective, ['offset']), **more, **CLOSE),
                      '--fresh')['model']
        assert_near(coefficients(model), expected, 1e-7)


@test
def an_offset_of_0_and_an_exposure_of_1_change_no_bit(folder):
    rows = [dict(row, offset=0, exposure=1) for row in made_rows()]
    names = write_table(folder, rows)
    hashes = {train(write_job(folder, **table_settings(names, 'poisson', own)),
                    '--fresh')['model_sha256']
              for own in ([], ['offset'], ['exposure'], ['offset', 'exposure'])}
    assert len(hashes) == 1, hashes


# ---- one model however the run goes ----

FORMS = [('poisson', {}), ('logistic', {'precondition': 'none', 'directions': 4}),
         ('gamma', {'precondition': 'none', 'directions': 0}), ('tweedie', {'l1': 1e-2}),
         ('poisson', {'precondition': 'diagonal'}), ('logistic', {'standardise': True}),
         ('squared', {'intercept': False}), ('poisson', {'optimizer': 'downpour'}),
         ('poisson', {'holdout': 0.2, 'early_stopping': 3}),
         ('logistic', {'objective': 'network', 'network': {'layers': 4, 'loss': 'logistic'}})]
for label, more in FORMS:
    def behaviour(folder, label=label, more=more):
        rows = made_rows()
        write_lines(folder, rows, label)
        settings = {**line_settings(label, OWN), 'max_steps': 8, 'portion_chunks': 1, **more}
        job = write_job(folder, **settings)
        one_model(job, lambda result: None)
        if 'l1' not in more:
            has_the_bits_of_a_device(job)
    behaviour.__name__ = ' '.join([label, *more]) + ' has one model with offsets'
    test(behaviour)


def wide_job(folder, label='logistic', **settings):
    """Words, with offsets that are far from 0."""
    rng = random.Random(3)
    effect = [rng.gauss(0, 1) for _ in range(6000)]
    lines, offsets = [], []
    for _ in range(800):
        ids = sorted({int(6000 * rng.random() ** 3) for _ in range(rng.randrange(3, 30))})
        offset = round(rng.gauss(0, 3), 3)
        margin = sum(effect[j] for j in ids) / 3 + offset + rng.gauss(0, 0.5)
        lines.append(f'{int(margin > 0) if label == "logistic" else max(0, round(margin + 1))} '
                     + ' '.join(f'{j + 1}:1' for j in ids) + '\n')
        offsets.append(f'{offset}\n')
    (folder / 'wide').write_text(''.join(lines))
    (folder / 'wide.offsets').write_text(''.join(offsets))
    return write_job(folder, data=['wide'], offsets=['wide.offsets'], objective=label,
                     **{'l2': 1e-3, 'max_steps': 12, 'gradient_tolerance': 1e-12,
                        'loss_tolerance': 0, 'checkpoint_seconds': 0, 'portion_chunks': 1,
                        'precondition': 'none', **settings})


@test
def tiles_have_one_model_and_the_optimum_of_whole_rows(folder):
    for label in ('logistic', 'poisson'):
        settings = {'max_steps': 200, 'gradient_tolerance': 1e-9}
        tiles = train(wide_job(folder, label, strip_columns=1000, directions=6, **settings),
                      '--state', folder / f'{label}.tiles')
        whole = train(wide_job(folder, label, directions=0, **settings),
                      '--state', folder / f'{label}.whole')
        assert tiles['strips'] > 1 and tiles['converged'] and whole['converged'], (tiles, whole)
        assert abs(tiles['loss'] - whole['loss']) <= 1e-8 * whole['loss'], (tiles, whole)
        one_model(wide_job(folder, label, strip_columns=1000, directions=6), lambda result: None)


@test
def working_sets_of_l1_find_the_optimum_of_plain_steps(folder):
    job = wide_job(folder, l1=2e-3, l2=0, max_steps=2000, precondition='auto')
    working = train(job, '--state', folder / 'working')
    plain = train(job, '--state', folder / 'plain', '--set', 'precondition=none')
    assert abs(working['loss'] - plain['loss']) <= 1e-8 * plain['loss'], (working, plain)


@test
def processes_that_die_cost_no_bit(folder):
    """Shards that go back fetch the offsets of their rows again, before the margins."""
    for number, more in enumerate([{'directions': 4}, {'directions': 4, 'strip_columns': 1000},
                                   {'directions': 0}]):
        place = folder / str(number)
        place.mkdir()
        job = wide_job(place, max_steps=8, shards=2, replicas=2, **more)
        rules = ['shard0.receive_PROGRAM:6', 'shard1.receive_PROGRAM:9', 'replica0.send_FLUSHED:4',
                 'replica1.receive_EVALUATE:3']
        if more['directions']:
            rules += ['shard0.rows_taken:2', 'shard1.rows_taken:3', 'shard0.rows_advanced:2']
        survives(place, job, lambda result: None, *rules)
        survives_its_coordinators(place, job, 'send_EVALUATE:2', 'send_EVALUATE:3', 'state_accept:6')


@test
def a_run_goes_on_from_a_model(folder):
    goes_on_from_a_model(folder, wide_job(folder, max_steps=200, gradient_tolerance=1e-7))


@test
def a_path_has_one_set_of_models(folder):
    names = write_table(folder, made_rows())
    has_one_path(folder, write_job(folder, **table_settings(names, 'poisson', ['exposure']),
                                   l2=['1e-1', '1e-2', '1e-3'], folds=3))


# ---- what a model asks of other rows ----

def predictions(*arguments):
    finished = dml('predict', *arguments)
    assert finished.status == 0, finished
    return [float(line) for line in finished.stdout.split()]


@test
def predictions_have_the_offset_of_their_row(folder):
    rows = made_rows()
    names = write_table(folder, rows)
    job = write_job(folder, **table_settings(names, 'poisson', ['offset', 'exposure']),
                    test=['rows.csv'])
    result = train(job)
    *weights, intercept = coefficients(result['model'])
    expected = [row['exposure'] * math.exp(intercept + row['offset'] + sum(
        w * row[n] for w, n in zip(weights, 'abc'))) for row in rows]
    assert_near(predictions(result['model'], folder / 'rows.csv'), expected, 1e-12)
    figures = dml('evaluate', result['model'], folder / 'rows.csv', '--json').json
    mean = sum(m - r['poisson'] + (r['poisson'] * math.log(r['poisson'] / m) if r['poisson'] else 0)
               for m, r in zip(expected, rows)) / len(rows)
    assert_near([figures['deviance'], result['test']['deviance']], [mean, mean], 1e-12)
    # The columns may stand elsewhere; others are ignored.
    shuffled = [dict(reversed(row.items())) for row in rows]
    write_table(folder, shuffled, 'other.csv')
    assert_near(predictions(result['model'], folder / 'other.csv'), expected, 1e-12)
    write_table(folder, rows, 'lacks.csv', leave_out=['exposure'])
    lacks = dml('predict', result['model'], folder / 'lacks.csv')
    assert lacks.status == BAD_DATA and lacks.stdout == '' and (
        'lacks.csv:1: there is no column "exposure" to take the exposure from' in lacks.stderr), lacks
    described = json.loads((folder / 'job.state/models/1/model.json').read_text())
    assert described['offsets'] == ['offset', 'exposure'], described


@test
def predictions_of_files_need_a_file_beside(folder):
    rows = made_rows()
    write_lines(folder, rows, 'poisson')
    settings = line_settings('poisson', ['exposure'])
    model = train(write_job(folder, **settings))['model']
    data, beside = folder / 'rows.libsvm', folder / 'rows.libsvm.exposures'
    *weights, intercept = coefficients(model)
    expected = [row['exposure'] * math.exp(intercept + sum(
        w * row[n] for w, n in zip(weights, 'abc'))) for row in rows]
    assert_near(predictions(model, data, '--set', f'exposures={beside}'), expected, 1e-12)
    for arguments, text in (((), '--set exposures=FILE'),
                            (('--set', f'exposures={beside}', '--set', f'offsets={beside}'),
                             'without an offset')):
        refused = dml('predict', model, data, *arguments)
        assert refused.status == USAGE and text in refused.stderr and not refused.stdout, refused


@test
def nights_and_holdouts_have_offsets(folder):
    rows = made_rows()
    write_lines(folder, rows[:300], 'poisson', 'first.libsvm')
    write_lines(folder, rows[300:], 'poisson', 'second.libsvm')
    write_lines(folder, rows, 'poisson', 'all.libsvm')
    def job(*names):
        return write_job(folder, data=names, exposures=[f'{name}.exposures' for name in names],
                         objective='poisson', holdout=['all.libsvm'], test=['all.libsvm'],
                         holdout_exposures=['all.libsvm.exposures'],
                         test_exposures=['all.libsvm.exposures'])
    night = dml('retrain', job('first.libsvm'), '--json')
    held = {**night.json['holdout']}
    held.pop('rows', None)
    assert night.status == 0 and held == night.json['test'], night
    again = dml('retrain', job('first.libsvm', 'second.libsvm'), '--json')
    assert again.status == 0 and again.json['examples'] == ROWS, again
    alone = dml('evaluate', folder / 'job.state', folder / 'all.libsvm', '--json', '--set',
                f'exposures={folder / "all.libsvm.exposures"}').json
    assert alone['loss'] == again.json['holdout']['loss'], (alone, again)


@test
def an_export_says_what_it_cannot_carry(folder):
    write_lines(folder, made_rows(), 'logistic')
    model = train(write_job(folder, **line_settings('logistic', ['offset'])))['model']
    refused = dml('export', '--format', 'liblinear', model)
    assert refused.status == BAD_DATA and 'the offset of a row' in refused.stderr, refused
    assert json.loads(dml('export', '--format', 'json', model).stdout)['offsets'] == ['offset']
    told = dml('export', '--format', 'tsv', model)
    assert told.status == 0 and 'offset' in told.stderr, told


@test
def data_without_offsets_keeps_its_names(folder):
    """The names of packs and sets hold the hash of what they are made from and how."""
    rows = made_rows()
    write_lines(folder, rows, 'logistic')
    plain = write_job(folder, **line_settings('logistic', ['weight']))
    train(plain)
    before = {p.name: p.read_bytes() for p in (folder / 'job.state/packs').iterdir()}
    train(write_job(folder, **line_settings('logistic', ['weight', 'offset'])))
    train(plain, '--fresh')
    after = {p.name: p.read_bytes() for p in (folder / 'job.state/packs').iterdir()}
    assert len(after) == 2 * len(before) and all(after[n] == b for n, b in before.items()), after


@test
def the_hash_of_a_row_leaves_its_offset_out(folder):
    rows = made_rows()
    names = write_table(folder, rows)
    found = []
    for own in ([], ['offset'], ['exposure']):
        settings = table_settings(names, 'poisson', own)
        train(write_job(folder, **settings, holdout=0.3), '--fresh')
        found.append(dml('pack', write_job(folder, **settings, holdout=0.3), '--json'
                         ).json['rows_held_out'])
    assert len(set(found)) == 1, found


# ---- what is refused ----

@test
def bad_numbers_are_told_with_their_line(folder):
    rows = made_rows()
    for key, cell, text in (('offset', '', 'the offset is empty'), ('offset', 'nan', 'no offset'),
                            ('offset', 'inf', 'no offset'), ('offset', '1e101', 'no offset'),
                            ('offset', '?', 'no offset'), ('exposure', '0', 'no exposure'),
                            ('exposure', '-2', 'no exposure'), ('exposure', 'NaN', 'no exposure'),
                            ('exposure', '', 'the exposure is empty')):
        bad = [dict(row) for row in rows]
        bad[7][key] = cell
        names = write_table(folder, bad)
        job = write_job(folder, **table_settings(names, 'poisson', [key]))
        refused = dml('run', job)
        assert refused.status == BAD_DATA and 'rows.csv:9: ' in refused.stderr and (
            text in refused.stderr), refused
        result = train(job, '--set', 'bad_lines=1')
        assert result['examples'] == ROWS - 1, result
        write_lines(folder, bad, 'poisson')
        refused = dml('run', write_job(folder, **line_settings('poisson', [key])), '--state',
                      folder / 'files')
        place = f'rows.libsvm.{key}s'
        assert refused.status == BAD_DATA and place in refused.stderr, refused


@test
def files_must_have_a_number_for_each_row(folder):
    write_lines(folder, made_rows(), 'poisson')
    beside = folder / 'rows.libsvm.offsets'
    text = beside.read_text()
    for other, what in ((text + '1\n', 'has 401 offsets, but'),
                        (text.split('\n', 1)[1], 'has only 399 offsets, and')):
        beside.write_text(other)
        refused = dml('run', write_job(folder, **line_settings('poisson', ['offset'])))
        assert refused.status == BAD_DATA and what in refused.stderr, refused


@test
def jobs_in_which_offsets_make_no_sense_are_refused(folder):
    names = write_table(folder, made_rows())
    (folder / 'b').write_text('0\n')
    settings = table_settings(names, 'logistic', ['offset'])
    for more, text in (({'objective': 'softmax'}, 'one offset for all of them has no effect'),
                       ({'objective': 'one_vs_rest'}, 'an offset is of one margin'),
                       ({'objective': 'network', 'network': {'layers': 3, 'loss': 'softmax'}},
                        'one offset for all of them has no effect'),
                       ({'offsets': ['b']}, 'is combined with files of offsets'),
                       ({'test_exposures': ['b']}, 'there is no `test`')):
        refused = dml('check', write_job(folder, **{**settings, **more}))
        assert refused.status == CONFIG and text in refused.stderr, refused
    for more, text in (({'offset': 'nothing'}, 'there is no column "nothing" to take the offset'),
                       ({'offset': 'logistic'}, 'cannot be offset: it is the label'),
                       ({'exposure': 'offset'}, 'cannot be exposure: it is offset')):
        refused = dml('run', write_job(folder, **{**settings, **more}))
        assert refused.status == BAD_DATA and text in refused.stderr, refused
    write_lines(folder, made_rows(), 'logistic')
    refused = dml('run', write_job(folder, data=['rows.libsvm'], offset='x'))
    assert refused.status == CONFIG and 'use `offsets`' in refused.stderr, refused


@test
def offsets_may_be_far_from_0(folder):
    rows = made_rows()
    names = write_table(folder, rows)
    first = train(write_job(folder, **table_settings(names, 'poisson', ['exposure']), **CLOSE))
    for row in rows:
        row['exposure'] *= 1e90
    write_table(folder, rows)
    second = train(write_job(folder, **table_settings(names, 'poisson', ['exposure']), **CLOSE),
                   '--fresh')
    one, other = coefficients(first['model']), coefficients(second['model'])
    other[-1] += 90 * math.log(10)
    assert_near(other, one, 1e-9)
    assert second['steps'] <= first['steps'] + 2, (first, second)


if __name__ == '__main__':
    sys.exit(main())
