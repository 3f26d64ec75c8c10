# unit tests of coordinator/
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_job
TESTS += tests/unit/test_job
tests_unit_test_job_SOURCES = tests/unit/test_job.c
tests_unit_test_job_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_job_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_options
TESTS += tests/unit/test_options
tests_unit_test_options_SOURCES = tests/unit/test_options.c
tests_unit_test_options_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_options_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_scaling
TESTS += tests/unit/test_scaling
tests_unit_test_scaling_SOURCES = tests/unit/test_scaling.c
tests_unit_test_scaling_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_scaling_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) \
	$(JANSSON_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_gap
TESTS += tests/unit/test_gap
tests_unit_test_gap_SOURCES = tests/unit/test_gap.c
tests_unit_test_gap_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_gap_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) \
	$(JANSSON_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_awaiting
TESTS += tests/unit/test_awaiting
tests_unit_test_awaiting_SOURCES = tests/unit/test_awaiting.c
tests_unit_test_awaiting_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_awaiting_LDADD = $(COORDINATOR_LIBS) $(WIRE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_sizing
TESTS += tests/unit/test_sizing
tests_unit_test_sizing_SOURCES = tests/unit/test_sizing.c
tests_unit_test_sizing_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_sizing_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_gate
TESTS += tests/unit/test_gate
tests_unit_test_gate_SOURCES = tests/unit/test_gate.c
tests_unit_test_gate_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_gate_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_epochs
TESTS += tests/unit/test_epochs
tests_unit_test_epochs_SOURCES = tests/unit/test_epochs.c tests/unit/store_fixture.h
tests_unit_test_epochs_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_epochs_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_history
TESTS += tests/unit/test_history
tests_unit_test_history_SOURCES = tests/unit/test_history.c
tests_unit_test_history_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_history_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_slurm_allocation
TESTS += tests/unit/test_slurm_allocation
tests_unit_test_slurm_allocation_SOURCES = tests/unit/test_slurm_allocation.c
tests_unit_test_slurm_allocation_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_slurm_allocation_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_sweep
TESTS += tests/unit/test_sweep
tests_unit_test_sweep_SOURCES = tests/unit/test_sweep.c tests/unit/store_fixture.h
tests_unit_test_sweep_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_sweep_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_job_text
TESTS += tests/unit/test_job_text
tests_unit_test_job_text_SOURCES = tests/unit/test_job_text.c
tests_unit_test_job_text_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_job_text_LDADD = $(COORDINATOR_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_path_keys
TESTS += tests/unit/test_path_keys
tests_unit_test_path_keys_SOURCES = tests/unit/test_path_keys.c
tests_unit_test_path_keys_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_path_keys_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_network_keys
TESTS += tests/unit/test_network_keys
tests_unit_test_network_keys_SOURCES = tests/unit/test_network_keys.c tests/unit/job_fixture.h
tests_unit_test_network_keys_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_network_keys_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_downpour_keys
TESTS += tests/unit/test_downpour_keys
tests_unit_test_downpour_keys_SOURCES = tests/unit/test_downpour_keys.c tests/unit/job_fixture.h
tests_unit_test_downpour_keys_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_downpour_keys_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_state
TESTS += tests/unit/test_state
tests_unit_test_state_SOURCES = tests/unit/test_state.c
tests_unit_test_state_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_state_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

STEPPED_LIBS = $(COORDINATOR_LIBS) $(WIRE_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_linesearch
TESTS += tests/unit/test_linesearch
tests_unit_test_linesearch_SOURCES = tests/unit/test_linesearch.c
tests_unit_test_linesearch_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_preconditioner
TESTS += tests/unit/test_preconditioner
tests_unit_test_preconditioner_SOURCES = tests/unit/test_preconditioner.c \
	tests/unit/memory_backend.c tests/unit/memory_backend.h
tests_unit_test_preconditioner_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_optimizer
TESTS += tests/unit/test_optimizer
tests_unit_test_optimizer_SOURCES = tests/unit/test_optimizer.c \
	tests/unit/memory_backend.c tests/unit/memory_backend.h
tests_unit_test_optimizer_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_downpour
TESTS += tests/unit/test_downpour
tests_unit_test_downpour_SOURCES = tests/unit/test_downpour.c
tests_unit_test_downpour_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_diagonal
TESTS += tests/unit/test_diagonal
tests_unit_test_diagonal_SOURCES = tests/unit/test_diagonal.c \
	tests/unit/memory_backend.c tests/unit/memory_backend.h
tests_unit_test_diagonal_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_l1
TESTS += tests/unit/test_l1
tests_unit_test_l1_SOURCES = tests/unit/test_l1.c \
	tests/unit/memory_backend.c tests/unit/memory_backend.h
tests_unit_test_l1_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_early_stopping
TESTS += tests/unit/test_early_stopping
tests_unit_test_early_stopping_SOURCES = tests/unit/test_early_stopping.c \
	tests/unit/memory_backend.c tests/unit/memory_backend.h
tests_unit_test_early_stopping_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_plan
TESTS += tests/unit/test_plan
tests_unit_test_plan_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_shares
TESTS += tests/unit/test_shares
tests_unit_test_shares_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_hosts
TESTS += tests/unit/test_hosts
tests_unit_test_hosts_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_hosts_again
TESTS += tests/unit/test_hosts_again
tests_unit_test_hosts_again_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_host_list
TESTS += tests/unit/test_host_list
tests_unit_test_host_list_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_host_list_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_pace
TESTS += tests/unit/test_pace
tests_unit_test_pace_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_coordinator
TESTS += tests/unit/test_coordinator
tests_unit_test_coordinator_SOURCES = tests/unit/test_coordinator.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_coordinator_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_pouring
TESTS += tests/unit/test_pouring
tests_unit_test_pouring_SOURCES = tests/unit/test_pouring.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_pouring_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_start
TESTS += tests/unit/test_start
tests_unit_test_start_SOURCES = tests/unit/test_start.c tests/unit/folder_fixture.h
tests_unit_test_start_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_start_LDADD = $(COORDINATOR_LIBS) $(MODEL_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_starting
TESTS += tests/unit/test_starting
tests_unit_test_starting_SOURCES = tests/unit/test_starting.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_starting_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_device_failures
TESTS += tests/unit/test_device_failures
tests_unit_test_device_failures_SOURCES = tests/unit/test_device_failures.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_device_failures_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_short_evaluations
TESTS += tests/unit/test_short_evaluations
tests_unit_test_short_evaluations_SOURCES = tests/unit/test_short_evaluations.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_short_evaluations_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_recovery
TESTS += tests/unit/test_recovery
tests_unit_test_recovery_SOURCES = tests/unit/test_recovery.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_recovery_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_takeover
TESTS += tests/unit/test_takeover
tests_unit_test_takeover_SOURCES = tests/unit/test_takeover.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_takeover_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_authority
TESTS += tests/unit/test_authority
tests_unit_test_authority_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_request
TESTS += tests/unit/test_request
tests_unit_test_request_LDADD = $(STEPPED_LIBS)

check_PROGRAMS += tests/unit/test_api
TESTS += tests/unit/test_api
tests_unit_test_api_SOURCES = tests/unit/test_api.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_api_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_api_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_tensors
TESTS += tests/unit/test_tensors
tests_unit_test_tensors_SOURCES = tests/unit/test_tensors.c \
	tests/unit/coordinator_bench.c tests/unit/coordinator_bench.h
tests_unit_test_tensors_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_tensors_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) \
	$(DATA_LIBS) $(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif
