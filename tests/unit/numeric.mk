# unit tests of numeric/
if HAVE_CMOCKA
NUMERIC_TESTS = tests/unit/test_exact tests/unit/test_fixed tests/unit/test_vector \
	tests/unit/test_dense tests/unit/test_product tests/unit/test_special \
	tests/unit/test_totals tests/unit/test_cholesky tests/unit/test_orthant \
	tests/unit/test_matrix tests/unit/test_activation tests/unit/test_scalar \
	tests/unit/test_adagrad
check_PROGRAMS += $(NUMERIC_TESTS)
TESTS += $(NUMERIC_TESTS)
NUMERIC_TEST_LIBS = $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_exact_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_fixed_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_vector_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_adagrad_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_orthant_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_dense_LDADD = $(NUMERIC_TEST_LIBS) $(LAPACKE_LIBS)
tests_unit_test_dense_CFLAGS = $(AM_CFLAGS) $(LAPACKE_CFLAGS)
tests_unit_test_product_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_matrix_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_activation_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_scalar_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_special_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_totals_LDADD = $(NUMERIC_TEST_LIBS)
tests_unit_test_cholesky_LDADD = $(NUMERIC_TEST_LIBS) $(LAPACKE_LIBS)
tests_unit_test_cholesky_CFLAGS = $(AM_CFLAGS) $(LAPACKE_CFLAGS)
endif
