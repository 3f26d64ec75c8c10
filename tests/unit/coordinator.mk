# unit tests of coordinator/
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_job
TESTS += tests/unit/test_job
tests_unit_test_job_SOURCES = tests/unit/test_job.c
tests_unit_test_job_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_job_LDADD = $(COORDINATOR_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_options
TESTS += tests/unit/test_options
tests_unit_test_options_SOURCES = tests/unit/test_options.c
tests_unit_test_options_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_options_LDADD = $(COORDINATOR_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
