#!/usr/bin/env python3
"""A model is read back before it goes live: one that is not what was trained changes nothing."""

import sys

from harness import BAD_DATA, INTERNAL, dml, main, test, train, write_job

IDS, WEIGHTS = 'coordinator.model_ids:1:hit', 'coordinator.model_weights:1:hit'


def write_table(folder, rows=600):
    """Numbers, some of them missing, and texts, one of them rare."""
    lines = ['size,color,town,y']
    for k in range(rows):
        size = '' if k % 13 == 0 else f'{(k * 37 % 101) / 10 - 5}'
        color = 'odd' if k % 200 == 7 else ['red', 'green', '', 'blue'][k * 7 % 4]
        lines.append(f'{size},{color},{k % 17},{"yes" if (k * 37 % 101 + k % 17) > 60 else "no"}')
    (folder / 'data.csv').write_text('\n'.join(lines) + '\n')


def refused(folder, job, *arguments, rule=WEIGHTS, command='run'):
    """The model is kept aside, and nothing else is there that was not there before."""
    models = folder / 'job.state/models'
    before = {path: path.read_bytes() for path in models.glob('[0-9]*/*')
              if not path.parent.name.endswith('.failed')}
    finished = dml(command, job, '-q', *arguments, DML_FAILPOINT=rule)
    assert finished.status == INTERNAL, finished
    assert 'is not used, as it was read back wrongly: ' in finished.stderr, finished
    after = {path: path.read_bytes() for path in models.glob('[0-9]*/*')
             if not path.parent.name.endswith('.failed')}
    assert after == before
    kept = [path for path in models.glob('*.failed') if str(path) in finished.stderr]
    assert len(kept) == 1 and (kept[0] / 'model.json').exists(), finished
    return finished.stderr


KINDS = {
    'linear': {},
    'classes': {'objective': 'softmax'},
    'ordered classes': {'objective': 'ordinal', 'ordinal': {'order': ['no', 'yes']}},
    'bins and rare texts': {'csv': {'bins': 16, 'category_least': 5}},
    'hashed texts': {'csv': {'hash': 10}},
    'standardised': {'standardise': True, 'l1': 1e-3},
    'a network': {'objective': 'network', 'network': {'layers': [8]}, 'max_steps': 30},
    'minibatches': {'objective': 'network', 'network': {'layers': [8]}, 'start': 'downpour',
                    'downpour': {'epochs': 2}, 'max_steps': 5},
}


@test
def whatever_is_trained_is_read_back(folder):
    write_table(folder)
    for name, settings in KINDS.items():
        for rule in (IDS, WEIGHTS) if name == 'linear' else (WEIGHTS,):
            job = write_job(folder, data=['data.csv'], l2=1e-3, **settings)
            why = refused(folder, job, '--fresh', rule=rule)
            expected = 'ids are not in rising order' if rule == IDS else 'in the run, and'
            assert expected in why, (name, why)


@test
def the_same_command_ends_with_the_model_that_was_trained(folder):
    write_table(folder)
    job = write_job(folder, data=['data.csv'], l2=1e-3)
    quiet = train(job, '--state', folder / 'quiet.state')['model_sha256']
    refused(folder, job)
    refused(folder, job)
    result = train(job)
    assert result['run'] == 1 and result['model_sha256'] == quiet, result
    assert (folder / 'job.state/models/1.failed').exists()
    pruned = dml('prune', job)
    assert pruned.status == 0 and not (folder / 'job.state/models/1.failed').exists(), pruned


@test
def a_live_model_stays_while_its_run_goes_on(folder):
    write_table(folder)
    job = write_job(folder, data=['data.csv'], l2=1e-3, max_steps=3)
    train(job)
    assert (folder / 'job.state/models/current').readlink().name == '1'
    longer = write_job(folder, data=['data.csv'], l2=1e-3, max_steps=100)
    refused(folder, longer)
    assert (folder / 'job.state/models/current').readlink().name == '1'
    assert dml('predict', folder / 'job.state', folder / 'data.csv').status == 0


@test
def a_night_and_a_member_of_a_sweep_are_read_back(folder):
    write_table(folder)
    job = write_job(folder, data=['data.csv'], l2=1e-3, holdout=.2)
    train(job)
    write_table(folder, 700)
    refused(folder, job, command='retrain')
    assert (folder / 'job.state/models/current').readlink().name == '1'
    night = dml('retrain', job, '--json')
    assert night.status == 0 and night.json['published'] and night.json['run'] == 2, night
    write_table(folder)
    sweep = write_job(folder, data=['data.csv'], l2=[1e-2, 1e-3], folds=2, state='sweep.state')
    finished = dml('run', sweep, '-q', DML_FAILPOINT='coordinator.model_weights:4:hit')
    assert finished.status == INTERNAL, finished
    assert train(sweep)['sweep'], finished


@test
def a_rollback_leads_to_no_model_that_cannot_be_read(folder):
    write_table(folder)
    job = write_job(folder, data=['data.csv'], l2=1e-3)
    train(job)
    train(job, '--fresh')
    path = folder / 'job.state/models/1/model.safetensors'
    sound = path.read_bytes()
    path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    back = dml('rollback', job)
    assert back.status == BAD_DATA and 'model.safetensors' in back.stderr, back
    assert (folder / 'job.state/models/current').readlink().name == '2'
    path.write_bytes(sound)
    assert dml('rollback', job).status == 0
    assert (folder / 'job.state/models/current').readlink().name == '1'


@test
def features_that_the_data_lacks_do_no_harm(folder):
    write_table(folder)
    job = write_job(folder, data=['data.csv'], l2=1e-3, vanished='keep')
    train(job)
    text = (folder / 'data.csv').read_text()
    (folder / 'data.csv').write_text(text.replace(',green,', ',red,') + '1.5,red,3,no\n')
    night = dml('retrain', job, '--json')
    assert night.status == 0 and night.json['published'], night


sys.exit(main())
