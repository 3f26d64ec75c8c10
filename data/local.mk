noinst_LIBRARIES += libdata.a
libdata_a_SOURCES = \
	data/address.c data/address.h \
	data/array.c data/array.h \
	data/array_reader.c \
	data/batch.c data/batch.h \
	data/blocks.c data/blocks.h \
	data/cells.c \
	data/centre.c \
	data/spelling.c data/spelling.h \
	data/chunk_cache.c \
	data/chunk_fill.c \
	data/bins.c data/bins.h \
	data/column_stats.c \
	data/columns.c \
	data/container.c data/container.h \
	data/cross.c \
	data/date.c data/date.h \
	data/csv.c data/csv_carry.c data/csv_date.c data/csv_folders.c data/csv_index.c data/csv_kinds.c data/csv_layout.c \
	data/csv_match.c data/csv_twins.c \
	data/dictionary.c data/dictionary.h \
	data/folder_walk.c data/folder_walk.h \
	data/foreign.c \
	data/format.c data/format.h \
	data/holdout.c data/holdout.h \
	data/input.c data/input.h \
	data/inspect.c \
	data/json.c data/json.h data/json_lines.c \
	data/labels.c \
	data/libcurl.c data/libcurl.h \
	data/listing.c data/listing.h \
	data/merge.h \
	data/letters.c data/letters.h \
	data/monotone.c \
	data/mean_square.c \
	data/moments.c \
	data/pattern.c data/pattern.h \
	data/prefix.c \
	data/number.c data/number.h \
	data/offsets.c \
	data/pack_read.c data/pack.h data/pack_file.c data/pack_file.h data/pack_write.c \
	data/parquet.h data/parquet_block.c data/parquet_block.h \
	data/parquet_cell.c data/parquet_cell.h data/parquet_codec.c data/parquet_encoding.c \
	data/parquet_arrow.c \
	data/parquet_float.c data/parquet_footer.c data/parquet_hash.c data/parquet_layout.c \
	data/parquet_page.c \
	data/parquet_reader.c data/parquet_reader.h data/parquet_rows.c data/parquet_thrift.c \
	data/plan.c \
	data/prepare.c \
	data/profile.c data/profile.h \
	data/properties.c data/property_files.c \
	data/remote.c data/remote.h data/request.c data/request.h \
	data/sample.c \
	data/set.c data/set.h data/set_file.h data/set_write.c \
	data/pipeline.c data/source.h data/source_files.c data/source_folders.c \
	data/split.c \
	data/table.c data/table.h data/table_json.c data/table_column.c \
	data/tiles.c \
	data/weigh_words.c \
	data/zone.c data/zone.h \
	data/words.c data/words.h
libdata_a_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS) $(SNAPPY_CFLAGS) $(LZ4_CFLAGS) $(JANSSON_CFLAGS) \
	$(CURL_CFLAGS)
DATA_LIBS = libdata.a $(ZLIB_LIBS) $(ZSTD_LIBS) $(SNAPPY_LIBS) $(LZ4_LIBS) $(JANSSON_LIBS) $(UNISTRING_LIBS)
