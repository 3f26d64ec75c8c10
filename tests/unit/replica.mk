# unit tests of replica/: a file is a suite of the program replica_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/replica_tests
TESTS += tests/unit/replica_tests
tests_unit_replica_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_replica.c tests/unit/test_replica_copy.c tests/unit/test_replica_scaling.c \
	tests/unit/test_replica_curvature.c tests/unit/test_replica_evaluation.c \
	tests/unit/test_replica_needs.c tests/unit/test_replica_program.c tests/unit/test_replica_return.c \
	tests/unit/test_replica_network.c tests/unit/test_replica_rows.c tests/unit/test_replica_tiles.c \
	tests/unit/test_joined.c tests/unit/test_sum.c \
	tests/unit/layout_fixture.h tests/unit/replica_bench.c tests/unit/replica_bench.h \
	tests/cluster/decoded.c tests/cluster/decoded.h
tests_unit_replica_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_replica_tests_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) \
	$(BASE_LIBS) $(CMOCKA_LIBS)

# It brings an objective of its own in place of those of objective/.
check_PROGRAMS += tests/unit/test_workers
TESTS += tests/unit/test_workers
tests_unit_test_workers_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_workers.c tests/unit/test_workers_rows.c \
	tests/unit/made_up_objective.c tests/unit/made_up_objective.h \
	tests/unit/workers_bench.c tests/unit/workers_bench.h
tests_unit_test_workers_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
