# Jobs of a real Slurm on loopback. `check` runs one, `check-slurm` all.
TESTS += tests/slurm/test_slurm.py
EXTRA_DIST += tests/slurm/test_slurm.py tests/slurm/cluster.py tests/slurm/jobs.py

check-slurm: all
	$(MAKE) check-TESTS TESTS=tests/slurm/test_slurm.py DML_SLURM=all
.PHONY: check-slurm
