# unit tests of base/: a file is a suite of the program base_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/base_tests
TESTS += tests/unit/base_tests
tests_unit_base_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_bounds.c tests/unit/test_layout_scaling.c tests/unit/test_cpus.c \
	tests/unit/test_device_choice.c tests/unit/test_error.c tests/unit/test_escape.c \
	tests/unit/test_failpoint.c tests/unit/test_filesystem.c tests/unit/test_layout.c \
	tests/unit/test_nearest.c tests/unit/test_permutation.c tests/unit/test_process.c \
	tests/unit/failing_readdir.h tests/unit/folder_fixture.h
tests_unit_base_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_tests_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
