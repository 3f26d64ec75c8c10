# unit tests of data/
EXTRA_DIST += tests/unit/data_fixture.h
if HAVE_CMOCKA
DATA_TESTS = tests/unit/test_number tests/unit/test_source tests/unit/test_bad_input \
	tests/unit/test_pack tests/unit/test_set tests/unit/test_set_holdout
check_PROGRAMS += $(DATA_TESTS)
TESTS += $(DATA_TESTS)
DATA_TEST_LIBS = $(DATA_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_number_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_source_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_bad_input_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_pack_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_set_LDADD = $(DATA_TEST_LIBS)
tests_unit_test_set_holdout_LDADD = $(DATA_TEST_LIBS)
endif

# `make fuzz` builds the fuzzers of the text parsers with clang: ./fuzz_csv -max_total_time=60
EXTRA_DIST += tests/fuzz/fuzz_text.h tests/fuzz/fuzz_libsvm.c tests/fuzz/fuzz_csv.c
CLEANFILES += fuzz_libsvm fuzz_csv
.PHONY: fuzz
fuzz: fuzz_libsvm fuzz_csv
fuzz_libsvm fuzz_csv:
	clang -std=gnu17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	    -ffp-contract=off -I$(srcdir) $(srcdir)/tests/fuzz/$@.c \
	    $(srcdir)/data/batch.c $(srcdir)/data/csv.c $(srcdir)/data/csv_layout.c \
	    $(srcdir)/data/format.c $(srcdir)/data/libsvm.c $(srcdir)/data/number.c \
	    $(srcdir)/base/error.c $(srcdir)/base/memory.c -lm -o $@
