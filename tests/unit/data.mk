# unit tests of data/: a file is a suite of the program data_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/data_tests
TESTS += tests/unit/data_tests
tests_unit_data_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_array.c tests/unit/test_bad_input.c tests/unit/test_bins.c \
	tests/unit/test_csv_weight.c tests/unit/test_date.c tests/unit/test_dictionary.c tests/unit/test_folders.c \
	tests/unit/test_internal_address.c tests/unit/test_lists.c tests/unit/test_moments.c tests/unit/test_number.c \
	tests/unit/test_pack.c tests/unit/test_parquet.c tests/unit/test_prefix.c tests/unit/test_records.c tests/unit/test_sample.c \
	tests/unit/test_partial.c tests/unit/test_scratch.c tests/unit/test_set.c tests/unit/test_set_holdout.c \
	tests/unit/test_set_shuffled.c tests/unit/test_set_weights.c tests/unit/test_source.c \
	tests/unit/test_source_numbers.c tests/unit/test_sparse.c tests/unit/test_spelling.c tests/unit/test_table.c tests/unit/test_tiles.c \
	tests/unit/test_wide_columns.c tests/unit/test_words.c \
	tests/unit/data_fixture.h tests/unit/failing_readdir.h tests/unit/folder_fixture.h tests/unit/npz.h
EXTRA_DIST += tests/unit/parquet
tests_unit_data_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_data_tests_LDADD = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
