#!/usr/bin/env python3
"""Jobs of a real Slurm, which is started for each test. `check` runs the first test, `check-slurm`
all of them."""

import os
import sys

from cluster import Cluster, main, test

ALL = os.environ.get('DML_SLURM') == 'all'


def long_test(function):
    """A test of make check-slurm only."""
    return test(function) if ALL else function


@long_test
def two_clusters_at_once_do_not_meet(folder):
    with Cluster(nodes=2) as one, Cluster(nodes=2) as other:
        ran = one.command('srun', '--nodes=2', '--ntasks=2', 'printenv', 'SLURM_CONF')
        assert ran.stdout.split() == [one.environment['SLURM_CONF']] * 2, ran
        other.kill_node('n1')
        other.until(lambda: other.states() == ['down*', 'idle'], 'the killed node is missed')
        assert one.states() == ['idle', 'idle'], one.logs()


sys.exit(main())
