# unit tests of store/: a file is a suite of the program store_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/store_tests
TESTS += tests/unit/store_tests
tests_unit_store_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_store.c tests/unit/test_store_damage.c \
	tests/unit/test_store_invocations.c tests/unit/test_store_network.c \
	tests/unit/test_store_saved.c tests/unit/test_store_snapshot.c \
	tests/unit/test_store_upgrade.c tests/unit/store_fixture.h
tests_unit_store_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(SQLITE_CFLAGS)
tests_unit_store_tests_LDADD = $(STORE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
