#include "data/chunk_fill.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void chunk_buffer_init(struct chunk_buffer *buffer) {
    *buffer = (struct chunk_buffer){0};
    bytes_init(&buffer->keys);
}

void chunk_buffer_release(struct chunk_buffer *buffer) {
    memory_unmap(buffer->data, buffer->capacity);
    bytes_release(&buffer->keys);
}

static void reserve(struct chunk_buffer *buffer, size_t bytes) {
    if (buffer->capacity < bytes) {
        memory_unmap(buffer->data, buffer->capacity);
        buffer->data = memory_map(bytes);
        buffer->capacity = bytes;
    }
    memset(buffer->data, 0, bytes);
}

/* The arrays of a chunk being filled, and the number of values in it so far. */
struct filling {
    const struct columns *columns;
    enum value_type type;
    uint32_t *start, *feature;
    void *value;
    double *label;
    uint64_t values;
};

static void put_value(const struct filling *filling, uint64_t at, double value) {
    if (filling->type == VALUE_FLOAT)
        ((float *)filling->value)[at] = (float)value;
    else if (filling->type == VALUE_DOUBLE)
        ((double *)filling->value)[at] = value;
}

#define INSERTION_KEYS 12

static void sort_few(uint64_t *key, size_t count) {
    for (size_t i = 1; i < count; i++) {
        uint64_t moving = key[i];
        size_t j = i;
        for (; j && key[j - 1] > moving; j--)
            key[j] = key[j - 1];
        key[j] = moving;
    }
}

/* A merge sort; `scratch` has room for as many keys. */
static void sort_keys(uint64_t *key, uint64_t *scratch, size_t count) {
    if (count <= INSERTION_KEYS) {
        sort_few(key, count);
        return;
    }
    size_t half = count / 2, left = 0, right = half;
    sort_keys(key, scratch, half);
    sort_keys(key + half, scratch, count - half);
    if (key[half - 1] <= key[half])
        return;
    memcpy(scratch, key, half * sizeof *key);
    for (size_t i = 0; left < half; i++) {
        bool from_right = right < count && key[right] < scratch[left];
        key[i] = from_right ? key[right] : scratch[left];
        right += from_right;
        left += !from_right;
    }
}

static uint32_t column_of(const struct filling *filling, const struct row_walk *walk,
                          uint64_t first, uint64_t i) {
    return filling->columns->of_pack[walk->pack][pack_feature(&walk->rows, first, i)];
}

/* Sorts by keys: the column in the upper half, the place in the row in the lower. Values of
 * features that are not columns are dropped. */
static void fill_sparse_row(struct chunk_buffer *buffer, struct filling *filling,
                            const struct row_walk *walk) {
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first), count = 0;
    bytes_clear(&buffer->keys);
    uint64_t *key = bytes_extend(&buffer->keys, 2 * (end - first) * sizeof *key);
    for (uint64_t i = first; i < end; i++) {
        uint32_t column = column_of(filling, walk, first, i);
        if (column != DICTIONARY_NONE)
            key[count++] = (uint64_t)column << 32 | (i - first);
    }
    sort_keys(key, key + count, count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = first + (key[i] & UINT32_MAX);
        filling->feature[filling->values] = (uint32_t)(key[i] >> 32);
        put_value(filling, filling->values++, pack_value(&walk->rows, from));
    }
}

static void fill_dense_row(struct filling *filling, const struct row_walk *walk) {
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    for (uint64_t i = first; i < end; i++) {
        uint32_t column = column_of(filling, walk, first, i);
        if (column != DICTIONARY_NONE)
            put_value(filling, filling->values + column, pack_value(&walk->rows, i));
    }
    filling->values += filling->columns->count;
}

void chunk_fill(struct chunk_buffer *buffer, const struct set_chunk *chunk,
                const struct split *split, const struct plan_part *part, bool dense,
                const struct columns *columns, const struct labels *labels) {
    struct set_chunk_layout layout = set_chunk_layout(chunk, dense);
    reserve(buffer, layout.bytes);
    struct filling filling = {
        .columns = columns,
        .type = (enum value_type)chunk->type,
        .start = (void *)(buffer->data + layout.start),
        .feature = (void *)(buffer->data + layout.feature),
        .value = buffer->data + layout.value,
        .label = (void *)(buffer->data + layout.label),
    };
    struct row_walk walk = row_walk_from(split, part, chunk->first_row);
    for (uint32_t row = 0; row < chunk->rows; row++, row_walk_next(&walk)) {
        filling.label[row] = label_of_row(labels, walk.pack, &walk.rows, walk.row);
        if (dense) {
            fill_dense_row(&filling, &walk);
            continue;
        }
        fill_sparse_row(buffer, &filling, &walk);
        filling.start[row + 1] = (uint32_t)filling.values;
    }
}
