#!/usr/bin/env python3
"""Names of files and folders that someone chose: none is a pattern."""

import sys

from harness import main, small_job, test, train
from nightly import Nights


@test
def the_leftovers_of_another_job_stay_when_a_state_is_named_like_a_pattern(folder):
    mine, other = folder / 'nightly-*.state', folder / 'nightly-a.state'
    for state in mine, other:
        for place in 'packs', 'models':
            (state / place).mkdir(parents=True)
            (state / place / 'half.tmp.12').touch()
    (mine / 'packs/kept.tmp.1x').touch()
    train(small_job(folder), '--state', mine)
    assert (other / 'packs/half.tmp.12').exists() and (other / 'models/half.tmp.12').exists()
    left = [path.name for place in ('packs', 'models') for path in (mine / place).glob('*.tmp.*')]
    assert left == ['kept.tmp.1x'], left


@test
def sets_of_older_data_go_when_the_state_is_named_like_a_pattern(folder):
    nights = Nights(folder, state='job[1].state')
    for night in 1, 2:
        nights.add(night)
        nights.good()
    sets = [path.name for path in (folder / 'job[1].state/packs').iterdir()
            if path.name.endswith('.set')]
    assert len(sets) == 1, sets


if __name__ == '__main__':
    sys.exit(main())
