#!/usr/bin/env python3
"""`init`: a job file for a table, which trains as it is."""

import random
import resource
import shutil
import struct
import subprocess
import sys

from harness import BAD_DATA, COORDINATOR, CREATE, USAGE, dml, main, test, train, write_job


def made(folder, *arguments):
    finished = dml('init', *arguments, cwd=folder)
    assert finished.status == 0, finished
    return finished.stdout


def clients(path, header=True):
    """Numbers, codes, dates, names, sentences, an empty column and a label."""
    r = random.Random(3)
    lines = ['id,when,"the ""name""",amount,reason,nothing,churn,later'] if header else []
    for i in range(200):
        lines.append(f'{i + 1000},2024-{1 + i % 12:02}-{1 + i % 27:02},"O\'Neil ""{i}"" $HOME",'
                     f'{r.random():.4f},it is a {r.choice(["good", "bad"])} thing {i},,'
                     f'{r.choice(["yes", "no"])},{i % 3}')
    path.write_text('\n'.join(lines) + '\n')


@test
def the_job_of_a_table_trains_as_it_is(folder):
    clients(folder / 'clients.csv')
    told = made(folder, 'clients.csv')
    for words in ('the label is column 7 (churn) (--set csv.label=', 'objective logistic', '3 columns are left out',
                  'dml-coordinator run clients.conf'):
        assert words in told, told
    text = (folder / 'clients.conf').read_text()
    for line in ('objective = logistic\n', 'label = "churn"', 'dates = { "when" }',
                 'text = { "reason" }', 'skip = { "id", "the \\"name\\"", "nothing" }',
                 '#   1 id, number, 1000 to 1199, 200 different: left out, as it only numbers the rows',
                 '#   8 later, number, 0 to 2, 3 different; if these are codes'):
        assert line in text, (line, text)
    result = train(folder / 'clients.conf')
    assert result['converged'] and result['holdout']['examples'] > 0, result
    told = dml('init', 'clients.csv', '-o', 'b.conf', '--json', cwd=folder).json
    assert told == {'job_file': 'b.conf', 'label': 'churn', 'objective': 'logistic',
                    'left_out': ['id', 'the "name"', 'nothing']}, told


@test
def a_table_of_very_many_columns_is_looked_at_in_little_memory(folder):
    """And the job says of so many columns only what a job file has room for."""
    columns = 40000
    r = random.Random(5)
    rows = [','.join(str(r.randrange(1000)) if r.random() > 0.05 else '' for _ in range(columns)) for _ in range(12)]
    (folder / 'data.csv').write_text(','.join(f'c{i}' for i in range(columns)) + ',y\n' +
                                     ''.join(f'{row},{k % 2}\n' for k, row in enumerate(rows)))
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    finished = subprocess.run([COORDINATOR, 'init', 'data.csv'], cwd=folder, preexec_fn=limit,
                              capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished
    text = (folder / 'data.conf').read_text()
    assert 'and 39000 others, which are not listed here' in text and len(text) < 1 << 20, len(text)
    assert train(folder / 'data.conf', '--set', 'max_steps=2')['features'] > columns


@test
def columns_that_are_codes_or_an_index_are_no_quantities(folder):
    """By their names, or because few of the numbers between them are there although they recur."""
    r = random.Random(7)
    codes = [r.randrange(10000, 900000) for _ in range(60)]
    table(folder / 'data.csv', ['', 'store_id', 'manager', 'views', 'y'],
          lambda k: (5 * k * k % 7919, 1 + k % 30, r.choice(codes), int(r.paretovariate(0.7)), k % 2), count=600)
    text, _ = proposed(folder)
    assert 'categories = { "store_id", "manager" }' in text and 'skip = { "1" }' in text, text


@test
def counts_with_an_exposure_and_times_are_pointed_out(folder):
    table(folder / 'data.csv', ['when', 'exposure', 'age', 'claims'],
          lambda k: (f'2024-{1 + k % 12:02}-{1 + k % 28:02}', 0.25 + k % 4 / 4, 20 + k % 50, k % 3))
    text, result = proposed(folder)
    assert 'exposure  = "exposure"' in text and 'objective = poisson' in text, text
    assert 'Rows have times ("when")' in text and 'hold out the last rows' in text and result['offsets'], text


@test
def another_column_that_may_be_the_label_is_named(folder):
    for names, row, other in ((['kind', 'a', 'b'], lambda k: ('xyz'[k % 3], k / 7, k * k / 9), 'column 1 (kind)'),
                              (['a', 'price', 'b'], lambda k: (k, k * k / 7, k / 9), 'column 2 (price)'),
                              (['a', 'price', 'target'], lambda k: (k, k * k / 7, k / 9), None)):
        table(folder / 'data.csv', names, row)
        text = made(folder, 'data.csv', '-o', '-')
        assert (f'that may be meant: {other}, by --set csv.label=' in text) == bool(other), text


@test
def strays_among_numbers_are_proposed_as_missing(folder):
    """And the column that stands in the way is the one that is named."""
    table(folder / 'data.csv', ['a', 'b', 'y'], lambda k: ('ERR' if k == 777 else k * k, ['-', k][k % 9 > 0], k % 2), count=1500)
    finished = dml('init', 'data.csv', '-o', 'data.conf', cwd=folder)
    text = (folder / 'data.conf').read_text()
    assert '"ERR" in column 1 (a) (1 row): taken for missing' in finished.stderr, finished
    assert '"none", "ERR", "-" }' in text and train(folder / 'data.conf')['features'] == 4, text
    table(folder / 'data.csv', ['a', 'b', 'y'], lambda k: (['-', k][k % 9 > 0], 'odd' if k % 10 == 3 else k * k, k % 2))
    refused = dml('init', 'data.csv', '-o', '-', cwd=folder)
    assert refused.status == BAD_DATA and 'column 2 (b) holds "odd"' in refused.stderr, refused


@test
def a_word_for_missing_that_is_a_label_stays_a_label(folder):
    table(folder / 'data.csv', ['a', 'y'], lambda k: (['-', k][k % 9 > 0], ['none', 'mild', 'bad'][k % 3]))
    text, result = proposed(folder)
    assert 'Labels: none (34 rows)' in text and 'bad_lines =' not in text and '"none"' not in text, text


@test
def most_of_a_first_line_decides_whether_it_holds_names(folder):
    for odd in 'Na', '1stFlrSF', '#', '2nd':
        table(folder / 'data.csv', ['RI', odd, 'Mg', 'Type'], lambda k: (k / 10, k * 3 % 7, k * 5 % 11, k % 2))
        assert 'label = "Type"' in proposed(folder)[0], odd
    table(folder / 'data.csv', ['7', 'NA', 'x', '1'], lambda k: (k / 10, k * 3 % 7, 'xy'[k % 2], k % 2))
    assert 'header = no' in made(folder, 'data.csv', '-o', '-')


@test
def one_long_text_is_no_obstacle(folder):
    table(folder / 'data.csv', ['review', 'y'],
          lambda k: (f'it is a {["good", "bad"][k % 2]} film {k} ' * (300 if k == 8 else 2), ['pos', 'neg'][k % 2]))
    assert 'text = { "review" }' in proposed(folder)[0]


@test
def lines_that_repeat_the_names_are_counted(folder):
    table(folder / 'data.csv', ['cap', 'odor', 'kind'], lambda k: ('cap', 'odor', 'kind') if k % 40 == 39 else
          (f'a{k % 11}', f'e{k % 7}', 'xyz'[k * k % 3]))
    text, result = proposed(folder)
    assert 'bad_lines = 2 ' in text and 'kind (' not in text, text


@test
def dates_that_may_be_read_either_way_are_told(folder):
    table(folder / 'data.csv', ['when', 'at', 'on', 'y'],
          lambda k: (f'{1 + k % 12:02}/{1 + k % 11:02}/2024', 20240101 + k % 28, 1600000000000 + k * 86400000, k % 2))
    text, _ = proposed(folder)
    assert 'or with the day first: no row shows which' in text, text
    assert 'date_format = "%Y%m%d"' in text and 'date_format = epoch_ms' in text, text
    table(folder / 'data.csv', ['month', 'y'], lambda k: (f'2024-{1 + k % 12:02}', k % 2))
    assert 'date_format = "%Y-%m"' in proposed(folder)[0]


@test
def columns_without_names_go_by_their_numbers(folder):
    clients(folder / 'clients.csv', header=False)
    text = made(folder, 'clients.csv', '-o', '-', '--set', 'csv.label=7', '--set', 'csv.skip=1')
    for line in ('header = no\n', 'label = "7"', 'dates = { "2" }', 'skip = { "1", "3", "6" }'):
        assert line in text, (line, text)
    (folder / 'other.conf').write_text(text)
    assert train(folder / 'other.conf')['converged']


@test
def the_objective_follows_from_the_labels(folder):
    cases = {'logistic': ['a', 'b'], 'softmax': ['x', 'y', 'z'], 'squared': [k / 7 for k in range(50)]}
    for objective, labels in cases.items():
        rows = [f'{k * k},{labels[k % len(labels)]}\n' for k in range(200)]
        (folder / 'data.csv').write_text('a,b\n' + ''.join(rows))
        text = made(folder, 'data.csv', '-o', '-')
        assert f'objective = {objective}\n' in text, text
    (folder / 'data.csv').write_text('a,b\n' + ''.join(f'{k * k},{k % 4}\n' for k in range(200)))
    text = made(folder, 'data.csv', '-o', '-')
    assert 'objective = softmax\n' in text and 'ordinal' in text and 'poisson' in text, text
    (folder / 'data.csv').write_text('a,b\n' + ''.join(f'{k * k},{k % 4 - 1}\n' for k in range(200)))
    assert 'poisson' not in made(folder, 'data.csv', '-o', '-')


def table(path, names, row, count=100, end='\n'):
    path.write_text(end.join([','.join(names), *(','.join(map(str, row(k))) for k in range(count))]) + end)


def proposed(folder, *arguments):
    """The job of a table, which trains as it is."""
    made(folder, 'data.csv', '-o', 'data.conf', *arguments)
    text = (folder / 'data.conf').read_text()
    result = train(folder / 'data.conf')
    (folder / 'data.conf').unlink()
    return text, result


@test
def dates_of_one_format_are_taken_and_others_left_out(folder):
    german, american = (lambda k: f'{1 + k % 28:02}.03.2024'), (lambda k: f'03/{1 + k % 28:02}/2024')
    table(folder / 'data.csv', ['from', 'to', 'x', 'y'],
          lambda k: (german(k), german(k + 1), k * k, k % 2))
    text, _ = proposed(folder)
    assert 'dates = { "from", "to" }' in text and 'date_format = "%d.%m.%Y"' in text, text
    table(folder / 'data.csv', ['from', 'to', 'paid', 'y'],
          lambda k: (german(k), german(k + 1), american(k), k % 2))
    text, _ = proposed(folder)
    assert 'dates = { "from", "to" }' in text and 'skip = { "paid" }' in text, text
    assert '3 paid, category, 28 different: dates, %m/%d/%Y: left out, as a job has one' in text, text


@test
def dates_with_others_among_them_are_pointed_out(folder):
    day = lambda k: f'2024-03-{1 + k % 14:02}'
    table(folder / 'data.csv', ['some', 'mixed', 'y'],
          lambda k: ('0000-00-00' if k % 9 == 4 else day(k), day(k) if k % 2 else f'{1 + k % 14}.3.2024', k % 2))
    text, _ = proposed(folder)
    assert 'some, category, 15 different; most are dates, but not 0000-00-00: csv { dates }' in text, text
    assert 'mixed, category, 14 different; dates of several formats' in text, text


@test
def numbers_that_may_be_times_are_pointed_out(folder):
    table(folder / 'data.csv', ['at', 'id', 'y'], lambda k: (1600000000 + 977 * k, 10 ** 6 + 977 * k, k % 2))
    text, _ = proposed(folder)
    assert '1 at, number, 1600000000 to ' in text and text.count('if these are seconds since 1970') == 1, text
    table(folder / 'data.csv', ['at', 'x', 'y'], lambda k: (1600000000123 + 977000 * k, k % 7, k // 3 % 2))
    assert proposed(folder)[0].count('if these are milliseconds since 1970') == 1


@test
def times_of_the_day_and_numbers_with_a_unit_are_pointed_out(folder):
    table(folder / 'data.csv', ['from', 'weight', 'seat', 'y'],
          lambda k: (f'{k % 24}:{k % 60:02}', f'{50 + k % 40} kg', f'{k % 9}{"ABC"[k % 3]}', k % 2))
    text, _ = proposed(folder)
    assert text.count('times of the day are strings here') == 1, text
    assert 'numbers such as 50 kg are strings here' in text and 'numbers such as 0A' not in text, text


@test
def names_above_texts_alone_are_taken_for_names(folder):
    table(folder / 'data.csv', ['town', 'kind', 'bought'],
          lambda k: ('abc'[k % 3], 'xy'[k % 2], ['yes', 'no'][k % 5 == 0]))
    text, result = proposed(folder)
    assert 'header = yes' in text and 'label = "bought"' in text, text
    assert 'Labels: no (20 rows), yes (80 rows)' in text, text
    assert result['examples'] + result['holdout']['examples'] == 100, result


@test
def names_that_are_numbers_are_taken_for_names(folder):
    """Years of a table of them, and the places of columns that have none, as pandas writes them."""
    for names, row in ((['town', '2019', '2020', 'won'], lambda k: ('ab'[k % 2], k / 7, k / 3, k // 3 % 2)),
                       (['0', '1', '2'], lambda k: (k / 7, 'ab'[k % 2], k // 3 % 2))):
        table(folder / 'data.csv', names, row)
        text, result = proposed(folder)
        assert f'label = "{names[-1]}"' in text and 'Labels: 0 (' in text, text
        assert ('header = yes' in text) == (names[0] == '0'), text  # years beside a name need no key
        assert result['features'] > 2, result
    table(folder / 'data.csv', ['1', '2', '3'], lambda k: (k % 7, k % 5, k // 3 % 2))
    assert 'header = no' in made(folder, 'data.csv', '-o', '-')


@test
def an_index_is_neither_feature_nor_label(folder):
    """Of rows that were shuffled, so that it is not known by counting them; also where the label is not the
    last column, and without `init`."""
    for names in ['', 'a', 'y'], ['Unnamed: 0', 'a', 'y'], ['y', 'a', '__index_level_0__'], ['', 'Unnamed: 0', 'a', 'y']:
        table(folder / 'data.csv', names, lambda k: [
            {'a': k * 1.5, 'y': k // 3 % 2}.get(name, k * 7 % 101) for name in names])
        index = [i for i, name in enumerate(names) if name not in ('a', 'y')]
        text, result = proposed(folder)
        assert 'label = "y"' in text and result['features'] == 1, (text, result)
        assert dml('init', folder / 'data.csv', '-o', '-', '--set', 'csv.label=a').stdout.count('left out') == len(index)
        job = write_job(folder, 'plain', data=['data.csv'], objective='squared')
        packed = dml('pack', job, '--json')
        assert packed.json['features'] == 1, packed
        assert 'it is an index' in packed.stderr, packed
        shutil.rmtree(folder / 'plain.state')


@test
def rows_without_a_label_are_counted_and_left_out(folder):
    table(folder / 'data.csv', ['a', 'y'], lambda k: (k * k, '' if k % 10 == 3 else k % 2))
    text, result = proposed(folder)
    assert 'bad_lines = 10 ' in text and '10 rows have no label' in text, text
    assert result['examples'] + result['holdout']['examples'] == 90, result
    table(folder / 'data.csv', ['a', 'y'], lambda k: (k * k, ['NA', 'no', 'yes'][k % 3]))
    text, _ = proposed(folder)
    assert 'NA is a class here' in text and 'bad_lines to 34' in text, text


@test
def words_for_missing_labels_among_numbers_are_no_class(folder):
    table(folder / 'data.csv', ['a', 'y'], lambda k: (k * k, 'NA' if k % 10 == 3 else k % 2))
    text, result = proposed(folder)
    assert 'objective = logistic' in text and 'bad_lines = 10 ' in text and 'missing = { "?", ' in text, text
    assert result['examples'] + result['holdout']['examples'] == 90, result


@test
def sentences_are_no_labels(folder):
    table(folder / 'data.csv', ['kind', 'message'], lambda k: (['ham', 'spam'][k % 2], f'"so it is, {k}, or {k * k}"'))
    text, _ = proposed(folder)
    assert 'label = "kind"' in text and 'text = { "message" }' in text, text


@test
def an_index_behind_the_columns_is_no_label(folder):
    for index in (lambda k: 7 + k), (lambda k: f'row {k}'):
        table(folder / 'data.csv', ['a', 'kind', 'i'], lambda k: (k * k, k % 2, index(k)))
        text, result = proposed(folder)
        assert 'label = "kind"' in text and 'skip = { "i" }' in text, text
        assert result['features'] == 1, result


@test
def a_delimiter_at_the_end_of_each_line_makes_no_label(folder):
    table(folder / 'data.csv', ['a', 'y', ''], lambda k: (k * k, k % 2, ''))
    text, result = proposed(folder)
    assert 'label = "y"' in text and 'skip = { "3" }' in text, text
    assert result['features'] == 1, result
    table(folder / 'data.csv', ['a', 'b', ''], lambda k: (k * k, k % 2, '' if k % 50 else 'x'))
    assert 'label = "b"' in made(folder, 'data.csv', '-o', '-'), 'a stray cell'


@test
def amounts_are_read_as_numbers(folder):
    """As people and spreadsheets write them; the sign of the decimals is that which all of a column need."""
    for amount, remark, point in (
            (lambda k: f'${k + 1000:,}.50', '$1,000.50 is read as 1000.5', '.'), (lambda k: f'{k}%', '0% is read as 0', '.'),
            (lambda k: f'${k}.50', '$0.50 is read as 0.5', '.'),
            (lambda k: f'${k + 1},200', '$1,200 is read as 1200; or as csv.decimal = ","', '.'),
            (lambda k: f'{k + 1},285', '1,285 is read as 1285; or as csv.decimal = ","', '.'),
            (lambda k: f'({k}.25)' if k % 2 else f'{k}.25', '(1.25) is read as -1.25', '.'),
            (lambda k: f'\u2212{k}.25', '\u22120.25 is read as -0.25', '.'),
            (lambda k: f"CHF {k + 1}'000.05", "CHF 1'000.05 is read as 1000.05", '.'),
            (lambda k: f'{k},50 €', '0,50 € is read as 0.5', ','), (lambda k: f'{k // 2},5 %', '0,5 % is read as 0.5', ','),
            (lambda k: f'{k + 1}.000,50', '1.000,50 is read as 1000.5', ','),
            (lambda k: f'{k + 1} 000,50 kr', '1 000,50 kr is read as 1000.5', ','),
            (lambda k: f'{k + 1}.001.000,50 $', '1.001.000,50 $ is read as 1001000.5', ',')):
        rows = ''.join(f'{amount(k)};{k % 7};{k % 2}\n' for k in range(100))
        (folder / 'data.csv').write_text('price;size;label\n' + rows)
        text, result = proposed(folder)
        assert 'amounts = { "price" }' in text and remark in text, (amount(1), text)
        assert ('    decimal = ","' in text) == (point == ','), (amount(1), text)
        assert result['features'] == 2, result


@test
def amounts_are_one_number_at_every_door(folder):
    """The command, a file without a header, JSON Lines; and a label is read alike."""
    rows = [(f'${k + 1},{k * 7 % 1000:03}.25', f'({k * k % 90}.5)' if k % 3 else f'{k * k % 90}.5%') for k in range(120)]
    value = lambda text: float(text.strip('$(%)').replace(',', '')) * (-1 if text[0] == '(' else 1)
    for name, shown in ('dressed', lambda text: text), ('bare', lambda text: repr(value(text))):
        (folder / f'{name}.csv').write_text('delta,price\n' + ''.join(f'{shown(d)},"{shown(p)}"\n' for p, d in rows))
    results = []
    for name, amounts in ('dressed', 'csv { amounts = { delta, price } }\n'), ('bare', ''):
        (folder / f'{name}.conf').write_text(f'data = {name}.csv\nobjective = squared\nl2 = 1e-3\n{amounts}')
        results.append(train(folder / f'{name}.conf'))
    dressed, bare = results
    assert dressed['loss'] == bare['loss'] and dressed['features'] == 1, (dressed, bare)
    (folder / 'rows.jsonl').write_text(''.join(f'{{"delta": "{d}"}}\n' for p, d in rows))
    wanted = dml('predict', folder / 'bare.state', folder / 'bare.csv').stdout
    for rows_file in 'dressed.csv', 'bare.csv', 'rows.jsonl':
        assert dml('predict', folder / 'dressed.state', folder / rows_file).stdout == wanted, rows_file
    assert (dml('evaluate', folder / 'dressed.state', folder / 'dressed.csv').stdout ==
            dml('evaluate', folder / 'bare.state', folder / 'bare.csv').stdout)
    (folder / 'wrong.csv').write_text('delta,price\n"4,5",1\n')
    refused = dml('predict', folder / 'dressed.state', folder / 'wrong.csv')
    assert refused.status == BAD_DATA and 'no amount with a decimal point' in refused.stderr, refused


@test
def labels_that_are_amounts_are_numbers(folder):
    """A last column of prices is what people want to predict; that of telephones is not."""
    for names, last, label in ((['a', 'b', 'price'], lambda k: f'"${k + 1000:,}.50"', 'price'),
                               (['a', 'b', 'rate'], lambda k: f'{k % 50}%', 'rate'),
                               (['a', 'b', 'phone'], lambda k: f'+49 {k * 7919}', 'b')):
        table(folder / 'data.csv', names, lambda k: (k * k, k % 2, last(k)))
        text = made(folder, 'data.csv', '-o', '-')
        assert f'label = "{label}"' in text and ('amounts' in text) == (label != 'b'), text
        assert ('objective = squared' in text) == (label != 'b'), text


@test
def a_table_whose_columns_are_all_left_out_is_refused(folder):
    table(folder / 'data.csv', ['id', 'name', 'y'], lambda k: (k, f'N{k}', k % 2))
    refused = dml('init', 'data.csv', cwd=folder)
    assert refused.status == BAD_DATA and not (folder / 'data.conf').exists(), refused
    for words in ('no column is left beside the label, column 3 (y)', 'column 1 (id): it only numbers the rows',
                  'column 2 (name): nearly all strings differ', '--set csv.categories='):
        assert words in refused.stderr, (words, refused)
    assert 'categories = { "name" }' in made(folder, 'data.csv', '-o', '-', '--set', 'csv.categories=name')


@test
def numbers_with_zeros_before_them_are_codes(folder):
    table(folder / 'data.csv', ['zip', 'month', 'phone', 'id', 'y'],
          lambda k: (['01234', '75001', '10115'][k % 3], f'{1 + k % 12:02}', f'0{k * 7919 % 10007}',
                     f'{k:04}', k // 3 % 2))
    text, result = proposed(folder)
    assert 'categories = { "zip", "month" }' in text and 'skip = { "phone", "id" }' in text, text
    assert '1 zip, number, 1234 to 75001, 3 different: codes, as some begin with a zero' in text, text
    assert 'all of these codes differ' in text and 'it only numbers the rows' in text, text
    assert result['features'] > 2, result


@test
def words_that_exports_write_for_missing_cells_are_found_and_written(folder):
    for word in '\\N', '-', '<NA>', 'None', '#DIV/0!', 'inf', '-Infinity', 'na', 'missing':
        table(folder / 'data.csv', ['a', 'b', 'y'],  # rows that are alike would be held out together
              lambda k: (word if k % 10 == 3 else k * k, k * 37 % 101 / 8, k % 2))
        text, result = proposed(folder)
        assert 'missing = { "?", ' in text and '2 different' not in text, text
        assert '1 a, number, 0 to 9801, 90 different, 10 missing' in text, text
        assert result['features'] == 3, result
    table(folder / 'data.csv', ['a', 'y'], lambda k: ('odd' if k % 10 == 3 else k * k, k % 2))
    finished = dml('init', 'data.csv', '-o', '-', cwd=folder)
    assert finished.status == BAD_DATA and 'holds "odd"' in finished.stderr, finished


@test
def a_column_of_numbers_and_many_texts_is_taken_for_texts(folder):
    """As tickets are."""
    cases = [(lambda k: f'A/5 {k % 20}' if k % 3 == 1 else 10 * (k % 20), 'categories = { "n" }', 'taken for a category'),
             (lambda k: f'T{k * k}' if k % 3 == 1 else k * k, 'skip = { "n" }', 'left out')]
    for number, line, word in cases:
        table(folder / 'data.csv', ['n', 'x', 'y'], lambda k: (number(k), '-' if k % 9 == 2 else k % 7, k % 2))
        warned = dml('init', 'data.csv', '-o', 'data.conf', cwd=folder)
        text = (folder / 'data.conf').read_text()
        assert warned.status == 0 and line in text and 'are numbers, but not' in text, (text, warned)
        assert f'column 1 (n) holds numbers, and strings such as "{number(1)}": it is {word}' in warned.stderr, warned
        assert '2 x, number, 0 to 6, 7 different, 11 missing' in text, text
        assert train(folder / 'data.conf', '--fresh')['converged']
        (folder / 'data.conf').unlink()


@test
def a_key_that_most_lines_lack_is_no_label(folder):
    (folder / 'data.jsonl').write_text(''.join(
        f'{{"x": {k % 7}, "kind": {k % 2}, "f{k % 9}": {k % 5}}}\n' for k in range(300)))
    assert 'label = "kind"' in made(folder, 'data.jsonl', '-o', '-')


@test
def what_suits_labels_better_is_told(folder):
    for label, words in ((lambda k: 'ABC'[k % 3], 'objective = ordinal, with ordinal { order'),
                         (lambda k: 0 if k % 2 else k / 7, 'objective = tweedie'),
                         (lambda k: k % 60, 'objective = poisson'),
                         (lambda k: k == 17 or 0, '# threshold = f1 ')):
        table(folder / 'data.csv', ['x', 'y'], lambda k: (k * k, label(k)))
        assert words in made(folder, 'data.csv', '-o', '-'), words


@test
def commas_between_semicolons_are_decimal_points(folder):
    for missing in ('', '-'):
        number = lambda k: missing if k % 9 == 5 else f'{k / 8:.3f}'.replace('.', ',')
        rows = [f'{number(k)};{k % 7};{k % 2}\n' for k in range(100)]
        (folder / 'data.csv').write_text('a;b;label\n' + ''.join(rows))
        text, _ = proposed(folder)
        assert 'decimal = ","' in text and 'delimiter' not in text, text
        assert '1 a, number, 0 to 12.375, 89 different, 11 missing' in text, text
    (folder / 'data.csv').write_text('a,label\n' + ''.join(f'"{k + 1},{k % 90}",{k % 2}\n' for k in range(100)))
    finished = dml('init', folder / 'data.csv', '-o', '-')
    assert finished.status == BAD_DATA and 'set csv.decimal = ","' in finished.stderr, finished


@test
def columns_that_are_the_same_in_all_rows_are_no_table_to_learn_from(folder):
    table(folder / 'data.csv', ['site', 'version', 'y'], lambda k: ('A', 1, k % 2))
    finished = dml('init', folder / 'data.csv', '-o', '-')
    assert finished.status == BAD_DATA and 'has one value in all rows' in finished.stderr, finished
    table(folder / 'data.csv', ['site', 'version', 'y'], lambda k: ('A' if k % 5 else '', 1, k % 2))
    assert 'label = "y"' in made(folder, 'data.csv', '-o', '-')


@test
def a_column_y_between_x_and_others_is_a_place_and_no_label(folder):
    for names, label in ((['x', 'y', 'inside'], 'inside'), (['x', 'y'], 'y'), (['y', 'x'], 'y'),
                         (['a', 'y', 'x'], 'y')):
        table(folder / 'data.csv', names, lambda k: [(k * 7919 + i * 31) % (97, 89, 2)[i] for i in range(len(names))])
        assert f'label = "{label}"' in made(folder, 'data.csv', '-o', '-'), names


@test
def labels_that_differ_in_capitals_alone_are_warned_of(folder):
    table(folder / 'data.csv', ['x', 'y'], lambda k: (k * k, ['yes', 'no', 'Yes', 'YES'][k % 4]))
    finished = dml('init', folder / 'data.csv', '-o', '-')
    assert finished.stderr.count('two classes') == 1 and '"yes" and "Yes"' in finished.stderr, finished
    table(folder / 'data.csv', ['x', 'y'], lambda k: (k * k, ['yes', 'no'][k % 2]))
    assert not dml('init', folder / 'data.csv', '-o', '-').stderr


@test
def a_key_that_a_message_names_is_set_by_what_the_message_says(folder):
    (folder / 'data.jsonl').write_text('{"x": 1, "tags": ["a"], "y": 0}\n{"x": 2, "tags": [], "y": 1}\n' * 30)
    finished = dml('init', folder / 'data.jsonl', '-o', '-')
    assert finished.status == BAD_DATA and '--set csv.KEY=VALUE' in finished.stderr, finished
    assert 'skip = { "tags" }' in made(folder, 'data.jsonl', '-o', '-', '--set', 'csv.skip=tags')


@test
def whole_numbers_have_all_their_digits_in_remarks(folder):
    table(folder / 'data.csv', ['account', 'x', 'y'], lambda k: (1700000000 + k * k, k / 7, k % 2))
    assert '1 account, number, 1700000000 to ' in made(folder, 'data.csv', '-o', '-')


@test
def what_set_says_of_columns_is_in_the_job(folder):
    table(folder / 'data.csv', ['code', 'when', 'said', 'n', 'y'],
          lambda k: (k % 7, f'2024-01-{1 + k % 28:02}', 'a word or two', ['x', k][k % 10 > 0], k % 2))
    text, result = proposed(folder, '--set', 'csv.categories=code', '--set', 'csv.dates=when',
                            '--set', 'csv.text=said', '--set', 'csv.missing=x')
    for line in ('# 100 rows, 5 columns.', 'categories = { "code" }', 'dates = { "when" }', 'text = { "said" }',
                 'missing = { "x" }'):
        assert line in text, (line, text)
    assert result['features'] > 20, result


@test
def what_set_says_of_reading_holds_in_the_job_too(folder):
    table(folder / 'data.csv', ['a', 'w', 'o', 'said', 'y'],
          lambda k: (k % 7, 1 + k % 3, k / 100, ['A word', 'no Word'][k % 3 > 1], k % 2))
    text, result = proposed(folder, '--set', 'csv.weight=w', '--set', 'offset=o', '--set', 'csv.text=said',
                            '--set', 'csv.ngrams=2', '--set', 'csv.lowercase=no', '--set', 'bad_lines=3')
    for line in 'bad_lines = 3', 'offset    = "o"', 'weight = "w"', 'ngrams = 2', 'lowercase = false':
        assert line in text, (line, text)
    assert result['weights'] and result['offsets'], result
    refused = dml('init', folder / 'data.csv', '-o', '-', '--set', 'offsets=o.txt')
    assert refused.status == USAGE and 'allowed: ' in refused.stderr, refused


@test
def labels_in_two_spellings_are_pointed_out(folder):
    table(folder / 'data.csv', ['a', 'y'], lambda k: (k * k, ['yes', 'no', 'Yes'][k % 3]))
    text, _ = proposed(folder)
    assert '# yes and Yes are two classes here' in text, text


@test
def labels_that_are_parts_of_others_are_pointed_out(folder):
    texts = ['red', 'red;green', 'blue', 'green;blue;red']
    table(folder / 'data.csv', ['a', 'label'], lambda k: (k % 7, texts[k % 4]))
    text, _ = proposed(folder)
    assert '# If labels such as red;green are lists' in text and 'separator = ";"' in text, text
    (folder / 'data.conf').write_text(text.replace('objective = softmax',
                                                   'objective = multilabel\nmultilabel { separator = ";" }'))
    assert train(folder / 'data.conf', '--fresh')['converged']
    (folder / 'data.conf').unlink()
    texts = ['dark', 'red, dark', 'reddish;brown']
    table(folder / 'data.csv', ['a', 'label'], lambda k: (k % 7, f'"{texts[k % 3]}"'))
    assert 'are lists' in proposed(folder)[0]
    texts = ['red', 'dark red', 'reddish;brown']
    table(folder / 'data.csv', ['a', 'label'], lambda k: (k % 7, texts[k % 3]))
    assert 'are lists' not in proposed(folder)[0]


@test
def few_rows_are_all_trained_on(folder):
    table(folder / 'data.csv', ['a', 'y'], lambda k: (k * k, k % 2), count=10)
    text, result = proposed(folder)
    assert '# holdout   = 0.2' in text and result['examples'] == 10, text


@test
def the_job_has_the_name_of_the_data_without_its_endings(folder):
    for data, job in (('sales.2024.csv', 'sales.2024.conf'), ('a.csv.gz', 'a.conf'), ('.b.csv', '.b.conf'),
                      ('plain', 'plain.conf'), ('-c.csv', './-c.conf')):
        table(folder / data, ['a', 'y'], lambda k: (k * k, k % 2))
        assert f'dml-coordinator run {job}\n' in made(folder, '--', data)
        assert (folder / job).exists()


@test
def a_job_in_another_folder_finds_its_data(folder):
    (folder / 'jobs').mkdir()
    clients(folder / 'clients.csv')
    told = made(folder, 'clients.csv', '-o', "jobs/the first's.conf")
    assert "dml-coordinator run 'jobs/the first'\\''s.conf'" in told, told
    assert train(folder / "jobs/the first's.conf")['converged']


@test
def what_is_told_of_columns_is_in_the_remarks_alone(folder):
    clients(folder / 'clients.csv')
    finished = dml('init', 'clients.csv', cwd=folder)
    assert not finished.stderr, finished
    table(folder / 'data.csv', ['a', 'a', 'y'], lambda k: (k, k * k, k % 2))
    finished = dml('init', 'data.csv', '-o', '-', cwd=folder)
    assert finished.stderr.count('have the same name') == 1, finished


@test
def text_of_libsvm_has_no_columns_to_tell_of(folder):
    (folder / 'a.b.libsvm').write_text(''.join(f'{k % 2} 1:{k}\n' for k in range(100)))
    made(folder, 'a.b.libsvm')
    text = (folder / 'a.b.conf').read_text()
    assert 'csv' not in text and 'objective = logistic' in text, text
    assert train(folder / 'a.b.conf')['converged']


@test
def names_that_are_not_utf_8_are_found_by_the_job(folder):
    rows = [f'K{i:04};Müller {i % 3};{i * 7 % 13}.5;{"ja" if i * i % 11 > 4 else "nein"}' for i in range(200)]
    (folder / 'kunden.csv').write_text('\n'.join(['Schlüssel;Straße;Größe;gekündigt', *rows]) + '\n', 'latin-1')
    made(folder, 'kunden.csv')
    text = (folder / 'kunden.conf').read_text()
    assert 'label = "gekündigt"' in text and 'skip = { "Schlüssel" }' in text, text
    finished = dml('run', '--quiet', folder / 'kunden.conf')
    assert finished.status == 0 and 'iconv -f WINDOWS-1252' in finished.stderr, finished
    scored = dml('predict', folder / 'kunden.state', folder / 'kunden.csv', '--columns', 'Schlüssel,Größe,label')
    assert scored.status == 0 and scored.stdout.splitlines()[2].startswith('K0002,1.5,'), scored


@test
def what_cannot_be_proposed_is_told_and_nothing_is_written(folder):
    clients(folder / 'clients.csv')
    (folder / 'clients.conf').write_text('mine')
    finished = dml('init', 'clients.csv', cwd=folder)
    assert finished.status == CREATE and '-o' in finished.stderr, finished
    assert (folder / 'clients.conf').read_text() == 'mine'
    (folder / 'same.csv').write_text('a,b\n1,2\n3,2\n')
    (folder / 'pixels').write_bytes(struct.pack('>IIII', 0x803, 30, 2, 2) + bytes(range(120)))
    for arguments, status, word in ((['same.csv'], BAD_DATA, 'csv.label'),
                                    (['none.csv'], BAD_DATA, 'none.csv'),
                                    (['pixels'], BAD_DATA, '`labels` in a job file'),
                                    (['same.csv', '--set', 'l2=1'], USAGE, 'l2'), ([], USAGE, 'TABLE')):
        finished = dml('init', *arguments, cwd=folder)
        assert finished.status == status and word in finished.stderr, finished
    assert not (folder / 'same.conf').exists()


@test
def years_beside_names_are_names_of_columns(folder):
    """Above numbers: a row may begin and end with years, too."""
    rows = [f'{name},{i}.5,{i * 7 % 5},{i + 2}' for i, name in enumerate(('Chad', 'Peru', 'Mali', 'Iran', 'Cuba'))]
    for head in 'country,2010,2011,2012', 'country,1990,1995,2000', '"country","2010","2011","2012"':
        (folder / 'data.csv').write_text('\n'.join([head, *rows]) + '\n')
        told = dml('init', 'data.csv', '-o', '-', cwd=folder)
        last = head.split(',')[3].strip('"')
        assert told.status == 0 and '# 5 rows' in told.stdout and f'label = "{last}"' in told.stdout, told
    (folder / 'job.conf').write_text(told.stdout.replace('softmax', 'squared'))
    result = train(folder / 'job.conf')
    assert result['examples'] == 5, result
    for rows in (['Chad,2010,2011,2012', 'Peru,2000,2005,2006'], ['Chad,2010,2011,2012', 'Peru,x,y,z'],
                 ['Chad,2010,2011,2013', 'Peru,1,2,3'], ['1,2010,2011,2012', '2,1,2,3'], ['Chad,2010,a', 'Peru,1,b']):
        (folder / 'data.csv').write_text('\n'.join(rows * 3) + '\n')
        told = dml('init', 'data.csv', '-o', '-', cwd=folder)
        assert '# 6 rows' in told.stdout or told.status, (rows, told)


if __name__ == '__main__':
    sys.exit(main())
