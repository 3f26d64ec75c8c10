noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	store/internal.h store/schema.h store/store.h \
	store/copy.c store/models.c store/open.c store/progress.c store/read.c store/run.c store/saved.c \
	store/saved_read.c store/snapshot.c store/statement.c store/sweeps.c
libstore_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS)
STORE_LIBS = libstore.a $(SQLITE_LIBS)
