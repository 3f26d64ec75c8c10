# unit tests of device/: a file is a suite of the program device_tests
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/device_tests
TESTS += tests/unit/device_tests
tests_unit_device_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_device.c tests/unit/test_find.c tests/unit/test_choose.c \
	tests/unit/device_fixture.h tests/unit/device_kernels.def tests/unit/device_kernels.h
if HAVE_CUDA
tests_unit_device_tests_SOURCES += tests/unit/device_kernels.cu
endif
tests_unit_device_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_device_tests_LDADD = $(DEVICE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_device_tests_LDFLAGS = -Wl,--wrap=device_count
endif

# The kernels' threads and blocks beside each other, in a build with --without-cuda
# --enable-sanitizers=thread. It takes some minutes.
RACES_TESTS = tests/unit/device_tests tests/unit/objective_tests tests/unit/shard_tests
check-races: $(RACES_TESTS)
	@case '$(PROJECT_CFLAGS)' in *-fsanitize=*thread*) ;; *) \
		echo 'check-races: configure with --without-cuda --enable-sanitizers=thread' >&2; \
		exit 1;; esac
	@export DML_DEVICE_RACES=1 && tests/unit/device_tests device && \
		tests/unit/objective_tests device_linear on_device on_device_memory device_network device_curvature && \
		tests/unit/shard_tests shard_device shard_device_failing
.PHONY: check-races
