bin_PROGRAMS += dml-coordinator
dml_coordinator_SOURCES = coordinator/main.c
dml_coordinator_LDADD = $(BASE_LIBS)
