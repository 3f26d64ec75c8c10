# The simulator: the roles' state machines, compiled with mutants, under a virtual clock.
check_LIBRARIES += libsimulated.a
libsimulated_a_SOURCES = $(cluster_parts) $(optimizer_parts) wire/evaluation.c \
	coordinator/dispatch/backup.c coordinator/dispatch/commit.c coordinator/dispatch/evaluation.c \
	coordinator/dispatch/output.c coordinator/dispatch/plan.c coordinator/dispatch/portions.c \
	coordinator/dispatch/round.c \
	coordinator/machine/copies.c coordinator/machine/hosts.c coordinator/machine/membership.c coordinator/machine/recovery.c \
	coordinator/machine/setup.c coordinator/machine/state.c coordinator/machine/step.c \
	coordinator/machine/view.c coordinator/driver.c coordinator/driver_read.c \
	shard/apart.c shard/checkpoint.c shard/covariance.c shard/covariance_make.c shard/covariance_rank.c shard/evaluation.c shard/factor.c shard/factor_make.c shard/host.c shard/listed.c \
	shard/pass_plan.c shard/programs.c shard/registers.c shard/rows.c shard/rows_measure.c shard/rows_second.c \
	shard/saving.c shard/limits.c shard/scaling.c shard/setup.c shard/shard.c shard/sparse_step.c \
	replica/compute.c replica/copy.c replica/evaluation.c replica/flush.c replica/joined.c replica/needs.c replica/point.c replica/sum.c \
	replica/links.c replica/replica.c replica/setup.c
libsimulated_a_CPPFLAGS = $(AM_CPPFLAGS) -DMUTANTS

check_PROGRAMS += tests/sim/sim
tests_sim_sim_SOURCES = \
	tests/sim/cluster.c tests/sim/cluster.h \
	tests/sim/coordinator_process.c \
	tests/sim/copies.c tests/sim/copies.h \
	tests/sim/hosts.c tests/sim/hosts.h \
	tests/sim/job.c tests/sim/job.h tests/sim/tiles.c tests/sim/tiles.h \
	tests/sim/ledger.c tests/sim/ledger.h \
	tests/sim/outcome.c tests/sim/outcome.h \
	tests/sim/replica_process.c \
	tests/sim/schedule.c tests/sim/schedule.h \
	tests/sim/shard_process.c \
	tests/sim/sim.c
tests_sim_sim_CPPFLAGS = $(AM_CPPFLAGS) -DMUTANTS
tests_sim_sim_LDADD = libsimulated.a $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)
tests_sim_sim_LDFLAGS = -Wl,--wrap=operation_list_read

TESTS += tests/sim/test_sim.py
EXTRA_DIST += tests/sim/test_sim.py tests/sim/regression-seeds.txt tests/sim/mutant-seeds.txt
tests/sim/test_sim.log: tests/sim/sim$(EXEEXT)

# make check-sim SEEDS=1-100000
SEEDS = 1-100000
.PHONY: check-sim
check-sim: tests/sim/sim$(EXEEXT)
	@DML_BUILD='$(abs_top_builddir)' $(PYTHON) $(srcdir)/tests/sim/test_sim.py $(SEEDS)
