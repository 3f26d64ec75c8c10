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
