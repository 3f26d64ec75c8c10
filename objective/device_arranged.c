#include "objective/device_arranged.h"

#include <stdlib.h>

#include "base/memory.h"
#include "objective/device_linear_kernels.h"

#define ALIGNMENT BUNDLE_ALIGNMENT

/* With more columns for each value of a chunk than that, nearly all columns would be empty, and the
 * others short; with fewer values there is nothing to be won. */
#define COLUMNS_A_VALUE 8
#define COLUMN_VALUES_LEAST 4096

/* A slice may take so many times the memory of its values. */
#define SLICE_WASTE 2

#define ARRANGE_BLOCKS 64

bool device_arranged_by_column(const struct rows *rows) {
    return rows->values >= COLUMN_VALUES_LEAST && rows->features <= COLUMNS_A_VALUE * rows->values;
}

/* ---- rows ---- */

static uint32_t length_of(const struct rows *rows, uint32_t row) {
    return rows->start[row + 1] - rows->start[row];
}

/* By falling length, and those of one length by their number. */
static void find_order(const struct rows *rows, uint32_t *order) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        longest = length_of(rows, i) > longest ? length_of(rows, i) : longest;
    uint32_t *next = memory_new((size_t)longest + 1, sizeof *next); /* of a length: its place */
    for (uint32_t i = 0; i < rows->count; i++)
        next[length_of(rows, i)]++;
    uint32_t before = 0;
    for (uint32_t length = longest + 1; length-- > 0;) {
        uint32_t count = next[length];
        next[length] = before;
        before += count;
    }
    for (uint32_t i = 0; i < rows->count; i++)
        order[next[length_of(rows, i)]++] = i;
    free(next);
}

/* What the values of a slice take, and how many there are. */
static uint64_t slice_room(const struct rows *rows, const uint32_t *order, uint32_t first) {
    return (uint64_t)length_of(rows, order[first]) * SLICE_ROWS;
}

static uint64_t slice_values(const struct rows *rows, const uint32_t *order, uint32_t first) {
    uint64_t values = 0;
    for (uint32_t p = first; p < rows->count && p < first + SLICE_ROWS; p++)
        values += length_of(rows, order[p]);
    return values;
}

/* Slices of very unequal rows are among the first; behind them a slice is as long as the shortest
 * row before it, at most. */
static void place_rows(struct device_arrangement *arrangement, const struct rows *rows) {
    const uint32_t *order = arrangement->order;
    uint32_t first = 0;
    uint64_t at = 0;
    for (; first < rows->count &&
           slice_room(rows, order, first) > SLICE_WASTE * slice_values(rows, order, first);
         first += SLICE_ROWS)
        for (uint32_t p = first; p < rows->count && p < first + SLICE_ROWS; p++) {
            arrangement->at[p] = (uint32_t)at;
            at += length_of(rows, order[p]);
        }
    arrangement->straight = first;
    at = (at + SLICE_ROWS - 1) / SLICE_ROWS * SLICE_ROWS;
    for (; first < rows->count; first += SLICE_ROWS) {
        for (uint32_t p = first; p < rows->count && p < first + SLICE_ROWS; p++)
            arrangement->at[p] = (uint32_t)at + (p - first);
        at += slice_room(rows, order, first);
    }
    arrangement->room = at;
}

/* ---- memory ---- */

/* Arrays one behind the other. */
static uint64_t append(uint64_t *bytes, uint64_t count, uint64_t size) {
    uint64_t at = *bytes;
    *bytes += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* Where the arrays of a chunk are in its memory. */
struct arrays {
    uint64_t start, order, at, feature, value, column, column_row, column_value, bytes;
};

static struct arrays arrays_of(const struct device_arrangement *arrangement,
                               const struct rows *rows) {
    const uint64_t word = sizeof(uint32_t), value = value_bytes(rows->type);
    const uint64_t columns = arrangement->by_column ? column_values_room(rows->values) : 0;
    struct arrays arrays = {0};
    arrays.start = append(&arrays.bytes, (uint64_t)rows->count + 1, word);
    arrays.order = append(&arrays.bytes, rows->count, word);
    arrays.at = append(&arrays.bytes, rows->count, word);
    arrays.feature = append(&arrays.bytes, arrangement->room, word);
    arrays.value = append(&arrays.bytes, arrangement->room, value);
    arrays.column = append(&arrays.bytes, columns, word);
    arrays.column_row = append(&arrays.bytes, columns, word);
    arrays.column_value = append(&arrays.bytes, columns, value);
    return arrays;
}

void device_arrangement_init(struct device_arrangement *arrangement, const struct rows *rows,
                             bool by_column) {
    *arrangement = (struct device_arrangement){.by_column = by_column && rows->values};
    arrangement->order = memory_new(rows->count, sizeof(uint32_t));
    arrangement->at = memory_new(rows->count, sizeof(uint32_t));
    find_order(rows, arrangement->order);
    place_rows(arrangement, rows);
    arrangement->bytes = arrays_of(arrangement, rows).bytes;
}

void device_arrangement_release(struct device_arrangement *arrangement) {
    free(arrangement->order);
    free(arrangement->at);
    *arrangement = (struct device_arrangement){0};
}

/* The chunk as it is read. */
struct scratch {
    uint64_t feature, value, next, bytes;
};

static struct scratch scratch_of(const struct rows *rows, bool by_column) {
    struct scratch scratch = {0};
    scratch.feature = append(&scratch.bytes, rows->values, sizeof(uint32_t));
    scratch.value = append(&scratch.bytes, rows->values, value_bytes(rows->type));
    scratch.next = append(&scratch.bytes, by_column ? rows->features : 0, sizeof(uint32_t));
    return scratch;
}

uint64_t device_arrange_scratch(const struct device_arrangement *arrangement,
                                const struct rows *rows) {
    return scratch_of(rows, arrangement->by_column).bytes;
}

/* ---- on the device ---- */

/* Where everything of a chunk is; in the scratch memory `from` is the chunk as it is read. */
struct places {
    const struct rows *rows;
    const struct device_arrangement *arrangement;
    char *out, *in;
    struct arrays arrays;
    struct scratch scratch;
    struct device_chunk from;
};

static struct places places_of(const struct rows *rows,
                               const struct device_arrangement *arrangement, void *scratch,
                               void *memory) {
    struct places places = {.rows = rows,
                            .arrangement = arrangement,
                            .out = memory,
                            .in = scratch,
                            .arrays = arrays_of(arrangement, rows),
                            .scratch = scratch_of(rows, arrangement->by_column)};
    places.from = (struct device_chunk){
        .rows = rows->count,
        .values = rows->values,
        .type = rows->type,
        .start = (void *)(places.out + places.arrays.start),
        .feature = (void *)(places.in + places.scratch.feature),
        .value = rows->type == VALUE_ONES ? NULL : places.in + places.scratch.value};
    return places;
}

static int put_rows(struct device_bundle *bundle, const struct places *places) {
    const struct rows *rows = places->rows;
    const uint64_t word = sizeof(uint32_t), values = rows->values;
    const struct {
        char *to;
        const void *from;
        uint64_t bytes;
    } parts[] = {
        {places->out + places->arrays.start, rows->start, ((uint64_t)rows->count + 1) * word},
        {places->out + places->arrays.order, places->arrangement->order, rows->count * word},
        {places->out + places->arrays.at, places->arrangement->at, rows->count * word},
        {places->in + places->scratch.feature, rows->feature, values * word},
        {places->in + places->scratch.value, rows->value, values * value_bytes(rows->type)},
    };
    int code = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !code; i++)
        code = device_bundle_put(bundle, parts[i].to, parts[i].from, parts[i].bytes);
    return code ? code : device_bundle_flush(bundle);
}

static void describe(const struct places *places, struct device_chunk *chunk) {
    const struct arrays *arrays = &places->arrays;
    const bool ones = places->rows->type == VALUE_ONES, columns = places->arrangement->by_column;
    char *out = places->out;
    chunk->rows = places->rows->count;
    chunk->values = places->rows->values;
    chunk->type = places->rows->type;
    chunk->straight = places->arrangement->straight;
    chunk->start = places->from.start;
    chunk->feature = (void *)(out + arrays->feature);
    chunk->value = ones ? NULL : out + arrays->value;
    chunk->order = (void *)(out + arrays->order);
    chunk->at = (void *)(out + arrays->at);
    chunk->column = columns ? (void *)(out + arrays->column) : NULL;
    chunk->column_row = columns ? (void *)(out + arrays->column_row) : NULL;
    chunk->column_value = columns && !ones ? out + arrays->column_value : NULL;
}

static int arrange_rows(struct device *device, enum device_queue queue, const struct places *places,
                        const struct device_chunk *chunk) {
    char *out = places->out;
    struct arrange_rows_arguments arguments = {
        places->from, *chunk, (void *)(out + places->arrays.feature), out + places->arrays.value};
    uint64_t threads = kernel_arrange_rows.threads;
    uint64_t blocks = (places->rows->count + threads - 1) / threads;
    return device_launch(device, queue, &kernel_arrange_rows,
                         blocks < ARRANGE_BLOCKS ? blocks : ARRANGE_BLOCKS, &arguments);
}

static int arrange_columns(struct device *device, enum device_queue queue,
                           const struct places *places) {
    char *out = places->out;
    struct arrange_columns_arguments arguments = {places->from,
                                                  places->rows->features,
                                                  (void *)(places->in + places->scratch.next),
                                                  (void *)(out + places->arrays.column),
                                                  (void *)(out + places->arrays.column_row),
                                                  out + places->arrays.column_value};
    return device_launch(device, queue, &kernel_arrange_columns, 1, &arguments);
}

int device_arrange(struct device_bundle *bundle, const struct rows *rows,
                   const struct device_arrangement *arrangement, void *scratch, void *memory,
                   struct device_chunk *chunk) {
    const struct places places = places_of(rows, arrangement, scratch, memory);
    describe(&places, chunk);
    int code = put_rows(bundle, &places);
    if (!code)
        code = arrange_rows(bundle->device, bundle->queue, &places, chunk);
    if (!code && arrangement->by_column)
        code = arrange_columns(bundle->device, bundle->queue, &places);
    return code;
}
