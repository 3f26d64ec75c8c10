/* The reading pipeline. Each thread in turn takes the next block of text, parses it beside the
 * others, and waits for its turn to hand out the rows: blocks come in order, and no more of them
 * are in memory than there are threads.
 *
 * There are two locks, so that reading and decompressing go on while rows are handed out. A thread
 * holds one at a time, and takes the number of its block under the first: so the thread of each
 * earlier block is at work on it or waits for one before, and the wait for a turn always ends. */
#define _GNU_SOURCE
#include "data/source/source.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/array_reader.h"
#include "data/csv/format.h"
#include "data/parquet/parquet_reader.h"
#include "data/source/blocks.h"
#include "data/source/input.h"
#include "data/source/paths.h"
#include "data/source/zip.h"
#include "data/sparse_reader.h"

#define BEGINNING_BYTES 512 /* that tell what a file is */

struct source_reader {
    const char *path;
    const struct source_options *options;
    struct source_parts parts;
    void *context;
    struct source_report *report;
    struct format format;
    struct input *input;
    struct blocks blocks;
    struct array_reader *array;                 /* NULL: the file is no array */
    struct sparse_reader *sparse;               /* NULL: it is no sparse matrix */
    struct parquet_reader *parquet;             /* NULL: it is not Parquet */
    struct property_file *file[ROW_PROPERTIES]; /* or NULL; read by whoever hands out */

    pthread_mutex_t reading; /* guards input, blocks, first, next_block, stopped_reading */
    struct batch first;      /* the block that told the format, until a thread takes it */
    uint64_t next_block;
    bool stopped_reading;

    pthread_mutex_t handing; /* guards what follows, the report and calls of `take` */
    pthread_cond_t turn;
    uint64_t next_turn;
    int code;   /* of the first failure in the order of the file; 0: none yet */
    char *text; /* of that error */
};

/* Notes the first failure in the order of the file. Called with `handing` locked. */
static void fail(struct source_reader *reader, int code) {
    assert(code);
    if (reader->code)
        return;
    reader->code = code;
    reader->text = memory_copy_string(error_text());
    error_clear();
}

static int hand_out(struct source_reader *reader, struct batch *batch) {
    int code = 0;
    for (uint64_t i = 0; i < batch->bad_count && !code; i++)
        code = source_reject(reader->report, reader->path, reader->options->bad_lines_max,
                             batch->bad[i].line, batch->bad[i].why);
    for (int i = 0; i < ROW_PROPERTIES && !code; i++)
        if (reader->file[i])
            code = property_file_take(reader->file[i], batch);
    bool nothing = batch->row_count == 0 && !(reader->options->hands_out_bad && batch->bad_count);
    if (code || nothing)
        return code;
    batch_view(batch); /* with the numbers of those files */
    reader->report->rows += batch->row_count;
    reader->report->values += batch->value_count;
    return reader->parts.take(reader->context, &batch->rows);
}

/* What a thread has in hand. */
struct work {
    struct batch batch;
    struct parquet_block *block; /* what the batch is made of; NULL of other files */
};

/* Reads a block of text, of an array or of a sparse matrix. */
static int read_block(struct source_reader *reader, struct batch *batch, bool *there) {
    int code = reader->array    ? array_reader_next(reader->array, batch)
               : reader->sparse ? sparse_reader_next(reader->sparse, batch)
                                : blocks_next(&reader->blocks, batch);
    *there = batch->text_length > 0;
    return code;
}

/* Reads a block. Returns whether there is something to hand out: rows or an error, which must come
 * in its turn, too. */
static bool next_block(struct source_reader *reader, struct work *work, uint64_t *number,
                       int *code) {
    pthread_mutex_lock(&reader->reading);
    bool there = !reader->stopped_reading;
    if (there) {
        *number = reader->next_block++;
        *code = 0;
        if (reader->parquet) {
            *code = parquet_reader_next(reader->parquet, work->block, &there);
        } else if (*number) {
            *code = read_block(reader, &work->batch, &there);
        } else { /* it was read before */
            struct batch empty = work->batch;
            work->batch = reader->first;
            reader->first = empty;
            there = work->batch.text_length > 0;
        }
        reader->stopped_reading = *code || !there;
        there |= *code != 0;
    }
    pthread_mutex_unlock(&reader->reading);
    return there;
}

/* Parses a block and prepares its rows. */
static int begin_batch(struct source_reader *reader, struct work *work, uint64_t number) {
    struct batch *batch = &work->batch;
    int code = 0;
    if (reader->parquet)
        code = parquet_reader_parse(reader->parquet, &reader->format, work->block, batch);
    else if (reader->array)
        array_reader_parse(reader->array, batch);
    else if (reader->sparse)
        sparse_reader_parse(reader->sparse, batch);
    else
        format_parse(&reader->format, batch, number == 0 && reader->format.header);
    if (code)
        return code;
    const struct source_rows *rows = batch_view(batch);
    if (!reader->parts.prepare || rows->count == 0)
        return 0;
    return reader->parts.prepare(reader->context, rows);
}

/* Waits for the turn of block `number` and hands it out. Returns whether to go on. Blocks are taken
 * in order, so the block before always has a thread that works on it or waits for an earlier one.
 */
static bool take_turn(struct source_reader *reader, struct batch *batch, uint64_t number,
                      int code) {
    pthread_mutex_lock(&reader->handing);
    while (reader->next_turn != number && !reader->code)
        pthread_cond_wait(&reader->turn, &reader->handing);
    bool mine = !reader->code;
    assert(reader->code || reader->next_turn == number);
    if (mine && !code)
        code = hand_out(reader, batch);
    if (mine && code)
        fail(reader, code);
    error_clear();
    reader->next_turn = number + 1;
    bool go_on = !reader->code;
    pthread_cond_broadcast(&reader->turn);
    pthread_mutex_unlock(&reader->handing);
    return go_on;
}

/* Returns whether to go on. */
static bool end_batch(struct source_reader *reader, struct batch *batch) {
    if (!reader->parts.finish || batch->row_count == 0)
        return true;
    int code = reader->parts.finish(reader->context, &batch->rows);
    if (!code)
        return true;
    pthread_mutex_lock(&reader->handing);
    fail(reader, code);
    pthread_cond_broadcast(&reader->turn);
    pthread_mutex_unlock(&reader->handing);
    return false;
}

/* Several threads do this at once. Each has one block in hand, so no more blocks are in memory than
 * there are threads. */
static void *read_blocks(void *argument) {
    struct source_reader *reader = argument;
    struct work work = {.block = reader->parquet ? parquet_block_new() : NULL};
    uint64_t number = 0;
    int code = 0;
    batch_init(&work.batch);
    while (next_block(reader, &work, &number, &code)) {
        if (!code)
            code = begin_batch(reader, &work, number);
        if (!take_turn(reader, &work.batch, number, code) || !end_batch(reader, &work.batch))
            break;
    }
    batch_release(&work.batch);
    parquet_block_free(reader->parquet, work.block);
    return NULL;
}

static int finish_report(struct source_reader *reader) {
    struct source_report *report = reader->report;
    if (reader->code)
        return error_set(reader->code, "%s", reader->text);
    if (report->rows == 0 && reader->options->may_be_empty && !report->rejected)
        return input_check_unchanged(reader->input);
    if (report->rows == 0)
        return error_set(ERROR_DATA, "%s has no rows%s", reader->path,
                         reader->options->streams ? "" : ": leave it out until it has some");
    int code = reader->parquet  ? parquet_reader_end(reader->parquet)
               : reader->sparse ? sparse_reader_end(reader->sparse, report)
                                : 0;
    if (!code)
        code = input_check_unchanged(reader->input);
    if (!code && reader->array)
        code = array_reader_end(reader->array, report);
    for (int i = 0; i < ROW_PROPERTIES && !code; i++)
        if (reader->file[i])
            code = property_file_end(reader->file[i], report);
    if (code)
        return code;
    assert(reader->format.label <= reader->format.columns);
    report->stamp = input_stamp(reader->input);
    report->bytes = input_stored_bytes(reader->input);
    report->text_bytes = reader->blocks.text_bytes;
    input_hash(reader->input, report->hash);
    report->columns = reader->format.columns;
    report->names_doubtful = reader->format.names_doubtful;
    if (reader->format.label < reader->format.columns)
        report->label_column = reader->format.label + 1;
    return 0;
}

/* Refuses files of formats that are not read. A file of no bytes has no format: *empty. */
static int check_beginning(struct blocks *blocks, const struct source_options *options,
                           bool *empty) {
    const uint8_t *bytes;
    size_t length;
    int code = blocks_peek(blocks, BEGINNING_BYTES, &bytes, &length);
    *empty = !code && length == 0;
    return code ? code : foreign_check(blocks->path, options, bytes, length);
}

/* Finds out the format, and reads the first block. */
static int read_first(struct source_reader *reader) {
    static const struct record_rule lines = {0};
    struct format *format = &reader->format;
    struct batch *first = &reader->first;
    bool there, empty;
    int code = check_beginning(&reader->blocks, reader->options, &empty);
    if (code || empty)
        return code;
    code = parquet_reader_open(&reader->blocks, reader->options, &reader->parquet, format);
    if (code || reader->parquet)
        return code;
    code = sparse_reader_open(&reader->blocks, reader->options, &reader->sparse);
    if (!code && !reader->sparse)
        code = array_reader_open(&reader->blocks, reader->options, &reader->array);
    if (!code)
        code = read_block(reader, first, &there);
    if (!code && reader->sparse)
        *format = (struct format){.options = reader->options, .kind = FORMAT_LIBSVM};
    else if (!code && !reader->array)
        code = format_find(format, reader->path, first->text, first->text_length, reader->options);
    if (!code && format->kind == FORMAT_CSV)
        code = blocks_set_rule(&reader->blocks, &format->rule, BLOCK_TEXT_BYTES, first);
    if (!code && format->keys)
        code = blocks_set_rule(&reader->blocks, &lines, json_lines_block(format), first);
    if (code || !reader->array)
        return code;
    const struct array *array = array_reader_data(reader->array);
    *format = (struct format){.options = reader->options,
                              .kind = array->format,
                              .columns = array->width + 1,
                              .label = array->width};
    return 0;
}

static int read_opened(struct source_reader *reader, unsigned threads) {
    batch_init(&reader->first);
    blocks_init(&reader->blocks, reader->input, reader->path);
    int code = read_first(reader);
    if (!code) {
        reader->report->format = reader->format.kind;
        reader->report->column_names = reader->format.names; /* to keep */
        if (reader->format.table)
            reader->report->table = table_copy(reader->format.table);
        bool few = reader->blocks.ended && !reader->parquet && !reader->sparse;
        threads_run(few ? 1 : threads, read_blocks, reader);
        code = finish_report(reader);
    }
    blocks_release(&reader->blocks);
    batch_release(&reader->first);
    return code;
}

int source_read(const char *path, const struct source_options *options, unsigned threads,
                source_take *take, void *context, struct source_report *report) {
    const struct source_parts parts = {.take = take};
    return source_read_in_parts(path, options, threads, &parts, context, report);
}

int source_read_in_parts(const char *path, const struct source_options *options, unsigned threads,
                         const struct source_parts *parts, void *context,
                         struct source_report *report) {
    struct source_reader reader = {.path = options->streams ? source_name(path) : path,
                                   .options = options,
                                   .parts = *parts,
                                   .context = context,
                                   .report = report,
                                   .reading = PTHREAD_MUTEX_INITIALIZER,
                                   .handing = PTHREAD_MUTEX_INITIALIZER,
                                   .turn = PTHREAD_COND_INITIALIZER};
    assert(parts->take);
    *report = (struct source_report){0};
    int code = input_open(path, options->streams, &reader.input);
    if (code)
        return code;
    for (enum row_property i = 0; i < ROW_PROPERTIES && !code; i++) {
        const char *beside = options->property.file[i];
        if (beside)
            code = property_file_open(beside, path, i, &reader.file[i]);
    }
    if (!code)
        code = read_opened(&reader, threads);
    for (int i = 0; i < ROW_PROPERTIES; i++)
        property_file_close(reader.file[i]);
    array_reader_close(reader.array);
    sparse_reader_close(reader.sparse);
    parquet_reader_close(reader.parquet);
    input_close(reader.input);
    if (report->column_names)
        reader.format.names = NULL;
    format_release(&reader.format);
    free(reader.text);
    if (code)
        source_report_release(report);
    return code;
}

int source_columns(const char *path, const struct source_options *options, bool kinds,
                   struct table **table, bool *empty) {
    struct source_options names = *options;
    struct format format = {0};
    struct blocks blocks;
    struct batch batch;
    struct input *input;
    names.table.numbers_only = !kinds; /* else none are found out, nor told of */
    names.table.order = NULL;
    *table = NULL;
    int code = input_open(path, options->streams, &input);
    if (code)
        return code;
    batch_init(&batch);
    blocks_init(&blocks, input, path);
    const uint8_t *bytes;
    size_t length;
    struct parquet_reader *parquet = NULL;
    bool nothing;
    code = check_beginning(&blocks, options, &nothing);
    if (!code && !nothing)
        code = parquet_reader_open(&blocks, &names, &parquet, &format);
    if (!code)
        code = blocks_peek(&blocks, BEGINNING_BYTES, &bytes, &length);
    bool text = !code && !nothing && !parquet && array_format(bytes, length) == FORMAT_AUTO &&
                !zip_begins_with_array(bytes, length);
    if (text)
        code = blocks_next(&blocks, &batch);
    if (!code && text)
        code = format_find(&format, path, batch.text, batch.text_length, &names);
    if (!code && text && blocks.ended)
        nothing = !format_has_rows(&format, batch.text, batch.text_length);
    nothing &= options->may_be_empty;
    if (!code && format.table && !nothing)
        *table = table_copy(format.table);
    if (empty)
        *empty = !code && nothing;
    parquet_reader_close(parquet);
    blocks_release(&blocks);
    batch_release(&batch);
    input_close(input);
    format_release(&format);
    return code;
}

void source_report_release(struct source_report *report) {
    names_free(report->column_names);
    names_free(report->rejected_reasons);
    table_free(report->table);
    *report = (struct source_report){0};
}
