# unit tests of store/
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_store
TESTS += tests/unit/test_store
tests_unit_test_store_SOURCES = tests/unit/test_store.c
tests_unit_test_store_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_store_LDADD = $(STORE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
