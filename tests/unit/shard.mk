# unit tests of shard/: a file is a suite of the program shard_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/shard_tests
TESTS += tests/unit/shard_tests
tests_unit_shard_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_adagrad_programs.c tests/unit/test_apart.c tests/unit/test_checkpoint.c \
	tests/unit/test_checkpoint_damage.c tests/unit/test_checkpoint_factor.c tests/unit/test_checkpoint_rows.c \
	tests/unit/test_confined.c tests/unit/test_covariance_rank.c tests/unit/test_factor.c tests/unit/test_factor_leading.c tests/unit/test_listed.c \
	tests/unit/test_interpreter.c tests/unit/test_network_rows.c \
	tests/unit/test_orthant_programs.c tests/unit/test_precondition.c \
	tests/unit/test_precondition_leading.c tests/unit/test_saving.c \
	tests/unit/row_cluster.h tests/unit/test_row_vectors.c tests/unit/test_rows_taken.c \
	tests/unit/test_shard.c tests/unit/test_shard_bounds.c tests/unit/test_shard_device.c \
	tests/unit/test_shard_device_failing.c tests/unit/test_shard_scaling.c \
	tests/unit/test_shard_placing.c tests/unit/test_shard_process.c tests/unit/test_slices.c \
	tests/unit/test_sparse_step.c \
	tests/unit/connect_fixture.h tests/unit/device_fixture.h tests/unit/folder_fixture.h \
	tests/unit/layout_fixture.h tests/unit/shard_bench.h tests/unit/shard_cluster.h \
	tests/unit/shard_factor.h tests/unit/shard_saving.h \
	tests/cluster/decoded.c tests/cluster/decoded.h
tests_unit_shard_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(LAPACKE_CFLAGS)
tests_unit_shard_tests_LDADD = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS) $(LAPACKE_LIBS) $(CMOCKA_LIBS)
tests_unit_shard_tests_LDFLAGS = -Wl,--wrap=device_put
TESTS += tests/unit/test_shards_on_device.py
tests/unit/test_shards_on_device.log: tests/unit/shard_tests
endif
EXTRA_DIST += tests/unit/test_shards_on_device.py
