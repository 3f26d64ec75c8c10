# unit tests of library/: they know of it what dml/model.h says, and use the shared library
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/library_tests
TESTS += tests/unit/library_tests
tests_unit_library_tests_SOURCES = tests/unit/suites.c tests/unit/suites.h \
	tests/unit/test_library.c tests/unit/test_library_damage.c tests/unit/library_fixture.h
tests_unit_library_tests_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/library
tests_unit_library_tests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_library_tests_LDFLAGS = $(BESIDE_LIBDML)
tests_unit_library_tests_LDADD = libdml.so.0 $(CMOCKA_LIBS)
endif
