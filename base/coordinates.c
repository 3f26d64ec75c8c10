#include "base/coordinates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heartbeat.h"
#include "base/memory.h"

enum { ELEMENTS_A_BEAT = 1 << 20 };

/* The sums over columns are taken in so many, by the number of the column: one alone would wait for
 * each of its own additions. */
enum { SHIFT_LANES = 8 };

bool coordinate_is_sound(const struct coordinate *coordinate) {
    return isfinite(coordinate->mean) && isfinite(coordinate->scale) && coordinate->scale > 0 &&
           isfinite(coordinate->penalty) && coordinate->penalty > 0;
}

bool coordinates_suit(const struct layout *layout) {
    const struct layout_tensor *weights = &layout->tensor[0], *bias = layout_input_bias(layout);
    if (!layout->count || weights == bias)
        return false;
    if (strcmp(weights->name, TENSOR_WEIGHT) == 0)
        return layout->count <= 2 && (layout->count == 1 || (bias && bias->rows == 1 &&
                                                             (weights->columns == 1 ||
                                                              bias->columns == weights->columns)));
    return bias && bias->rows == 1 && bias->columns == weights->columns;
}

static const struct layout_tensor *weights_of(const struct layout *layout) {
    return &layout->tensor[0];
}

void coordinates_begin(struct coordinates_walk *walk, const struct layout *layout,
                       const struct coordinate *columns) {
    coordinates_end(walk);
    walk->layout = layout;
    walk->columns = columns;
    walk->shift = memory_new(SHIFT_LANES * weights_of(layout)->columns, sizeof *walk->shift);
}

void coordinates_end(struct coordinates_walk *walk) {
    free(walk->shift);
    *walk = (struct coordinates_walk){0};
}

/* Σ_j m_j·w_jk of weight k of a feature, all columns being through. */
static double shift_of(const struct coordinates_walk *walk, uint64_t k) {
    uint64_t outputs = weights_of(walk->layout)->columns;
    double sum = 0;
    for (unsigned lane = 0; lane < SHIFT_LANES; lane++)
        sum += walk->shift[lane * outputs + k];
    return sum;
}

/* The part of a tensor in [first, first + count). */
static void part_of(const struct layout_tensor *tensor, uint64_t first, uint64_t count,
                    uint64_t *begin, uint64_t *end) {
    uint64_t last = tensor->first + tensor->rows * tensor->columns;
    *begin = first > tensor->first ? first : tensor->first;
    *end = first + count < last ? first + count : last;
    if (*end < *begin)
        *end = *begin;
}

static void walk_weights(struct coordinates_walk *walk, uint64_t begin, uint64_t end, bool leave,
                         const double *in, double *out) {
    const struct layout_tensor *weights = weights_of(walk->layout);
    uint64_t outputs = weights->columns;
    uint64_t j = (begin - weights->first) / outputs, k = (begin - weights->first) % outputs;
    for (uint64_t i = 0; i < end - begin; i++) {
        const struct coordinate *column = &walk->columns[j];
        double weight = leave ? column->scale * in[i] : in[i];
        walk->shift[j % SHIFT_LANES * outputs + k] += column->mean * weight;
        out[i] = leave ? weight : in[i] / column->scale;
        if (i % ELEMENTS_A_BEAT == 0)
            heartbeat();
        if (++k == outputs) {
            k = 0;
            j++;
        }
    }
}

static void walk_piece(struct coordinates_walk *walk, uint64_t first, uint64_t count, bool leave,
                       const double *in, double *out) {
    const struct layout_tensor *bias = layout_input_bias(walk->layout);
    uint64_t begin, end;
    if (out != in && count)
        memcpy(out, in, count * sizeof *out);
    part_of(weights_of(walk->layout), first, count, &begin, &end);
    if (begin < end)
        walk_weights(walk, begin, end, leave, in + (begin - first), out + (begin - first));
    if (!bias)
        return;
    part_of(bias, first, count, &begin, &end);
    for (uint64_t i = begin; i < end; i++) {
        double shift = shift_of(walk, (i - bias->first) % weights_of(walk->layout)->columns);
        out[i - first] += leave ? -shift : shift;
    }
}

void coordinates_enter(struct coordinates_walk *walk, uint64_t first, uint64_t count,
                       const double *in, double *out) {
    walk_piece(walk, first, count, false, in, out);
}

void coordinates_leave(struct coordinates_walk *walk, uint64_t first, uint64_t count,
                       const double *in, double *out) {
    walk_piece(walk, first, count, true, in, out);
}
