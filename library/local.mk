# The shared library: its own files, and the objects of base/, numeric/, data/, objective/ and model/ that
# reading and scoring models takes. They are those of the programs. What they have besides, as writing
# models or gradients, the linker leaves out (--gc-sections).
libdml_base = bounds bytes error file hash layout memory text
libdml_data = text/libdata_a-date text/libdata_a-letters text/libdata_a-number \
	table/libdata_a-spelling table/libdata_a-table table/libdata_a-table_column \
	table/libdata_a-table_json table/libdata_a-words \
	source/libdata_a-batch source/libdata_a-blocks source/libdata_a-dictionary \
	source/libdata_a-properties source/libdata_a-source csv/libdata_a-cells csv/libdata_a-csv \
	csv/libdata_a-csv_date csv/libdata_a-csv_folders csv/libdata_a-csv_index csv/libdata_a-csv_kinds \
	csv/libdata_a-csv_layout csv/libdata_a-csv_match csv/libdata_a-csv_twins csv/libdata_a-format \
	csv/libdata_a-json_lines
libdml_model = calibration crosses description explain families margins offsets reader response \
	tensors terms
libdml_numeric = dense exact fixed matrix places product special vector
libdml_objective = batch curvature dense distributions family kronecker linear listed \
	loss_classes loss_targets network network_double network_float network_gradient plugin \
	sparse table triangle
libdml_objects = \
	$(libdml_base:%=base/libbase_a-%.$(OBJEXT)) \
	$(libdml_data:%=data/%.$(OBJEXT)) \
	$(libdml_model:%=model/libmodel_a-%.$(OBJEXT)) \
	$(libdml_numeric:%=numeric/libnumeric_a-%.$(OBJEXT)) \
	$(libdml_objective:%=objective/libobjective_a-%.$(OBJEXT))

# In the build folder it has the name by which programs load it. That number rises when they would have to
# be compiled again: see doc/MODELS.md.
noinst_PROGRAMS += libdml.so.0
libdml_so_0_SOURCES = \
	library/calls.c library/calls.h \
	library/description.c \
	library/instead.c \
	library/model.c library/opened.h \
	library/scorer.c
libdml_so_0_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(JANSSON_CFLAGS)
libdml_so_0_LDADD = $(libdml_objects) $(JANSSON_LIBS) $(XXHASH_LIBS) $(CRYPTO_LIBS) $(UNISTRING_LIBS)
libdml_so_0_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libdml.so.0 $(LIBRARY_LDFLAGS) \
	-Wl,--gc-sections -Wl,--version-script=$(srcdir)/library/libdml.map
EXTRA_libdml_so_0_DEPENDENCIES = $(srcdir)/library/libdml.map

# Programs of the build folder find it there.
BESIDE_LIBDML = $(AM_LDFLAGS) -Wl,-rpath,$(abs_top_builddir)

# Programs that start find it by the first link, those that are linked by the second.
install-exec-local: libdml.so.0
	$(MKDIR_P) '$(DESTDIR)$(libdir)'
	$(INSTALL_PROGRAM) libdml.so.0 '$(DESTDIR)$(libdir)/libdml.so.0.0.0'
	cd '$(DESTDIR)$(libdir)' && ln -sf libdml.so.0.0.0 libdml.so.0 && ln -sf libdml.so.0 libdml.so
uninstall-local:
	cd '$(DESTDIR)$(libdir)' && rm -f libdml.so.0.0.0 libdml.so.0 libdml.so
EXTRA_DIST += library/libdml.map

dmlinclude_HEADERS += library/dml/model.h

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = library/dml.pc
