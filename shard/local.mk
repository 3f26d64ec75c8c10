noinst_LIBRARIES += libshard.a
libshard_a_SOURCES = \
	shard/block.h \
	shard/checkpoint.c shard/checkpoint.h shard/disk.h \
	shard/confined.c shard/confined.h \
	shard/evaluation.c \
	shard/factor.c shard/factor.h \
	shard/files.c shard/files.h \
	shard/folder.c shard/folder.h \
	shard/frame.c shard/frame.h \
	shard/interpreter.c shard/interpreter.h \
	shard/orthant.c \
	shard/programs.c \
	shard/registers.c shard/registers.h \
	shard/saving.c \
	shard/setup.c \
	shard/shard.c shard/shard.h shard/state.h \
	shard/staging.c shard/staging.h \
	shard/waiting.c \
	shard/writer.c shard/writer.h
SHARD_LIBS = libshard.a

bin_PROGRAMS += dml-shard
dml_shard_SOURCES = shard/main.c
dml_shard_LDADD = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)
