noinst_LIBRARIES += libdata.a
libdata_a_SOURCES = \
	data/absent.c \
	data/array.c data/array.h \
	data/array_reader.c data/array_reader.h \
	data/batch.c data/batch.h \
	data/blocks.c data/blocks.h \
	data/chunk_fill.c data/chunk_fill.h \
	data/collecting.h data/columns.c \
	data/container.c data/container.h \
	data/csv.c data/csv_kinds.c data/csv_layout.c data/csv_layout.h data/csv_match.c \
	data/dictionary.c data/dictionary.h \
	data/digits.h \
	data/folds.c data/folds.h \
	data/foreign.c data/foreign.h \
	data/format.c data/format.h \
	data/holdout.c data/holdout.h \
	data/input.c data/input.h \
	data/inspect.c \
	data/labels.c data/label_lists.c \
	data/libsvm.c \
	data/list.c data/list.h \
	data/learn.c data/merge.h data/numbers.h \
	data/moments.c data/moments.h \
	data/number.c data/number.h \
	data/origins.c data/origins.h \
	data/pack.c data/pack.h data/pack_block.c data/pack_block.h data/pack_file.h data/pack_read.c data/pack_write.c \
	data/plan.c data/prepare.c \
	data/sample.c data/sample.h \
	data/scratch.c data/scratch.h \
	data/records.c data/records.h \
	data/set.c data/set.h data/set_file.h data/set_write.c \
	data/split.c \
	data/source.c data/source.h \
	data/source_paths.c \
	data/source_shape.c \
	data/table.c data/table.h \
	data/targets.c \
	data/weighing.c \
	data/weights.c data/weights.h \
	data/window.c data/window.h
libdata_a_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS) $(JANSSON_CFLAGS)
DATA_LIBS = libdata.a $(ZLIB_LIBS) $(ZSTD_LIBS) $(JANSSON_LIBS)
