# unit tests of model/: a file is a suite of the program model_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/model_tests
TESTS += tests/unit/model_tests
tests_unit_model_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_fit.c tests/unit/test_holdout.c tests/unit/test_model.c tests/unit/test_model_damage.c \
	tests/unit/test_model_network.c tests/unit/test_response.c tests/unit/test_scatter.c \
	tests/unit/test_summary_file.c tests/unit/folder_fixture.h tests/unit/model_fixture.h
tests_unit_model_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_tests_LDADD = $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)

# Its rows are made by the test: it has a source_read() of its own.
check_PROGRAMS += tests/unit/score_tests
TESTS += tests/unit/score_tests
tests_unit_score_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_explain.c tests/unit/test_figures.c tests/unit/test_sample_figures.c tests/unit/test_score.c \
	tests/unit/test_score_network.c tests/unit/folder_fixture.h tests/unit/score_fixture.c tests/unit/score_fixture.h
tests_unit_score_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_score_tests_LDADD = $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) \
	$(BASE_LIBS) $(CMOCKA_LIBS)
endif
