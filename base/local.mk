noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	base/bounds.c base/bounds.h \
	base/bytes.c base/bytes.h \
	base/clock.c base/clock.h \
	base/codec.h \
	base/disk.c base/disk.h \
	base/error.c base/error.h \
	base/exhausted.c \
	base/failpoint.c base/failpoint.def base/failpoint.h \
	base/file.c base/file.h \
	base/hash.c base/hash.h \
	base/layout.c base/column_order.h base/layout.h \
	base/limits.h \
	base/log.c base/log.h \
	base/memory.c base/memory.h \
	base/notify.c base/notify.h \
	base/mutant.h \
	base/process.c base/process.h \
	base/random.c base/random.h \
	base/resources.c base/resources.h \
	base/rows.h \
	base/step_files.c base/step_files.h \
	base/text.c base/text.h \
	base/touched.c base/touched.h
libbase_a_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(XXHASH_CFLAGS) $(CRYPTO_CFLAGS) $(JANSSON_CFLAGS)
BASE_LIBS = libbase.a $(XXHASH_LIBS) $(CRYPTO_LIBS) $(JANSSON_LIBS)
