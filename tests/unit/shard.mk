if HAVE_CMOCKA
SHARD_TESTS = tests/unit/test_shard tests/unit/test_slices tests/unit/test_interpreter \
	tests/unit/test_shard_bounds tests/unit/test_shard_frame tests/unit/test_orthant_programs \
	tests/unit/test_factor tests/unit/test_precondition \
	tests/unit/test_checkpoint tests/unit/test_checkpoint_damage \
	tests/unit/test_checkpoint_factor \
	tests/unit/test_saving tests/unit/test_shard_process tests/unit/test_confined \
	tests/unit/test_shard_device tests/unit/test_shard_device_failing \
	tests/unit/test_shard_placing tests/unit/test_adagrad_programs
check_PROGRAMS += $(SHARD_TESTS)
TESTS += $(SHARD_TESTS)
SHARD_TEST_LIBS = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_shard_SOURCES = tests/unit/test_shard.c tests/unit/shard_bench.h
tests_unit_test_shard_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_bounds_SOURCES = tests/unit/test_shard_bounds.c tests/unit/shard_bench.h
tests_unit_test_shard_bounds_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_frame_SOURCES = tests/unit/test_shard_frame.c tests/unit/shard_bench.h
tests_unit_test_shard_frame_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_slices_SOURCES = tests/unit/test_slices.c tests/unit/shard_bench.h
tests_unit_test_slices_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_interpreter_SOURCES = tests/unit/test_interpreter.c tests/unit/shard_bench.h \
	tests/unit/shard_cluster.h
tests_unit_test_interpreter_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_orthant_programs_SOURCES = tests/unit/test_orthant_programs.c \
	tests/unit/shard_bench.h tests/unit/shard_cluster.h
tests_unit_test_orthant_programs_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_adagrad_programs_SOURCES = tests/unit/test_adagrad_programs.c \
	tests/unit/shard_bench.h tests/unit/shard_cluster.h
tests_unit_test_adagrad_programs_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_factor_SOURCES = tests/unit/test_factor.c tests/unit/shard_bench.h
tests_unit_test_factor_LDADD = $(SHARD_TEST_LIBS) $(LAPACKE_LIBS)
tests_unit_test_factor_CFLAGS = $(AM_CFLAGS) $(LAPACKE_CFLAGS)
SHARD_FACTOR_BENCH = tests/unit/shard_factor.h tests/unit/shard_saving.h tests/unit/shard_bench.h
tests_unit_test_precondition_SOURCES = tests/unit/test_precondition.c $(SHARD_FACTOR_BENCH)
tests_unit_test_checkpoint_factor_SOURCES = tests/unit/test_checkpoint_factor.c \
	$(SHARD_FACTOR_BENCH)
tests_unit_test_checkpoint_factor_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_precondition_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_confined_SOURCES = tests/unit/test_confined.c tests/unit/folder_fixture.h
tests_unit_test_confined_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_checkpoint_SOURCES = tests/unit/test_checkpoint.c tests/unit/shard_saving.h \
	tests/unit/shard_bench.h
tests_unit_test_checkpoint_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_checkpoint_damage_SOURCES = tests/unit/test_checkpoint_damage.c \
	tests/unit/shard_saving.h tests/unit/shard_bench.h
tests_unit_test_checkpoint_damage_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_saving_SOURCES = tests/unit/test_saving.c tests/unit/shard_saving.h \
	tests/unit/shard_bench.h
tests_unit_test_saving_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_process_SOURCES = tests/unit/test_shard_process.c \
	tests/unit/shard_saving.h tests/unit/shard_bench.h
tests_unit_test_shard_process_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_device_SOURCES = tests/unit/test_shard_device.c tests/unit/shard_bench.h
tests_unit_test_shard_device_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_device_failing_SOURCES = tests/unit/test_shard_device_failing.c \
	tests/unit/shard_saving.h tests/unit/shard_bench.h
tests_unit_test_shard_device_failing_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_placing_SOURCES = tests/unit/test_shard_placing.c tests/unit/shard_bench.h
tests_unit_test_shard_placing_LDADD = $(SHARD_TEST_LIBS)
tests_unit_test_shard_placing_LDFLAGS = -Wl,--wrap=device_put
TESTS += tests/unit/test_shards_on_device.py
tests/unit/test_shards_on_device.log: $(SHARD_TESTS)
endif
EXTRA_DIST += tests/unit/test_shards_on_device.py
