noinst_LIBRARIES += libcoordinator.a
libcoordinator_a_SOURCES = \
	coordinator/ask.c coordinator/ask.h \
	coordinator/check.c \
	coordinator/command.h \
	coordinator/control_client.c coordinator/control_client.h \
	coordinator/dataset.c coordinator/dataset.h \
	coordinator/job.c coordinator/job.h \
	coordinator/job_text.c coordinator/job_text.h \
	coordinator/jobs.c \
	coordinator/key.c coordinator/key.h \
	coordinator/key_table.c \
	coordinator/lock.c coordinator/lock.h \
	coordinator/options.c coordinator/options.h \
	coordinator/pack.c \
	coordinator/place.c coordinator/place.h \
	coordinator/report.c coordinator/report.h \
	coordinator/report_print.c \
	coordinator/settings.c \
	coordinator/status.c
libcoordinator_a_CFLAGS = $(AM_CFLAGS) $(CONFUSE_CFLAGS) $(JANSSON_CFLAGS)
COORDINATOR_LIBS = libcoordinator.a $(CONFUSE_LIBS) $(JANSSON_LIBS)

bin_PROGRAMS += dml-coordinator
dml_coordinator_SOURCES = coordinator/main.c
dml_coordinator_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(DATA_LIBS) $(BASE_LIBS)
