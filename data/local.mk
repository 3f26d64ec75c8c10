noinst_LIBRARIES += libdata.a
# The rooms in their order: a file may include files of the rooms before its own.
libdata_a_SOURCES = \
	data/text/date.c data/text/date.h data/text/json.c data/text/json.h data/text/letters.c \
	data/text/letters.h data/text/number.c data/text/number.h data/text/syntax.h data/text/zone.c data/text/zone.h \
	data/table/monotone.c data/table/options.h data/table/spelling.c data/table/spelling.h data/table/table.c \
	data/table/table.h data/table/table_column.c data/table/table_json.c data/table/words.c \
	data/table/words.h \
	data/remote/address.c data/remote/address.h data/remote/folder_walk.c data/remote/folder_walk.h \
	data/remote/libcurl.c data/remote/libcurl.h data/remote/listing.c data/remote/listing.h \
	data/remote/pattern.c data/remote/pattern.h data/remote/remote.c data/remote/remote.h \
	data/remote/request.c data/remote/request.h data/remote/stamp.h \
	data/source/array.c data/source/array.h data/source/batch.c data/source/batch.h data/source/blocks.c data/source/blocks.h \
	data/source/dictionary.c data/source/dictionary.h data/source/foreign.c data/source/input.c \
	data/source/folders.h data/source/input.h data/source/paths.c data/source/paths.h \
	data/source/properties.c data/source/properties.h data/source/property_files.c \
	data/source/rows.h data/source/source.c data/source/source.h data/source/source_folders.c data/source/spool.c data/source/spool.h \
	data/source/zip.c data/source/zip.h \
	data/csv/cells.c data/csv/csv.c data/csv/csv_carry.c data/csv/csv_date.c data/csv/csv_folders.c \
	data/csv/csv_index.c data/csv/csv_kinds.c data/csv/csv_layout.c data/csv/csv_match.c \
	data/csv/csv_twins.c data/csv/format.c data/csv/format.h data/csv/json_lines.c data/csv/layout.h data/csv/table_row.h \
	data/parquet/parquet.h data/parquet/parquet_arrow.c data/parquet/parquet_block.c \
	data/parquet/parquet_block.h data/parquet/parquet_cell.c data/parquet/parquet_cell.h \
	data/parquet/parquet_codec.c data/parquet/parquet_encoding.c data/parquet/parquet_float.c \
	data/parquet/parquet_footer.c data/parquet/parquet_hash.c data/parquet/parquet_layout.c \
	data/parquet/parquet_page.c data/parquet/parquet_reader.c data/parquet/parquet_reader.h \
	data/parquet/parquet_rows.c data/parquet/parquet_thrift.c \
	data/pack/container.c data/pack/container.h data/pack/pack.h data/pack/pack_file.c \
	data/pack/pack_file.h data/pack/pack_read.c data/pack/pack_write.c \
	data/set/bins.c data/set/bins.h data/set/centre.c data/set/centre.h data/set/chunk_cache.c \
	data/set/chunk_fill.c data/set/chunk_fill.h data/set/column_builder.h data/set/column_stats.c \
	data/set/columns.h data/set/columns_find.c data/set/cross.c data/set/holdout.c data/set/holdout.h \
	data/set/inspect.c data/set/labels.c data/set/labels.h data/set/mean_square.c data/set/moments.c \
	data/set/offsets.c data/set/offsets.h data/set/partial.c data/set/plan.c data/set/plan.h data/set/prefix.c \
	data/set/prepare.c data/set/row_walk.c data/set/row_walk.h data/set/sample.c data/set/set.c \
	data/set/set.h data/set/set_file.h data/set/set_write.c data/set/split.c data/set/split.h data/set/statistics.h \
	data/set/tiles.c data/set/tiles.h data/set/weigh_words.c data/set/weights.c data/set/weights.h \
	data/array_reader.c data/array_reader.h data/pipeline.c data/profile.c data/profile.h data/sparse_reader.c \
	data/sparse_reader.h
libdata_a_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS) $(SNAPPY_CFLAGS) $(LZ4_CFLAGS) $(JANSSON_CFLAGS) \
	$(CURL_CFLAGS)
DATA_LIBS = libdata.a $(ZLIB_LIBS) $(ZSTD_LIBS) $(SNAPPY_LIBS) $(LZ4_LIBS) $(JANSSON_LIBS) $(UNISTRING_LIBS)
