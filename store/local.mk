noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	store/internal.h \
	store/invocations.c \
	store/models.c \
	store/open.c \
	store/read.c \
	store/run.c \
	store/schema.h \
	store/snapshot.c \
	store/statement.c \
	store/store.h
libstore_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS)
STORE_LIBS = libstore.a $(SQLITE_LIBS)
