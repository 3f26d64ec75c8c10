#include "objective/device_arranged.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/device_linear_kernels.h"

/* A larger array goes to the device by itself: in the bundle the host would copy it once more. */
#define ARRAY_BYTES_MAX (UINT64_C(64) << 10)
#define BUNDLE_BYTES_MAX (UINT64_C(1) << 20)

void device_bundle_init(struct device_bundle *bundle, struct device *device,
                        enum device_queue queue) {
    *bundle = (struct device_bundle){.device = device, .queue = queue};
}

void device_bundle_release(struct device_bundle *bundle) {
    free(bundle->bytes);
    *bundle = (struct device_bundle){0};
}

int device_bundle_flush(struct device_bundle *bundle) {
    uint64_t length = bundle->length;
    bundle->length = 0;
    return length ? device_put(bundle->device, bundle->queue, bundle->to, bundle->bytes, length)
                  : 0;
}

int device_bundle_put(struct device_bundle *bundle, void *to, const void *from, uint64_t bytes) {
    uint64_t at = (bundle->length + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
    bool follows = bundle->length && (char *)to == bundle->to + at;
    int code = 0;
    if (!bytes)
        return 0;
    if (!follows || bytes > ARRAY_BYTES_MAX || at + bytes > BUNDLE_BYTES_MAX)
        code = device_bundle_flush(bundle);
    if (code || bytes > ARRAY_BYTES_MAX)
        return code ? code : device_put(bundle->device, bundle->queue, to, from, bytes);
    at = bundle->length ? at : 0;
    if (!at)
        bundle->to = to;
    if (at + bytes > bundle->capacity) {
        bundle->capacity = 2 * (at + bytes);
        bundle->bytes = memory_resize(bundle->bytes, bundle->capacity, 1);
    }
    memset(bundle->bytes + bundle->length, 0, at - bundle->length);
    memcpy(bundle->bytes + at, from, bytes);
    bundle->length = at + bytes;
    assert(bundle->length <= bundle->capacity);
    return 0;
}

struct device_columns {
    uint32_t features;
    uint32_t *number; /* of each feature: its place among the columns, from 1; 0: not used */
    uint32_t *list;
    size_t capacity;
};

struct device_columns *device_columns_new(uint32_t features) {
    struct device_columns *columns = memory_new(1, sizeof *columns);
    columns->features = features;
    return columns;
}

void device_columns_free(struct device_columns *columns) {
    if (!columns)
        return;
    free(columns->number);
    free(columns->list);
    free(columns);
}

/* Numbers the columns by first appearance, and counts in start[c + 1] the values of column c. */
static uint32_t find_columns(uint32_t *number, const struct rows *rows, uint32_t *column,
                             uint32_t *start) {
    uint32_t columns = 0;
    for (size_t v = 0; v < rows->start[rows->count]; v++) {
        uint32_t *mine = &number[rows->feature[v]];
        if (!*mine) {
            column[columns] = rows->feature[v];
            *mine = ++columns;
            start[*mine] = 0;
        }
        start[*mine]++;
    }
    return columns;
}

/* The values of each column, in the order of rows; start[c + 1] is left at the end of column c. */
static void place_values(const uint32_t *number, const struct rows *rows, uint32_t columns,
                         uint32_t *start, uint32_t *value) {
    uint32_t before = 0;
    start[0] = 0;
    for (uint32_t c = 1; c <= columns; c++) {
        uint32_t count = start[c];
        start[c] = before;
        before += count;
    }
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t v = rows->start[i]; v < rows->start[i + 1]; v++) {
            uint32_t *to = value + 2 * (size_t)start[number[rows->feature[v]]]++;
            to[0] = i;
            to[1] = v;
        }
}

const void *device_columns_list(struct device_columns *columns, const struct rows *rows,
                                uint32_t *count, size_t *bytes) {
    size_t values = rows->start[rows->count], most = 4 * values + 1; /* as many columns as values */
    if (!columns->number)
        columns->number = memory_new(columns->features, sizeof *columns->number);
    if (most > columns->capacity) {
        columns->list = memory_resize(columns->list, most, sizeof *columns->list);
        columns->capacity = most;
    }
    uint32_t *column = columns->list, *start = column + values;
    *count = find_columns(columns->number, rows, column, start);
    assert(*count <= values && *count <= columns->features);
    memmove(column + *count, start, (*count + 1) * sizeof *start);
    start = column + *count;
    place_values(columns->number, rows, *count, start, start + *count + 1);
    for (uint32_t c = 0; c < *count; c++)
        columns->number[column[c]] = 0;
    *bytes = (2 * (size_t)*count + 1 + 2 * values) * sizeof *columns->list;
    return columns->list;
}

#define ALIGNMENT BUNDLE_ALIGNMENT

/* With more columns than this for each value of a chunk nearly all columns are empty, and the
 * others short: gathering by column gains nothing then. */
#define COLUMNS_A_VALUE 8
#define COLUMN_VALUES_LEAST 4096

/* A slice may take this many times the memory of its values. */
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

/* Slices of very unequal rows are among the first; after them a slice is as long as the shortest
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
    assert(at >= rows->values);
}

/* ---- memory ---- */

/* Arrays one after the other. */
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
struct arranged_places {
    const struct rows *rows;
    const struct device_arrangement *arrangement;
    char *out, *in;
    struct arrays arrays;
    struct scratch scratch;
    struct device_chunk from;
};

static struct arranged_places places_of(const struct rows *rows,
                                        const struct device_arrangement *arrangement, void *scratch,
                                        void *memory) {
    struct arranged_places places = {.rows = rows,
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

static int put_rows(struct device_bundle *bundle, const struct arranged_places *places) {
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

static void describe(const struct arranged_places *places, struct device_chunk *chunk) {
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

int device_arrange(struct device_bundle *bundle, const struct rows *rows,
                   const struct device_arrangement *arrangement, void *scratch, void *memory,
                   struct device_chunk *chunk) {
    const struct arranged_places places = places_of(rows, arrangement, scratch, memory);
    describe(&places, chunk);
    int code = put_rows(bundle, &places);
    if (!code) {
        char *out = places.out;
        struct arrange_rows_arguments arguments = {
            places.from, *chunk, (void *)(out + places.arrays.feature), out + places.arrays.value};
        uint64_t threads = kernel_arrange_rows.threads;
        uint64_t blocks = (places.rows->count + threads - 1) / threads;
        code = device_launch(bundle->device, bundle->queue, &kernel_arrange_rows,
                             blocks < ARRANGE_BLOCKS ? blocks : ARRANGE_BLOCKS, &arguments);
    }
    if (!code && arrangement->by_column) {
        char *out = places.out;
        struct arrange_columns_arguments arguments = {places.from,
                                                      places.rows->features,
                                                      (void *)(places.in + places.scratch.next),
                                                      (void *)(out + places.arrays.column),
                                                      (void *)(out + places.arrays.column_row),
                                                      out + places.arrays.column_value};
        code = device_launch(bundle->device, bundle->queue, &kernel_arrange_columns, 1, &arguments);
    }
    return code;
}
