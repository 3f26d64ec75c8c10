# unit tests of plugin/, and the libraries that they load
if HAVE_CMOCKA
PLUGIN_TESTS = tests/unit/test_plugin
check_PROGRAMS += $(PLUGIN_TESTS)
TESTS += $(PLUGIN_TESTS)
tests_unit_test_plugin_SOURCES = tests/unit/test_plugin.c
tests_unit_test_plugin_LDADD = $(PLUGIN_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
endif

plugin_cases = tests/unit/library.so tests/unit/library-version.so tests/unit/library-size.so \
	tests/unit/library-without.so
EXTRA_DIST += tests/unit/plugin_library.c
check_DATA = $(plugin_cases)
CLEANFILES += $(plugin_cases)
build_plugin_case = $(AM_V_GEN)$(MKDIR_P) tests/unit && $(CC) -I$(srcdir) -std=c17 -O1 -shared \
	-fPIC -ffp-contract=off -o $@ $(srcdir)/tests/unit/plugin_library.c
plugin_case_files = tests/unit/plugin_library.c plugin/dml/objective.h

tests/unit/library.so: $(plugin_case_files)
	$(build_plugin_case)
tests/unit/library-version.so: $(plugin_case_files)
	$(build_plugin_case) '-DHEAD=2,0,0,0,0,0'
tests/unit/library-size.so: $(plugin_case_files)
	$(build_plugin_case) '-DHEAD=1,8,0,0,0,0'
tests/unit/library-without.so: $(plugin_case_files)
	$(build_plugin_case) -DNO_SYMBOL
