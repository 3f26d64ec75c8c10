# Processes killed, frozen, cut off and damaged. `check` runs a part, `check-faults` everything.
FAULT_TESTS = \
	tests/fault/test_bounds.py \
	tests/fault/test_kills.py \
	tests/fault/test_failpoints.py \
	tests/fault/test_stops.py \
	tests/fault/test_damage.py \
	tests/fault/test_strangers.py
TESTS += $(FAULT_TESTS)
EXTRA_DIST += $(FAULT_TESTS) tests/fault/faults.py tests/fault/README.md

check-faults: all
	$(MAKE) check-TESTS TESTS='$(FAULT_TESTS)' DML_FAULTS=all
.PHONY: check-faults
