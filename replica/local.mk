noinst_LIBRARIES += libreplica.a
libreplica_a_SOURCES = \
	replica/flush.c replica/flush.h \
	replica/compute.c replica/compute.h \
	replica/copy.c \
	replica/evaluation.c replica/point.c replica/state.h \
	replica/needs.c replica/needs.h \
	replica/joined.c replica/joined.h \
	replica/keeper.c replica/keeper.h \
	replica/links.c replica/setup.c \
	replica/sum.c replica/sum.h \
	replica/workers.c replica/workers.h \
	replica/workers_device.c replica/workers_parts.h \
	replica/replica.c replica/replica.h
REPLICA_LIBS = libreplica.a

bin_PROGRAMS += dml-replica
dml_replica_SOURCES = replica/main.c base/allocate.c
dml_replica_LDADD = $(REPLICA_LIBS) $(WIRE_LIBS) $(DATA_LIBS) $(OBJECTIVE_LIBS) \
	$(NUMERIC_LIBS) $(BASE_LIBS)
