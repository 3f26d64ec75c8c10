noinst_LIBRARIES += libshard.a
libshard_a_SOURCES = \
	shard/backend.h shard/backend_device.c shard/backend_host.c \
	shard/block.h \
	shard/checkpoint.c shard/checkpoint.h shard/disk.h \
	shard/disk.c \
	shard/evaluation.c \
	shard/factor.c shard/factor.h \
	shard/frame.c shard/frame.h \
	shard/interpreter.c shard/interpreter.h \
	shard/kernels.c shard/kernels.def \
	shard/orthant.c \
	shard/placing.c shard/placing.h \
	shard/programs.c \
	shard/registers.c shard/registers.h shard/resident.h \
	shard/saving.c \
	shard/setup.c \
	shard/shard.c shard/shard.h shard/state.h \
	shard/sweep.c shard/sweep_each.h shard/sweep_kernel.h shard/sweep_step.h shard/sweep_sums.h \
	shard/sweep_plan.c shard/sweep_plan.h \
	shard/writer.c shard/writer.h
if HAVE_CUDA
libshard_a_SOURCES += shard/kernels_cuda.cu
endif
SHARD_LIBS = libshard.a

bin_PROGRAMS += dml-shard
dml_shard_SOURCES = shard/main.c
dml_shard_LDADD = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)
