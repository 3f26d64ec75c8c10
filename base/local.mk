noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	base/bounds.c base/bounds.h \
	base/bytes.c base/bytes.h \
	base/clock.c base/clock.h \
	base/codec.h \
	base/coordinates.c base/coordinates.h \
	base/cpus.c base/cpus.h \
	base/device_choice.c base/device_choice.h \
	base/error.c base/error.h \
	base/escape.c base/escape.h \
	base/failpoint.c base/failpoint.h base/failpoint.def \
	base/file.c base/file.h \
	base/filesystem.c base/filesystem.h \
	base/guard.c base/guard.h \
	base/groups.c base/groups.h \
	base/hash.c base/hash.h \
	base/heartbeat.c base/heartbeat.h \
	base/layout.c base/layout.h \
	base/limits.h \
	base/log.c base/log.h \
	base/memory.c base/memory.h \
	base/memory_limit.c base/memory_limit.h \
	base/mutant.h \
	base/nearest.c base/nearest.h \
	base/permutation.c base/permutation.h \
	base/process.c base/process.h \
	base/random.h base/rows.h \
	base/sha256.c base/sha256.h \
	base/terminal.c base/terminal.h \
	base/text.c base/text.h \
	base/thread.c base/thread.h
libbase_a_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS) $(CRYPTO_CFLAGS) $(JANSSON_CFLAGS)
BASE_LIBS = libbase.a $(XXHASH_LIBS) $(CRYPTO_LIBS) $(JANSSON_LIBS)
