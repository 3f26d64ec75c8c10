# unit tests of coordinator/: a file is a suite of the program coordinator_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/coordinator_tests
TESTS += tests/unit/coordinator_tests
tests_unit_coordinator_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_api.c tests/unit/test_copies.c tests/unit/test_host_check.c \
	tests/unit/test_coordinator.c tests/unit/test_device_failures.c tests/unit/test_diagonal.c \
	tests/unit/test_downpour.c tests/unit/test_downpour_keys.c tests/unit/test_early_stopping.c \
	tests/unit/test_epochs.c tests/unit/test_figure_table.c \
	tests/unit/test_gate.c tests/unit/test_history.c \
	tests/unit/test_host_list.c tests/unit/test_hosts.c tests/unit/test_hosts_again.c \
	tests/unit/test_job.c tests/unit/test_job_text.c tests/unit/test_l1.c \
	tests/unit/test_linesearch.c tests/unit/test_network_keys.c tests/unit/test_optimizer.c \
	tests/unit/test_options.c tests/unit/test_pace.c tests/unit/test_path_keys.c \
	tests/unit/test_plan.c tests/unit/test_pouring.c tests/unit/test_preconditioner.c \
	tests/unit/test_recovery.c tests/unit/test_request.c tests/unit/test_scaling.c \
	tests/unit/test_shares.c tests/unit/test_short_evaluations.c tests/unit/test_sizing.c \
	tests/unit/test_tiling.c \
	tests/unit/test_starting.c tests/unit/test_sweep.c tests/unit/test_takeover.c \
	tests/unit/test_span.c tests/unit/test_common_directions.c \
	tests/unit/test_tensors.c tests/unit/test_working.c \
	tests/cluster/decoded.c tests/cluster/decoded.h tests/unit/coordinator_bench.c \
	tests/unit/coordinator_bench.h tests/unit/folder_fixture.h \
	tests/unit/job_fixture.h tests/unit/memory_backend.c tests/unit/memory_backend.h \
	tests/unit/memory_rows.c tests/unit/memory_rows.h \
	tests/unit/memory_shards.c tests/unit/memory_shards.h \
	tests/unit/store_fixture.h
tests_unit_coordinator_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS) $(SQLITE_CFLAGS)
tests_unit_coordinator_tests_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)

# Those of coordinator/run/ are a program of their own: the thread sanitizer watches all of it.
check_PROGRAMS += tests/unit/run_tests
TESTS += tests/unit/run_tests
tests_unit_run_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_awaiting.c tests/unit/test_copier.c tests/unit/test_gap.c tests/unit/test_loop.c tests/unit/test_set_service.c \
	tests/unit/test_slurm_allocation.c tests/unit/test_start.c tests/unit/test_state.c \
	tests/cluster/decoded.c tests/cluster/decoded.h tests/unit/folder_fixture.h
tests_unit_run_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_run_tests_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
