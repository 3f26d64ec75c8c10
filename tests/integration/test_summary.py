#!/usr/bin/env python3
"""The summary of a model: its figures are those of an independent implementation, and what is printed
says in words what stands against them."""

import json
import math
import random
import sys

from harness import BAD_DATA, USAGE, dml, main, test, train, write_job
from summaries import rows_of, write_csv

# By statsmodels 0.15.0 with scipy 1.17.1: GLM with var_weights (tweedie with the power 1.5), and
# MNLogit without weights. Estimate, error and p of each row, p by Student's t where the dispersion is
# estimated. The reference levels are west and b, and of softmax the class blue.
CANNED = {
    'squared': {
        'fit': {'deviance': 922.9130232251, 'null_deviance': 1015.74714707, 'pearson': 922.9130232251, 'log_likelihood': -548.4527896808, 'aic': 1108.905579362, 'bic': 1131.12827421, 'freedom': 294},
        'rows': {'(intercept)': (4.345283556778, 1.48719876706, 0.003750143070231), 'x': (0.3044481217652, 0.08650975197408, 0.000501331135333), 'z': (-0.0022095673461, 0.001327879701633, 0.09718155501589), 'region=north': (0.1133754017833, 0.2175243892335, 0.6026144072498), 'region=south': (0.7799576152335, 0.2487415559885, 0.001888512011203), 'kind=a': (-0.4630066035771, 0.2433650358838, 0.05808027977006)},
        'HC0': {'(intercept)': 1.69395198868, 'x': 0.0943872595357, 'z': 0.001476516268542, 'region=north': 0.2466370208121, 'region=south': 0.298546589682, 'kind=a': 0.3029106498636},
    },
    'logistic': {
        'fit': {'deviance': 661.0782913396, 'null_deviance': 693.0044259933, 'pearson': 501.6477657216, 'log_likelihood': -330.5391456698, 'aic': 673.0782913396, 'bic': 695.3009861875, 'freedom': 294},
        'rows': {'(intercept)': (7.915764899811, 1.770410261736, 7.780111982529e-06), 'x': (0.2957724782184, 0.107885530808, 0.006115194889087), 'z': (-0.0078999205258, 0.001633691589473, 1.32727676807e-06), 'region=north': (0.4966971081413, 0.2994958397307, 0.0972278617877), 'region=south': (0.6282030829136, 0.331832047976, 0.05833983107872), 'kind=a': (-0.03130164800588, 0.2327314138873, 0.8930096816076)},
        'HC0': {'(intercept)': 2.882664487331, 'x': 0.1633632968622, 'z': 0.002682504645925, 'region=north': 0.4880729013065, 'region=south': 0.5340923062381, 'kind=a': 0.3811190709563},
    },
    'poisson': {
        'fit': {'deviance': 815.7466192685, 'null_deviance': 1146.269827197, 'pearson': 813.675420467, 'log_likelihood': -987.0647683791, 'aic': 1986.129536758, 'bic': 2008.352231606, 'freedom': 294},
        'rows': {'(intercept)': (4.79700119432, 0.5738374291789, 6.297792322488e-17), 'x': (0.3481515934057, 0.03258056800682, 1.185371626146e-26), 'z': (-0.004389077078375, 0.0005140177768962, 1.356637899108e-17), 'region=north': (0.3624937533922, 0.1007429952953, 0.0003204234163351), 'region=south': (1.045421384781, 0.1043765614028, 1.298232975922e-23), 'kind=a': (-0.3353776546812, 0.08883054198646, 0.000159701857894)},
        'HC0': {'(intercept)': 1.124206741334, 'x': 0.06268018603693, 'z': 0.0009909222727776, 'region=north': 0.162396249266, 'region=south': 0.1747991638022, 'kind=a': 0.1678665193473},
    },
    'gamma': {
        'fit': {'deviance': 243.2228390695, 'null_deviance': 340.3745663012, 'pearson': 233.7062847797, 'log_likelihood': -572.1505208153, 'aic': 1156.301041631, 'bic': 1178.523736479, 'freedom': 294},
        'rows': {'(intercept)': (3.83160524823, 0.7483828477173, 5.537159254738e-07), 'x': (0.3073969967183, 0.04353312816798, 1.194670838283e-11), 'z': (-0.003121388104799, 0.0006682108770831, 4.560987182864e-06), 'region=north': (0.2624022831512, 0.109461845631, 0.0171448272284), 'region=south': (0.8564633077219, 0.1251708367028, 4.528557405028e-11), 'kind=a': (-0.3504457494468, 0.1224652834736, 0.004517695648407)},
    },
    'tweedie': {
        'fit': {'deviance': 1105.855523129, 'null_deviance': 1304.234265565, 'pearson': 809.4523499786, 'log_likelihood': -677.2288976385, 'aic': 1366.457795277, 'bic': 1388.680490125, 'freedom': 294},
        'rows': {'(intercept)': (6.012060511583, 1.190798940916, 7.811715024757e-07), 'x': (0.3905449519929, 0.07248632275615, 1.463580932084e-07), 'z': (-0.005781185044053, 0.001090053211527, 2.236355366087e-07), 'region=north': (0.5169446785187, 0.2300913732349, 0.0254016239572), 'region=south': (0.9552534724395, 0.2433815170495, 0.0001081065743992), 'kind=a': (-0.25528347132, 0.1524316849543, 0.09504853611811)},
    },
    'softmax': {
        'fit': {'deviance': 631.247354863, 'null_deviance': 646.8790176244, 'pearson': 597.0791690621, 'log_likelihood': -315.6236774315, 'aic': 655.247354863, 'bic': 699.6927445589, 'freedom': 288},
        'rows': {'green: (intercept)': (-7.648380293594, 3.049311700298, 0.01213370723947), 'green: x': (-0.0581322523131, 0.1842203353666, 0.7523378078597), 'green: z': (0.005772729046977, 0.002697018503656, 0.03232153716234), 'green: region=north': (0.01718591916937, 0.4392201342906, 0.9687881307978), 'green: region=south': (-0.2033786323922, 0.4919464575213, 0.6793017115582), 'green: kind=a': (1.030943760388, 0.4889076850934, 0.03497328947817), 'red: (intercept)': (-3.216137151863, 2.67223508731, 0.2287680971926), 'red: x': (-0.08244607005067, 0.1656465594406, 0.618679432703), 'red: z': (0.002328107926302, 0.002384854366857, 0.3289626430856), 'red: region=north': (0.6927575434761, 0.431539845229, 0.1084244198064), 'red: region=south': (0.09939389581879, 0.4847908347407, 0.8375531488489), 'red: kind=a': (0.2331762281903, 0.3543983582797, 0.5105705715985)},
    },
}
ROWS = 300


def close(found, expected, relative=1e-8):
    return math.isclose(found, expected, rel_tol=relative, abs_tol=1e-11)


def trained(folder, loss, summary='robust', **settings):
    write_csv(folder / 'rows.csv', rows_of(loss, ROWS))
    csv = {'skip': ['w']} if loss == 'softmax' else {'weight': 'w'}
    job = write_job(folder, data=['rows.csv'], objective=loss, csv=csv,
                    **{'l2': 0, 'summary': summary, **settings})
    train(job)
    return folder / 'job.state'


def summary_of(model, *options):
    finished = dml('summary', model, '--json', *options)
    assert finished.status == 0, finished
    table = json.loads(finished.stdout)
    return table, {(f"{row['class']}: " if 'class' in row else '') + row['name']: row
                   for row in table['rows']}


def check_rows(rows, canned):
    for name, (estimate, error, p) in canned.items():
        row = rows[name]
        assert close(row['estimate'], estimate) and close(row['error'], error), (name, row)
        assert close(row['statistic'], estimate / error), (name, row)
        assert math.isclose(row['p'], p, rel_tol=1e-7), (name, row)  # of far tails
        middle = (row['low'] + row['high']) / 2
        assert close(middle, estimate) and row['low'] < estimate < row['high'], (name, row)


@test
def figures_are_those_of_statsmodels(folder):
    for loss, canned in CANNED.items():
        place = folder / loss
        place.mkdir()
        table, rows = summary_of(trained(place, loss))
        check_rows(rows, canned['rows'])
        for name, value in canned['fit'].items():
            assert close(table['fit'][name], value), (loss, name, table['fit'])
        assert table['fit']['rows'] == ROWS
        aliased = {name.split(': ')[-1] for name, row in rows.items()
                   if row.get('reference') and not name.startswith('blue')}
        assert aliased == {'region=west', 'kind=b'}, (loss, aliased)
        assert table['test'] == ('t' if loss in ('squared', 'gamma', 'tweedie') else 'z')
        if 'HC0' in canned:
            _, robust = summary_of(place / 'job.state', '--robust')
            _, more = summary_of(place / 'job.state', '--robust=HC1')
            for name, error in canned['HC0'].items():
                assert close(robust[name]['error'], error), (loss, name, robust[name], error)
                factor = math.sqrt(ROWS / table['fit']['freedom'])
                assert close(more[name]['error'], error * factor), (loss, name)


# Likewise, with x as the offset, or as the exposure after 1 was added: deviance, null deviance, chi2,
# log-likelihood, AIC; estimate and error of z.
OFFSETS = {
    'exposure': ('poisson', [816.0693441583, 1029.955321326, 826.3575674573, -987.226130824,
                             1984.452261648], -0.004372211059947, 0.0005105866672257),
    'offset': ('logistic', [700.5301306012, 741.9231902222, 648.5823853633, -350.2650653006,
                            710.5301306012], -0.010404327206, 0.001723739015736),
}


@test
def offsets_are_in_the_null_model_too(folder):
    for key, (loss, figures, estimate, error) in OFFSETS.items():
        place = folder / key
        place.mkdir()
        rows = [{**row, 'x': row['x'] + (key == 'exposure')} for row in rows_of(loss, ROWS)]
        write_csv(place / 'rows.csv', rows)
        train(write_job(place, data=['rows.csv'], objective=loss, csv={'weight': 'w'}, l2=0,
                        summary='model', **{key: 'x'}))
        table, named = summary_of(place / 'job.state')
        for name, value in zip(('deviance', 'null_deviance', 'pearson', 'log_likelihood', 'aic'),
                               figures):
            assert close(table['fit'][name], value), (key, name, value, table['fit'])
        assert close(named['z']['estimate'], estimate) and close(named['z']['error'], error), named


@test
def levels_make_intervals_wider_and_patterns_choose_rows(folder):
    model = trained(folder, 'logistic')
    _, usual = summary_of(model)
    table, wide = summary_of(model, '--level', '0.99')
    # The quantiles of the normal distribution.
    for rows, width in ((usual, 1.959963984540054), (wide, 2.5758293035489004)):
        row = rows['x']
        assert close(row['high'] - row['estimate'], width * row['error']), row
        assert close(row['ratio'], math.exp(row['estimate'])), row
        assert close(row['ratio_low'], math.exp(row['low'])), row
    assert table['level'] == 0.99 and table['ratio'] == 'odds ratio'
    _, some = summary_of(model, '--only', 'region=*')
    assert set(some) == {'region=north', 'region=south', 'region=west'}
    for options in (['--only', 'nothing*'], ['--level', '1'], ['--level', 'x'], ['--robust=HC9'],
                    ['--cluster', 'kind'], ['--cluster', 'x', '--robust']):
        finished = dml('summary', model, *options)
        assert finished.status == USAGE and finished.stdout == '', (options, finished)


@test
def the_text_has_80_columns_and_says_what_matters(folder):
    model = trained(folder, 'poisson')
    text = dml('summary', model).stdout
    assert all(len(line) <= 80 for line in text.splitlines()), text
    for words in ('poisson: poisson, link log', '(intercept)', '<2e-16', '(reference level)',
                  'rate ratio', 'null deviance', 'AIC', 'Reference levels: region=west, kind=b.'):
        assert words in text, (words, text)


@test
def names_are_whole_unless_a_line_has_a_width(folder):
    towns = [f'a town whose name is longer than most: number {i}' for i in range(4)]
    rows = [f'{towns[i % 4]},{i},{"yes" if i * i % 11 > 4 else "no"}' for i in range(90)]
    (folder / 'rows.csv').write_text('\n'.join(['town,size,bought', *rows]) + '\n')
    state = train(write_job(folder, data=['rows.csv'], l2=0, summary='model')) and folder / 'job.state'
    whole, narrow = dml('summary', state).stdout, dml('summary', state, COLUMNS='80').stdout
    assert all(whole.count(f'town={town} ') == 1 + ('(reference' not in line) for town in towns
               for line in [next(line for line in whole.splitlines() if town in line)]), whole
    assert towns[0] not in narrow.split('null deviance')[0] and max(map(len, narrow.splitlines())) <= 81, narrow
    assert len(set(map(len, whole.split('odds ratio')[0].splitlines()[3:7]))) == 1, whole


@test
def a_penalty_and_an_early_end_are_told(folder):
    penalised = trained(folder, 'squared', l2=0.01)
    table, rows = summary_of(penalised)
    assert any(note.startswith('l2 = 0.01 draws') for note in table['notes']), table['notes']
    assert table['fit']['parameters'] < 8 and not any(row.get('aliased') for row in rows.values())
    place = folder / 'early'
    place.mkdir()
    table, _ = summary_of(trained(place, 'poisson', max_steps=1))
    assert any('has not converged' in note for note in table['notes']), table['notes']


@test
def classes_that_a_column_parts_are_named(folder):
    rows = rows_of('logistic', ROWS)
    for row in rows:
        if row['region'] == 'west':
            row['y'] = 1
    write_csv(folder / 'rows.csv', rows)
    train(write_job(folder, data=['rows.csv'], objective='logistic', csv={'weight': 'w'}, l2=0,
                    summary='model'))
    notes = ' '.join(summary_of(folder / 'job.state')[0]['notes'])
    assert 'No finite estimate' in notes and 'same class' in notes, notes


def notes_of(folder, rows, objective, **settings):
    write_csv(folder / 'rows.csv', rows)
    result = train(write_job(folder, data=['rows.csv'], objective=objective, l2=0, summary='robust',
                             **settings), '--fresh')
    table, named = summary_of(result['model'])
    return ' '.join(table['notes']), named


@test
def a_perfect_fit_tests_nothing(folder):
    rng = random.Random(4)
    rows = [{'x': x, 'z': rng.gauss(0, 1), 'y': 2 * x + 1} for x in (rng.gauss(0, 1) for _ in range(60))]
    notes, named = notes_of(folder, rows, 'squared')
    assert 'perfect' in notes and named['z']['p'] is None and named['z']['low'] is None, (notes, named)
    notes, named = notes_of(folder, [{**row, 'y': row['y'] + 1e-6 * rng.gauss(0, 1)} for row in rows],
                            'squared')
    assert 'perfect' not in notes and named['z']['p'] > 1e-6, (notes, named)


@test
def counts_that_vary_more_than_poisson_are_told(folder):
    rng = random.Random(4)

    def count(mean):
        left, drawn = math.exp(-mean), rng.random()
        k, share = 0, left
        while drawn > left:
            k, share = k + 1, share * mean / (k + 1)
            left += share
        return k
    notes, _ = notes_of(folder, [{'x': rng.random(), 'y': count(3)} for _ in range(300)], 'poisson')
    assert 'vary more' not in notes, notes
    notes, _ = notes_of(folder, [{'x': rng.random(), 'y': count(rng.choice((1, 8)))}
                                 for _ in range(300)], 'poisson')
    assert 'vary more' in notes and '--robust' in notes, notes


@test
def a_softmax_names_its_class_and_each_reference_level_once(folder):
    table, _ = summary_of(trained(folder, 'softmax'))
    notes = ' '.join(table['notes'])
    assert 'The reference class is blue.' in notes, notes
    assert 'Reference levels: region=west, kind=b.' in notes and 'aliased' not in notes, notes


@test
def shares_and_an_exposure_without_a_log_link_are_questioned(folder):
    write_csv(folder / 'rows.csv', [{'n': 4 + i % 3, 'x': i, 'y': (i % 3) / 4} for i in range(20)])
    said = dml('run', write_job(folder, data=['rows.csv'], objective='logistic'))
    assert said.status == BAD_DATA and 'two rows, of labels 1 and 0' in said.stderr, said
    for loss, asked in ('squared', True), ('poisson', False):
        said = dml('run', write_job(folder, data=['rows.csv'], objective=loss, exposure='n'), '--fresh')
        assert said.status == 0 and ('`exposure`' in said.stderr) == asked, said


@test
def a_column_of_small_values_is_not_taken_for_one_that_parts_the_classes(folder):
    rng, rows = random.Random(3), rows_of('logistic')
    write_csv(folder / 'rows.csv', [{'small': rng.gauss(0, 1e-4), **row} for row in rows])
    train(write_job(folder, data=['rows.csv'], objective='logistic', l2=0, summary='model',
                    csv={'skip': ['w']}))
    table, found = summary_of(folder / 'job.state')
    small = found['small']
    assert abs(small['estimate']) > 100 and abs(small['statistic']) < 2, small
    assert close(small['scale'], 1e-4, 0.2) and close(found['x']['scale'], 3 / math.sqrt(12), 0.1)
    assert 'No finite' not in ' '.join(table['notes']), table['notes']


@test
def a_model_for_each_class_is_one_of_two_classes(folder):
    rows = rows_of('softmax', ROWS)
    for name, labels in (('one_vs_rest', str), ('multilabel', str)):
        place = folder / name
        place.mkdir()
        write_csv(place / 'rows.csv', rows)
        train(write_job(place, data=['rows.csv'], objective=name, csv={'skip': ['w']}, l2=0,
                        summary='robust', **({'multilabel': {'separator': ';'}}
                                             if name == 'multilabel' else {})))
        several, of_class = summary_of(place / 'job.state')
        green = place / 'green'
        green.mkdir()
        write_csv(green / 'rows.csv', [{**row, 'y': int(row['y'] == 'green')} for row in rows])
        train(write_job(green, data=['rows.csv'], objective='logistic', csv={'skip': ['w']}, l2=0,
                        summary='robust'))
        _, alone = summary_of(green / 'job.state')
        for parameter, row in alone.items():
            other = of_class[f'green: {parameter}']
            assert close(other['estimate'], row['estimate'], 1e-6), (name, parameter, other, row)
            if not row.get('aliased'):
                assert close(other['error'], row['error'], 1e-6), (name, parameter, other, row)
        assert several['fit']['freedom'] == 3 * (ROWS - 6), several['fit']


@test
def models_without_a_summary_say_how_to_get_one(folder):
    model = trained(folder, 'squared', summary='none')
    finished = dml('summary', model)
    assert finished.status == USAGE and 'summary = model' in finished.stderr, finished
    sparse = folder / 'sparse'
    sparse.mkdir()
    finished = dml('summary', trained(sparse, 'squared', summary='none', l1=0.01))
    assert finished.status == USAGE and 'l1 = 0.01' in finished.stderr, finished


@test
def where_another_run_has_a_summary_it_is_named(folder):
    folder = folder / 'my jobs'  # what is proposed can be typed as it stands
    folder.mkdir()
    model = trained(folder, 'squared', summary='none')
    without = dml('summary', model).stderr
    assert 'Put `summary = model`' in without and f"--start '{model}/models/1' --set" in without, without
    kept = trained(folder, 'squared')
    assert kept == model and dml('publish', '1', model).status == 0, kept
    refused = dml('summary', model)
    assert refused.status == USAGE and f"dml-coordinator summary '{model}/models/2'" in refused.stderr, refused
    assert dml('summary', model / 'models/2').status == 0


@test
def a_damaged_summary_is_refused_and_hides_no_model(folder):
    model = trained(folder, 'squared')
    path = model / 'models/current/summary.json'
    path.write_text(path.read_text().replace('"rows": 300', '"rows": 301'))
    finished = dml('summary', model)
    assert finished.status == BAD_DATA and 'damaged' in finished.stderr, finished
    assert dml('export', model, '--format', 'tsv').status == 0
    assert dml('report', model, '-o', folder / 'page.html').status == 0
    assert '"api/v1/summary"' not in (folder / 'page.html').read_text()


@test
def the_report_has_all_rows(folder):
    model = trained(folder, 'softmax')
    table, rows = summary_of(model)
    assert len(rows) == 3 * 8, list(rows)
    page = folder / 'page.html'
    assert dml('report', model, '-o', page).status == 0
    record = page.read_text().split('id="record">')[1].split('</script>')[0]
    assert json.loads(record)['api/v1/summary'] == table


if __name__ == '__main__':
    sys.exit(main())
