#!/usr/bin/env python3
"""What a step costs in rounds and passes over the data."""

import sys

from harness import long_test, main, shared, small_job, test, train, write_job


def assert_two_rounds(result):
    retries = result['evaluations'] - result['steps']
    assert result['steps'] >= 20, f'too few steps to tell: {result}'
    assert result['shard_rounds'] <= 2 * result['steps'] + retries + 10, result


@test
def a_step_takes_two_rounds_with_a_short_history(folder):
    job = small_job(folder, gradient_tolerance=1e-10, loss_tolerance=0, l2=1e-6, history=5)
    assert_two_rounds(train(job))


@test
def a_step_takes_two_rounds_with_a_long_history(folder):
    job = small_job(folder, gradient_tolerance=1e-10, loss_tolerance=0, l2=1e-6, history=100,
                    history_type='double')
    assert_two_rounds(train(job))


@test
def a_step_takes_two_rounds_on_a9a_for_either_history(folder):
    job = write_job(folder, data=[shared('a9a.gz')], l2=1e-6, loss_tolerance=0, max_steps=150,
                    precondition='none')
    for history in 5, 100:
        assert_two_rounds(train(job, '--fresh', '--set', f'history={history}'))


@long_test
def automatic_history_halves_the_evaluations_of_ten_pairs_on_a9a(folder):
    job = write_job(folder, data=[shared('a9a.gz')], l2=1e-6, gradient_tolerance=1e-7,
                    loss_tolerance=0, max_steps=10000, precondition='none')
    automatic = train(job)
    ten = train(job, '--fresh', '--set', 'history=10')
    assert automatic['reason'] == ten['reason'] == 'gradient tolerance', (automatic, ten)
    print(f'# history=auto {automatic["evaluations"]} evaluations, 10 {ten["evaluations"]}')
    assert 2 * automatic['evaluations'] <= ten['evaluations'], (automatic, ten)


@test
def a_preconditioned_step_takes_two_rounds_and_a_refresh_one(folder):
    job = write_job(folder, data=[shared('a9a.gz')], l2=1e-6, gradient_tolerance=1e-9,
                    loss_tolerance=0)
    result = train(job)
    retries = result['evaluations'] - result['preconditioner']['evaluations'] - result['steps']
    most = 2 * result['steps'] + retries + result['preconditioner']['evaluations'] + 2
    assert result['steps'] >= 10 and result['shard_rounds'] <= most, result


@test
def a_step_in_centred_and_scaled_columns_takes_two_rounds(folder):
    for settings in {'precondition': 'diagonal'}, {'precondition': 'none', 'standardise': True}:
        assert_two_rounds(train(small_job(folder, gradient_tolerance=1e-10, loss_tolerance=0,
                                          l2=1e-6, history=100, history_type='double', **settings),
                                '--fresh'))


@test
def the_preconditioner_saves_nine_evaluations_in_ten_on_a9a(folder):
    job = write_job(folder, data=[shared('a9a.gz')], l2=1e-6, gradient_tolerance=1e-7,
                    loss_tolerance=0, max_steps=10000)
    preconditioned = train(job)
    plain = train(job, '--fresh', '--set', 'precondition=none')
    assert preconditioned['preconditioner']['kind'] == 'block', preconditioned
    assert 10 * preconditioned['evaluations'] <= plain['evaluations'], (preconditioned, plain)
    assert abs(preconditioned['loss'] - plain['loss']) < 1e-9, (preconditioned, plain)


sys.exit(main())
