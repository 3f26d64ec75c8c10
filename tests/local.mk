# A fragment a subject, so that each can be read beside what it tests.
# The tests that take long, or wait long, are begun first: else the last ones run alone at the end.
include tests/fault/local.mk
include tests/hosts/local.mk
include tests/cluster/local.mk
include tests/sim/local.mk
include tests/cuda/local.mk
include tests/ptx/local.mk
include tests/slurm/local.mk
include tests/browser/local.mk
include tests/packages/local.mk
include tests/integration/local.mk
include tests/fuzz/local.mk
include tests/unit/base.mk
include tests/unit/wire.mk
include tests/unit/device.mk
include tests/unit/numeric.mk
include tests/unit/data.mk
include tests/unit/plugin.mk
include tests/unit/objective.mk
include tests/unit/model.mk
include tests/unit/library.mk
include tests/unit/store.mk
include tests/unit/coordinator.mk
include tests/unit/shard.mk
include tests/unit/replica.mk

SOURCE_TESTS = tests/layering.py tests/style.py tests/documents.py tests/targets.py tests/cuda_code.py
TESTS += $(SOURCE_TESTS)
EXTRA_DIST += $(SOURCE_TESTS) tests/source.py tests/survey.py tests/coverage.py tests/setup.sh

# Every test prints TAP: cmocka's programs because they are told to, the scripts by themselves.
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TAP_DRIVER)
TEST_EXTENSIONS = .py
PY_LOG_DRIVER = $(TAP_DRIVER)
PY_LOG_COMPILER = $(PYTHON)
AM_TESTS_ENVIRONMENT = \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	DML_SOURCE='$(abs_top_srcdir)'; export DML_SOURCE; \
	DML_BUILD='$(abs_top_builddir)'; export DML_BUILD; \
	DML_BITS='$(DML_BITS)'; export DML_BITS; \
	DML_FAULTS='$(DML_FAULTS)'; export DML_FAULTS; \
	DML_OPTIMA='$(DML_OPTIMA)'; export DML_OPTIMA; \
	DML_SLURM='$(DML_SLURM)'; export DML_SLURM; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;

# What `make check` runs, and builds for that: ./check has some of it in other builds.
list-tests:
	@echo $(TESTS)
list-programs:
	@echo $(check_PROGRAMS)
.PHONY: list-tests list-programs

# Which lines of the product the unit tests and these execute, in a build of its own.
COVERAGE_TESTS = tests/integration/test_commands.py tests/integration/test_bad_input.py \
	tests/integration/test_retrain.py tests/integration/test_http.py tests/integration/test_state.py \
	tests/integration/test_summary.py tests/integration/test_tables.py tests/integration/test_predict.py
coverage:
	rm -rf build-coverage && $(MKDIR_P) build-coverage && cd build-coverage && \
	"$(abs_top_srcdir)/configure" --quiet --disable-dependency-tracking --without-cuda CC=gcc \
		CFLAGS='-O0 --coverage' && \
	$(MAKE) --quiet -j"$$(nproc)" dml-coordinator dml-shard dml-replica libdml.so.0 && \
	programs=$$($(MAKE) -s --no-print-directory list-programs | tr ' ' '\n' | grep tests/unit/ | tr '\n' ' ') && \
	$(MAKE) --quiet -j"$$(nproc)" check TESTS= check_PROGRAMS="$$programs" && \
	$(MAKE) --quiet check-TESTS check_PROGRAMS= check_LIBRARIES= TESTS="$$programs $(COVERAGE_TESTS)" && \
	$(PYTHON) "$(abs_top_srcdir)/tests/coverage.py"
.PHONY: coverage
