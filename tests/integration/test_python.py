#!/usr/bin/env python3
"""The Python package over libdml: rows in every form that Python has them in, beside `predict`."""

import concurrent.futures
import copy
import csv
import datetime
import importlib.util
import os
import pickle
import subprocess
import sys
import threading
import warnings
import zipfile

from harness import (BUILD, PERMISSION, SOURCE, Skip, dml as program, exception_of, main, ordinary_user, small_data,
                     small_job, test, train, write_job)

sys.path.insert(0, str(SOURCE / 'python'))

import dml  # noqa: E402

START = datetime.date(2024, 1, 1)


def needs(package):
    if not importlib.util.find_spec(package.split('.')[0]):
        raise Skip(f'{package} is not installed')
    return importlib.import_module(package)


def predicted(model, data, *options):
    finished = program('predict', model, data, *options)
    assert finished.status == 0, finished
    return [[float(number) for number in line.split()] for line in finished.stdout.splitlines()]


def table(folder, **settings):
    """A model of a table with numbers, texts, dates and missing cells, and its rows as Python's."""
    rows = [{'size': None if i % 7 == 0 else i / 4, 'town': [None, 'Rome', 'a "b", c', '3'][i % 4],
             'when': START + datetime.timedelta(days=i * 3), 'grade': i % 3,
             'y': 'yes' if i % 5 > 1 else 'no'} for i in range(120)]
    with open(folder / 'data.csv', 'w', newline='') as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    train(write_job(folder, data=['data.csv'], max_steps=5, **settings,
                    csv={'dates': ['when'], 'categories': ['grade']}))
    return folder / 'job.state', folder / 'data.csv', rows


@test
def rows_of_tables_are_dicts_or_lists(folder):
    path, data, rows = table(folder)
    expected = [value for value, in predicted(path, data)]
    with dml.open(path) as model:
        names = [column['name'] for column in model.describe()['columns']]
        assert names == ['size', 'town', 'when', 'grade'], model.describe()
        assert model.predict_values(rows) == expected
        assert model.predict_values([[row[name] for name in names] for row in rows]) == expected
        turned = [[row[name] for name in reversed(names)] for row in rows]
        assert model.predict_values(turned, columns=names[::-1]) == expected
        texts = list(csv.DictReader(open(data)))
        assert model.predict_values(texts) == expected
        assert model.predict_proba(rows) == predicted(path, data, '--probabilities')
        assert model.predict_margins(rows) == [m for m, in predicted(path, data, '--margins')]
        assert model.predict(rows) == ['yes' if value > 0.5 else 'no' for value in expected]
        assert model.predict([]) == []


@test
def what_is_wrong_with_a_row_is_said(folder):
    path, _, rows = table(folder)
    model = dml.open(path)
    for bad, words in ((rows[:2] + [{**rows[2], 'size': 'far'}], 'rows[2]: column 1 (size) holds "far"'),
                       ([{'size': 1}], 'rows[0]: the column "town" is missing'),
                       ([[1, 2]], 'rows[0]: 2 cells, where there are 4 columns')):
        try:
            model.predict(bad)
            raise AssertionError(bad)
        except dml.Error as error:
            assert words in str(error) and error.row == len(bad) - 1, error
    lenient = dml.open(path, missing_columns=True)
    assert lenient.predict_values([{'size': 1}]) == \
        lenient.predict_values([dict.fromkeys(['town', 'when', 'grade'], None) | {'size': 1}])
    for wrong in rows[0], [{**rows[0], 'town': 'a\0b'}]:
        try:
            model.predict(wrong)
            raise AssertionError(wrong)
        except (TypeError, ValueError):
            pass
    try:
        dml.open(folder / 'nothing')
        raise AssertionError
    except dml.Error as error:
        assert 'No such file' in str(error) and error.code == -65
    model.close()
    try:
        model.predict(rows)
        raise AssertionError
    except ValueError as error:
        assert 'closed' in str(error)


@test
def rows_of_numbers_are_lists_or_dicts_of_ids(folder):
    train(small_job(folder))
    data = small_data(folder)
    expected = [value for value, in predicted(folder / 'job.state', data)]
    sparse = [{int(key): float(value) for key, value in (pair.split(':') for pair in line.split()[1:])}
              for line in data.read_text().splitlines()]
    dense = [[row.get(j, 0) for j in range(1, 21)] for row in sparse]
    model = dml.open(folder / 'job.state')
    assert model.predict_values(sparse) == expected
    assert model.predict_values(dense) == expected
    assert model.predict_values([row[::-1] for row in dense], columns=range(20, 0, -1)) == expected
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(model.predict_values, [sparse, dense] * 20)) == [expected] * 40


@test
def arrays_of_numpy_are_scored(folder):
    numpy = needs('numpy')
    train(small_job(folder))
    model = dml.open(folder / 'job.state')
    rows = numpy.arange(60.0).reshape(3, 20) / 50
    found = model.predict_values(rows)
    assert isinstance(found, numpy.ndarray) and found.tolist() == model.predict_values(rows.tolist())
    assert (model.predict_values(rows.astype('float32')) != found).any()
    assert model.predict_proba(rows[:, ::-1], columns=range(20, 0, -1)).shape == (3, 2)
    turned = numpy.asfortranarray(rows)[::-1, ::-1]
    for columns in range(20, 0, -1), numpy.arange(20, 0, -1):
        assert model.predict_values(turned, columns=columns).tolist() == found.tolist()[::-1]
    assert model.predict_values(rows.astype('>f8')).tolist() == found.tolist()
    assert model.predict_values(numpy.matrix(rows)).tolist() == found.tolist()
    assert model.predict_values(numpy.empty((0, 20))).shape == (0,)
    assert model.predict_proba(numpy.empty((0, 20))).shape == (0, 2)
    exception_of(ValueError, model.predict, rows, columns=[-1, *range(2, 21)])
    exception_of(TypeError, model.predict, numpy.zeros(2, [('a', 'f8')] * 1))
    # What is masked is missing, which a row of numbers cannot be.
    masked = numpy.ma.masked_greater(rows, 1)
    assert 'not finite' in str(exception_of(dml.Error, model.predict, masked))


@test
def an_array_of_a_table_has_names_missing_cells_and_offsets(folder):
    numpy = needs('numpy')
    lines = [f'{i % 7},{i % 5},{i % 3},{(i * 3 + i % 5) % 4}' for i in range(90)]
    (folder / 'data.csv').write_text('\n'.join(['a,b,o,y', *lines]) + '\n')
    train(write_job(folder, data=['data.csv'], max_steps=5, objective='poisson', offset='o'))
    model = dml.open(folder / 'job.state')
    rows = [(1.0, 2.0, 0.0), (3.0, 4.0, 1.0)]
    expected = model.predict_values(rows)
    named = numpy.array([row[::-1] for row in rows], [('o', 'f8'), ('b', 'f8'), ('a', 'f8')])
    assert model.predict_values(named).tolist() == expected
    masked = numpy.ma.array(rows, mask=[[0, 1, 0], [0, 0, 0]])
    assert model.predict_values(masked).tolist() == model.predict_values([(1.0, None, 0.0), rows[1]])
    assert model.predict_values(numpy.empty((0, 3))).shape == (0,)


@test
def offsets_are_one_for_each_row(folder):
    numpy = needs('numpy')
    data = small_data(folder)
    (folder / 'offsets').write_text('0.5\n' * len(data.read_text().splitlines()))
    train(small_job(folder, offsets=['offsets']))
    model = dml.open(folder / 'job.state')
    rows = numpy.ones((2, 20))
    expected = model.predict_values(rows, offsets=[1, 2]).tolist()
    for offsets in numpy.array([1, 2]), numpy.array([[1], [2]]), (x for x in (1, 2)):
        assert model.predict_values(rows, offsets=offsets).tolist() == expected
    for offsets in [1], numpy.array([[1, 9], [2, 9]]), (x for x in (1, 2, 3)):
        assert 'offsets for 2 rows' in str(exception_of(ValueError, model.predict, rows, offsets=offsets))


@test
def sparse_matrices_of_scipy_are_scored(folder):
    scipy = needs('scipy.sparse')
    train(small_job(folder))
    model = dml.open(folder / 'job.state')
    rows = [[float(i * j % 3) for j in range(20)] for i in range(5)]
    expected = model.predict_values(rows)
    assert model.predict_values(scipy.coo_matrix(rows)).tolist() == expected
    # Entries that are given twice, in any order: they are added, but not in the caller's matrix.
    twice = scipy.csr_matrix(([1.0, 1.0, 3.0], [4, 0, 4], [0, 3]), shape=(1, 20))
    assert model.predict_values(twice).tolist() == model.predict_values([[1.0] + 3 * [0] + [4.0] + 15 * [0]])
    assert twice.indices.tolist() == [4, 0, 4] and twice.data.tolist() == [1, 1, 3], twice


@test
def frames_of_pandas_are_scored(folder):
    pandas = needs('pandas')
    path, data, rows = table(folder)
    expected = [value for value, in predicted(path, data)]
    model = dml.open(path)
    for frame in pandas.read_csv(data), pandas.DataFrame(rows)[['y', 'grade', 'town', 'when', 'size']]:
        assert model.predict_values(frame).tolist() == expected
    frame['when'] = pandas.to_datetime(frame['when']).dt.date
    assert model.predict(frame).tolist() == model.predict(rows)
    for kinds in {'grade': 'category', 'town': 'category'}, {'grade': 'Int64', 'size': 'Float64',
                                                             'town': 'string', 'y': 'category'}:
        assert model.predict_values(frame.astype(kinds)).tolist() == expected, kinds
    frame['when'] = pandas.to_datetime(frame['when'])
    assert model.predict_values(frame.set_index('y')).tolist() == expected
    assert model.predict_values(frame.iloc[:0]).tolist() == []


def python(*arguments, **settings):
    """A Python of its own, with these environment variables."""
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **{name: str(value) for name, value in settings.items()}})


def wheel(folder, **settings):
    """The folder that a wheel was unpacked to, made as pip makes it, without an index."""
    made = python('-c', 'import sys; sys.path.insert(0, sys.argv[1]); import build_wheel; '
                  'print(build_wheel.build_wheel(sys.argv[2]))', SOURCE / 'python', folder, **settings)
    assert made.returncode == 0, made
    with zipfile.ZipFile(folder / made.stdout.strip()) as packed:
        packed.extractall(folder / 'site')
        for entry in packed.infolist():
            (folder / 'site' / entry.filename).chmod(entry.external_attr >> 16)
    return made.stdout.strip(), folder / 'site'


@test
def what_a_type_says_means_what_training_read_of_it(folder):
    """Of a model of each door, that of a frame, a table of Arrow, dicts, and files of the other doors."""
    pyarrow, pandas, numpy = needs('pyarrow'), needs('pandas'), needs('numpy')
    import pyarrow.csv
    import pyarrow.parquet
    count = 120
    moments = [datetime.datetime(2024, 6, 1 + i % 4, 9 * (i % 2)) for i in range(count)]
    table = pyarrow.table({
        'flag': [i % 2 == 0 for i in range(count)],
        'single': pyarrow.array([(i % 5) / 10 for i in range(count)], 'float32'),
        'level': pyarrow.array([[1e16, -0.0, 0.1, 1e-7, 3.0][i % 5] for i in range(count)]),
        'small': pyarrow.array([[0.1, 1e20, 2.0][i % 3] for i in range(count)], 'float32'),
        'moment': pyarrow.array(moments, pyarrow.timestamp('ns')),
        'time': pyarrow.array([datetime.time(9, 30 * (i % 2)) for i in range(count)], pyarrow.time64('us')),
        'day': pyarrow.array([moment.date() for moment in moments]),
        'y': [int(i % 2 == 0 or i % 7 == 3) for i in range(count)]})
    categories = ['level', 'small', 'moment', 'time', 'day']
    pyarrow.csv.write_csv(table, folder / 'arrow.csv')
    table.to_pandas().to_csv(folder / 'pandas.csv', index=False)
    pyarrow.parquet.write_table(table, folder / 'arrow.parquet')
    frame = pandas.read_parquet(folder / 'arrow.parquet')
    files = ['arrow.csv', 'pandas.csv', 'arrow.parquet']
    for name in files:
        train(write_job(folder, name, data=[name], max_steps=5, csv={'categories': categories, 'label': 'y'}))
        expected = [value for value, in predicted(folder / f'{name}.state', folder / name)]
        model = dml.open(folder / f'{name}.state')
        dicts = [{key: value[i].item() if isinstance(value[i], numpy.float32) else value[i] for key, value in
                  ((column, frame[column]) for column in frame)} for i in range(count)]
        for rows in frame, table, frame.convert_dtypes(dtype_backend='pyarrow'), frame.astype({'flag': 'category'}):
            found = model.predict_values(rows).tolist()
            assert found == expected, (name, type(rows), model.unseen, [(i, *pair) for i, pair in enumerate(zip(found, expected)) if pair[0] != pair[1]][:5])
        scalars = [{column: frame[column].to_numpy()[i] for column in frame} for i in range(count)]
        assert model.predict_values(scalars) == expected, name
        assert model.unseen == {} and dicts, (name, model.unseen)
        for other in files:
            assert [value for value, in predicted(folder / f'{name}.state', folder / other)] == expected, (name, other)


@test
def a_column_of_which_no_text_is_known_is_warned_of(folder):
    path, data, rows = table(folder)
    model = dml.open(path)
    odd = [{**row, 'town': 'nowhere'} for row in rows]
    for bad, says in (odd, 'none of 120 rows'), ([{**row, 'size': None} for row in rows], 'missing in each of 120'):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            model.predict(bad)
            model.predict(bad[:3])
            model.predict(rows)
        assert [says in str(one.message) for one in caught] == [True], caught
    assert model.unseen == {'town': 123}, model.unseen
    data.write_text(data.read_text().replace('Rome', 'Oslo').replace('"a ""b"", c"', 'Bonn').replace(',3,', ',4,'))
    finished = program('predict', path, data)
    assert 'warning: column 2 (town): none of 120 rows has a text that training had, but such as "Oslo"' in \
        finished.stderr, finished
    data.write_text('\n'.join(data.read_text().splitlines()[:5]) + '\n')
    assert 'warning' not in program('predict', path, data).stderr


ENDINGS = {
    'a cycle': 'class A: pass\na = A(); a.me = a; a.m = dml.open(path); a.m.predict(rows)',
    'a class': 'class A:\n    m = dml.open(path)\nA.m.predict(rows)',
    'a function that refers to itself': 'def make():\n    m = dml.open(path)\n    def f(): return m.predict(rows), f\n'
                                        '    return f\nf = make(); f()',
    'an error that is kept': 'import gc\ndef ask():\n    m = dml.open(path); m.predict(rows)\n    try: m.predict([{}])\n'
                             '    except dml.Error as error: kept = error\nask(); gc.collect()',
    'a thread that still scores': 'import threading, time\nm = dml.open(path)\ndef f():\n    while True: m.predict(rows)\n'
                                  'threading.Thread(target=f, daemon=True).start(); time.sleep(.05)\n'
                                  'class C:\n    def __del__(self): m.close()\nc = C(); c.me = c',
    'a fork': 'import os\nm = dml.open(path); m.predict(rows)\nif not os.fork(): m.predict(rows); m.close()\n'
              'else: assert os.wait()[1] == 0; m.close()',
}


@test
def a_program_ends_well_in_whatever_order_models_and_scorers_go(folder):
    path, _, _ = table(folder)
    for name, code in ENDINGS.items():
        code = f'import dml\npath = {str(path)!r}\nrows = [dict(size=1, town="Rome", when="2024-01-01", grade=1)]\n{code}'
        ended = python('-c', code, PYTHONPATH=SOURCE / 'python')
        assert ended.returncode == 0, (name, ended)


@test
def close_waits_for_the_threads_that_score(folder):
    path, _, rows = table(folder)
    for _ in range(10):
        model, errors, begun = dml.open(path), [], threading.Semaphore(0)

        def score():
            try:
                while True:
                    model.predict_proba(rows)
                    begun.release()
            except ValueError as error:
                errors.append(str(error))
        threads = [threading.Thread(target=score) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            begun.acquire()
        model.close()
        assert not model.users.threads
        for thread in threads:
            thread.join()
        assert str(path) not in open('/proc/self/maps').read()
        assert errors == ['the model is closed'] * 3, errors
        model.close()


@test
def copies_and_pickles_open_the_path_again(folder):
    path, _, rows = table(folder)
    model = dml.open(os.path.relpath(path), missing_columns=True)
    expected = model.predict_values(rows)
    for other in copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model)):
        assert other.predict_values(rows) == expected
        assert other.predict_values([{}]) == model.predict_values([{}])
        other.close()
    error = pickle.loads(pickle.dumps(exception_of(dml.Error, model.predict, [[1, 2]])))
    assert '2 cells' in str(error) and error.row == 0 and error.code == -65
    model.close()
    assert 'closed' in str(exception_of(ValueError, pickle.dumps, model))


class Liar(list):
    """A row that says that it has another length than it has."""

    def __init__(self, cells, length):
        super().__init__(cells)
        self.length = length

    def __len__(self):
        return self.length


@test
def a_row_is_as_long_as_the_cells_that_it_gives(folder):
    path, _, _ = table(folder)
    model = dml.open(path)
    for cells, length in ([1], 4), ([], 4), ([1] * 5, 4):
        assert f'{len(cells)} cells' in str(exception_of(dml.Error, model.predict, [Liar(cells, length)]))
    (folder / 'numbers').mkdir()
    train(small_job(folder / 'numbers'))
    model = dml.open(folder / 'numbers/job.state')
    expected = model.predict_values([[1.0] * 20])
    assert model.predict_values([Liar([1.0] * 20, 3)]) == expected
    assert 'numbers' in str(exception_of(dml.Error, model.predict, [[1.0] * 20, Liar([1.0], 20)]))

    class Dict(dict):
        def __len__(self):
            return 900
    assert model.predict_values([Dict({i + 1: 1.0 for i in range(20)})]) == expected


@test
def tables_of_arrow_and_polars_are_scored(folder):
    pyarrow, pandas = needs('pyarrow'), needs('pandas')
    path, data, rows = table(folder)
    model = dml.open(path)
    expected = [value for value, in predicted(path, data)]
    made = pyarrow.Table.from_pylist(rows)
    tables = [made, made.to_batches()[0], pyarrow.RecordBatchReader.from_batches(made.schema, made.to_batches()),
              pandas.DataFrame(rows).convert_dtypes(dtype_backend='pyarrow')]
    if importlib.util.find_spec('polars'):
        tables.append(importlib.import_module('polars').DataFrame(rows))
    for one in tables:
        assert model.predict_values(one).tolist() == expected, type(one)
    assert model.predict(made).tolist() == model.predict(rows)


@test
def what_is_no_table_is_refused_by_an_error_of_dml(folder):
    numpy, pandas = needs('numpy'), needs('pandas')
    path, _, rows = table(folder)
    (folder / 'numbers').mkdir()
    train(small_job(folder / 'numbers'))
    frame = pandas.DataFrame(rows)
    levels = pandas.DataFrame([[1, 2]], columns=pandas.MultiIndex.from_tuples([('a', 'b'), ('a', 'c')]))
    odd = [frame['size'], frame.iloc[0], 'text', b'text', 5, None, [5], [None], [{'size': 1}, 5], levels,
           numpy.zeros(3), numpy.zeros((2, 2, 2)), numpy.float64(3), pandas.Index(['a']), object(), iter([3]),
           [[[1], 2, 3, 4]], [['1', 2, {}, 4]], [[1, 2j, 3, 4]], [dict(rows[0], size=10 ** 400)], frame.groupby('y')]
    if importlib.util.find_spec('pyarrow'):
        pyarrow = importlib.import_module('pyarrow')
        odd += [pyarrow.array([1, 2]), pyarrow.chunked_array([[1, 2]]),
                pyarrow.table({'size': [[1]], 'town': [1], 'when': [1], 'grade': [1]})]
    if importlib.util.find_spec('polars'):
        polars = importlib.import_module('polars')
        odd += [polars.Series([1]), polars.LazyFrame({'a': [1]}), polars.DataFrame({'a': [1]})]
    for model in dml.open(path), dml.open(folder / 'numbers/job.state'):
        for one in odd:
            exception_of(dml.Error, model.predict, one)


@test
def a_model_that_may_not_be_read_is_a_matter_of_permission(folder):
    path, data, _ = table(folder)
    user = ordinary_user(folder)
    code = (f'import dml, os\nif {user}: os.setgroups([]); os.setuid({user})\n'
            f'try: dml.open({str(path)!r})\nexcept dml.Error as error: print(error.code, error)')
    for closed in path / 'models', path, path / 'models' / os.readlink(path / 'models/current'):
        mode = closed.stat().st_mode
        closed.chmod(0)
        finished = program('predict', path, data, user=user)
        assert finished.status == PERMISSION and 'permission denied' in finished.stderr, finished
        tried = python('-c', code, PYTHONPATH=SOURCE / 'python')
        assert tried.stdout.startswith('-77') and 'permission denied' in tried.stdout, tried
        closed.chmod(mode)


def library_and_score(folder, site, **settings):
    used = python('-c', f'import dml; print(dml._library.load()._name, dml.open({str(folder / "job.state")!r})'
                  '.predict([[1] * 20])[0])', PYTHONPATH=site, **settings)
    assert used.returncode == 0, used
    return used.stdout.split()


@test
def a_wheel_has_the_library_and_the_programs_in_it(folder):
    name, site = wheel(folder, DML_LIBRARY=BUILD / 'libdml.so.0', DML_BUILD=BUILD)
    assert 'linux' in name, name
    expected = train(small_job(folder))['model_sha256']
    assert library_and_score(folder, site)[0] == str(site / 'dml/libdml.so.0')
    trained = python('-c', 'import dml, sys; run = dml.train(sys.argv[1], l2=1e-3, state=sys.argv[2])\n'
                     'print(dml._programs.find(), run.model_sha256)', small_data(folder), folder / 'wheel.state',
                     PYTHONPATH=site, DML_BUILD=folder)
    assert trained.stdout.split() == [str(site / 'dml/bin/dml-coordinator'), expected], trained


@test
def a_wheel_takes_the_library_of_the_system_where_none_was_built(folder):
    system = {'LD_LIBRARY_PATH': BUILD, 'DML_BUILD': folder}
    name, site = wheel(folder, DML_LIBRARY='libdml.so.0', **system)
    assert name.endswith('-py3-none-any.whl') and not (site / 'dml/libdml.so.0').exists(), name
    train(small_job(folder))
    assert library_and_score(folder, site, **system)[0] == 'libdml.so.0'


@test
def a_library_that_is_missing_damaged_or_another_is_named_with_what_to_do(folder):
    (folder / 'libdml.so.0').write_bytes(b'no library')
    for library, says in (('/nowhere/libdml.so.0', 'No such file'), (folder / 'libdml.so.0', 'too short'),
                          ('libc.so.6', 'undefined symbol: dml_error_text; it is of another version')):
        for code in 'import dml', f'import build_wheel; build_wheel.build_wheel({str(folder)!r})':
            none = python('-c', f'import sys; sys.path.insert(0, {str(SOURCE / "python")!r}); {code}',
                          DML_LIBRARY=library)
            last = none.stderr.strip().splitlines()[-1]
            assert none.returncode and last.count(str(library)) == 1 and says in last, none
            assert 'make libdml.so.0' in last and 'Debian: libdml0' in last, none
        assert not list(folder.glob('*.whl'))


if __name__ == '__main__':
    sys.exit(main())
