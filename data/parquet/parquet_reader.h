/* Reads the rows of a Parquet file into batches, as data/csv/format.h does for the text of CSV: a
 * table is what its CSV would be, cell by cell, as pyarrow.csv.write_csv() writes it.
 *
 * Rows are handed out in blocks, which stand for themselves: which pages of which columns a block
 * needs is found out in the file's order, from the headers of pages alone; pages are decompressed
 * beside each other by whoever needs them first, and kept while some block needs them. */
#ifndef DML_DATA_PARQUET_PARQUET_READER_H
#define DML_DATA_PARQUET_PARQUET_READER_H

#include "data/csv/format.h"
#include "data/parquet/parquet_block.h" /* struct parquet_block: the rows of a thread */
#include "data/source/batch.h"
#include "data/source/blocks.h"

/* *reader is NULL if `data`, whose first bytes are looked at, is no Parquet. Else finds out what
 * the columns are: *format is as csv_layout_find() makes it, of an own copy of the options. What is
 * no regular file is copied to a temporary one first. Blocks and options must outlive the reader.
 */
int parquet_reader_open(struct blocks *data, const struct source_options *options,
                        struct parquet_reader **reader, struct format *format);
void parquet_reader_close(struct parquet_reader *reader); /* harmless on NULL */

/* Finds out what the next rows need; false: there are no more. By one thread at a time. What the
 * block had before is given up. */
int parquet_reader_next(struct parquet_reader *reader, struct parquet_block *block, bool *there);

/* Turns a block into rows, the first of which is row `block`'s first of the file, from 1. Texts of
 * the rows are the block's. Safe from many threads. */
int parquet_reader_parse(struct parquet_reader *reader, const struct format *format,
                         struct parquet_block *block, struct batch *batch);

/* After the last row: reads what is left of the file, for its hash. */
int parquet_reader_end(struct parquet_reader *reader);

#endif
