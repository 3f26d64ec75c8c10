# unit tests of data/
EXTRA_DIST += tests/unit/data_fixture.h
if HAVE_CMOCKA
DATA_TESTS = tests/unit/test_number tests/unit/test_source tests/unit/test_source_numbers \
	tests/unit/test_bad_input tests/unit/test_pack tests/unit/test_set tests/unit/test_set_holdout tests/unit/test_set_shuffled tests/unit/test_table tests/unit/test_lists tests/unit/test_records tests/unit/test_sample \
	tests/unit/test_set_weights tests/unit/test_csv_weight tests/unit/test_moments tests/unit/test_scratch tests/unit/test_array
check_PROGRAMS += $(DATA_TESTS)
TESTS += $(DATA_TESTS)
DATA_TEST_LIBS = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_array_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_scratch_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_moments_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_number_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_source_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_source_numbers_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_bad_input_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_pack_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_set_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_set_shuffled_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_set_holdout_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_table_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_lists_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_records_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_sample_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_set_weights_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_csv_weight_LDADD = $(DATA_TEST_LIBS)
endif
