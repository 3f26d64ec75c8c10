# unit tests of base/
if HAVE_CMOCKA
base_tests = \
	tests/unit/test_bounds \
	tests/unit/test_coordinates \
	tests/unit/test_cpus \
	tests/unit/test_device_choice \
	tests/unit/test_error \
	tests/unit/test_escape \
	tests/unit/test_failpoint \
	tests/unit/test_filesystem \
	tests/unit/test_layout \
	tests/unit/test_nearest \
	tests/unit/test_permutation
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)
endif

tests_unit_test_bounds_SOURCES = tests/unit/test_bounds.c
tests_unit_test_bounds_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_device_choice_SOURCES = tests/unit/test_device_choice.c
tests_unit_test_device_choice_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_failpoint_SOURCES = tests/unit/test_failpoint.c
tests_unit_test_failpoint_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_filesystem_SOURCES = tests/unit/test_filesystem.c tests/unit/folder_fixture.h
tests_unit_test_filesystem_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_nearest_SOURCES = tests/unit/test_nearest.c
tests_unit_test_nearest_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_permutation_SOURCES = tests/unit/test_permutation.c
tests_unit_test_permutation_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_error_SOURCES = tests/unit/test_error.c
tests_unit_test_error_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_escape_SOURCES = tests/unit/test_escape.c
tests_unit_test_escape_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_layout_SOURCES = tests/unit/test_layout.c tests/unit/layout_fixture.h
tests_unit_test_layout_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_coordinates_SOURCES = tests/unit/test_coordinates.c
tests_unit_test_coordinates_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_cpus_SOURCES = tests/unit/test_cpus.c tests/unit/folder_fixture.h
tests_unit_test_cpus_LDADD = $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
