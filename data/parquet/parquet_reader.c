#define _GNU_SOURCE
#include "data/parquet/parquet_reader.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/parquet/parquet_block.h"

#define BEGINNING_BYTES 256 /* that tell what a file is */

/* About so many cells a block, so that they stay in the cache as doubles, but as many rows as make
 * its parts worth while. Nothing else decides how rows are split, so packs do not depend on the
 * number of threads. */
#define BLOCK_CELLS (16u << 10)
#define BLOCK_ROWS_MIN 64
#define BLOCK_ROWS_MAX 4096

int parquet_reader_end(struct parquet_reader *reader) {
    return spool_rest(reader->blocks);
}

/* ---- opening ---- */

static int check_options(const struct parquet_reader *reader) {
    if (reader->options.label.file)
        return error_set(
            ERROR_DATA,
            "%s is Parquet, which has its labels in its rows: it goes without the file "
            "of labels, %s",
            reader->blocks->path, reader->options.label.file);
    return 0;
}

static int open_file(struct parquet_reader *reader, struct format *format) {
    int code = check_options(reader);
    if (!code)
        code = spool_open(&reader->spool, reader->blocks);
    if (!code)
        code = parquet_open(&reader->file, reader->blocks->path, reader->spool.descriptor);
    if (code)
        return code;
    reader->cursor = memory_new(reader->file.columns, sizeof *reader->cursor);
    parquet_rewind(reader);
    code = parquet_layout_find(reader, format);
    if (code)
        return code;
    parquet_find_constants(reader, format);
    uint32_t rows = BLOCK_CELLS / (format->numbers + format->categories + 1);
    rows = rows > BLOCK_ROWS_MAX ? BLOCK_ROWS_MAX : rows;
    reader->block_rows = rows < BLOCK_ROWS_MIN ? BLOCK_ROWS_MIN : rows;
    return 0;
}

int parquet_reader_open(struct blocks *data, const struct source_options *options,
                        struct parquet_reader **opened, struct format *format) {
    const uint8_t *bytes;
    size_t length;
    *opened = NULL;
    int code = blocks_peek(data, BEGINNING_BYTES, &bytes, &length);
    if (code)
        return code;
    bool table = options->format == FORMAT_AUTO || options->format == FORMAT_PARQUET ||
                 source_is_table(options->format);
    if (!table || !parquet_begins(bytes, length))
        return options->format != FORMAT_PARQUET
                   ? 0
                   : error_set(ERROR_DATA, "%s is not Parquet, as `format` says", data->path);
    struct parquet_reader *reader = *opened = memory_new(1, sizeof *reader);
    reader->spool = (struct spool)SPOOL_NONE;
    reader->blocks = data;
    /* As text the table has a header, and commas between its cells. */
    reader->options = *options;
    reader->options.format = FORMAT_CSV;
    reader->options.syntax.header = CSV_HEADER_YES;
    reader->options.syntax.delimiter = ",";
    reader->options.syntax.quote = CSV_QUOTE_DOUBLE;
    reader->options.syntax.comment = NULL;
    pthread_mutex_init(&reader->mutex, NULL);
    pthread_cond_init(&reader->changed, NULL);
    return open_file(reader, format);
}

void parquet_reader_close(struct parquet_reader *reader) {
    if (!reader)
        return;
    if (reader->cursor)
        parquet_rewind(reader);
    parquet_first_forget(reader);
    for (uint32_t i = 0; reader->truths && i < reader->file.columns; i++)
        parquet_entries_release(&reader->truths[i]);
    free(reader->truths);
    free(reader->missing);
    free(reader->cursor);
    parquet_close(&reader->file);
    pthread_mutex_destroy(&reader->mutex);
    pthread_cond_destroy(&reader->changed);
    spool_close(&reader->spool);
    free(reader);
}

/* ---- blocks ---- */

int parquet_reader_next(struct parquet_reader *reader, struct parquet_block *block, bool *there) {
    int code = parquet_block_take(reader, block, reader->block_rows);
    *there = block->rows > 0;
    return code;
}
