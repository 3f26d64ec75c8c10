noinst_LIBRARIES += libshard.a
libshard_a_SOURCES = \
	shard/evaluation.c \
	shard/interpreter.c shard/interpreter.h \
	shard/programs.c \
	shard/registers.c shard/registers.h \
	shard/setup.c \
	shard/shard.c shard/shard.h shard/state.h \
	shard/staging.c shard/staging.h
SHARD_LIBS = libshard.a

bin_PROGRAMS += dml-shard
dml_shard_SOURCES = shard/main.c
dml_shard_LDADD = $(SHARD_LIBS) $(NUMERIC_LIBS) $(WIRE_LIBS) $(BASE_LIBS)
