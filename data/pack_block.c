/* A block of a pack: its layout, and rows laid out in it. */
#include "data/pack_block.h"

#include <string.h>

#include "numeric/clones.h"

struct pack_block_layout pack_block_layout(const struct pack_block *block) {
    struct pack_block_layout layout = {0};
    uint64_t values = block->values, rows = block->rows, at = 0;
    layout.start = at;
    at = align_up(at + (block->dense ? 0 : (rows + 1) * sizeof(uint32_t)));
    layout.feature = at;
    at = align_up(at + (block->dense ? 0 : values * sizeof(uint32_t)));
    layout.value = at;
    at = align_up(at + values * value_bytes(block->type));
    layout.label = at;
    at = align_up(at + rows * sizeof(double));
    layout.weight = at;
    at = align_up(at + (block->weighted ? rows * sizeof(double) : 0));
    layout.label_text = at;
    at = align_up(at + (block->texts ? rows * sizeof(uint32_t) : 0));
    layout.position = at;
    layout.bytes = align_up(at + (block->positions ? values * sizeof(uint32_t) : 0));
    return layout;
}

/* Values are looked at in runs without an early end. */
#define RUN 256

/* What makes a difference among some values: no bit is set in `others` if all are 1, none in
 * `doubles` if a float holds each. A value beyond floats becomes infinity, and differs. */
struct run_facts {
    half_words others, doubles;
};

VECTOR_CLONES
static void look_at_run(struct run_facts *facts, const double *value, uint64_t count) {
    half_words others = facts->others, doubles = facts->doubles;
    const half_lanes ones = {1, 1, 1, 1};
    uint64_t i = 0;
    for (; i + HALF <= count; i += HALF) {
        half_lanes v;
        memcpy(&v, value + i, sizeof v);
        half_float_lanes narrow = __builtin_convertvector(v, half_float_lanes);
        others |= (half_words)(v != ones);
        doubles |= (half_words)(__builtin_convertvector(narrow, half_lanes) != v);
    }
    for (; i < count; i++) {
        others[0] |= value[i] != 1;
        doubles[0] |= !pack_is_float(value[i]);
    }
    facts->others = others;
    facts->doubles = doubles;
}

static bool any(const half_words *words) {
    return ((*words)[0] | (*words)[1] | (*words)[2] | (*words)[3]) != 0;
}

enum value_type pack_block_type(const struct source_rows *rows) {
    const double *value = rows->value;
    uint64_t count = rows->start[rows->count];
    struct run_facts facts = {0};
    if (rows->bytes)
        return VALUE_BYTE;
    for (uint64_t first = 0; first < count && !any(&facts.doubles); first += RUN)
        look_at_run(&facts, value + first, count - first < RUN ? count - first : RUN);
    return any(&facts.doubles) ? VALUE_DOUBLE : any(&facts.others) ? VALUE_FLOAT : VALUE_ONES;
}

VECTOR_CLONES
static void put_floats(float *to, const double *value, uint64_t count) {
    uint64_t i = 0;
    for (; i + HALF <= count; i += HALF) {
        half_lanes v;
        memcpy(&v, value + i, sizeof v);
        half_float_lanes narrow = __builtin_convertvector(v, half_float_lanes);
        memcpy(to + i, &narrow, sizeof narrow);
    }
    for (; i < count; i++)
        to[i] = (float)value[i];
}

/* Puts an array to its place, with zeros up to the next. */
static void put_array(uint8_t *data, uint64_t place, uint64_t next, const void *array,
                      uint64_t bytes) {
    if (bytes)
        memcpy(data + place, array, bytes);
    memset(data + place + bytes, 0, next - place - bytes);
}

static void put_features(const struct pack_block_content *content, uint8_t *data,
                         const struct pack_block_layout *layout) {
    const struct source_rows *rows = content->rows;
    uint32_t *start = (uint32_t *)(void *)(data + layout->start);
    for (uint32_t row = 0; row <= rows->count; row++)
        start[row] = (uint32_t)rows->start[row];
    uint64_t end = layout->start + (rows->count + UINT64_C(1)) * sizeof *start;
    memset(data + end, 0, layout->feature - end);
    uint64_t bytes = rows->start[content->alike ? 1 : rows->count] * sizeof(uint32_t);
    uint32_t times = content->alike ? rows->count : 1;
    end = layout->feature;
    for (uint32_t i = 0; i < times; i++, end += bytes)
        memcpy(data + end, content->feature, bytes);
    memset(data + end, 0, layout->value - end);
}

static void put_values(const struct pack_block *block, const struct pack_block_layout *layout,
                       const double *value, uint8_t *data) {
    uint64_t count = block->values;
    if (block->type == VALUE_DOUBLE)
        put_array(data, layout->value, layout->label, value, count * sizeof *value);
    for (uint64_t i = 0; block->type == VALUE_BYTE && i < count; i++)
        data[layout->value + i] = (uint8_t)value[i];
    if (block->type != VALUE_FLOAT)
        return;
    float *narrow = (float *)(void *)(data + layout->value);
    put_floats(narrow, value, count);
    uint64_t end = layout->value + count * sizeof *narrow;
    memset(data + end, 0, layout->label - end);
}

void pack_block_fill(const struct pack_block *block, const struct pack_block_content *content,
                     uint8_t *data) {
    const struct source_rows *rows = content->rows;
    struct pack_block_layout layout = pack_block_layout(block);
    if (!block->dense)
        put_features(content, data, &layout);
    put_values(block, &layout, rows->value, data);
    put_array(data, layout.label, layout.weight, rows->label, rows->count * sizeof *rows->label);
    put_array(data, layout.weight, layout.label_text, rows->weight,
              block->weighted ? rows->count * sizeof *rows->weight : 0);
    put_array(data, layout.label_text, layout.position, content->label_text,
              block->texts ? rows->count * sizeof(uint32_t) : 0);
    put_array(data, layout.position, layout.bytes, rows->position,
              block->positions ? block->values * sizeof(uint32_t) : 0);
}
