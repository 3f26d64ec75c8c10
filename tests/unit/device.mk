# unit tests of device/
EXTRA_DIST += tests/unit/device_fixture.h
if HAVE_CMOCKA
DEVICE_TESTS = tests/unit/test_device tests/unit/test_find tests/unit/test_choose
check_PROGRAMS += $(DEVICE_TESTS)
TESTS += $(DEVICE_TESTS)
tests_unit_test_device_SOURCES = tests/unit/test_device.c tests/unit/device_kernels.h tests/unit/device_kernels.def
if HAVE_CUDA
tests_unit_test_device_SOURCES += tests/unit/device_kernels.cu
endif
tests_unit_test_device_LDADD = $(DEVICE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_find_SOURCES = tests/unit/test_find.c
tests_unit_test_choose_SOURCES = tests/unit/test_choose.c
tests_unit_test_choose_LDADD = $(DEVICE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_choose_LDFLAGS = -Wl,--wrap=device_count
tests_unit_test_find_LDADD = $(DEVICE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif

# The kernels' threads and blocks beside each other, in a build with --without-cuda
# --enable-sanitizers=thread. It takes some minutes.
RACES_TESTS = tests/unit/test_device tests/unit/test_device_linear tests/unit/test_on_device \
	tests/unit/test_on_device_memory tests/unit/test_device_network \
	tests/unit/test_device_curvature tests/unit/test_shard_device \
	tests/unit/test_shard_device_failing
check-races: $(RACES_TESTS)
	@case '$(PROJECT_CFLAGS)' in *-fsanitize=*thread*) ;; *) \
		echo 'check-races: configure with --without-cuda --enable-sanitizers=thread' >&2; \
		exit 1;; esac
	@DML_DEVICE_RACES=1 $(MAKE) check-TESTS check_PROGRAMS= TESTS='$(RACES_TESTS)'
.PHONY: check-races
