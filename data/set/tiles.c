/* Cuts the chunks of a wide set along columns: their tiles are placed strip by strip before the
 * first is written, as chunks are made in the order of their rows. */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/set/tiles.h"
#include "numeric/fixed.h"

/* ---- places ---- */

struct tile_count {
    const struct chunk_source *source;
    struct chunk_plan *plan;
    _Atomic uint32_t next;
};

static void *count_tiles(void *context) {
    struct tile_count *count = context;
    struct chunk_plan *plan = count->plan;
    struct chunk_buffer buffer;
    chunk_buffer_init(&buffer);
    uint64_t *values = memory_new(plan->strips, sizeof *values);
    uint32_t chunk;
    while ((chunk = atomic_fetch_add(&count->next, 1)) < plan->chunks) {
        memset(values, 0, plan->strips * sizeof *values);
        chunk_count_strips(&buffer, count->source, &plan->chunk[chunk],
                           chunk_plan_is_held(plan, chunk) ? &plan->held : &plan->trained, values);
        for (uint32_t strip = 0; strip < plan->strips; strip++)
            plan->tile[(size_t)strip * plan->chunks + chunk].values = values[strip];
    }
    free(values);
    chunk_buffer_release(&buffer);
    return NULL;
}

void tiles_place(const struct chunk_source *source, struct chunk_plan *plan,
                 struct container_writer *container, unsigned threads) {
    assert(plan->strips && plan->strip_columns);
    struct tile_count count = {source, plan, 0};
    threads_run(threads < plan->chunks ? threads : plan->chunks, count_tiles, &count);
    for (uint32_t i = 0; i < plan->chunks; i++) {
        struct set_chunk *chunk = &plan->chunk[i];
        chunk->bytes = set_head_layout(chunk).bytes;
        chunk->offset = container_reserve(container, chunk->bytes);
    }
    for (uint32_t i = 0; i < plan->strips * plan->chunks; i++) {
        struct set_tile *tile = &plan->tile[i];
        tile->bytes = set_tile_layout(&plan->chunk[i % plan->chunks], tile->values).bytes;
        tile->offset = container_reserve(container, tile->bytes);
    }
}

/* ---- contents ---- */

/* The chunk as it was filled, whose tiles are written. */
struct whole_chunk {
    const struct set_chunk *chunk;
    const uint32_t *start, *feature;
    const uint64_t *wide; /* in place of `feature`; or NULL */
    const uint8_t *value, *label, *weight, *offset;
};

static struct whole_chunk whole_chunk(const struct chunk_buffer *buffer,
                                      const struct chunk_plan *plan,
                                      const struct set_chunk *chunk) {
    struct set_chunk_layout layout = chunk_plan_layout(plan, chunk);
    const uint8_t *data = buffer->data;
    return (struct whole_chunk){.chunk = chunk,
                                .start = (const void *)(data + layout.start),
                                .feature = (const void *)(data + layout.feature),
                                .wide = plan->wide ? (const void *)(data + layout.feature) : NULL,
                                .value = data + layout.value,
                                .label = data + layout.label,
                                .weight = data + layout.weight,
                                .offset = data + layout.offset};
}

/* Zeroed, as what is between arrays counts in the checksum. */
static uint8_t *zeroed(struct bytes *bytes, size_t length) {
    bytes_clear(bytes);
    return memset(bytes_extend(bytes, length), 0, length);
}

/* Writes the head of a chunk whose rows are of this side: "training" or "the holdout". */
static int write_head(struct chunk_buffer *buffer, const struct whole_chunk *whole,
                      const char *side, struct set_chunk *chunk,
                      const struct container_writer *container) {
    struct set_head_layout layout = set_head_layout(chunk);
    uint8_t *head = zeroed(&buffer->tile, layout.bytes);
    int16_t *size = (int16_t *)(void *)(head + layout.size);
    assert(layout.bytes == chunk->bytes);
    memcpy(head + layout.label, whole->label, chunk->rows * sizeof(double));
    if (chunk->weighted)
        memcpy(head + layout.weight, whole->weight, chunk->rows * sizeof(double));
    if (chunk->shifted)
        memcpy(head + layout.offset, whole->offset, chunk->rows * sizeof(double));
    for (uint32_t row = 0; row < chunk->rows; row++) {
        double sum = 0;
        for (uint32_t i = whole->start[row]; i < whole->start[row + 1]; i++)
            sum += fabs(value_at((enum value_type)whole->chunk->type, whole->value, i));
        size[row] = (int16_t)fixed_size(sum, whole->start[row + 1] - whole->start[row]);
        if (size[row] > FIXED_SIZE_MAX)
            return error_set(ERROR_DATA,
                             "the values of row %llu of %s are too large to be added; scale them",
                             (unsigned long long)(chunk->first_row + row + 1), side);
    }
    chunk->checksum = hash64(head, chunk->bytes);
    return container_write(container, chunk->offset, head, chunk->bytes);
}

static inline uint64_t column_of(const struct whole_chunk *whole, uint32_t i) {
    return whole->wide ? whole->wide[i] : whole->feature[i];
}

/* Takes what each row has below column `end` from its `next` value on, which moves there. */
static void fill_tile(const struct whole_chunk *whole, uint32_t *next, uint64_t first, uint64_t end,
                      const struct set_tile_layout *layout, uint8_t *tile) {
    uint32_t *start = (void *)(tile + layout->start), *feature = (void *)(tile + layout->feature);
    size_t each = value_bytes((enum value_type)whole->chunk->type);
    assert(first < end);
    uint32_t put = 0;
    for (uint32_t row = 0; row < whole->chunk->rows; row++) {
        uint32_t from = next[row], to = from;
        for (; to < whole->start[row + 1] && column_of(whole, to) < end; to++)
            feature[put + to - from] = (uint32_t)(column_of(whole, to) - first);
        memcpy(tile + layout->value + put * each, whole->value + from * each, (to - from) * each);
        put += to - from;
        next[row] = to;
        start[row + 1] = put;
    }
}

int tiles_write(struct chunk_buffer *buffer, struct chunk_plan *plan, uint32_t number,
                const struct container_writer *container) {
    struct set_chunk *chunk = &plan->chunk[number];
    struct whole_chunk whole = whole_chunk(buffer, plan, chunk);
    const char *side = chunk_plan_is_held(plan, number) ? "the holdout" : "training";
    int code = write_head(buffer, &whole, side, chunk, container);
    bytes_clear(&buffer->places);
    uint32_t *next = bytes_extend(&buffer->places, chunk->rows * sizeof *next);
    memcpy(next, whole.start, chunk->rows * sizeof *next);
    for (uint32_t strip = 0; strip < plan->strips && !code; strip++) {
        struct set_tile *tile = &plan->tile[(size_t)strip * plan->chunks + number];
        struct set_tile_layout layout = set_tile_layout(chunk, tile->values);
        uint8_t *data = zeroed(&buffer->tile, layout.bytes);
        uint64_t first = (uint64_t)strip * plan->strip_columns;
        fill_tile(&whole, next, first, first + plan->strip_columns, &layout, data);
        assert(((uint32_t *)(void *)(data + layout.start))[chunk->rows] == tile->values);
        tile->checksum = hash64(data, tile->bytes);
        code = container_write(container, tile->offset, data, tile->bytes);
    }
    return code;
}
