# Processes killed, frozen, cut off and damaged. `check` runs a part, `check-faults` everything.
FAULT_TESTS = \
	tests/fault/test_stops.py \
	tests/fault/test_damage.py \
	tests/fault/test_failpoints.py \
	tests/fault/test_kills.py \
	tests/fault/test_drawn.py \
	tests/fault/test_doors.py \
	tests/fault/test_strangers.py \
	tests/fault/test_bounds.py
TESTS += $(FAULT_TESTS)
EXTRA_DIST += $(FAULT_TESTS) tests/fault/test_upgrades.py tests/fault/faults.py tests/fault/scenes.py tests/fault/README.md

# test_upgrades.py builds a later version first, which takes a minute or two.
ALL_FAULT_TESTS = $(FAULT_TESTS) tests/fault/test_upgrades.py tests/integration/test_retrain.py \
	tests/integration/test_tiles.py tests/integration/test_network_tiles.py \
	tests/integration/test_directions.py tests/integration/test_leading_block.py \
	tests/integration/test_choosing.py tests/integration/test_path.py tests/integration/test_rounds.py \
	tests/integration/test_precondition.py tests/integration/test_devices.py \
	tests/integration/test_crosses.py tests/integration/test_downpour.py \
	tests/integration/test_single_errors.py tests/integration/test_offsets.py \
	tests/integration/test_http.py tests/browser/test_page.py tests/browser/test_runs.py

# All of it, and a last line that counts.
check-faults: all
	@$(MAKE) check-TESTS TESTS='$(ALL_FAULT_TESTS)' DML_FAULTS=all; \
	results=$$(sed -n 's/^:test-result: //p' $(ALL_FAULT_TESTS:.py=.trs)); \
	count() { echo "$$results" | grep -cE "^($$1)"; }; \
	failed=$$(count 'FAIL|ERROR|XPASS'); \
	echo "$$(count PASS) passed, $$failed failed, $$(count SKIP) skipped" | sed 's/, 0 skipped//'; \
	test "$$failed" -eq 0
.PHONY: check-faults
