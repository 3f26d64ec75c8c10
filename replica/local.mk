noinst_LIBRARIES += libreplica.a
libreplica_a_SOURCES = \
	replica/accrual.c replica/accrual.h \
	replica/evaluation.c replica/state.h \
	replica/flush.c replica/flush.h \
	replica/mixing.c replica/mixing.h \
	replica/kernels.c replica/kernels.h \
	replica/replica.c replica/replica.h \
	replica/setup.c \
	replica/work.h \
	replica/workers.c replica/workers.h replica/workers_parts.h \
	replica/workers_device.c \
	replica/workers_threads.c
REPLICA_LIBS = libreplica.a

bin_PROGRAMS += dml-replica
dml_replica_SOURCES = replica/main.c
dml_replica_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(BASE_LIBS)
