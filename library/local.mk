# The shared library: its own files, and those of base/, numeric/, data/, objective/ and model/ that
# reading and scoring models takes, compiled again for a library. What these files have besides, as
# writing models or gradients, the linker leaves out (--gc-sections).
lib_LTLIBRARIES = libdml.la
libdml_la_SOURCES = \
	library/calls.c library/calls.h \
	library/description.c \
	library/instead.c \
	library/model.c library/opened.h \
	library/scorer.c \
	base/bounds.c \
	base/bytes.c \
	base/error.c \
	base/file.c \
	base/hash.c \
	base/layout.c \
	base/memory.c \
	base/text.c \
	data/batch.c \
	data/blocks.c \
	data/cells.c \
	data/csv.c data/csv_date.c data/csv_kinds.c data/csv_layout.c data/csv_match.c \
	data/csv_twins.c \
	data/date.c \
	data/dictionary.c \
	data/format.c \
	data/json_lines.c \
	data/letters.c \
	data/number.c \
	data/properties.c \
	data/source_files.c \
	data/table.c data/table_json.c \
	data/words.c \
	model/calibration.c \
	model/crosses.c \
	model/description.c \
	model/families.c \
	model/margins.c \
	model/offsets.c \
	model/reader.c \
	model/response.c \
	model/tensors.c \
	model/terms.c \
	numeric/dense.c \
	numeric/exact.c \
	numeric/fixed.c \
	numeric/matrix.c \
	numeric/places.c \
	numeric/product.c \
	numeric/special.c \
	numeric/vector.c \
	objective/batch.c \
	objective/curvature.c \
	objective/dense.c \
	objective/distributions.c \
	objective/family.c \
	objective/kronecker.c \
	objective/linear.c \
	objective/listed.c \
	objective/loss_classes.c objective/loss_targets.c \
	objective/network.c objective/network_double.c objective/network_float.c \
	objective/network_gradient.c \
	objective/plugin.c \
	objective/sparse.c \
	objective/table.c \
	objective/triangle.c
libdml_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -ffunction-sections -fdata-sections \
	$(JANSSON_CFLAGS) $(XXHASH_CFLAGS) $(CRYPTO_CFLAGS)
libdml_la_LIBADD = $(JANSSON_LIBS) $(XXHASH_LIBS) $(CRYPTO_LIBS) $(UNISTRING_LIBS)
# The first number rises when a program would have to be compiled again: see doc/MODELS.md.
libdml_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined $(LIBRARY_LDFLAGS) \
	-Wl,--gc-sections -Wl,--version-script=$(srcdir)/library/libdml.map
EXTRA_libdml_la_DEPENDENCIES = $(srcdir)/library/libdml.map
EXTRA_DIST += library/libdml.map

dmlinclude_HEADERS += library/dml/model.h

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = library/dml.pc
