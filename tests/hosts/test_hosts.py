#!/usr/bin/env python3
"""A job on several machines of which some fail, or do not reach others: the model is that of a quiet
run on one machine. A seed says what is trained, and what goes wrong and when; `--seeds 1-50` or
`--seeds 7` runs these."""

import sys

from machines import Network
from runs import SLOW
from schedules import SCHEDULES
from seeds import Seeds
import fencing  # noqa: F401  its schedules

CHECKED = [2, 15, 21]  # by `make check`: short ones


def network_of(rng):
    return Network(4, remote_storage=rng.random() < 0.3, environment=SLOW)


if __name__ == '__main__':
    sys.exit(Seeds(__file__, SCHEDULES, network_of).main(CHECKED))
