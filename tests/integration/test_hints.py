#!/usr/bin/env python3
"""Mistakes that are found early, in words that say what to do."""

import bz2
import gzip
import io
import json
import pickle
import subprocess
import sys
import tarfile

from harness import BAD_DATA, CONFIG, UNAVAILABLE, dml, main, test, train, write_job

TABLE = 'age,size,label\n' + ''.join(f'{i % 7},{i % 5},{i % 2}\n' for i in range(40))


def job_of(folder, **settings):
    (folder / 'data.csv').write_text(TABLE)
    return write_job(folder, **{'data': 'data.csv', **settings})


def refused(status, *arguments):
    finished = dml(*arguments)
    assert finished.status == status, finished
    return finished.stderr


def tar_of(text):
    file = io.BytesIO()
    member = tarfile.TarInfo('table.csv')
    member.size = len(text)
    with tarfile.open(fileobj=file, mode='w') as archive:
        archive.addfile(member, io.BytesIO(text.encode()))
    return file.getvalue()


@test
def files_of_other_formats_are_named_with_what_converts_them(folder):
    foreign = {
        b'ORC\x11\0\0\x0a\x06': ('ORC', 'pandas.read_orc'),
        b'ARROW1\0\0\xff\xff\xff\xff': ('Arrow', 'pandas.read_feather'),
        b'PK\x03\x04\x14\0\0\0': ('zip', 'unzip '),
        'a,b\n1,2\n'.encode('utf-16'): ('UTF-16', 'iconv -f UTF-16'),
        'a,b\n1,2\n'.encode('utf-16-le'): ('UTF-16', 'iconv -f UTF-16LE'),
        'a,b\n1,2\n'.encode('utf-16-be'): ('UTF-16', 'iconv -f UTF-16BE'),
        'a,b\n1,2\n'.encode('utf-32'): ('UTF-32', 'iconv -f UTF-32'),
        bz2.compress(TABLE.encode()): ('bzip2', 'bunzip2'),
        pickle.dumps([1, 2]): ('pickle', 'pandas.read_pickle'),
        b'X\n\0\0\0\3\0\4\1\2': ('of R', 'readRDS'),
        tar_of(TABLE): ('tar archive', 'tar -xf'),
        gzip.compress(tar_of(TABLE)): ('tar archive', 'tar -xf'),
        gzip.compress(gzip.compress(TABLE.encode())): ('compressed twice', 'gunzip'),
    }
    for content, (name, command) in foreign.items():
        job = job_of(folder)
        path = folder / 'data.csv'
        path.write_bytes(content)
        for what in 'run', 'check':
            said = refused(BAD_DATA, what, job)
            assert f'{path} is ' in said and name in said and command in said, said


FOREIGN_TEXTS = {
    'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n':
        ('pointer of Git LFS', 'git lfs pull'),
    '% of flowers\n@RELATION iris\n@ATTRIBUTE a REAL\n@DATA\n1,0\n2,1\n': ('is ARFF', 'csv.missing'),
    "{'a': 1, 'y': 0}\n{'a': 2, 'y': 1}\n": ("Python's dictionaries", 'ast.literal_eval'),
    '{"a": 1, "y": 0},\n{"a": 2, "y": 1},\n': ('a comma behind each object', 's/,[[:space:]]*$//'),
    '1 |f a:1 b:2 c\n-1 |f a:2 c\n1 |f b:3\n': ('Vowpal Wabbit', 'LIBSVM'),
    "1 1.0 'tag|f price:.23 sqft:.25\n0 2 |f price:.5 |g c d\n": ('Vowpal Wabbit', 'JSON Lines'),
    '2 qid:1 1:3 2:1\n1 qid:1 2:2\n': ('qid:', 'takes the queries out'),
    '1,3 1:2 2:1\n2 1:1\n1,2\n': ('several labels', 'objective = multilabel'),
    '1 0:1 2:3\n-1 1:1\n': ('start at 0', 'awk'),
    '1.0 2.0 0\n2.0 -3.5 1\n  3e1 1.0 0\n': ('separated by blanks', "s/ \\{1,\\}/,/g"),
}


@test
def texts_of_other_formats_are_named_at_every_door(folder):
    (folder / 'good').mkdir()
    assert dml('run', job_of(folder / 'good')).status == 0
    state = folder / 'good/job.state'
    for i, (content, (name, advice)) in enumerate(FOREIGN_TEXTS.items()):
        plain = content.encode()
        for suffix, written in ('csv', plain), ('csv.gz', gzip.compress(plain)):
            path = folder / f'{i}.{suffix}'
            path.write_bytes(written)
            job = write_job(folder, data=[path.name])
            for what in ('run', job), ('check', job), ('init', path, '-o', '-'), \
                    ('predict', state, path), ('evaluate', state, path):
                said = refused(BAD_DATA, *what)
                assert f'{path} is ' in said and name in said and advice in said, said


@test
def texts_that_look_like_other_formats_are_read(folder):
    rows = range(40)
    texts = {
        'bars.csv': ''.join(f'{i % 7}|{i % 3}|{i % 2}\n' for i in rows),
        'blanks_and_bars.csv': ''.join(f'{i % 7} | {i % 3} | {i % 2}\n' for i in rows),
        'times.csv': 'at,y\n' + ''.join(f'0{i % 9}:{10 + i},{i % 2}\n' for i in rows),
        'good.jsonl': ''.join(f'{{"a": {i % 7}, "y": {i % 2}}}\n' for i in rows),
        'good.svm': ''.join(f'{i % 2} 1:{i % 7} 2:{i % 3}\n' for i in rows),
        'labels_alone.svm': ''.join(f'{i % 2}\n' if i else '1 1:1\n' for i in rows),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        bars = {'csv': {'delimiter': '|'}} if 'bars' in name else {}
        trained = dml('run', write_job(folder, name.replace('.', '_'), data=[name], **bars))
        assert trained.status == 0, (name, trained)


@test
def a_compressed_file_of_another_format_is_unpacked_before_it_is_converted(folder):
    (folder / 'data.csv.gz').write_bytes(gzip.compress(TABLE.encode('utf-16')))
    said = refused(BAD_DATA, 'init', folder / 'data.csv.gz', '-o', '-')
    plain = folder / 'data.csv'
    assert f'gunzip {plain}.gz && iconv -f UTF-16 -t UTF-8 {plain} > {plain}.csv' in said, said


@test
def a_first_line_that_nothing_parts_is_answered_with_what_may_part_it(folder):
    for text, *said in ((TABLE.replace(',', ' '), "tr -s ' ' ',' < FILE"),
                        ('Clients of May\n\n' + TABLE, 'if lines stand before the table, take them out'),
                        (TABLE.replace(',', '!'), 'csv.delimiter says what parts', 'lines stand before'),
                        ('\x01\x02\n', 'this is no text')):
        (folder / 'rows.txt').write_text(text)
        told = refused(BAD_DATA, 'init', folder / 'rows.txt', '-o', '-')
        assert 'rows.txt:1: the label' in told and all(word in told for word in said), told


@test
def a_row_of_sums_below_a_table_is_told_of(folder):
    rows = 'region,size,y\n' + ''.join(f'{"NSEW"[i % 4]},{i % 5},{i % 2}\n' for i in range(40))
    job = write_job(folder, data=['rows.csv'], csv={'label': 'y'})
    for last, told in (('Total,80,20', True), ('gesamt,80,20', True), ('Sum:,80,20', True),
                       ('Totally,80,1', False), ('N,80,1', False)):
        (folder / 'rows.csv').write_text(rows + last + '\n')
        said = dml('check', job).stderr
        assert ('it is no example; take it out of the file' in said) == told, (last, said)
    # a text that other rows have, too, or in the middle is a category
    for text in rows + 'total,1,1\nN,2,0\n', rows + 'total,1,1\nN,2,0\ntotal,1,0\n':
        (folder / 'rows.csv').write_text(text)
        assert 'no example' not in dml('check', job).stderr
    (folder / 'rows.csv').write_text(rows + 'Total,80,1\n')
    trained = dml('run', job)
    assert trained.status == 0 and '"Total" in column 1 (region)' in trained.stderr, trained


KINDS = {'rows.libsvm': '1 1:2 2:3\n0 1:1\n1 2:2\n0 1:3 2:1\n',
         'rows.csv': 'y,p,q\n1,2,3\n0,1,0\n1,0,2\n0,3,1\n',
         'rows.jsonl': '{"p":2,"q":3,"y":1}\n{"p":1,"y":0}\n{"q":2,"y":1}\n{"p":3,"q":1,"y":0}\n'}


def written_kinds(folder):
    for name, text in KINDS.items():
        (folder / name).write_text(text)


@test
def files_without_columns_in_common_are_named_with_what_they_are(folder):
    written_kinds(folder)
    for names in (('rows.libsvm', 'rows.csv'), ('rows.csv', 'rows.libsvm'),
                  ('rows.libsvm', 'rows.jsonl')):
        table = next(name for name in names if name != 'rows.libsvm')
        for label in {}, {'csv': {'label': 'y'}}:
            job = write_job(folder, data=list(names), **label)
            for command in 'check', 'run':
                told = refused(BAD_DATA, command, job)
                assert f'{table} is a table' in told, told
                assert 'rows.libsvm is LIBSVM or an array' in told, told
                assert 'the key `data`' in told, told
    job = write_job(folder, data=['rows.csv', 'rows.jsonl'], csv={'label': 'y'})
    assert dml('run', job).status == 0


@test
def a_file_of_other_columns_than_the_data_is_named_with_what_it_looks_like(folder):
    written_kinds(folder)
    for data, other, looks in (('rows.csv', 'rows.libsvm', 'LIBSVM'),
                               ('rows.jsonl', 'rows.libsvm', 'LIBSVM'),
                               ('rows.libsvm', 'rows.csv', 'CSV'),
                               ('rows.libsvm', 'rows.jsonl', 'JSON Lines')):
        label = {} if data == 'rows.libsvm' else {'csv': {'label': 'y'}}
        told = refused(BAD_DATA, 'run', write_job(folder, data=[data], test=[other], **label))
        assert f'{other} looks like {looks}' in told and 'that was trained on' in told, told
        state = folder / f'{data}.state'
        job = write_job(folder, data=[data], **label)
        assert dml('run', job, '--state', state, '--fresh').status == 0
        told = refused(BAD_DATA, 'predict', state, folder / other)
        assert f'{other} looks like {looks}' in told and 'that was trained on' in told, told


@test
def a_category_that_is_not_utf8_is_warned_of_with_what_converts_it(folder):
    job = job_of(folder)
    towns = 'town,size,label\n' + ''.join(f'{"Köln" if i % 3 else "Rome"},{i % 5},{i % 2}\n' for i in range(40))
    towns = towns.replace('Rome', 'L’Aquila')  # whose quote Windows-1252 has, and Latin-1 has not
    for encoding, warned in ('cp1252', True), ('utf-8', False):
        (folder / 'data.csv').write_bytes(towns.encode(encoding))
        finished = dml('run', job)
        assert finished.status == 0, finished
        assert ('column 1 (town) holds texts that are not UTF-8' in finished.stderr) == warned, finished
        assert ('iconv -f WINDOWS-1252' in finished.stderr) == warned, finished


@test
def a_misspelt_file_or_model_is_answered_with_the_one_that_is_there(folder):
    job = job_of(folder)
    assert dml('run', job).status == 0
    for model, data, meant in [('jbo.state', 'data.csv', 'job.state'), ('job', 'data.csv', 'job.state'),
                               ('job.state', 'dat.csv', 'data.csv')]:
        said = refused(BAD_DATA, 'predict', folder / model, folder / data)
        assert f'did you mean `{folder / meant}`?' in said, said
    assert '/data.csv`?' in refused(BAD_DATA, 'run', job, '--set', 'data=dtaa.csv')


@test
def what_is_written_as_in_other_languages_is_answered_with_the_form_of_a_line(folder):
    job = job_of(folder)
    for line in 'l2: 1e-3', 'test = { "data.csv" };', '[csv]', 'test = [ "data.csv" ]':
        job.write_text(f'data = data.csv\n{line}\n')
        said = refused(CONFIG, 'check', job)
        assert 'job.conf:2' in said and 'KEY = VALUE; a list is written as { "a", "b" }' in said, said


@test
def a_table_whose_first_name_is_a_sign_of_another_format_is_a_table(folder):
    job = job_of(folder)
    (folder / 'data.csv').write_text('PAR1' + TABLE)
    finished = dml('run', job)
    assert finished.status == 0, finished


@test
def an_address_is_told_from_a_file(folder):
    said = refused(BAD_DATA, 'check', job_of(folder, data='gs://bucket/day.csv'))
    assert 'gsutil cat gs://bucket/day.csv' in said, said
    dml('run', job_of(folder))
    said = refused(BAD_DATA, 'predict', folder / 'job.state', 'ftp://host/day.csv')
    assert 'curl -fsS ftp://host/day.csv' in said, said


@test
def check_finds_a_column_that_no_file_has_and_asks_for_the_one_that_was_meant(folder):
    for key, value in ('label', 'labl'), ('skip', ['agee']), ('categories', ['siz']), \
            ('numbers', ['sise']), ('weight', 'labels'):
        said = refused(BAD_DATA, 'check', job_of(folder, csv={key: value}))
        assert 'there is no column' in said and 'did you mean `' in said, said
    (folder / 'more.csv').write_text(TABLE.replace('size', 'width'))
    said = refused(BAD_DATA, 'check', job_of(folder, data=['data.csv', 'more.csv'],
                                             csv={'skip': ['widht']}))
    assert 'key `csv.skip`: no file of the data has a column "widht"; did you mean `width`?' \
        in said, said
    said = refused(BAD_DATA, 'check', job_of(folder, test='more.csv'))
    assert 'more.csv:1: the column "size" is missing' in said and 'did you mean' not in said, said
    (folder / 'more.csv').write_text(TABLE.replace('size', 'SIZE'))
    said = refused(BAD_DATA, 'check', job_of(folder, test='more.csv'))
    assert 'the column "size" is missing' in said and 'did you mean `SIZE`?' in said, said


@test
def a_misspelt_job_file_is_asked_for(folder):
    job_of(folder)
    for meant in 'job.cnof', 'jbo.conf', 'job':
        for command, status in ('run', CONFIG), ('status', UNAVAILABLE):
            said = refused(status, command, folder / meant)
            assert f'No such file or directory; did you mean `{folder}/job.conf`?' in said, said
    (folder / 'night.state').mkdir()
    said = refused(UNAVAILABLE, 'status', folder / 'nihgt.state')
    assert f'did you mean `{folder}/night.state`?' in said, said
    for other in 'data.cv', 'night.conf', 'absent/job.conf':
        said = refused(CONFIG, 'run', folder / other)
        assert 'No such file' in said and 'did you mean' not in said, said


@test
def columns_of_one_name_are_told_once(folder):
    for name, skip, said in ('age', [], True), ('age', ['age'], True), ('age', ['2'], False), \
            ('size', [], False):
        for file in 'data.csv', 'more.csv':
            (folder / file).write_text(TABLE.replace('size', name, 1))
        job = write_job(folder, data=['data.csv', 'more.csv'], csv={'header': 'yes', 'skip': skip})
        finished = dml('run', '--fresh', job)
        assert finished.status == 0, finished
        warning = f'{folder}/data.csv:1: columns 1 and 2 have the same name, "age": '
        assert finished.stderr.count('have the same name') == said, finished
        assert not said or warning in finished.stderr, finished


@test
def check_tells_the_columns(folder):
    finished = dml('check', job_of(folder, csv={'weight': 'size'}))
    assert '# 3 columns, the weight is column 2 (size), the label is column 3 (label)\n' \
        in finished.stdout, finished


@test
def labels_that_are_not_those_of_training_are_shown(folder):
    (folder / 'test.csv').write_text(TABLE.replace(',0\n', ',no\n').replace(',1\n', ',yes\n'))
    said = refused(BAD_DATA, 'run', job_of(folder, test='test.csv'))
    assert 'none of the 40 labels ("no", "yes") is one of those that are trained on (0, 1)' \
        in said, said


@test
def a_third_label_of_a_later_file_is_answered_with_the_name_of_its_column(folder):
    """The column may stand elsewhere there, also behind all that the first file has."""
    (folder / 'first.csv').write_text('a,b,bought\n' + ''.join(f'{k},1,{k % 2}\n' for k in range(9)))
    (folder / 'wide.csv').write_text('p,q,r,a,b,bought\n1,2,3,4,5,1\n1,2,3,4,5,6\n')
    for objective, why in ('logistic', 'is a third label'), ('poisson', 'is a text'):
        if objective == 'poisson':
            (folder / 'wide.csv').write_text('p,q,r,a,b,bought\n1,2,3,4,5,many\n')
        job = write_job(folder, name='later', data=['first.csv', 'wide.csv'], objective=objective,
                        missing_columns='error', csv={'label': 'bought'})
        told = refused(BAD_DATA, 'run', job)
        assert 'wide.csv: row' in told and why in told and 'column 3 (bought)' in told, told


@test
def a_section_that_is_not_closed_is_refused(folder):
    job = job_of(folder)
    job.write_text('data = data.csv\ncsv { label = 3\n')
    said = refused(CONFIG, 'check', job)
    assert 'job.conf:2: the { that begins here is not closed' in said, said


@test
def keys_without_effect_are_warned_of(folder):
    job = job_of(folder)
    text = job.read_text()
    for line, words in (('network { }', 'the section network { } has no effect without objective '
                         '= network'),
                        ('network { layers = 100 }', 'the section network { }'),
                        ('downpour { epochs = 5 }', ''),
                        ('downpour { }', 'without start = downpour or optimizer = downpour'),
                        ('seed = 7', 'key `seed`: has no effect without `folds`'),
                        ('vanished = keep\nwarm_start = false', 'with warm_start = false')):
        job.write_text(f'{text}{line}\n')
        finished = dml('check', job)
        assert finished.stderr.count(words) == 1 or not words, (line, finished)
    job.write_text(f'{text}csv {{ label = 3 }}\nnetwork {{ }}\nobjective = network\n')
    finished = dml('check', job)
    assert finished.status == 0 and not finished.stderr, finished
    (folder / 'data.libsvm').write_text('1 1:2\n0 2:1\n1 1:1 2:1\n0 2:5\n')
    finished = dml('run', write_job(folder, data='data.libsvm', csv={'label': 15}))
    assert finished.status == 0, finished
    assert 'key `csv.label`: has no effect: the data is libsvm' in finished.stderr, finished


def write_classes(folder, labels):
    (folder / 'classes.csv').write_text('x,price\n' + ''.join(f'{i % 9},"{y}"\n' for i, y in enumerate(labels)))
    return write_job(folder, data=['classes.csv'], objective='softmax', max_steps=1, csv={'label': 'price'})


@test
def classes_that_are_amounts_or_have_few_rows_are_warned_of(folder):
    amounts = 'classes are numbers, such as "{}", and classes have no order: to predict numbers, list column 2 ' \
              '(price) in csv.amounts and set objective = squared'
    cases = [
        ([f'${1 + i % 300}.50' for i in range(600)], amounts.format('$1.50')),
        ([f'{1 + i % 12}.000,50 €' for i in range(600)], amounts.format('1.000,50 €')),
        ([['N/A', f'{i % 19}%'][i % 20 > 0] for i in range(600)], amounts.format('0%')),
        ([f'{i % 300}' for i in range(600)], 'there are 300 classes in 600 rows, and hardly anything can be learned '
                                             'of a class from a few rows: as they are numbers, set objective'),
        ([f'n{i % 300}' for i in range(600)], 'csv.label names the right column'),
    ]
    for labels, words in cases:
        for verb in 'run', 'pack':
            said = dml(verb, write_classes(folder, labels))
            assert said.status == 0, said
            assert words in said.stderr, (words, said.stderr)
    for labels in (['5%', '10%', '20%'] * 200, [f'{i % 30}' for i in range(600)], [f'a{i % 50}' for i in range(600)]):
        said = dml('run', write_classes(folder, labels), '--fresh')
        assert 'classes are' not in said.stderr and 'there are' not in said.stderr, said.stderr


@test
def lines_that_are_all_malformed_alike_are_told_the_likely_cause(folder):
    causes = [
        ('{"a": %d, "y": 2,}', 'a comma before the end of an object'),
        ('{"a": [%d, 2,], "y": 2}', 'a comma before the end of a list'),
        ('{"a": %d, "y": \'x\'}', 'a single quote'),
        ('{"a": NaN, "y": %d}', 'NaN or Infinity'),
        ('{"a": %d, "y": -Infinity}', 'NaN or Infinity'),
        ('{"a": %d, "y": None}', 'None, as Python has it: write null'),
        ('{"a": %d, "y": True}', 'True, as Python has it: write true'),
        ('{"a": undefined, "y": %d}', 'undefined, as JavaScript has it'),
        ('{"a": %d, "y": 2} // note', 'a comment, which JSON does not have'),
        ('{"a": /* note */ %d, "y": 2}', 'a comment, which JSON does not have'),
        ('# note\n{"a": %d, "y": 2}', 'a comment, which JSON does not have'),
        ('{"a": %d, y: 2}', 'a key without its quotes'),
        ('{"a": +%d, "y": 2}', 'a number with a plus'),
        ('{"a": .%d, "y": 2}', 'a number that begins with its point'),
        ('{"a": %d "y": 2}', 'no comma between two values'),
        ('{"a": %d, "y": 2', 'the line ends early'),
        ('{a: %d, y: 2}', "JavaScript's objects, whose keys have no quotes"),
        ("{'a': %d, 'y': 2}", "Python's dictionaries"),
        ('// note\n{"a": %d, "y": 2}', 'a text with comments of //'),
    ]
    for line, words in causes:
        (folder / 'rows.jsonl').write_text(''.join(line % i + '\n' for i in range(9)))
        for command in ('init', folder / 'rows.jsonl', '-o', '-'), ('pack', write_job(folder, data=['rows.jsonl'])):
            assert words in refused(BAD_DATA, *command), (line, words)
    (folder / 'rows.jsonl').write_text(''.join('{a: %d, "y b": "c:d"}\n' % i for i in range(9)))
    told = refused(BAD_DATA, 'pack', write_job(folder, data=['rows.jsonl']))
    converted = subprocess.run(told.split('this converts most: ')[1].split(' > ')[0], shell=True, cwd=folder,
                               capture_output=True, text=True, check=True).stdout
    assert json.loads(converted.splitlines()[8]) == {'a': 8, 'y b': 'c:d'}, converted


@test
def a_column_without_a_text_of_training_is_told_from_a_missing_one(folder):
    (folder / 'rows.csv').write_text('town,y\n' + ''.join(f't{i % 12},{i % 2}\n' for i in range(120)))
    (folder / 'other.csv').write_text('town,y\n' + ''.join(f'other{i % 3},{i % 2}\n' for i in range(30)))
    (folder / 'empty.csv').write_text('town,y\n' + ',1\n' * 30)
    for csv, unlike in ({}, ', but such as "other0"'), ({'hash': 14}, ''):
        result = train(write_job(folder, data=['rows.csv'], csv={'label': 'y', **csv}), '--fresh')
        for name, words in (('other', f'none of 30 rows has a text that training had{unlike}: the column adds nothing'),
                            ('empty', 'column 1 (town) is missing in each of 30 rows')):
            said = dml('predict', result['model'], folder / f'{name}.csv')
            assert said.status == 0 and words in said.stderr, (csv, name, said.stderr)


@test
def what_is_too_large_to_be_squared_is_named(folder):
    for large, words in ('b', 'values of `b` are about'), ('y', 'labels are as large as'):
        columns = {name: 1e200 if name == large else 1.0 for name in 'aby'}
        rows = ([f'{size * (1 + (i * 7 + k) % 13)}' for k, size in enumerate(columns.values())] for i in range(60))
        (folder / 'rows.csv').write_text('a,b,y\n' + ''.join(','.join(row) + '\n' for row in rows))
        job = write_job(folder, data=['rows.csv'], csv={'label': 'y'}, objective='squared', standardise=False)
        assert words in refused(BAD_DATA, 'run', job, '--fresh'), large


@test
def labels_of_one_number_need_no_smaller_corner(folder):
    (folder / 'rows.csv').write_text('a,y\n' + ''.join(f'{i % 7},3\n' for i in range(60)))
    for objective in 'quantile', 'huber':
        finished = dml('run', write_job(folder, data=['rows.csv'], csv={'label': 'y'}, objective=objective), '--fresh')
        assert finished.status == 0 and 'epsilon' not in finished.stderr, finished


if __name__ == '__main__':
    sys.exit(main())
