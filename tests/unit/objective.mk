# unit tests of objective/: a file is a suite of the program objective_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/objective_tests
TESTS += tests/unit/objective_tests
tests_unit_objective_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_curvature.c tests/unit/test_device_bundle.c tests/unit/test_device_curvature.c \
	tests/unit/test_device_linear.c tests/unit/test_device_network.c tests/unit/test_drawing.c \
	tests/unit/test_kronecker.c tests/unit/test_loss_row.c tests/unit/test_losses.c \
	tests/unit/test_network.c tests/unit/test_network_layers.c \
	tests/unit/test_network_layout.c tests/unit/test_network_oracle.c \
	tests/unit/test_objective.c tests/unit/test_on_device.c tests/unit/test_on_device_memory.c \
	tests/unit/test_products.c tests/unit/test_tile_products.c tests/unit/test_robust.c \
	tests/unit/canned.c tests/unit/canned.h tests/unit/curvature_fixture.h \
	tests/unit/device_fixture.h tests/unit/linear_fixture.c tests/unit/linear_fixture.h \
	tests/unit/network_fixture.c tests/unit/network_fixture.h tests/unit/network_oracle.def \
	tests/unit/on_device_bench.c tests/unit/on_device_bench.h
tests_unit_objective_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_objective_tests_LDADD = $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
EXTRA_DIST += tests/unit/network_oracle.py
