#include "base/layout.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/clock.h"

enum { ELEMENTS_A_BEAT = 1 << 20 };

/* ---- making one ---- */

static bool has_rules(const struct layout_tensor *tensor) {
    if (tensor->exponents > LAYOUT_ONE_EXPONENT || !isfinite(tensor->bound))
        return false;
    switch (tensor->start) {
    case LAYOUT_START_ZERO:
        return tensor->bound == 0;
    case LAYOUT_START_UNIFORM:
    case LAYOUT_START_FALLING:
        return tensor->bound >= 0;
    case LAYOUT_START_CONSTANT:
        return true;
    }
    return false;
}

bool layout_add(struct layout *layout, const struct layout_tensor *tensor) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const size_t length = strnlen(tensor->name, TENSOR_NAME_BYTES);
    if (!length || length == TENSOR_NAME_BYTES || strspn(tensor->name, letters) != length ||
        layout_find(layout, tensor->name) || !has_rules(tensor))
        return false;
    /* The elements of all tensors stay within PARAMETERS_MAX. Sizes come off the wire, so this
     * divides where a product could wrap. */
    const uint64_t left = PARAMETERS_MAX - layout_parameters(layout);
    if (layout->count == TENSORS_MAX || !tensor->columns || tensor->rows > PARAMETERS_MAX ||
        tensor->columns > PARAMETERS_MAX || tensor->rows > left / tensor->columns)
        return false;
    struct layout_tensor *added = &layout->tensor[layout->count];
    *added = *tensor;
    added->first = layout_parameters(layout);
    added->first_exponent = layout_exponents(layout);
    layout->count++;
    assert(layout_parameters(layout) <= PARAMETERS_MAX);
    return true;
}

struct layout layout_linear_of(uint64_t features, uint64_t weights, uint64_t biases) {
    const struct layout_tensor weight = {
        .name = TENSOR_WEIGHT, .rows = features, .columns = weights, .regularized = true};
    const struct layout_tensor bias = {
        .name = TENSOR_BIAS, .rows = 1, .columns = biases, .exponents = LAYOUT_ONE_EXPONENT};
    struct layout layout = {0};
    bool fits = layout_add(&layout, &weight) && (!biases || layout_add(&layout, &bias));
    return fits ? layout : (struct layout){0};
}

struct layout layout_linear(uint64_t features, uint64_t outputs, bool intercept) {
    return layout_linear_of(features, outputs, intercept ? outputs : 0);
}

/* ---- what is where ---- */

static uint64_t elements_of(const struct layout_tensor *tensor) {
    return tensor->rows * tensor->columns;
}

uint64_t layout_parameters(const struct layout *layout) {
    if (!layout->count)
        return 0;
    const struct layout_tensor *last = &layout->tensor[layout->count - 1];
    return last->first + elements_of(last);
}

uint64_t layout_exponents(const struct layout *layout) {
    if (!layout->count)
        return 0;
    const struct layout_tensor *last = &layout->tensor[layout->count - 1];
    return last->first_exponent + (last->exponents == LAYOUT_ONE_EXPONENT ? 1 : last->rows);
}

const struct layout_tensor *layout_find(const struct layout *layout, const char *name) {
    for (uint32_t i = 0; i < layout->count; i++)
        if (strcmp(layout->tensor[i].name, name) == 0)
            return &layout->tensor[i];
    return NULL;
}

const struct layout_tensor *layout_input_bias(const struct layout *layout) {
    const struct layout_tensor *bias = layout_find(layout, TENSOR_BIAS);
    return bias ? bias : layout_find(layout, TENSOR_FIRST_BIAS);
}

uint64_t layout_block_weights(const struct layout *layout, uint32_t columns) {
    return columns * layout->tensor[0].columns;
}

uint64_t layout_block(const struct layout *layout, uint32_t columns) {
    const struct layout_tensor *bias = layout_input_bias(layout);
    return layout_block_weights(layout, columns) + (bias ? bias->columns : 0);
}

uint64_t layout_leading_block(const struct layout *layout, uint32_t columns) {
    bool shared = layout->tensor[0].columns > 1;
    return shared ? columns + (layout_input_bias(layout) != NULL) : layout_block(layout, columns);
}

uint32_t layout_bounds(const struct layout *layout) {
    const struct layout_tensor *first = &layout->tensor[0];
    bool linear = layout->count == 0 || (layout_find(layout, TENSOR_WEIGHT) == first &&
                                         first->exponents == LAYOUT_EXPONENT_A_ROW);
    if (layout->count > 1)
        linear &= layout->count == 2 && layout_find(layout, TENSOR_BIAS) != NULL;
    return linear ? 1 : layout->count;
}

bool layout_equal(const struct layout *a, const struct layout *b) {
    bool equal = a->seed == b->seed && a->count == b->count;
    for (uint32_t i = 0; equal && i < a->count; i++) {
        const struct layout_tensor *x = &a->tensor[i], *y = &b->tensor[i];
        equal = strcmp(x->name, y->name) == 0 && x->rows == y->rows && x->columns == y->columns &&
                x->regularized == y->regularized && x->exponents == y->exponents &&
                x->start == y->start && x->bound == y->bound;
    }
    return equal;
}

struct layout_place layout_locate(const struct layout *layout, uint64_t element) {
    const struct layout_tensor *tensor = layout->tensor;
    assert(element < layout_parameters(layout));
    while (element - tensor->first >= elements_of(tensor))
        tensor++;
    uint64_t within = element - tensor->first;
    return (struct layout_place){tensor, within / tensor->columns, within % tensor->columns};
}

uint64_t layout_exponent_of(const struct layout *layout, uint64_t element) {
    struct layout_place place = layout_locate(layout, element);
    bool one = place.tensor->exponents == LAYOUT_ONE_EXPONENT;
    return place.tensor->first_exponent + (one ? 0 : place.row);
}

void layout_advance(const struct layout *layout, struct layout_place *place) {
    if (++place->column < place->tensor->columns)
        return;
    place->column = 0;
    if (++place->row < place->tensor->rows)
        return;
    const struct layout_tensor *end = layout->tensor + layout->count;
    place->row = 0;
    do
        place->tensor++;
    while (place->tensor < end && !place->tensor->rows);
    if (place->tensor == end)
        place->tensor = NULL;
}

struct layout_span layout_part(const struct layout_tensor *tensor, uint64_t first, uint64_t count) {
    uint64_t begin = tensor->first > first ? tensor->first : first;
    uint64_t end = tensor->first + elements_of(tensor), most = first + count;
    if (end > most)
        end = most;
    return (struct layout_span){begin - first, end > begin ? end - begin : 0};
}

uint32_t layout_strips(const struct layout *layout, uint32_t columns) {
    uint64_t all = layout->tensor[0].rows;
    return columns && all > columns ? (uint32_t)((all + columns - 1) / columns) : 1;
}

struct layout_span layout_upper(const struct layout *layout) {
    const struct layout_tensor *first = &layout->tensor[0];
    const uint64_t all = layout_parameters(layout), weights = first->rows * first->columns;
    if (!layout->count || !layout_find(layout, TENSOR_FIRST_BIAS))
        return (struct layout_span){all, 0};
    return (struct layout_span){weights, all - weights};
}

struct layout_span layout_strip(const struct layout *layout, uint32_t columns, uint32_t number) {
    const uint32_t strips = layout_strips(layout, columns);
    const struct layout_span upper = layout_upper(layout);
    const uint64_t width = columns * layout->tensor[0].columns, first = number * width;
    if (!columns)
        return (struct layout_span){0, layout_parameters(layout)};
    assert(number < strips || (number == strips && upper.count));
    if (number == strips)
        return upper;
    return (struct layout_span){first, number + 1 < strips ? width : upper.first - first};
}

/* The last strip has no more columns than the first, but the biases. */
uint64_t layout_strip_most(const struct layout *layout, uint32_t columns) {
    uint64_t first = layout_strip(layout, columns, 0).count;
    uint64_t last = layout_strip(layout, columns, layout_strips(layout, columns) - 1).count;
    uint64_t upper = layout_upper(layout).count;
    uint64_t most = first > last ? first : last;
    return most > upper ? most : upper;
}

uint32_t layout_spans(const struct layout *layout, bool regularized, uint64_t first, uint64_t count,
                      struct layout_span spans[TENSORS_MAX]) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < layout->count; i++) {
        struct layout_span part = layout_part(&layout->tensor[i], first, count);
        if (layout->tensor[i].regularized != regularized || !part.count)
            continue;
        if (found && spans[found - 1].first + spans[found - 1].count == part.first)
            spans[found - 1].count += part.count;
        else
            spans[found++] = part;
    }
    return found;
}

/* ---- the start ---- */

static double start_of(const struct layout_tensor *tensor, uint64_t key, uint64_t i) {
    const double bound = tensor->bound;
    const uint64_t count = elements_of(tensor);
    int64_t bits;
    switch (tensor->start) {
    case LAYOUT_START_UNIFORM:
        /* 53 random bits, as an integer around 0 so that all before the product is exact. */
        bits = (int64_t)(random_mix(key + RANDOM_STEP * (i + 1)) >> 11) - (INT64_C(1) << 52);
        return (double)bits * 0x1p-52 * bound;
    case LAYOUT_START_FALLING: /* one element alone is in the middle */
        return count < 2 ? 0
                         : bound * (((double)(count - 1) - 2 * (double)i) / (double)(count - 1));
    default:
        return bound;
    }
}

bool layout_starts_at_zero(const struct layout *layout) {
    bool zero = true;
    for (uint32_t t = 0; t < layout->count; t++)
        zero &= layout->tensor[t].start == LAYOUT_START_ZERO;
    return zero;
}

void layout_start(const struct layout *layout, uint64_t first, uint64_t count, double *elements) {
    for (uint32_t t = 0; t < layout->count; t++) {
        const struct layout_tensor *tensor = &layout->tensor[t];
        struct layout_span part = layout_part(tensor, first, count);
        uint64_t key = random_mix(random_mix(layout->seed + RANDOM_STEP) + RANDOM_STEP * (t + 1));
        for (uint64_t i = part.first; i < part.first + part.count; i++) {
            elements[i] = start_of(tensor, key, first + i - tensor->first);
            if (i % ELEMENTS_A_BEAT == 0)
                heartbeat();
        }
    }
}

/* ---- as a blob ---- */

void layout_encode(const struct layout *layout, struct bytes *blob) {
    bytes_put_u32(blob, LAYOUT_VERSION);
    bytes_put_u64(blob, layout->seed);
    bytes_put_u32(blob, layout->count);
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct layout_tensor *tensor = &layout->tensor[i];
        size_t length = strlen(tensor->name);
        bytes_put_u8(blob, (uint8_t)length);
        bytes_append(blob, tensor->name, length);
        bytes_put_u64(blob, tensor->rows);
        bytes_put_u64(blob, tensor->columns);
        bytes_put_u8(blob, tensor->regularized);
        bytes_put_u8(blob, (uint8_t)tensor->exponents);
        bytes_put_u8(blob, (uint8_t)tensor->start);
        bytes_put_f64(blob, tensor->bound);
    }
}

static bool read_tensor(struct cursor *cursor, struct layout *layout) {
    struct layout_tensor tensor = {0};
    /* A name that is too long or contains a 0 is read as "", which layout_add() refuses. */
    size_t length = cursor_u8(cursor);
    const char *text = cursor_take(cursor, length);
    if (text && length < TENSOR_NAME_BYTES && !memchr(text, 0, length))
        memcpy(tensor.name, text, length);
    tensor.rows = cursor_u64(cursor);
    tensor.columns = cursor_u64(cursor);
    uint8_t regularized = cursor_u8(cursor);
    tensor.regularized = regularized;
    tensor.exponents = (enum layout_exponents)cursor_u8(cursor);
    tensor.start = (enum layout_start)cursor_u8(cursor);
    tensor.bound = cursor_f64(cursor);
    return !cursor->failed && regularized <= 1 && layout_add(layout, &tensor);
}

const char *layout_decode(const void *blob, size_t length, struct layout *layout) {
    struct cursor cursor = cursor_over(blob, length);
    *layout = (struct layout){0};
    if (cursor_u32(&cursor) != LAYOUT_VERSION)
        return "a layout of another version";
    layout->seed = cursor_u64(&cursor);
    uint32_t count = cursor_u32(&cursor);
    if (cursor.failed || count > TENSORS_MAX)
        return "a layout of more tensors than there may be, or cut short";
    for (uint32_t i = 0; i < count; i++)
        if (!read_tensor(&cursor, layout))
            return "a layout with a tensor that cannot be";
    if (cursor_left(&cursor))
        return "a layout with more bytes than tensors";
    return layout_parameters(layout) ? NULL : "a layout without parameters";
}

/* ---- scaling ---- */

/* The sums over columns are taken in so many, by the number of the column: one alone would wait for
 * each of its own additions. */
enum { SHIFT_LANES = 8 };

bool column_scaling_is_valid(const struct column_scaling *column) {
    return isfinite(column->mean) && isfinite(column->scale) && column->scale > 0 &&
           isfinite(column->penalty) && column->penalty >= 0 && isfinite(column->square) &&
           column->square >= 0 && isfinite(column->centre);
}

bool column_limit_is_valid(const struct column_limit *limit) {
    return isfinite(limit->lasso) && limit->lasso >= 0 && limit->low <= limit->high &&
           limit->low < INFINITY && limit->high > -INFINITY;
}

bool layout_can_scale(const struct layout *layout) {
    const struct layout_tensor *weights = &layout->tensor[0], *bias = layout_input_bias(layout);
    if (!layout->count || weights == bias)
        return false;
    if (strcmp(weights->name, TENSOR_WEIGHT) == 0)
        return layout->count <= 2 && (layout->count == 1 || (bias && bias->rows == 1 &&
                                                             (weights->columns == 1 ||
                                                              bias->columns == weights->columns)));
    return bias && bias->rows == 1 && bias->columns == weights->columns;
}

void scaling_walk_begin(struct scaling_walk *walk, const struct layout *layout,
                        const struct column_scaling *columns) {
    assert(layout->count > 0);
    scaling_walk_end(walk);
    walk->layout = layout;
    walk->columns = columns;
    walk->shift = memory_new(SHIFT_LANES * layout->tensor[0].columns, sizeof *walk->shift);
}

void scaling_walk_end(struct scaling_walk *walk) {
    free(walk->shift);
    *walk = (struct scaling_walk){0};
}

/* Elements begin… of the weights, `count` of them. */
static void walk_weights(struct scaling_walk *walk, uint64_t begin, uint64_t count,
                         bool from_scaled, const double *in, double *out) {
    const struct layout_tensor *weights = &walk->layout->tensor[0];
    uint64_t outputs = weights->columns;
    assert(begin >= weights->first && begin - weights->first + count <= elements_of(weights));
    uint64_t j = (begin - weights->first) / outputs, k = (begin - weights->first) % outputs;
    for (uint64_t i = 0; i < count; i++) {
        const struct column_scaling *column = &walk->columns[j];
        double weight = from_scaled ? column->scale * in[i] : in[i];
        walk->shift[j % SHIFT_LANES * outputs + k] += column->mean * weight;
        out[i] = from_scaled ? weight : in[i] / column->scale;
        if (i % ELEMENTS_A_BEAT == 0)
            heartbeat();
        if (++k == outputs) {
            k = 0;
            j++;
        }
    }
}

static void walk_piece(struct scaling_walk *walk, uint64_t first, uint64_t count, bool from_scaled,
                       const double *in, double *out) {
    const struct layout_tensor *weights = &walk->layout->tensor[0];
    const struct layout_tensor *bias = layout_input_bias(walk->layout);
    struct layout_span part = layout_part(weights, first, count);
    if (out != in && count)
        memcpy(out, in, count * sizeof *out);
    if (part.count)
        walk_weights(walk, first + part.first, part.count, from_scaled, in + part.first,
                     out + part.first);
    if (!bias)
        return;
    part = layout_part(bias, first, count);
    for (uint64_t i = part.first; i < part.first + part.count; i++) {
        /* Σ_j m_j·w_jk of weight k of a feature, all columns being through. */
        const uint64_t outputs = weights->columns, k = (first + i - bias->first) % outputs;
        double shift = 0;
        for (unsigned lane = 0; lane < SHIFT_LANES; lane++)
            shift += walk->shift[lane * outputs + k];
        out[i] += from_scaled ? -shift : shift;
    }
}

void scaling_walk_to_scaled(struct scaling_walk *walk, uint64_t first, uint64_t count,
                            const double *in, double *out) {
    walk_piece(walk, first, count, false, in, out);
}

void scaling_walk_from_scaled(struct scaling_walk *walk, uint64_t first, uint64_t count,
                              const double *in, double *out) {
    walk_piece(walk, first, count, true, in, out);
}
