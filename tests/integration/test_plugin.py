#!/usr/bin/env python3
"""Plug-ins: an objective of the user's own trains to the same bits however the work is divided and
whoever is killed; and what it does wrong is told by its name, and never gives a wrong model."""

import hashlib
import os
import random
import shutil
import signal
import subprocess

from harness import (BUILD, CONFIG, COORDINATOR, SOURCE, Process, USAGE, dml, main, test, train,
                     words, write_job)

PLUGIN = 76
KINDS = 30


def pairs(folder, rows=3000, seed=1, name='pairs.libsvm', kinds=KINDS):
    """A row has a thing of each of two kinds; whether they suit each other is the label. So no
    column alone says anything."""
    rng = random.Random(seed)
    with open(folder / name, 'w') as file:
        for _ in range(rows):
            left, right = rng.randrange(kinds), rng.randrange(kinds)
            suits = (left % 3 == right % 3) != (rng.random() < 0.05)
            file.write(f'{int(suits)} {left + 1}:1 {100 + right}:1\n')
    return name


def make(*arguments):
    """Not a part of the make that runs the tests."""
    environment = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS')}
    done = subprocess.run(['make', *map(str, arguments)], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def build_example(folder):
    """The example as a user has it: copied, and built against the header that was installed."""
    root = folder / 'root'
    if not root.exists():
        make('-C', BUILD, '-s', f'DESTDIR={root}', 'includedir=/include', 'docdir=/doc',
             'install-dmlincludeHEADERS', 'install-pluginexampleDATA')
        shutil.copytree(root / 'doc/examples/plugin', folder / 'fm')
        make('-C', folder / 'fm', '-s', f'CPPFLAGS=-I{root}/include -Werror')
    return folder / 'fm/fm.so'


def fm_job(folder, **settings):
    library = build_example(folder)
    return write_job(folder, **{'data': [pairs(folder)], 'objective': 'plugin',
                                'plugin': {'library': library, 'options': 'rank = 3'},
                                'holdout': ['0.2'], 'l2': 1e-3, 'max_steps': 40, **settings})


def build_odd(folder, name='odd.so', *flags):
    """The library of the unit tests, which misbehaves as its options say."""
    subprocess.run(['cc', f'-I{SOURCE}', '-std=c17', '-shared', '-fPIC', *flags, '-o',
                    folder / name, SOURCE / 'tests/unit/plugin_library.c'], check=True)
    return folder / name


def odd_job(folder, options='behave', **settings):
    return write_job(folder, **{'data': [pairs(folder, 300)], 'objective': 'plugin',
                                'plugin': {'library': build_odd(folder), 'options': options,
                                           'seconds': 1 if 'loop' in options else 60},
                                'replicas': 1, 'threads': 1, **settings})


# ---- learning ----

@test
def the_installed_example_beats_what_adds_columns_up(folder):
    job = fm_job(folder, max_steps=200)
    result = train(job)
    assert result['objective'] == 'plugin_margin', result
    assert result['holdout']['accuracy'] > 0.88, result
    plain = write_job(folder, 'plain', data=['pairs.libsvm'], holdout=['0.2'], l2=1e-4)
    linear = train(plain)
    assert linear['holdout']['accuracy'] < 0.75, linear


@test
def its_model_is_evaluated_and_predicts(folder):
    job = fm_job(folder)
    result = train(job)
    state = folder / 'job.state'
    pairs(folder, 400, seed=2, name='new.libsvm')
    figures = dml('evaluate', state, folder / 'new.libsvm', '--json').json
    assert figures['accuracy'] > 0.88 and figures['log_loss'] < 0.5, figures
    assert abs(figures['loss'] - figures['log_loss']) < 1e-12, figures
    chances = dml('predict', state, folder / 'new.libsvm').stdout.split()
    refused = dml('predict', state, folder / 'new.libsvm', '--explain')
    assert refused.status == USAGE and 'is a model of a plug-in' in refused.stderr, refused
    assert len(chances) == 400 and all(0 <= float(c) <= 1 for c in chances), chances[:5]
    assert result['model_sha256'], result


@test
def columns_of_any_scale_reach_the_library_as_they_are(folder):
    rng = random.Random(2)
    with open(folder / 'scales.csv', 'w') as file:
        for _ in range(300):
            far, near = rng.uniform(-300, 300), rng.uniform(-1, 1)
            file.write(f'{far:.3f},{near:.3f},{near + far / 300:.5f}\n')
    result = train(odd_job(folder, data=['scales.csv'], test=['scales.csv'], max_steps=60))
    assert result['objective'] == 'plugin_value', result
    assert result['preconditioner']['kind'] == 'none' and result['test']['r2'] > 0.9, result


# ---- the same bits ----

@test
def the_model_is_the_same_however_the_work_is_divided(folder):
    job = fm_job(folder, early_stopping=10)
    divisions = [(1, 1, 1, 0), (2, 2, 2, 1), (3, 3, 1, 5)]
    results = [train(job, '--state', folder / f'{number}.state',
                     *words({'shards': shards, 'replicas': replicas, 'threads': threads,
                             'portion_chunks': portion}))
               for number, (shards, replicas, threads, portion) in enumerate(divisions)]
    for member in ('model_sha256', 'loss', 'steps', 'holdout'):
        assert all(r[member] == results[0][member] for r in results), (member, results)


@test
def killed_processes_cost_nothing(folder):
    job = fm_job(folder, checkpoint_seconds=0, replicas=2, shards=2, threads=1, max_steps=15)
    quiet = train(job, '--state', folder / 'quiet.state')
    state = folder / 'killed.state'
    process = Process(COORDINATOR, 'run', job, '--state', state,
                      DML_FAILPOINT='coordinator.send_EVALUATE:9:kill')
    finished = process.wait()
    process.end()
    assert finished.status == -signal.SIGKILL, finished
    assert train(job, '--state', state)['model_sha256'] == quiet['model_sha256']
    result = train(job, '--state', folder / 'worker.state',
                   DML_FAILPOINT='replica1.receive_EVALUATE:5:kill')
    assert result['model_sha256'] == quiet['model_sha256'], (result, quiet)
    assert result['restarts']['replica'] >= 1, result


# ---- what it does wrong ----

@test
def a_library_that_fails_ends_the_run_by_its_name(folder):
    for options, says in [('crash in chunk', 'crashed in chunk(): signal 11'),
                          ('loop in chunk', 'gave no answer within 1 seconds in chunk()'),
                          ('exit in chunk', 'ended its process in chunk(), with status 3'),
                          ('nan gradient', 'element 0 of the gradient'),
                          ('least loss', 'the loss of a row is -infinity'),
                          ('refuse', 'these rows are not for me'),
                          ('write below the gradient', 'writes element -1 of `gradient`'),
                          ('write a weight', 'writes into its rows or parameters'),
                          ('write to descriptors', 'a descriptor that is not its own'),
                          ('fork and return', 'forked a process in chunk()'),
                          ('crash in tensors', 'crashed in tensors()'),
                          ('same names', 'tensor 1, `w`')]:
        finished = dml('run', odd_job(folder, options), '--fresh')
        assert finished.status == PLUGIN, (options, finished)
        assert says in finished.stderr and f'{folder}/odd.so' in finished.stderr, finished
        assert ('failure 3' in finished.stderr) == ('tensor' not in says), (options, finished)
        assert not (folder / 'job.state/models/current').exists(), options


@test
def a_loss_that_is_no_number_at_the_start_ends_the_run(folder):
    finished = dml('run', odd_job(folder, 'nan loss'))
    assert 'not finite where the run starts' in finished.stderr, finished
    assert f'{folder}/odd.so' in finished.stderr and finished.status == 65, finished


@test
def a_crash_while_scoring_leaves_the_coordinator_alive(folder):
    finished = dml('run', odd_job(folder, 'crash in predict', test=['pairs.libsvm']))
    assert finished.status == PLUGIN and 'crashed in predict()' in finished.stderr, finished


@test
def a_library_that_cannot_be_loaded_is_refused_before_anything_begins(folder):
    (folder / 'text.so').write_text('this is no library, but it has enough bytes to be asked\n' * 9)
    for library, says in [('none.so', 'cannot be opened'), ('text.so', 'cannot be loaded'),
                          (build_odd(folder, 'version.so', '-DHEAD=9,0,0,0,0,0'), 'version 9'),
                          (build_odd(folder, 'empty.so', '-DNO_SYMBOL'), 'does not export')]:
        job = odd_job(folder, plugin={'library': library})
        finished = dml('run', job)
        assert finished.status == CONFIG and says in finished.stderr, finished
        assert 'plugin.library' in finished.stderr, finished
        assert not (folder / 'job.state').exists()


@test
def what_a_plugin_cannot_have_is_refused(folder):
    for key, value in [('standardise', 'true'), ('intercept', 'false'), ('precondition', 'block')]:
        finished = dml('check', odd_job(folder), *words({key: value}))
        assert finished.status == CONFIG and f'`{key}`' in finished.stderr, finished


# ---- its gradient ----

@test
def a_wrong_gradient_is_found_by_check_and_suspected_by_run(folder):
    good = dml('check', '--gradient', fm_job(folder))
    assert good.status == 0 and '# gradient: ' in good.stdout, good
    job = odd_job(folder, 'wrong gradient')
    finished = dml('check', '--gradient', job)
    assert finished.status == PLUGIN, finished
    assert 'the gradient is not that of the loss: element' in finished.stderr, finished
    assert ', which is b[0, 0], is ' in finished.stderr, finished
    finished = dml('run', job)
    assert finished.status == 0 and 'not converged' in finished.stderr, finished
    assert 'dml-coordinator check --gradient' in finished.stderr, finished


@test
def check_gradient_tells_its_figures_as_json_and_is_for_plugins_alone(folder):
    found = dml('check', '--gradient', '--json', odd_job(folder)).json['gradient']
    assert 0 < found['checked'] <= found['parameters'] and found['rows'] == 100, found
    assert abs(found['worst']['gradient'] - found['worst']['difference']) < 1e-3, found
    finished = dml('check', '--gradient', write_job(folder, 'plain', data=['pairs.libsvm']))
    assert finished.status == 64 and 'is for plug-ins' in finished.stderr, finished
    assert dml('pack', '--gradient', folder / 'plain.conf').status == 64


# ---- nights ----

@test
def another_library_is_another_run_and_scores_no_model_of_the_first(folder):
    job = odd_job(folder, max_steps=2)
    first = train(job)
    shutil.copy(folder / 'odd.so', folder / 'kept.so')
    assert train(job, '--set', 'max_steps=3')['continues'] == first['run']
    build_odd(folder, 'odd.so', '-O1', '-DOTHER')
    assert (hashlib.sha256((folder / 'odd.so').read_bytes()).digest() !=
            hashlib.sha256((folder / 'kept.so').read_bytes()).digest())
    finished = dml('predict', folder / 'job.state', folder / 'pairs.libsvm')
    assert finished.status == CONFIG and 'is another file' in finished.stderr, finished
    found = dml('predict', folder / 'job.state', folder / 'pairs.libsvm', '--set',
                f'plugin.library={folder}/kept.so')
    assert found.status == 0 and len(found.stdout.split()) == 300, found
    second = train(job, '--set', 'max_steps=4')
    assert second['run'] > first['run'], (first, second)


@test
def a_night_starts_from_the_rows_of_features_that_are_still_there(folder):
    job = fm_job(folder, warm_start=True)
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    pairs(folder, 2600, seed=4, kinds=KINDS + 3)
    second = dml('retrain', job, '--json')
    assert second.status == 0 and 'starts from zero' not in second.stderr, second
    assert 'starts from the parameters' in second.stderr, second


if __name__ == '__main__':
    main()
