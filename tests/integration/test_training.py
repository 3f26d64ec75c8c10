#!/usr/bin/env python3
"""Training from Python: dml.train(), its Run, and estimators with scikit-learn's contract."""

import concurrent.futures
import csv
import datetime
import doctest
import fcntl
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings

from harness import SOURCE, Skip, dml as program, exception_of, long_test, main, small_data, test, train, write_job

sys.path.insert(0, str(SOURCE / 'python'))

import dml  # noqa: E402


def needs(*packages):
    for package in packages:
        if not importlib.util.find_spec(package):
            raise Skip(f'{package} is not installed')
    return [importlib.import_module(package) for package in packages]


def cached(folder):
    """Where private folders are from now on."""
    os.environ['XDG_CACHE_HOME'] = str(folder)
    return folder / 'dml'


def left_in(cache):
    return sorted(entry.name for entry in cache.iterdir()) if cache.exists() else []


def cells(rows=90):
    """A table of numbers and texts with missing cells, and a label that no plane tells from them."""
    return [{'size': None if i % 7 == 0 else i / 4, 'town': [None, 'Rome', 'Bonn', 'a "b", c'][i % 4],
             'bought': 'yes' if i * i % 11 > 4 else 'no'} for i in range(rows)]


def numbers(numpy, rows=120, columns=6):
    generator = numpy.random.default_rng(1)
    x = generator.normal(size=(rows, columns))
    return x, (x[:, 0] + x[:, 1] + generator.normal(size=rows) > 0).astype('int64')


@test
def tables_in_memory_train_the_model_of_their_file(folder):
    pyarrow, = needs('pyarrow')
    import pyarrow.parquet
    cache, rows = cached(folder), cells()
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, folder / 'rows.parquet')
    settings = {'l2': 1e-3, 'holdout': 0.2}
    expected = train(write_job(folder, data=['rows.parquet'], csv={'label': 'bought'}, **settings))['model_sha256']
    forms = [table, table.to_reader(7), rows, table.to_pydict(), folder / 'rows.parquet', [str(folder / 'rows.parquet')]]
    for package in 'pandas', 'polars':
        if importlib.util.find_spec(package):
            forms.append(importlib.import_module(package).DataFrame(rows))
    for form in forms:
        files = isinstance(form, pathlib.Path) or isinstance(form, list) and isinstance(form[0], str)
        run = dml.train(form, **({'csv_label': 'bought'} if isinstance(form, list) and files else {'label': 'bought'}), **settings)
        assert run.model_sha256 == expected, type(form)
        assert run.figures['holdout']['examples'] == run.result['holdout']['examples']
    beside = dml.train(table.select(['size', 'town']), label=table['bought'], **settings)
    assert beside.result['loss'] == run.result['loss']
    del run, beside
    assert not left_in(cache)


@test
def arrays_and_sparse_matrices_train_the_model_of_their_file(folder):
    numpy, = needs('numpy')
    cached(folder)
    x, y = numbers(numpy)
    numpy.save(folder / 'x', x)
    numpy.save(folder / 'y', y)
    job = write_job(folder, data=['x.*'], labels=['y.*'], l2=1e-3, test=['x.*'], test_labels=['y.*'])
    expected = train(job)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        run = dml.train(x, y, l2=1e-3, test=(x, y))
    assert str(caught[0].message).startswith('test.') and 'has the same content as data.' in str(caught[0].message), caught[0]
    assert run.model_sha256 == expected['model_sha256'] and run.figures['test'] == expected['test']
    assert dml.train(numpy.asfortranarray(x), y.tolist(), l2=1e-3).model_sha256 == expected['model_sha256']
    weighted = dml.train(x, y, l2=1e-3, weights=numpy.repeat([1.0, 0.3], 60))
    assert weighted.model_sha256 != expected['model_sha256'] and weighted.result['weights']
    needs('scipy')
    import scipy.sparse
    path = small_data(folder)
    lines = [line.split() for line in path.read_text().splitlines()]
    entries = [(i, int(pair.split(':')[0]) - 1, float(pair.split(':')[1])) for i, line in enumerate(lines)
               for pair in line[1:]]
    places, columns, values = zip(*entries)
    matrix = scipy.sparse.csr_matrix((values, (places, columns)), shape=(len(lines), 20))
    expected = train(write_job(folder, 'sparse', data=[path], l2=1e-3))['model_sha256']
    labels = [int(line[0]) for line in lines]
    assert dml.train(matrix, labels, l2=1e-3).model_sha256 == expected
    one, other = numpy.argsort(places, kind='stable'), numpy.argsort(-numpy.array(columns), kind='stable')
    halves = [(0.5 * numpy.array(values)[order], (numpy.array(places)[order], numpy.array(columns)[order]))
              for order in (one, other)]
    twice = scipy.sparse.coo_matrix((numpy.concatenate([half[0] for half in halves]),
                                     numpy.concatenate([half[1] for half in halves], axis=1)), shape=matrix.shape)
    starts = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(twice.row, minlength=len(lines)))])
    order = numpy.argsort(twice.row, kind='stable')
    twice = scipy.sparse.csr_matrix((twice.data[order], twice.col[order], starts), shape=matrix.shape)
    assert not twice.has_canonical_format and twice.nnz == 2 * matrix.nnz
    assert dml.train(twice, labels, l2=1e-3).model_sha256 == expected
    for name, saved in ('stored', False), ('deflated', True):
        scipy.sparse.save_npz(folder / f'{name}.npz', matrix, compressed=saved)
        numpy.save(folder / 'labels.npy', labels)
        job = write_job(folder, name, data=[f'{name}.npz'], labels=['labels.npy'], l2=1e-3)
        assert train(job)['model_sha256'] == expected


@test
def numbers_beside_the_rows_are_those_of_their_files(folder):
    numpy, = needs('numpy')
    cached(folder)
    x, y = numbers(numpy)
    numpy.save(folder / 'x.npy', x)
    numpy.save(folder / 'y.npy', y)
    rng = numpy.random.default_rng(3)
    beside = {'weights': rng.random(len(y)), 'offsets': rng.normal(size=len(y)), 'exposures': rng.random(len(y)) + .1}
    job = {'data': ['x.npy'], 'labels': ['y.npy'], 'l2': 1e-3, 'objective': 'poisson'}
    for key, values in beside.items():
        (folder / key).write_text(''.join(f'{value!r}\n' for value in values.tolist()))
        numpy.save(folder / f'{key}.npy', values)
    expected = train(write_job(folder, 'lines', **job, **{key: [key] for key in beside}))
    arrays = train(write_job(folder, 'arrays', **job, **{key: [f'{key}.npy'] for key in beside}))
    assert arrays['model_sha256'] == expected['model_sha256']
    assert dml.train(x, y, l2=1e-3, objective='poisson', **beside).model_sha256 == expected['model_sha256']

    def refuse(words, values):
        numpy.save(folder / 'weights.npy', values)
        finished = program('run', write_job(folder, 'bad', **job, weights=['weights.npy']))
        assert finished.status == 65 and words in finished.stderr, finished
    refuse('weights.npy has only 119 weights', beside['weights'][:-1])
    refuse('weights.npy has 121 weights, but', numpy.append(beside['weights'], 1))
    refuse('weights.npy: number 120 is -1, which is no weight: allowed: a number from 0 to', numpy.append(beside['weights'][:-1], -1))
    refuse('weights.npy has 2 numbers a row', numpy.ones((60, 2)))


def mixed_columns(rows):
    """The error of a column of several types, where pandas is there."""
    if importlib.util.find_spec('pandas'):
        frame = importlib.import_module('pandas').DataFrame(rows)
        yield 'column mixed with type object; frame[column].astype(str)', [frame.assign(mixed=[1, 'a'] * 45), 'bought'], {}


@test
def what_is_wrong_is_an_exception_that_says_what_and_leaves_nothing(folder):
    numpy, _ = needs('numpy', 'pyarrow')
    cache, rows = cached(folder), cells()
    for words, arguments, keys in (
            ('key `objectve`: there is no such key', [rows, 'bought'], {'objectve': 'x'}),
            ('key `txt`: there is no such key in csv', [rows, 'bought'], {'csv_txt': 'x'}),
            ("no column is named 'boght'", [rows, 'boght'], {}),
            ('data.parquet:1: column 1 (size)', [[{**row, 'size': 'far'} for row in rows], 'bought'],
             {'csv_numbers': 'size'}),
            ('an array has no labels', [numpy.ones((3, 2))], {}),
            ('labels of shape (2,) for 3 rows', [numpy.ones((3, 2)), [1, 0]], {}),
            ('/nowhere.csv', [folder / 'nowhere.csv'], {}),
            ('files have their labels in a column', [folder / 'nowhere.csv', [1, 0]], {}),
            *mixed_columns(rows),
            ('l1', [rows, 'bought'], {'l1': 'much'})):
        error = exception_of((ValueError, TypeError), dml.train, *arguments, **keys)
        assert words in str(error) and str(cache) not in str(error).replace(str(folder / 'nowhere.csv'), ''), error
    error = exception_of(dml.JobError, dml.train, rows, 'bought', l1=-1)
    assert error.code == -78, error.code
    assert not left_in(cache), left_in(cache)
    state = folder / 'busy.state'
    run = dml.train(rows, 'bought', state=state)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        assert dml.train(rows, 'bought', state=state, fresh=True).number == 2 and run.number == 1
    exception_of(dml.JobError, dml.train, rows, 'bought', state=state, l1=-1)
    assert sorted(os.listdir(state / 'python')) == ['job.conf', 'lock']
    with open(state / 'python/lock') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert 'another call works' in str(exception_of(dml.Error, dml.train, rows, 'bought', state=state))


@test
def what_the_program_warns_of_is_a_warning(folder):
    needs('pyarrow')
    cached(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        run = dml.train(cells(), 'bought', max_steps=1, test=cells(80)[40:], l2=1e-3)
    assert [warning.category for warning in caught] == [dml.ConvergenceWarning], caught
    assert 'raise max_steps' in str(caught[0].message) and caught[0].filename == __file__, caught[0]
    assert not run.converged and run.reason == 'step limit' and run.warnings
    lines = [f'{i},{i * i % 11 > 4}' for i in range(90)]
    (folder / 'rows.csv').write_text('\n'.join(['size,bought', *lines, *4 * ['1,']]) + '\n')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        run = dml.train(folder / 'rows.csv', 'bought', bad_lines=9, l2=1e-3)
    assert [str(warning.message) for warning in caught] == \
        [f'skipped: {folder}/rows.csv:92: column 2 (bought): the label is empty; 3 more such lines are in Run.warnings']
    assert len(run.warnings) == 4, run.warnings
    dated = [{**row, 'when': datetime.date(2024, 5, 1 + i % 7)} for i, row in enumerate(cells())]
    for keys, warned in ({}, ['holds dates']), ({'csv_dates': 'when'}, []), ({'csv_categories': ['when', 'town']}, []):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            run = dml.train(dated, 'bought', l2=1e-3, **keys)
        assert ['holds dates' for text in run.warnings if '(when) holds dates' in text] == warned, run.warnings


@test
def a_run_tells_how_it_went(folder):
    needs('pyarrow')
    cached(folder)
    run = dml.train(cells(), 'bought', holdout=0.2, summary='model', l2=1e-3, tag='first', csv={'categories': ['town']})
    assert run.steps['step'] == list(range(run.result['steps'] + 1)), run.steps
    assert run.steps['loss'][-1] == run.loss and len(run.steps['holdout_loss']) == len(run.steps['step'])
    assert run.epochs['epoch'] == [] and set(run.events) == {'kind', 'text', 'seconds_after'}
    assert run.settings['csv.categories'] == ['town'] and run.settings['l2'] == 1e-3
    summary = run.summary(level=0.9)
    assert 'town=Rome' in summary.columns['name'] and 'town=Rome' in repr(summary) and summary.fit['rows'], summary
    assert '<svg' in run._repr_html_() and run.report().startswith('<!')
    assert run.model.predict(cells(3)) and 'converged' in repr(run)
    assert f'; holdout loss {run.figures["holdout"]["loss"]:.6g}, accuracy' in repr(run), run
    assert repr(run.model).startswith("<dml.Model logistic of the classes 'no', 'yes', 2 columns: "), run.model
    assert dml.__version__ == dml.version
    run.save(folder / 'kept')
    model = run.model
    del run
    assert model.about['result']['run'] == 1
    assert dml.open(folder / 'kept').predict_values(cells(5)) == model.predict_values(cells(5))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        epochs = dml.train(cells(), 'bought', optimizer='downpour', downpour={'epochs': 2}).epochs
    assert epochs['epoch'][-1] == 2 and all(rows == 90 for rows in epochs['rows'][1:]), epochs


@test
def a_result_larger_than_a_pipe_is_read(folder):
    numpy, = needs('numpy')
    cached(folder)
    x, y = numbers(numpy, 1200)[0], numpy.arange(1200) % 400
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        run = dml.train(x, y, objective='softmax', max_steps=1, test=(x + 1, y), holdout=0.3)
    assert len(json.dumps(run.result)) > 1 << 16, len(json.dumps(run.result))


@test
def progress_is_one_line_that_is_written_over(folder):
    needs('pyarrow')
    cached(folder)
    for wanted, shown in (None, False), (False, False), (True, True):
        kept, sys.stderr = sys.stderr, io.StringIO()
        try:
            dml.train(cells(), 'bought', progress=wanted)
            text = sys.stderr.getvalue()
        finally:
            sys.stderr = kept
        assert bool(text) == shown and text.count('\n') == shown, text
        assert str(folder) not in text and ('data.parquet: columns of texts' in text) == shown, text


LONG = '''
import os, sys
sys.path.insert(0, {source!r})
import dml, numpy
generator = numpy.random.default_rng(1)
x, y = generator.normal(size=(4000, 40)), generator.integers(0, 5, 4000)
print('begun', flush=True)
run = dml.train(x, y, objective='network', network_layers=[20], holdout=[], early_stopping='off', max_steps=100, threads=1,
                gradient_tolerance=0, loss_tolerance=0, checkpoint_seconds=0{more})
print(run.model_sha256, run.result['restarts']['coordinator'], flush=True)
'''


def interpreter(more='', **environment):
    code = LONG.format(source=str(SOURCE / 'python'), more=more)
    return subprocess.Popen([sys.executable, '-W', 'ignore', '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, **environment})


# Holds a run up in the middle, so that it cannot end before it is disturbed.
HELD_UP = {'DML_FAILPOINT': 'replica0.receive_EVALUATE:40:delay:5000'}


def finished(process):
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.split()[1:]


def steps_begun(folder, process):
    """Waits until the training has made some steps durable."""
    for _ in range(600):
        assert process.poll() is None, process.communicate()
        for path in folder.glob('**/dml.db'):
            listed = program('jobs', path.parent, '--json')
            runs = listed.json['folders'][0]['runs'] if listed.status == 0 else []
            if runs and (runs[-1]['steps'] or 0) > 3:
                return path.parent
        time.sleep(0.05)
    raise AssertionError('no step within 30 s')


def no_coordinator_works_in(state):
    """By the lock of the folder: one that is ending its workers may not answer `status`."""
    with open(state / 'lock') as lock:
        for _ in range(600):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.05)
    raise AssertionError('the program outlives its interpreter')


@test
def an_interpreter_that_is_killed_leaves_a_run_that_the_same_call_finishes(folder):
    needs('numpy')
    cache = cached(folder)
    quiet, _ = finished(interpreter())
    process = interpreter(**HELD_UP)
    state = steps_begun(folder, process)
    process.kill()
    process.communicate()
    no_coordinator_works_in(state)
    assert left_in(cache) == [state.name]
    resumed, restarts = finished(interpreter())
    assert resumed == quiet and restarts == '1', (quiet, resumed, restarts)
    assert not left_in(cache)


@test
def an_interrupt_stops_where_resume_goes_on(folder):
    needs('numpy')
    cached(folder)
    quiet, _ = finished(interpreter())
    process = interpreter(f', state={str(folder / "my.state")!r}', **HELD_UP)
    state = steps_begun(folder, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode and f"dml.resume('{state}') resumes it" in errors, errors
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        run = dml.resume(state)
    assert run.model_sha256 == quiet and run.result['restarts']['coordinator'] == 1
    assert 'no call of dml.train()' in str(exception_of(dml.Error, dml.resume, folder / 'none'))


@test
def an_interrupted_call_is_resumed_at_the_prompt_that_keeps_its_exception(folder):
    numpy, = needs('numpy')
    cache, programs = cached(folder), sys.modules['dml._programs']
    x, y = numbers(numpy)
    expected = dml.train(x, y).model_sha256
    lines, stop = programs.Call.lines, programs.Call.stop

    def interrupted(call):
        programs.Call.lines = lines
        raise KeyboardInterrupt

    def interrupted_again(call):
        programs.Call.stop = stop
        raise KeyboardInterrupt

    for again in interrupted_again, stop:
        for resume in lambda state: dml.resume(state), lambda state: dml.train(x, y):
            programs.Call.lines, programs.Call.stop = interrupted, again
            kept = exception_of(dml.Stopped, dml.train, x, y)
            assert left_in(cache) == [os.path.basename(kept.state)], kept
            run = resume(kept.state)
            assert run.model_sha256 == expected and run.state == kept.state, (run.state, kept)
            del run
            assert not left_in(cache), kept  # although a private folder was resumed by its name


def kernel_with(code):
    """A notebook's kernel that has run this code, and its client."""
    from jupyter_client import KernelManager
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client, answer_of(client, code)


def answer_of(client, code):
    """What a cell prints, and the exception that ends it; None: it has none."""
    printed = []
    reply = client.execute_interactive(code, timeout=120, output_hook=lambda message: printed.append(message['content']))
    return ''.join(part.get('text', '') for part in printed if part.get('name') == 'stdout'), reply['content'].get('ename')


@long_test
def a_notebook_that_is_interrupted_or_killed_leaves_nothing(folder):
    needs('numpy', 'ipykernel', 'jupyter_client')
    cache = cached(folder)
    os.environ.update(IPYTHONDIR=str(folder / 'ipython'), JUPYTER_RUNTIME_DIR=str(folder / 'jupyter'))
    code = LONG.format(source=str(SOURCE / 'python'), more='').replace('run = dml', 'def fit(): return dml').split('print(run')[0]
    shown = 'print(run.model_sha256, run.result["restarts"]["coordinator"])'
    manager, client, _ = kernel_with(code)
    quiet, _ = answer_of(client, f'run = fit()\n{shown}\ndel run')
    for end in 'interrupt', 'kill', 'restart':
        answer_of(client, f'os.environ["DML_FAILPOINT"] = {HELD_UP["DML_FAILPOINT"]!r}')
        asked = client.execute('run = fit()')
        state = steps_begun(folder, manager.provisioner.process)
        if end == 'interrupt':
            manager.interrupt_kernel()
            while client.get_shell_msg(timeout=60)['parent_header'].get('msg_id') != asked:
                pass
            no_coordinator_works_in(state)
            answer_of(client, 'del os.environ["DML_FAILPOINT"]')
            printed = answer_of(client, f'run = dml.resume({str(state)!r})\n{shown}\ndel run')
        else:
            client.stop_channels()
            manager.shutdown_kernel(now=True) if end == 'restart' else manager.signal_kernel(signal.SIGKILL)
            no_coordinator_works_in(state)
            manager, client, _ = kernel_with(code)
            printed = answer_of(client, f'run = fit()\n{shown}\ndel run')
        assert printed == (quiet.replace(' 0', ' 1'), None), (end, quiet, printed)
        assert not left_in(cache), (end, left_in(cache))
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@test
def calls_in_threads_and_in_forks_are_apart(folder):
    numpy, = needs('numpy')
    cache = cached(folder)
    x, y = numbers(numpy)
    expected = dml.train(x, y).model_sha256
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert {run.result() for run in [pool.submit(lambda: dml.train(x, y).model_sha256) for _ in range(8)]} == {expected}
    run = dml.train(x, y)
    child = os.fork()
    if not child:
        del run  # the folder is the parent's
        os._exit(0 if dml.train(x, y).model_sha256 == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(run.model.predict(x)) == len(x) and len(left_in(cache)) == 1
    del run
    assert not left_in(cache), left_in(cache)


@test
def a_follower_takes_the_model_that_goes_live(folder):
    numpy, = needs('numpy')
    x, y = numbers(numpy)
    state = folder / 'followed.state'
    first = dml.train(x, y, state=state, l2=1e-3).model_sha256
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        second = dml.train(x, y, state=state, l2=1e-1).model_sha256
    assert 'run 2 is not live' in str(caught[0].message), caught
    follower = dml.follow(state)
    kept = follower.model
    assert follower.about['model_sha256'] == first and 'no live model' in str(exception_of(dml.Error, dml.follow, folder))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(lambda: [follower.predict_proba(x[:9]).sum() for _ in range(200)]) for _ in range(3)]
        for live in (2, second), (1, first), (2, second):
            assert program('publish', str(live[0]), state).status == 0
            assert follower.about['model_sha256'] == live[1]
        assert all(abs(total - 9) < 1e-9 for call in calls for total in call.result())
    assert program('rollback', state).status == 0
    assert follower.about['model_sha256'] == first and kept.about['model_sha256'] == first
    assert pickle.loads(pickle.dumps(follower)).about['model_sha256'] == first
    child = os.fork()
    if not child:
        os._exit(0 if follower.about['model_sha256'] == first and len(follower.predict(x)) == len(x) else 1)
    assert os.waitpid(child, 0)[1] == 0
    (state / 'models/current').unlink()
    (state / 'models/current').symlink_to('9')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        assert len(follower.predict(x)) == len(follower.predict(x)) == len(x)
    assert len(caught) == 1 and 'cannot be opened' in str(caught[0].message), caught


@test
def the_examples_of_the_manual_run(folder):
    pandas, _, _ = needs('pandas', 'pyarrow', 'sklearn')
    cached(folder)
    page = (SOURCE / 'man/dml-python.7').read_text()
    frame = pandas.DataFrame(cells())
    names = {'frame': frame, 'rows': frame[['size', 'town']], 'y': frame['bought']}
    examples = [part.split('.Ed')[0] for part in page.split('.Bd -literal -offset indent\n')[1:]]
    assert len(examples) == 2
    before = os.getcwd()
    os.chdir(folder)
    try:
        for example in examples:
            exec(example, names)
    finally:
        os.chdir(before)
    assert dml.open(folder / 'people').predict(names['rows'][:2]).shape == (2,)
    shown = {name for name in dml.__all__ if name[0].isupper()} - {'Error', 'JobError', 'Model', 'Run', 'Stopped'}
    assert all(name in page or name == 'UnseenWarning' for name in shown), shown


def public_functions():
    """(name, function, docstring) of what the package has; a class of estimators stands for its making."""
    for name in sorted(set(dml.__all__) - {'version'}):
        thing = getattr(dml, name)
        if not inspect.isclass(thing) or name in dml.ESTIMATORS:
            yield name, thing, thing.__doc__
        for key, method in vars(thing).items() if thing in (dml.Model, dml.Run, dml.Explanation) else ():
            if inspect.isfunction(method) and key in PUBLIC_METHODS:
                yield f'{name}.{key}', method, method.__doc__


PUBLIC_METHODS = ('predict', 'predict_proba', 'predict_values', 'predict_margins', 'explain', 'frame', 'save', 'summary', 'report')


@test
def docstrings_name_every_parameter_and_their_examples_run(folder):
    needs('numpy', 'pyarrow', 'sklearn')
    cached(folder)
    lacking = [f'{name}: {parameter}' for name, function, text in public_functions()
               for parameter in inspect.signature(function).parameters if parameter != 'self'
               and not re.search(rf'^ *([*\w]+, )*[*]*{parameter}(, [*\w]+)*( :|$)', text, re.M)]
    assert not lacking, lacking
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    before = os.getcwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            for name, function, _ in public_functions():
                for example in finder.find(function, name, globs={'dml': dml}, module=False):
                    runner.run(example)
    finally:
        os.chdir(before)
    assert not runner.failures and runner.tries > 20, runner.summarize()


# ---- estimators ----

QUICK_CHECKS = ('check_estimators_pickle', 'check_dict_unchanged', 'check_fit_idempotent', 'check_n_features_in',
                'check_dataframe_column_names_consistency', 'check_sample_weight_equivalence_on_dense_data',
                'check_estimators_dtypes', 'check_estimator_sparse_matrix', 'check_fit2d_1sample')


@test
def estimators_keep_the_contract_of_scikit_learn(folder):
    needs('sklearn', 'pandas')
    from sklearn.utils import estimator_checks
    cached(folder)
    from dml import _estimators
    assert sorted(kind.__name__ for kind in _estimators.ALL) == sorted(dml.ESTIMATORS)
    for estimator in dml.LogisticRegression(), dml.Ridge():
        for name in QUICK_CHECKS:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                getattr(estimator_checks, name)(type(estimator).__name__, estimator)


WEIGHTED = 'check_sample_weight_equivalence_on_'
EXPECTED = {'MLPRegressor': {f'{WEIGHTED}{kind}': 'a network ends within the default tolerance, 1e-5 of the gradient'
                             for kind in ('dense_data', 'sparse_data')}}


@long_test
def check_estimator_fails_only_where_a_reason_is_named(folder):
    needs('sklearn', 'pandas')
    from sklearn.utils.estimator_checks import check_estimator
    cached(folder)
    for name in dml.ESTIMATORS:
        estimator, expected = getattr(dml, name)(), EXPECTED.get(name, {})
        if name.endswith('CV'):
            estimator.set_params(folds=2, **{'l1' if name == 'LassoCV' else 'l2': 3})
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
        assert not [result for result in results if result['status'] == 'failed'], (name, results)
        assert {result['check_name'] for result in results if result['status'] == 'xfail'} == set(expected), name


@test
def penalties_are_chosen_by_the_splits_that_cv_names(folder):
    numpy, sklearn = needs('numpy', 'sklearn')
    from sklearn import linear_model, model_selection
    cached(folder)
    x, y = numbers(numpy)
    alphas, splits = [0.01, 1, 100], model_selection.KFold(4, shuffle=True, random_state=1)
    ours = dml.RidgeCV(alphas=alphas, cv=splits).fit(x, x[:, 1] + y)
    theirs = linear_model.RidgeCV(alphas=alphas, cv=splits).fit(x, x[:, 1] + y)
    assert abs(ours.alpha_ - theirs.alpha_) < 1e-9 and numpy.allclose(ours.coef_, theirs.coef_, atol=1e-6)
    for choose_by, cv in ('auc', splits), ('accuracy', list(splits.split(x, y))):
        assert dml.LogisticRegressionCV(l2=3, cv=cv, choose_by=choose_by).fit(x, y).score(x, y) > 0.7
    assert 'choose_by is one of' in str(exception_of(ValueError, dml.LassoCV(cv=splits, choose_by='f1').fit, x, x[:, 1]))
    few = dml.LogisticRegressionCV(l2=3).fit(x[:30], numpy.repeat(['a', 'b'], [25, 5]))  # five rows of a class in five folds
    assert few.classes_.tolist() == ['a', 'b'] and few.l2_ > 0


@test
def without_a_penalty_rows_of_weight_0_choose_no_minimum(folder):
    numpy, sklearn = needs('numpy', 'sklearn')
    cached(folder)
    generator = numpy.random.default_rng(4)
    x, y = generator.normal(size=(12, 30)) + 2, generator.normal(size=12)
    weights = (numpy.arange(12) % 4 > 0).astype(float)
    for kind in dml.LinearRegression, dml.QuantileRegressor:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            weighted, fewer = kind().fit(x, y, sample_weight=weights), kind().fit(x[weights > 0], y[weights > 0])
        assert numpy.allclose(weighted.predict(x), fewer.predict(x), rtol=1e-7), kind


@test
def without_scikit_learn_an_estimator_says_what_it_needs(folder):
    code = f"""import sys
sys.path.insert(0, {str(SOURCE / 'python')!r})
sys.modules['sklearn'] = sys.modules['numpy'] = None
import dml
dml.LogisticRegression"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert 'ModuleNotFoundError: dml.LogisticRegression needs scikit-learn and NumPy: pip' in done.stderr, done.stderr


@test
def estimators_find_the_optimum_of_scikit_learns(folder):
    numpy, sklearn = needs('numpy', 'sklearn')
    from sklearn import linear_model
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    cached(folder)
    x, y = numbers(numpy)
    counts, weights = numpy.random.default_rng(2).poisson(numpy.exp(x[:, 0] / 2)), numpy.linspace(0.5, 2, len(y))
    three = (x[:, 0] > 0.5).astype(int) + y
    if sklearn.__version__ < '1.7':  # whose balanced classes do not count the weights of rows
        weights = numpy.ones(len(y))
    for ours, theirs, target in (
            (dml.LogisticRegression(C=0.5), linear_model.LogisticRegression(C=0.5, tol=1e-12, max_iter=9999), y),
            (dml.LogisticRegression(C=2), linear_model.LogisticRegression(C=2, tol=1e-12, max_iter=9999), three),
            (dml.LogisticRegression(class_weight='balanced', C=1),
             linear_model.LogisticRegression(class_weight='balanced', tol=1e-12, max_iter=9999), y),
            (dml.Ridge(alpha=3), linear_model.Ridge(alpha=3), x[:, 1] + y),
            (dml.LinearRegression(), linear_model.LinearRegression(), x[:, 1] + y),
            (dml.Lasso(alpha=0.1), linear_model.Lasso(alpha=0.1, tol=1e-12), x[:, 1] + y),
            (dml.ElasticNet(alpha=0.1, l1_ratio=0.3), linear_model.ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-12), x[:, 1] + y),
            (dml.PoissonRegressor(alpha=0.2), linear_model.PoissonRegressor(alpha=0.2, tol=1e-12, max_iter=9999), counts),
            (dml.GammaRegressor(alpha=0.2), linear_model.GammaRegressor(alpha=0.2, tol=1e-12, max_iter=9999), counts + 1.0),
            (dml.TweedieRegressor(power=1.5, alpha=0.2),
             linear_model.TweedieRegressor(power=1.5, alpha=0.2, link='log', tol=1e-12, max_iter=9999), counts)):
        ours.fit(x, target, sample_weight=weights)
        theirs.fit(x, target, sample_weight=weights)
        assert numpy.allclose(ours.coef_, theirs.coef_, atol=3e-6), (ours, ours.coef_, theirs.coef_)
        assert numpy.allclose(ours.intercept_, theirs.intercept_, atol=3e-6), (ours, ours.intercept_, theirs.intercept_)
        assert ours.score(x, target) == theirs.score(x, target) or abs(ours.score(x, target) - theirs.score(x, target)) < 1e-5
    scores = cross_val_score(make_pipeline(StandardScaler(), dml.LogisticRegression(C=1)), x, y, cv=3)
    assert (scores == cross_val_score(make_pipeline(StandardScaler(), linear_model.LogisticRegression(C=1)), x, y, cv=3)).all()


@test
def an_estimator_takes_a_table_with_texts_and_missing_cells(folder):
    numpy, pandas, _ = needs('numpy', 'pandas', 'sklearn')
    cached(folder)
    frame = pandas.DataFrame(cells())
    estimator = dml.LogisticRegression(l2=1e-3).fit(frame[['size', 'town']], frame['bought'])
    run = dml.train(frame, 'bought', l2=1e-3)
    assert abs(estimator.result_['loss'] - run.loss) < 1e-9
    assert estimator.classes_.tolist() == ['no', 'yes'] and 'town=Rome' in estimator.coef_names_
    assert estimator.coef_.shape == (1, len(estimator.coef_names_))
    again = pickle.loads(pickle.dumps(estimator))
    assert (again.predict(frame[['size', 'town']]) == estimator.predict(frame[['size', 'town']])).all()
    assert numpy.allclose(estimator.predict_proba(frame[['size', 'town']])[:, 1], run.model.predict_values(frame), atol=1e-4)
    estimator.save(folder / 'model')
    finished = program('predict', folder / 'model', write_csv(folder, frame), '--columns', 'probability:yes')
    assert finished.status == 0, finished


@test
def a_saved_estimator_knows_columns_and_classes_by_name(folder):
    numpy, pandas, _ = needs('numpy', 'pandas', 'sklearn')
    cached(folder)
    x, y = numbers(numpy)
    frame = pandas.DataFrame(x[:, :3], columns=['Größe', 'age', 'rooms']).assign(none=0.0)
    turned = frame[['rooms', 'none', 'age', 'Größe']]
    turned.to_csv(folder / 'turned.csv', index=False)
    for name, estimator, labels, classes in (
            ('words', dml.LogisticRegression(), numpy.where(y, 'yes', 'no'), ['no', 'yes']),
            ('truths', dml.MLPClassifier((3,)), y > 0, ['false', 'true']),
            ('ordered', dml.OrdinalClassifier(), numpy.arange(len(y)) % 3 * 5.0, ['0', '5', '10']),
            ('values', dml.Ridge(), x[:, 1], None)):
        estimator.fit(frame, labels).save(folder / name)
        described = json.loads((folder / name / 'model.json').read_text())
        assert described.get('classes') == classes and described['json_sha256'], described
        saved, margins = dml.open(folder / name), estimator.model_.predict_margins(frame.to_numpy())
        assert saved.columns == list(frame) and numpy.array_equal(saved.predict_margins(turned), margins)
        assert numpy.array_equal(saved.predict_margins(frame.to_numpy()), margins)
        assert saved.explain(turned[:1]).columns == list(frame)
        assert '"age" is missing' in str(exception_of(dml.Error, saved.predict, frame[['rooms', 'none', 'Größe']]))
        scored = program('predict', folder / name, folder / 'turned.csv', '--margins')
        assert numpy.allclose(numpy.loadtxt(scored.stdout.splitlines()), margins, atol=1e-12), scored
    of_an_array = dml.LogisticRegression().fit(x, numpy.where(y, 'yes', 'no'))
    of_an_array.save(folder / 'array')
    assert list(dml.open(folder / 'array').predict(x)) == list(of_an_array.predict(x))


def write_csv(folder, frame):
    with open(folder / 'rows.csv', 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['size', 'town'])
        writer.writerows(frame[['size', 'town']].astype(object).where(frame[['size', 'town']].notna(), '').values.tolist())
    return folder / 'rows.csv'


if __name__ == '__main__':
    sys.exit(main())
