# unit tests of model/
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_model
TESTS += tests/unit/test_model
tests_unit_test_model_SOURCES = tests/unit/test_model.c
tests_unit_test_model_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_model_LDADD = $(MODEL_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
