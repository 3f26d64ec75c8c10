#!/usr/bin/env python3
"""Jobs drawn at random over the keys of a job file, so that keys meet that nobody thought of together.
Each runs quietly, divided otherwise, disturbed, and up to a limit that is raised; then a night follows
on more rows, quiet and disturbed. What comes of it is the same each time.

`test_drawn.py --seed N` repeats the job with that seed, and tells what happens to it.
"""

import math
import random
import re
import shutil
import signal
import sys
import time

from faults import ALL, check_nothing_left, kill, name_of, run_of, say, seed_of_arguments
from harness import AGAIN, BAD_DATA, CONFIG, dml, main, test, words, write_job

SEED = seed_of_arguments()
JOBS = 200 if ALL else 4
DISTURBANCES_MAX = 4
ROWS, MORE_ROWS = 300, 150

# The kind of label that an objective is for.
LABELS = {'logistic': 'two', 'squared_hinge': 'two', 'smooth_hinge': 'two', 'squared': 'number',
          'huber': 'number', 'quantile': 'number', 'softmax': 'class', 'one_vs_rest': 'class',
          'ordinal': 'class', 'proportional_odds': 'class', 'poisson': 'count', 'gamma': 'amount',
          'tweedie': 'count', 'multilabel': 'list'}

# Keys, in how many of a hundred jobs they stand, and what they are then. `check` refuses what does not
# go together: then the key that it names is taken away.
KEYS = [('intercept', 20, [False]), ('standardise', 30, [True]), ('history', 40, [1, 2, 5, 30]),
        ('history_type', 40, ['float', 'double']), ('directions', 50, [0, 0, 1, 3, 40]),
        ('strip_columns', 15, [30, 50, 101]), ('precondition_block', 30, [1, 8, 50, 400]),
        ('precondition', 50, ['auto', 'none', 'block', 'diagonal', 'kronecker']),
        ('l1', 35, [1e-5, 1e-3, 1e-2]), ('l2', 80, [0, 1e-6, 1e-4, 1e-2]),
        ('summary', 15, ['model', 'robust']), ('optimizer', 8, ['downpour']),
        ('start', 12, ['downpour']), ('gradient_tolerance', 40, [0, 1e-12, 1e-8, 1e-3]),
        ('loss_tolerance', 40, [0, 1e-12, 1e-4]), ('gap_tolerance', 30, [0, 1e-12, 1e-2]),
        ('max_steps', 80, [1, 3, 7, 20, 40]), ('folds', 15, [2, 3]), ('seed', 20, [5, 77]),
        ('holdout', 40, [0.1, 0.3]), ('early_stopping', 20, [1, 3]), ('backup_copies', 20, [False]),
        ('threshold', 15, ['f1', 'cost']), ('calibrate', 15, ['platt', 'isotonic', 'temperature']),
        ('class_weight', 15, ['balanced']), ('warm_start', 15, [False]), ('vanished', 20, ['keep']),
        ('gate', 20, ['loss <= 1.5 * live']), ('device', 6, ['emulated'])]

# Members of a result that tell of processes and time, of attempts, and of the names of runs.
OTHERS = {'run', 'invocation', 'failures_before', 'replicas', 'shards', 'backup_copies', 'restarts', 'devices',
          'seconds', 'model', 'live', 'shard_rounds', 'evaluations', 'safeguards', 'published', 'decision',
          'decision_why', 'number', 'passes', 'continues', 'best_run', 'warm_start', 'minibatches_per_second',
          'since_ms'}


def label(rng, kind, margin):
    noisy = margin + rng.gauss(0, 1)
    if kind == 'list':
        return ','.join(str(k) for k in range(3) if margin * (k - 1) + rng.gauss(0, 1) > 0.3)
    return {'two': int(noisy > 0), 'class': max(0, min(3, int(noisy + 2))), 'number': round(noisy, 3),
            'count': int(math.exp(min(3, noisy / 2))), 'amount': round(math.exp(noisy / 4), 4)}[kind]


def write_sparse(rng, path, rows, kind, features, values):
    with open(path, 'w') as file:
        for _ in range(rows):
            row = {j: round(rng.gauss(0, 1), 2) for j in sorted(rng.sample(range(1, features + 1), values))}
            margin = sum(v if j % 2 else -v for j, v in row.items()) / 2
            file.write(f'{label(rng, kind, margin)} ' + ' '.join(f'{j}:{v}' for j, v in row.items()) + '\n')


def write_table(rng, path, rows, kind):
    with open(path, 'w') as file:
        file.write('age,seen,color,town,note,weight,offset,y\n')
        for _ in range(rows):
            age, color, town = rng.randrange(90), rng.randrange(6), rng.randrange(60)
            margin = (age - 45) / 30 + (color - 2.5) / 3 + town % 3 - 1
            note = ' '.join(rng.choice(['red', 'old', 'one', f'x{rng.randrange(30)}']) for _ in range(4))
            seen = 1700000000 + 1000 * age + rng.randrange(9000)  # far from 0
            cells = ['' if rng.random() < 0.05 else cell
                     for cell in (age, seen, f'c{color}', f't{town}', note)]
            cells += [rng.choice([0, 0.5, 1, 7]), round(rng.gauss(0, 0.3), 2), f'"{label(rng, kind, margin)}"']
            file.write(','.join(map(str, cells)) + '\n')


def draw_table(rng, folder, kind):
    for name, rows in ('data', ROWS), ('more', MORE_ROWS):
        write_table(rng, folder / f'{name}.csv', rows, kind)
    csv = {'label': 'y', 'categories': ['color', 'town'], 'text': ['note'], 'skip': ['weight', 'offset']}
    settings = {'data': ['data.csv'], 'csv': csv}
    if rng.random() < 0.4:
        csv['weight'] = csv['skip'].pop(0)
    if rng.random() < 0.3:
        settings['offset'] = csv['skip'].pop()
    if rng.random() < 0.3:
        csv['bins'] = rng.choice([2, 9])
        settings['monotone'] = ['age = rising']
    if rng.random() < 0.2:
        settings.update(cross=['color*town'], cross_least=2)
    return settings, ['age', 'color', 'town']


def draw_sparse(rng, folder, kind):
    features = rng.choice([3, 60, 200])
    for name, rows in ('data', ROWS), ('more', MORE_ROWS):
        write_sparse(rng, folder / f'{name}.libsvm', rows, kind, features, min(features, 6))
    settings = {'data': ['data.libsvm']}
    for key, numbers in ('weights', [0, 1e-3, 1, 1, 100]), ('offsets', [-0.5, 0, 1]):
        if rng.random() < 0.3:
            settings[key] = [key]
            (folder / key).write_text(''.join(f'{rng.choice(numbers)}\n' for _ in range(ROWS)))
            (folder / f'{key}.more').write_text(''.join(f'{rng.choice(numbers)}\n' for _ in range(MORE_ROWS)))
    return settings, ['1', '2-3']


def draw_job(rng, folder):
    """Settings that a job may have, some of which it may not have together."""
    loss = rng.choice(list(LABELS))
    draw = draw_table if rng.random() < 0.4 else draw_sparse
    settings, columns = draw(rng, folder, LABELS[loss])
    settings['objective'] = loss
    if rng.random() < 0.15:
        settings.update(objective='network', network={'loss': loss, 'layers': rng.choice([3, 20])})
    for key, percent, values in KEYS:
        if rng.random() < percent / 100:
            settings[key] = rng.choice(values)
    if 'holdout' in settings and rng.random() < 0.3:
        settings['l2'] = [1e-2, 1e-3]
    if 'downpour' in (settings.get('start'), settings.get('optimizer')):
        settings['downpour'] = {'epochs': rng.choice([1, 2]), 'batch': rng.choice([8, 64])}
    if rng.random() < 0.2:
        settings['penalty'] = [f'{rng.choice(columns)} = {rng.choice([0, 3, 1e6])}']
    if rng.random() < 0.15:
        settings['bounds'] = [f'{rng.choice(columns)} = {rng.choice(["[-0.1, 0.2]", "[0, inf]"])}']
    return settings


def write_accepted(folder, settings):
    """The job without the keys that `check` refuses; None if it has no other."""
    while True:
        job = write_job(folder, **settings)
        checked = dml('check', job)
        if checked.status == 0:
            return job
        assert checked.status in (BAD_DATA, CONFIG), checked
        key, _, member = re.search(r'key `([a-z0-9_.]+)`', checked.stderr.splitlines()[-1])[1].partition('.')
        if member and member in settings.get(key, {}):
            del settings[key][member]
        elif key not in settings or key == 'data':
            return None
        else:
            del settings[key]


def add_rows(folder, settings):
    more = {'data': [*settings['data'], settings['data'][0].replace('data', 'more')]}
    more.update({key: [key, f'{key}.more'] for key in ('weights', 'offsets') if key in settings})
    return write_job(folder, **{**settings, **more})


def draw_division(rng):
    return words({'replicas': rng.randint(1, 4), 'shards': rng.randint(1, 3), 'threads': rng.randint(1, 3),
                  'checkpoint_seconds': rng.choice([0, 0.05, 10]), 'portion_chunks': rng.choice([0, 1, 4]),
                  'flush_ms': rng.choice([1, 50, 1000]), 'reconnect_seconds': 5})


def core(result):
    """What is the same however the result came about."""
    if isinstance(result, dict):
        return {key: core(value) for key, value in result.items() if key not in OTHERS}
    return [core(value) for value in result] if isinstance(result, list) else result


def outcome(finished):
    """What the command came to: a result, or why there is none."""
    assert finished.status >= 0 and 'Assertion' not in finished.stderr, finished
    why = re.sub(r'\S*/', '', (finished.stderr.splitlines() or [''])[-1])
    return core(finished.json) if finished.stdout else {'status': finished.status, 'why': why}


def weights_of(state):
    """Those that are live, as bytes."""
    path = state / 'models/current/model.safetensors'
    return path.read_bytes() if path.exists() else b''


def check_same(found, expected, what):
    differ = [f'{key}: {found.get(key)!r}, not {expected.get(key)!r}'
              for key in sorted({*found, *expected}) if found.get(key) != expected.get(key)]
    assert not differ, f'{what}: {"; ".join(differ)[:1500]}'


def disturbed(rng, run, tell):
    """Kills whoever, or sends SIGTERM, and gives the command again as often as that ended it."""
    run.start()
    for _ in range(rng.randint(1, DISTURBANCES_MAX)):
        time.sleep(rng.uniform(0, rng.choice([0.05, 0.3])))
        workers = run.workers()
        some = rng.sample(workers, rng.randint(1, len(workers))) if workers else []
        number, victims = rng.choice([(signal.SIGTERM, [run.now.pid]), (signal.SIGKILL, some[:1]),
                                      (signal.SIGKILL, [run.now.pid]), (signal.SIGKILL, [*some, run.now.pid])])
        tell(f'{number.name} to {[name_of(pid) for pid in victims]}')
        for pid in victims:
            kill(pid, number)
        if run.now.pid in victims:
            run.now.wait()
        if run.now.popen.poll() in (-signal.SIGKILL, -signal.SIGTERM, AGAIN):
            run.start()
    return run.now.wait()


def one_job(folder, seed, tell):
    rng = random.Random(seed)
    settings = draw_job(rng, folder)
    job = write_accepted(folder, settings)
    if job is None:
        return
    tell(job.read_text())
    first = dml('run', job, '--json', '--publish', '--state', folder / 'quiet.state')
    expected = outcome(first)

    def check_disturbed(name, command, *arguments):
        environment = {'DML_SHUFFLE': str(rng.randrange(1, 999)), 'DML_PAUSE_US': str(rng.choice([0, 300, 2000]))}
        with run_of(job, name, *draw_division(rng), *arguments, **environment) as run:
            run.command = (run.command[0], command, *run.command[2:])
            found = outcome(disturbed(rng, run, tell))
            check_nothing_left(run)
            if found.get('reason') == 'no new data':  # it was through before the last disturbance
                assert weights_of(run.state) == weights_of(folder / 'quiet.state'), found
            else:
                check_same(found, expected, f'{name}, {command}')

    divided = dml('run', job, '--json', '--publish', '--state', folder / 'divided.state', *draw_division(rng))
    check_same(outcome(divided), expected, 'divided otherwise')
    check_disturbed('disturbed', 'run', '--publish')
    if first.status:
        return
    if 'sweep' not in expected:
        limit = rng.choice([{'max_steps': rng.randint(0, expected['steps'])},
                            {'max_seconds': round(rng.uniform(0.005, 0.1), 3)}])
        for limit in words(limit), []:
            limited = dml('run', job, '--json', '--publish', '--state', folder / 'limited.state', *limit)
        check_same(outcome(limited), expected, 'with a limit that was raised')
    shutil.copytree(folder / 'quiet.state', folder / 'night.state', symlinks=True)
    add_rows(folder, settings)
    expected = outcome(dml('retrain', job, '--json', '--state', folder / 'quiet.state'))
    check_disturbed('night', 'retrain')


@test
def what_comes_of_a_job_depends_on_nothing_that_happens_to_it(folder):
    base = random.SystemRandom().randrange(10 ** 6) * 1000
    seeds = [SEED] if SEED is not None else range(base, base + JOBS)
    say(f'seeds {seeds[0]} to {seeds[-1]}')
    failed = []
    for seed in seeds:
        (folder / str(seed)).mkdir()
        try:
            one_job(folder / str(seed), seed, say if SEED is not None else lambda text: None)
        except AssertionError as error:
            failed.append(seed)
            for line in f'seed {seed} failed; repeat it with --seed {seed}: {error}'.splitlines():
                say(line)
        shutil.rmtree(folder / str(seed))
    assert not failed, f'seeds {failed}'


if __name__ == '__main__':
    sys.exit(main())
