# unit tests of model/
if HAVE_CMOCKA
MODEL_TESTS = tests/unit/test_model tests/unit/test_model_damage \
	tests/unit/test_model_network tests/unit/test_score tests/unit/test_score_network \
	tests/unit/test_figures tests/unit/test_sample_figures tests/unit/test_holdout
check_PROGRAMS += $(MODEL_TESTS)
TESTS += $(MODEL_TESTS)
MODEL_TEST_LIBS = $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)
MODEL_TEST_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(CMOCKA_CFLAGS)
MODEL_FIXTURE = tests/unit/model_fixture.h tests/unit/folder_fixture.h
tests_unit_test_model_SOURCES = tests/unit/test_model.c $(MODEL_FIXTURE)
tests_unit_test_model_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_model_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_model_damage_SOURCES = tests/unit/test_model_damage.c $(MODEL_FIXTURE)
tests_unit_test_model_damage_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_model_damage_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_model_network_SOURCES = tests/unit/test_model_network.c $(MODEL_FIXTURE)
tests_unit_test_model_network_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_model_network_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_score_SOURCES = tests/unit/test_score.c tests/unit/score_fixture.h
tests_unit_test_score_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_score_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_score_network_SOURCES = tests/unit/test_score_network.c tests/unit/score_fixture.h
tests_unit_test_score_network_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_score_network_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_holdout_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_holdout_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_figures_SOURCES = tests/unit/test_figures.c tests/unit/score_fixture.h
tests_unit_test_figures_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_figures_LDADD = $(MODEL_TEST_LIBS)
tests_unit_test_sample_figures_SOURCES = tests/unit/test_sample_figures.c \
	tests/unit/score_fixture.h
tests_unit_test_sample_figures_CFLAGS = $(MODEL_TEST_CFLAGS)
tests_unit_test_sample_figures_LDADD = $(MODEL_TEST_LIBS)
endif
