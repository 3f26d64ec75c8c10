# unit tests of numeric/: a file is a suite of the program numeric_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/numeric_tests
TESTS += tests/unit/numeric_tests
tests_unit_numeric_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_activation.c tests/unit/test_adagrad.c tests/unit/test_box.c \
	tests/unit/test_cholesky.c \
	tests/unit/test_dense.c tests/unit/test_exact.c tests/unit/test_fixed.c tests/unit/test_inverse.c \
	tests/unit/test_lasso.c tests/unit/test_matrix.c tests/unit/test_orthant.c tests/unit/test_orthogonal.c \
	tests/unit/test_places.c \
	tests/unit/test_product.c \
	tests/unit/test_scalar.c tests/unit/test_special.c tests/unit/test_tails.c tests/unit/test_totals.c \
	tests/unit/test_vector.c
tests_unit_numeric_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(LAPACKE_CFLAGS)
tests_unit_numeric_tests_LDADD = $(NUMERIC_LIBS) $(BASE_LIBS) $(LAPACKE_LIBS) $(CMOCKA_LIBS)
endif
