noinst_LIBRARIES += libcoordinator.a
libcoordinator_a_SOURCES = \
	coordinator/job.c coordinator/job.h \
	coordinator/key.c coordinator/key.h \
	coordinator/key_table.c \
	coordinator/settings.c
libcoordinator_a_CFLAGS = $(AM_CFLAGS) $(CONFUSE_CFLAGS) $(JANSSON_CFLAGS)
COORDINATOR_LIBS = libcoordinator.a $(CONFUSE_LIBS) $(JANSSON_LIBS)

bin_PROGRAMS += dml-coordinator
dml_coordinator_SOURCES = coordinator/main.c
dml_coordinator_LDADD = $(COORDINATOR_LIBS) $(BASE_LIBS)
