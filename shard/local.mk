noinst_LIBRARIES += libshard.a
libshard_a_SOURCES = \
	shard/apart.c \
	shard/checkpoint.c shard/checkpoint.h \
	shard/confined.c shard/confined.h \
	shard/covariance.c shard/covariance_make.c shard/covariance.h \
	shard/covariance_rank.c shard/covariance_rank.h \
	shard/device.c shard/kernels.def shard/pass_kernel.h \
	shard/evaluation.c \
	shard/factor.c shard/factor_make.c shard/factor.h \
	shard/host.c \
	shard/limits.c shard/limits.h \
	shard/listed.c shard/listed.h \
	shard/pass_plan.c shard/pass_plan.h \
	shard/placing.c shard/placing.h \
	shard/programs.c shard/programs.h \
	shard/registers.c shard/registers.h \
	shard/rows.c shard/rows.h shard/rows_measure.c shard/rows_measure.h \
	shard/rows_second.c shard/rows_second.h \
	shard/saving.c \
	shard/scaling.c shard/scaling.h \
	shard/setup.c \
	shard/shard.c shard/shard.h shard/state.h \
	shard/sparse_step.c shard/sparse_step.h \
	shard/writer.c shard/writer.h
SHARD_LIBS = libshard.a $(OBJECTIVE_LIBS)

bin_PROGRAMS += dml-shard
dml_shard_SOURCES = shard/main.c base/allocate.c
dml_shard_LDADD = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)
