# unit tests of replica/
if HAVE_CMOCKA
REPLICA_TESTS = tests/unit/test_replica tests/unit/test_replica_coordinates tests/unit/test_replica_curvature \
	tests/unit/test_replica_evaluation \
	tests/unit/test_replica_return tests/unit/test_workers tests/unit/test_replica_program
check_PROGRAMS += $(REPLICA_TESTS)
TESTS += $(REPLICA_TESTS)
REPLICA_TEST_LIBS = $(REPLICA_LIBS) $(WIRE_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
REPLICA_BENCH = tests/unit/replica_bench.c tests/unit/replica_bench.h
tests_unit_test_replica_SOURCES = tests/unit/test_replica.c $(REPLICA_BENCH)
tests_unit_test_replica_LDADD = $(REPLICA_TEST_LIBS)
tests_unit_test_replica_coordinates_SOURCES = tests/unit/test_replica_coordinates.c $(REPLICA_BENCH)
tests_unit_test_replica_coordinates_LDADD = $(REPLICA_TEST_LIBS)
tests_unit_test_replica_curvature_SOURCES = tests/unit/test_replica_curvature.c $(REPLICA_BENCH)
tests_unit_test_replica_curvature_LDADD = $(REPLICA_TEST_LIBS)
tests_unit_test_replica_evaluation_SOURCES = tests/unit/test_replica_evaluation.c $(REPLICA_BENCH)
tests_unit_test_replica_evaluation_LDADD = $(REPLICA_TEST_LIBS)
tests_unit_test_replica_return_SOURCES = tests/unit/test_replica_return.c $(REPLICA_BENCH)
tests_unit_test_replica_return_LDADD = $(REPLICA_TEST_LIBS)
tests_unit_test_workers_SOURCES = tests/unit/test_workers.c \
	tests/unit/made_up_objective.c tests/unit/made_up_objective.h
tests_unit_test_workers_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_replica_program_LDADD = $(WIRE_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
