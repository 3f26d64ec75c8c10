# unit tests of store/
if HAVE_CMOCKA
STORE_TESTS = tests/unit/test_store tests/unit/test_store_network tests/unit/test_store_saved tests/unit/test_store_damage \
	tests/unit/test_store_snapshot
check_PROGRAMS += $(STORE_TESTS)
TESTS += $(STORE_TESTS)
STORE_TEST_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(SQLITE_CFLAGS)
STORE_TEST_LIBS = $(STORE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_store_SOURCES = tests/unit/test_store.c tests/unit/store_fixture.h
tests_unit_test_store_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_network_SOURCES = tests/unit/test_store_network.c tests/unit/store_fixture.h
tests_unit_test_store_network_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_network_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_snapshot_SOURCES = tests/unit/test_store_snapshot.c tests/unit/store_fixture.h
tests_unit_test_store_snapshot_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_snapshot_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_saved_SOURCES = \
	tests/unit/test_store_saved.c tests/unit/store_fixture.h tests/unit/store_schema_1.h
tests_unit_test_store_saved_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_saved_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_damage_SOURCES = tests/unit/test_store_damage.c tests/unit/store_fixture.h
tests_unit_test_store_damage_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_damage_LDADD = $(STORE_TEST_LIBS)
endif
