noinst_LIBRARIES += libreplica.a
libreplica_a_SOURCES = \
	replica/accrual.c replica/accrual.h \
	replica/evaluation.c replica/state.h \
	replica/flush.c replica/flush.h \
	replica/replica.c replica/replica.h \
	replica/work.h \
	replica/workers.c replica/workers.h
REPLICA_LIBS = libreplica.a
