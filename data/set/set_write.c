/* Writes a set: chunks are made by all threads, and counted in their order. */
#define _GNU_SOURCE
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/set/chunk_fill.h"
#include "data/set/columns.h"
#include "data/set/labels.h"
#include "data/set/offsets.h"
#include "data/set/plan.h"
#include "data/set/split.h"
#include "data/set/tiles.h"
#include "data/set/weights.h"
#include "numeric/clones.h"
#include "numeric/fixed.h"

struct set_writer {
    struct split split;
    struct columns columns;
    struct labels labels;
    struct row_weights row_weights;
    struct row_offsets row_offsets;
    struct chunk_plan plan;
    struct chunk_source source; /* of all these */
    struct chunk_window window; /* of a shuffled set: chunks that are filled */
    uint64_t window_bytes;
    struct container_writer container;
    struct set_facts facts;
    double *absolute_sum; /* Σ u·|value| of each column, and Σ u; u = fixed_weight() of the row */
    int16_t *exponent;    /* of each column, and of the intercept */

    pthread_mutex_t mutex; /* guards what follows, and absolute_sum */
    pthread_cond_t turn;
    uint32_t next_chunk, chunks_end, next_turn;
    int code; /* of the first failure */
    char *text;
};

/* ---- windows of a shuffled set ----
 *
 * As many training chunks as fit in memory beside the packs are filled at a time: for each such
 * window the packs are read once, in order. So a set that is larger than memory takes some passes
 * over them, and no read at a random place of the disk for every row. */

/* Less than the share of dirty pages (a tenth) from which on the system would write out pages that
 * are not complete, and write them again later. */
#define MEMORY_SHARE 12
#define WINDOW_BYTES_MIN (UINT64_C(256) << 20)

/* Bytes of a window, which is part of a mapped file: a share of the memory of this machine. What is
 * written does not depend on it. */
static uint64_t window_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t share = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / MEMORY_SHARE : 0;
    return share < WINDOW_BYTES_MIN ? WINDOW_BYTES_MIN : share;
}

/* A stage of the work: all threads take items until there are no more. The items of a stage write
 * to different places, so nothing else is shared; the end of threads_run() parts the stages, as
 * each reads what the one before wrote. */
struct window_stage {
    const struct chunk_source *source;
    const struct chunk_window *window;
    chunk_window_stage *work;
    uint32_t end;
    _Atomic uint32_t next;
};

static void *run_window_stage(void *context) {
    struct window_stage *stage = context;
    struct chunk_buffer buffer;
    chunk_buffer_init(&buffer);
    uint32_t item;
    while ((item = atomic_fetch_add(&stage->next, 1)) < stage->end)
        stage->work(&buffer, stage->source, stage->window, item);
    chunk_buffer_release(&buffer);
    return NULL;
}

/* ---- chunks ---- */

/* So many values ahead, the sum of a column is asked for: of wide data, most are far away. */
#define AHEAD 32

/* Adds the values of columns whose numbers have 64 bits. */
static void sum_wide(double *sum, const uint64_t *column, const void *value, enum value_type type,
                     uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        sum[column[i]] += fabs(value_at(type, value, i));
}

static inline void sum_sparse(double *sum, const uint32_t *feature, const void *value,
                              enum value_type type, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            __builtin_prefetch(&sum[feature[i + AHEAD]], 1);
        sum[feature[i]] += fabs(value_at(type, value, i));
    }
}

/* Adds the sizes of HALF values. */
LANES_INLINE void add_sizes(double *sum, enum value_type type, const void *value, uint64_t at) {
    half_lanes size, before;
    if (type == VALUE_FLOAT)
        half_load_floats(&size, (const float *)value + at);
    else
        memcpy(&size, (const double *)value + at, sizeof size);
    half_abs(&size);
    memcpy(&before, sum, sizeof before);
    before += size;
    memcpy(sum, &before, sizeof before);
}

LANES_INLINE void sum_dense(double *restrict sum, uint64_t columns, const void *value,
                            enum value_type type, uint64_t count) {
    for (uint64_t first = 0; first < count; first += columns) {
        uint64_t column = 0;
        for (; type != VALUE_BYTE && column + HALF <= columns; column += HALF)
            add_sizes(sum + column, type, value, first + column);
        for (; column < columns; column++)
            sum[column] += fabs(value_at(type, value, first + column));
    }
}

VECTOR_CLONES
static void sum_floats(double *sum, uint64_t columns, const void *value, uint64_t count) {
    sum_dense(sum, columns, value, VALUE_FLOAT, count);
}

VECTOR_CLONES
static void sum_doubles(double *sum, uint64_t columns, const void *value, uint64_t count) {
    sum_dense(sum, columns, value, VALUE_DOUBLE, count);
}

/* Adds rows with weights, of any kind. */
static void sum_weighted(struct set_writer *writer, const struct set_chunk *chunk,
                         const uint8_t *data) {
    struct set_chunk_layout layout = chunk_plan_layout(&writer->plan, chunk);
    const uint32_t *start = (const void *)(data + layout.start);
    const uint32_t *feature = (const void *)(data + layout.feature);
    const uint64_t *wide = writer->plan.wide ? (const void *)feature : NULL;
    const double *weight = (const void *)(data + layout.weight);
    uint64_t columns = writer->columns.count;
    double *sum = writer->absolute_sum;
    for (uint32_t row = 0; row < chunk->rows; row++) {
        double counted = fixed_weight(weight[row]);
        uint64_t i = writer->plan.dense ? row * columns : start[row];
        uint64_t end = writer->plan.dense ? i + columns : start[row + 1];
        for (uint64_t first = i; i < end; i++) {
            uint64_t column = writer->plan.dense ? i - first : wide ? wide[i] : feature[i];
            sum[column] += counted * fabs(value_at(chunk->type, data + layout.value, i));
        }
        sum[columns] += counted;
    }
}

/* Adds the chunk's Σ|value|. Floating-point sums depend on their order, so rows are added one after
 * the other and chunks in the order of their numbers (end_chunk()), whichever thread made them.
 * There is one loop for each type. */
static void sum_chunk(struct set_writer *writer, const struct set_chunk *chunk,
                      const uint8_t *data) {
    bool dense = writer->plan.dense;
    if (chunk->weighted)
        sum_weighted(writer, chunk, data);
    if (chunk->type == VALUE_ONES || chunk->weighted)
        return;
    struct set_chunk_layout layout = chunk_plan_layout(&writer->plan, chunk);
    const uint32_t *feature = (const void *)(data + layout.feature);
    const void *value = data + layout.value;
    uint64_t columns = writer->columns.count;
    double *sum = writer->absolute_sum;
    assert(!dense || chunk->values == chunk->rows * columns);
    if (dense && chunk->type == VALUE_BYTE)
        sum_dense(sum, columns, value, VALUE_BYTE, chunk->values);
    else if (dense && chunk->type == VALUE_FLOAT)
        sum_floats(sum, columns, value, chunk->values);
    else if (dense)
        sum_doubles(sum, columns, value, chunk->values);
    else if (writer->plan.wide)
        sum_wide(sum, (const void *)feature, value, chunk->type, chunk->values);
    else if (chunk->type == VALUE_FLOAT)
        sum_sparse(sum, feature, value, VALUE_FLOAT, chunk->values);
    else
        sum_sparse(sum, feature, value, chunk->type, chunk->values);
}

/* Waits until all chunks before this one are summed. The chunk before always has a thread that
 * works on it, as chunks are taken in order: nobody waits for ever. */
static void end_chunk(struct set_writer *writer, uint32_t number, const uint8_t *data, int code) {
    pthread_mutex_lock(&writer->mutex);
    while (writer->next_turn != number && !writer->code)
        pthread_cond_wait(&writer->turn, &writer->mutex);
    if (!writer->code && code) {
        writer->code = code;
        writer->text = memory_copy_string(error_text());
    }
    error_clear();
    assert(writer->code || writer->next_turn == number);
    if (!writer->code && !chunk_plan_is_held(&writer->plan, number))
        sum_chunk(writer, &writer->plan.chunk[number], data);
    writer->next_turn = number + 1;
    pthread_cond_broadcast(&writer->turn);
    pthread_mutex_unlock(&writer->mutex);
}

/* A chunk with its rows whole: in the window, or filled and written here. */
static const uint8_t *make_chunk(struct set_writer *writer, struct chunk_buffer *buffer,
                                 uint32_t number, int *code) {
    assert(number < writer->source.plan->chunks);
    const struct chunk_plan *plan = &writer->plan;
    struct set_chunk *chunk = &writer->plan.chunk[number];
    bool held = chunk_plan_is_held(plan, number), there = plan->shuffled && !held;
    if (!there)
        chunk_fill(buffer, &writer->source, chunk, held ? &plan->held : &plan->trained);
    const uint8_t *data = there ? writer->window.data + chunk->offset : buffer->data;
    if (plan->strips) {
        *code = tiles_write(buffer, &writer->plan, number, &writer->container);
        return data;
    }
    chunk->checksum = hash64(data, chunk->bytes);
    *code = there ? 0 : container_write(&writer->container, chunk->offset, data, chunk->bytes);
    return data;
}

static void *make_chunks(void *argument) {
    struct set_writer *writer = argument;
    struct chunk_buffer buffer;
    chunk_buffer_init(&buffer);
    for (;;) {
        pthread_mutex_lock(&writer->mutex);
        bool there = !writer->code && writer->next_chunk < writer->chunks_end;
        uint32_t number = there ? writer->next_chunk++ : 0;
        pthread_mutex_unlock(&writer->mutex);
        if (!there)
            break;
        int code;
        const uint8_t *data = make_chunk(writer, &buffer, number, &code);
        end_chunk(writer, number, data, code);
    }
    chunk_buffer_release(&buffer);
    return NULL;
}

/* Makes the chunks up to `end` that are not made. */
static int make_until(struct set_writer *writer, uint32_t end, unsigned threads) {
    uint32_t chunks = end - writer->next_chunk;
    assert(end >= writer->next_chunk && end <= writer->plan.chunks);
    writer->chunks_end = end;
    threads_run(threads < chunks ? threads : chunks, make_chunks, writer);
    return writer->code ? error_set(writer->code, "%s", writer->text) : 0;
}

/* The training chunks of a shuffled set, window by window, in a mapping of the file. */
static int make_windows(struct set_writer *writer, uint64_t bytes, unsigned threads) {
    struct chunk_plan *plan = &writer->plan;
    struct container_room room;
    int code = container_room(&writer->container, bytes, &room);
    uint32_t end = chunk_plan_trained(plan);
    for (uint32_t i = 0; i < end; i++)
        plan->chunk[i].offset += room.section.offset;
    while (!code && writer->next_chunk < end) {
        uint32_t first = writer->next_chunk, last = first;
        uint64_t filled = plan->chunk[first].bytes; /* a chunk at least, and as many as fit */
        while (last + 1 < end && filled + plan->chunk[last + 1].bytes <= writer->window_bytes)
            filled += plan->chunk[++last].bytes;
        writer->window = (struct chunk_window){
            .first = first, .end = last + 1, .data = (uint8_t *)room.data - room.section.offset};
        /* Fills a window of zeros on up to `threads` threads. */
        assert(first < writer->window.end && writer->window.end <= end);
        uint32_t blocks = writer->source.plan->trained.blocks;
        struct window_stage count = {&writer->source, &writer->window, chunk_window_count, blocks,
                                     0},
                            start = {&writer->source, &writer->window, chunk_window_start,
                                     writer->window.end, writer->window.first},
                            fill = {&writer->source, &writer->window, chunk_window_fill, blocks, 0};
        if (!writer->source.plan->dense) {
            threads_run(threads, run_window_stage, &count);
            threads_run(threads, run_window_stage, &start);
        }
        threads_run(threads, run_window_stage, &fill);
        code = make_until(writer, writer->window.end, threads);
    }
    container_forget(&room);
    return code;
}

static int make_all_chunks(struct set_writer *writer, unsigned threads) {
    struct chunk_plan *plan = &writer->plan;
    if (plan->strips) {
        tiles_place(&writer->source, plan, &writer->container, threads);
        return make_until(writer, plan->chunks, threads);
    }
    uint32_t trained = plan->shuffled ? chunk_plan_trained(plan) : 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->chunks; i++)
        plan->chunk[i].bytes = set_chunk_layout(&plan->chunk[i], plan->dense).bytes;
    for (uint32_t i = 0; i < trained; i++) {
        plan->chunk[i].offset = bytes;
        bytes += plan->chunk[i].bytes;
    }
    int code = trained ? make_windows(writer, bytes, threads) : 0;
    for (uint32_t i = trained; i < plan->chunks; i++)
        plan->chunk[i].offset = container_reserve(&writer->container, plan->chunk[i].bytes);
    return code ? code : make_until(writer, plan->chunks, threads);
}

/* ---- exponents ---- */

#define COLUMNS_OF_PART 65536

/* Finds those of some columns. */
static void find_some_exponents(void *context, unsigned part) {
    struct set_writer *writer = context;
    uint64_t columns = (uint64_t)writer->columns.count + 1,
             first = (uint64_t)part * COLUMNS_OF_PART;
    uint64_t end = first + COLUMNS_OF_PART < columns ? first + COLUMNS_OF_PART : columns;
    assert(first < end && end <= columns);
    bool ones = writer->plan.trained.type == VALUE_ONES;
    const uint64_t *count = writer->columns.values;
    double *sum = writer->absolute_sum;
    for (uint64_t i = first; i < end; i++) {
        /* The sums of unweighted ones need no look at the values. */
        if (!writer->row_weights.weighted && (ones || i + 1 == columns))
            sum[i] = (double)count[i];
        writer->exponent[i] = (int16_t)fixed_exponent(sum[i], count[i]);
    }
}

/* Without weights, sums out of range still tell how large derivatives can get. */
static int check_weighted_sums(const struct set_writer *writer) {
    for (uint64_t i = 0; i < writer->columns.count; i++)
        if (!isfinite(writer->absolute_sum[i]))
            return error_set(ERROR_DATA,
                             "column %llu: its values times the rows' weights leave the range of "
                             "numbers; scale the column",
                             (unsigned long long)writer->columns.id[i]);
    return 0;
}

/* Base exponents of the columns and, as of a column of ones, of the intercept. */
static int find_exponents(struct set_writer *writer, unsigned threads) {
    uint64_t columns = (uint64_t)writer->columns.count + 1;
    int code = writer->row_weights.weighted ? check_weighted_sums(writer) : 0, uniform = 0;
    if (code)
        return code;
    writer->columns.values[columns - 1] = writer->plan.trained.rows;
    writer->exponent = memory_new(columns, sizeof *writer->exponent);
    threads_share(threads, (unsigned)((columns + COLUMNS_OF_PART - 1) / COLUMNS_OF_PART),
                  find_some_exponents, writer);
    writer->facts.uniform = (uint8_t)fixed_uniform(columns, writer->exponent, writer->absolute_sum,
                                                   writer->columns.values, &uniform);
    writer->facts.uniform_exponent = uniform;
    return 0;
}

/* ---- the file ---- */

static struct set_weights weights_of(const struct set_writer *writer) {
    const struct row_weights *row_weights = &writer->row_weights;
    return (struct set_weights){.sum = row_weights->sum,
                                .holdout_sum = row_weights->held_sum,
                                .exponent = row_weights->exponent};
}

static size_t lists_bytes(const struct labels *labels) {
    return labels->list_start ? (labels->lists.count + (size_t)1) * sizeof(uint32_t) : 0;
}

static size_t listed_bytes(const struct labels *labels) {
    return labels->list_start ? labels->list_start[labels->lists.count] * sizeof(uint32_t) : 0;
}

static size_t centre_bytes(const struct columns *columns) {
    return columns->centre ? columns->count * sizeof *columns->centre : 0;
}

/* A hash of the set's contents, independent of the files they came from. */
static void make_fingerprint(struct set_writer *writer) {
    struct hash_stream *stream = hash_stream_new();
    struct set_facts facts = writer->facts;
    facts.rejected = facts.sources = 0;
    hash_stream_add(stream, &facts, sizeof facts);
    if (writer->row_weights.weighted) {
        struct set_weights weights = weights_of(writer);
        hash_stream_add(stream, &weights, sizeof weights);
    }
    if (writer->row_offsets.any)
        hash_stream_add(stream, &writer->row_offsets.summary, sizeof writer->row_offsets.summary);
    for (uint32_t i = 0; i < writer->plan.chunks; i++)
        hash_stream_add(stream, &writer->plan.chunk[i].checksum, sizeof(uint64_t));
    for (uint32_t i = 0; i < writer->plan.strips * writer->plan.chunks; i++)
        hash_stream_add(stream, &writer->plan.tile[i].checksum, sizeof(uint64_t));
    hash_stream_add(stream, writer->columns.id, writer->columns.count * sizeof(uint64_t));
    for (uint32_t i = 0; i < writer->labels.classes; i++) {
        const char *name = writer->labels.class_name[i];
        hash_stream_add(stream, name, strlen(name) + 1);
    }
    hash_stream_add(stream, writer->labels.list_start, lists_bytes(&writer->labels));
    hash_stream_add(stream, writer->labels.list_class, listed_bytes(&writer->labels));
    hash_stream_add(stream, writer->columns.centre, centre_bytes(&writer->columns));
    hash_stream_text(stream, writer->facts.fingerprint);
    hash_stream_free(stream);
}

static void fill_facts(struct set_writer *writer) {
    const struct chunk_plan *plan = &writer->plan;
    struct set_facts *facts = &writer->facts;
    assert(writer->next_turn == plan->chunks && plan->held_chunks <= plan->chunks);
    facts->rows = plan->trained.rows;
    facts->values = plan->values;
    facts->text_values = plan->trained.values;
    facts->label_max_abs = writer->labels.max_abs;
    facts->features = writer->columns.count;
    facts->chunks = plan->chunks;
    facts->classes = writer->labels.classes;
    facts->sources = writer->split.count;
    facts->type = plan->trained.type;
    facts->labels = writer->labels.kind;
    facts->dense = plan->dense;
    facts->strip_columns = plan->strip_columns;
    facts->block_rows = (uint8_t)plan->block_rows;
    facts->named = writer->columns.name != NULL;
    facts->rows_held_out = writer->split.held_out;
    facts->holdout_rows = plan->held.rows;
    facts->holdout_chunks = plan->held_chunks;
    for (uint32_t i = 0; i < writer->split.trained; i++)
        facts->rejected += writer->split.packs[i]->facts->rejected;
    make_fingerprint(writer);
}

static int write_sources(struct set_writer *writer) {
    const struct split *split = &writer->split;
    const char **text = memory_new(2 * (size_t)split->count, sizeof *text);
    for (uint32_t i = 0; i < split->count; i++) {
        text[2 * i] = pack_source(split->packs[i]);
        text[2 * i + 1] = pack_fingerprint(split->packs[i]);
    }
    int code =
        container_put_strings(&writer->container, SET_SOURCES, text, 2 * (uint64_t)split->count);
    free(text);
    return code;
}

static size_t of_class_bytes(const struct set_writer *writer) {
    const double *of_class = writer->row_weights.of_class;
    return of_class ? writer->labels.classes * sizeof *of_class : 0;
}

static int write_counts(struct container_writer *container, const struct columns *columns) {
    size_t bytes = columns->count * sizeof(uint64_t);
    const void *const part[] = {columns->values, columns->idf, columns->centre};
    size_t parts = sizeof part / sizeof *part, length = 0;
    if (!columns->idf && !columns->centre)
        return container_section(container, SET_COUNTS, columns->values, bytes);
    uint8_t *all = memory_new(parts, bytes);
    for (size_t i = 0; i < parts; i++)
        if (part[i]) {
            memcpy(all + length, part[i], bytes);
            length += bytes;
        }
    int code = container_section(container, SET_COUNTS, all, length);
    free(all);
    return code;
}

static int write_set_sections(struct set_writer *writer) {
    struct container_writer *container = &writer->container;
    const struct columns *columns = &writer->columns;
    const struct chunk_plan *plan = &writer->plan;
    const struct set_weights weights = weights_of(writer);
    const struct set_facts_stored stored = {writer->facts, writer->row_offsets.summary};
    bool targets = writer->labels.kind == LABEL_TARGET;
    struct label_summary summary;
    targets_finish(&writer->labels.targets, &summary);
    const struct container_part parts[] = {
        {SET_FACTS, &stored, writer->row_offsets.any ? sizeof stored : sizeof stored.facts},
        {SET_CHUNKS, plan->chunk, plan->chunks * sizeof *plan->chunk},
        {SET_TILES, plan->tile, plan->strips * plan->chunks * sizeof *plan->tile},
        {SET_IDS, columns->id, columns->count * sizeof *columns->id},
        {SET_ORDER, columns->order.wide ? (const void *)columns->order.wide : columns->order.narrow,
         columns->count * column_number_bytes(columns->count)},
        {SET_EXPONENTS, writer->exponent, (columns->count + 1) * sizeof *writer->exponent},
        {SET_WEIGHTS, &weights, writer->row_weights.weighted ? sizeof weights : 0},
        {SET_OF_CLASS, writer->row_weights.of_class, of_class_bytes(writer)},
        {SET_TARGETS, &summary, targets ? sizeof summary : 0},
        {SET_LISTS, writer->labels.list_start, lists_bytes(&writer->labels)},
        {SET_LISTED, writer->labels.list_class, listed_bytes(&writer->labels)},
    };
    int code = container_sections(container, parts, sizeof parts / sizeof *parts);
    if (!code)
        code = write_counts(container, columns);
    if (!code)
        code = container_put_strings(container, SET_NAMES, columns->name, columns->count);
    if (!code)
        code = container_put_strings(container, SET_CLASSES,
                                     (const char *const *)writer->labels.class_name,
                                     writer->labels.classes);
    if (!code)
        code = container_put_table(container, SET_TABLE, columns->table);
    if (!code)
        code = write_sources(writer);
    return code;
}

static int write_file(struct set_writer *writer, const char *path, unsigned threads) {
    int code = container_create(&writer->container, &set_kind, path);
    if (code)
        return code;
    writer->absolute_sum = memory_new(writer->columns.count + 1, sizeof(double));
    code = make_all_chunks(writer, threads);
    if (!code)
        code = find_exponents(writer, threads);
    if (!code) {
        fill_facts(writer);
        code = write_set_sections(writer);
    }
    if (!code)
        code = container_publish(&writer->container, path);
    container_discard(&writer->container);
    return code;
}

int set_write(const char *path, struct pack *const *packs, uint32_t count,
              const struct set_options *options) {
    struct set_writer writer = {.facts.holdout = options->holdout,
                                .facts.fold = options->fold.fold,
                                .window_bytes =
                                    options->window_bytes ? options->window_bytes : window_bytes(),
                                .source = {&writer.split, &writer.columns, &writer.labels,
                                           &writer.row_weights, &writer.plan},
                                .mutex = PTHREAD_MUTEX_INITIALIZER,
                                .turn = PTHREAD_COND_INITIALIZER};
    int code = split_make(&writer.split, packs, count, options);
    if (!code)
        code = columns_find(&writer.columns, &writer.split, options);
    if (!code)
        code = labels_find(&writer.labels, &writer.split, options);
    if (!code) {
        writer.facts.holdout_unseen = labels_leave_out(&writer.labels, &writer.split);
        code = row_weights_find(&writer.row_weights, &writer.split, &writer.labels,
                                options->class_weight);
    }
    if (!code) {
        row_offsets_find(&writer.row_offsets, &writer.split);
        const struct chunk_extras extras = {.weighted = writer.row_weights.weighted,
                                            .shifted = writer.row_offsets.any,
                                            .clustered = split_has_clusters(&writer.split)};
        code = chunk_plan_make(&writer.plan, &writer.split, &writer.columns, &extras, options);
    }
    if (!code)
        code = write_file(&writer, path, options->threads);
    row_weights_release(&writer.row_weights);
    chunk_plan_release(&writer.plan);
    labels_release(&writer.labels);
    columns_release(&writer.columns);
    split_release(&writer.split);
    free(writer.absolute_sum);
    free(writer.exponent);
    free(writer.text);
    return code;
}
