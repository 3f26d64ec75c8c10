# unit tests of replica/
if HAVE_CMOCKA
REPLICA_TESTS = tests/unit/test_replica tests/unit/test_workers
check_PROGRAMS += $(REPLICA_TESTS)
TESTS += $(REPLICA_TESTS)
tests_unit_test_replica_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)
tests_unit_test_workers_LDADD = $(REPLICA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
