# unit tests of objective/
if HAVE_CMOCKA
OBJECTIVE_TESTS = tests/unit/test_curvature tests/unit/test_device_curvature tests/unit/test_device_linear tests/unit/test_device_network \
	tests/unit/test_drawing tests/unit/test_kronecker \
	tests/unit/test_loss_row tests/unit/test_losses tests/unit/test_network \
	tests/unit/test_network_layout \
	tests/unit/test_network_oracle tests/unit/test_objective tests/unit/test_on_device \
	tests/unit/test_on_device_memory tests/unit/test_device_bundle \
	tests/unit/test_robust
check_PROGRAMS += $(OBJECTIVE_TESTS)
TESTS += $(OBJECTIVE_TESTS)
OBJECTIVE_TEST_LIBS = $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_curvature_SOURCES = tests/unit/test_curvature.c \
	tests/unit/curvature_fixture.h tests/unit/canned.c \
	tests/unit/canned.h
tests_unit_test_curvature_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_device_linear_SOURCES = tests/unit/test_device_linear.c \
	tests/unit/linear_fixture.c tests/unit/linear_fixture.h
tests_unit_test_device_linear_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_device_network_SOURCES = tests/unit/test_device_network.c \
	tests/unit/network_fixture.c tests/unit/network_fixture.h tests/unit/canned.c \
	tests/unit/canned.h
tests_unit_test_device_network_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_device_curvature_SOURCES = tests/unit/test_device_curvature.c \
	tests/unit/curvature_fixture.h tests/unit/device_fixture.h tests/unit/canned.c tests/unit/canned.h
tests_unit_test_device_curvature_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_drawing_SOURCES = tests/unit/test_drawing.c \
	tests/unit/curvature_fixture.h tests/unit/canned.c \
	tests/unit/canned.h
tests_unit_test_drawing_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_kronecker_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_loss_row_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_losses_SOURCES = tests/unit/test_losses.c tests/unit/canned.c \
	tests/unit/canned.h
tests_unit_test_losses_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_network_SOURCES = tests/unit/test_network.c tests/unit/network_fixture.c \
	tests/unit/network_fixture.h tests/unit/canned.c tests/unit/canned.h
tests_unit_test_network_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_network_oracle_SOURCES = tests/unit/test_network_oracle.c tests/unit/network_oracle.def \
	tests/unit/network_fixture.c tests/unit/network_fixture.h tests/unit/canned.c tests/unit/canned.h
tests_unit_test_network_oracle_LDADD = $(OBJECTIVE_TEST_LIBS)
EXTRA_DIST += tests/unit/network_oracle.py
tests_unit_test_network_layout_SOURCES = tests/unit/test_network_layout.c
tests_unit_test_network_layout_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_objective_SOURCES = tests/unit/test_objective.c tests/unit/canned.c \
	tests/unit/canned.h
tests_unit_test_objective_LDADD = $(OBJECTIVE_TEST_LIBS)
ON_DEVICE_BENCH = tests/unit/on_device_bench.c tests/unit/on_device_bench.h \
	tests/unit/device_fixture.h tests/unit/canned.c tests/unit/canned.h
tests_unit_test_on_device_SOURCES = tests/unit/test_on_device.c $(ON_DEVICE_BENCH)
tests_unit_test_on_device_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_on_device_memory_SOURCES = tests/unit/test_on_device_memory.c $(ON_DEVICE_BENCH)
tests_unit_test_on_device_memory_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_device_bundle_SOURCES = tests/unit/test_device_bundle.c
tests_unit_test_device_bundle_LDADD = $(OBJECTIVE_TEST_LIBS)
tests_unit_test_robust_SOURCES = tests/unit/test_robust.c tests/unit/canned.c tests/unit/canned.h
tests_unit_test_robust_LDADD = $(OBJECTIVE_TEST_LIBS)
endif
