#include "shard/scaling.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/touched.h"
#include "numeric/vector.h"

enum { ELEMENTS_A_BEAT = 1 << 20 };

void scaling_release(struct scaling *scaling) {
    free(scaling->mean);
    free(scaling->scale);
    free(scaling->penalty);
    free(scaling->root);
    free(scaling->centre);
    free(scaling->square);
    free(scaling->centred);
    free(scaling->bias_sum);
    free(scaling->bias_gradient);
    *scaling = (struct scaling){0};
}

static void note_set(struct scaling *scaling) {
    assert(scaling->set < scaling->count);
    if (scaling->set++ % ELEMENTS_A_BEAT == 0)
        heartbeat();
}

/* What is no weight of the first tensor is not scaled: nobody sends a scale for it. */
static void set_others(struct scaling *scaling) {
    while (scaling->set < scaling->count && scaling->first + scaling->set >= scaling->weights) {
        if (scaling->used)
            scaling->scale[scaling->set] = scaling->penalty[scaling->set] =
                scaling->root[scaling->set] = 1;
        note_set(scaling);
    }
}

static void set_up_used(struct scaling *scaling, const struct message_shard_setup *setup,
                        const struct layout *layout) {
    if (!scaling->used)
        return;
    const struct layout_tensor *bias = layout_input_bias(layout);
    scaling->biases = bias ? bias->columns : 0;
    scaling->bias_tensor = bias ? (uint32_t)(bias - layout->tensor) : 0;
    scaling->bias_exponent = (int)setup->scaling.bias_exponent;
    scaling->block_bias_exponent = (int)setup->scaling.block_bias_exponent;
    scaling->mean = memory_new(scaling->count, sizeof *scaling->mean);
    scaling->scale = memory_new(scaling->count, sizeof *scaling->scale);
    scaling->penalty = memory_new(scaling->count, sizeof *scaling->penalty);
    scaling->root = memory_new(scaling->count, sizeof *scaling->root);
    scaling->bias_sum = memory_new(scaling->biases, sizeof *scaling->bias_sum);
    scaling->bias_gradient = memory_new(scaling->outputs, sizeof *scaling->bias_gradient);
}

void scaling_set_up(struct scaling *scaling, const struct message_shard_setup *setup,
                    const struct layout *layout) {
    scaling_release(scaling);
    scaling->used = setup->scaling.coordinates;
    if (!scaling->used && !setup->scaling.measured)
        return;
    const struct layout_tensor *weights = &layout->tensor[0];
    scaling->first = setup->first;
    scaling->count = setup->count;
    scaling->weights = weights->rows * weights->columns;
    scaling->outputs = weights->columns;
    if (setup->scaling.measured)
        scaling->square = memory_new(scaling->count, sizeof *scaling->square);
    set_up_used(scaling, setup, layout);
    set_others(scaling);
}

static void set_element(struct scaling *scaling, const struct column_scaling *column) {
    if (scaling->square)
        scaling->square[scaling->set] = column->square;
    scaling->mean[scaling->set] = column->mean;
    scaling->scale[scaling->set] = column->scale;
    scaling->penalty[scaling->set] = column->penalty;
    scaling->root[scaling->set] = sqrt(column->penalty);
    if (column->centre != 0 && !scaling->centre)
        scaling->centre = memory_new(scaling->count, sizeof *scaling->centre);
    if (scaling->centre)
        scaling->centre[scaling->set] = column->centre;
    if (column->mean == 0 || scaling->set > UINT32_MAX)
        return;
    MEMORY_ROOM(scaling->centred, scaling->centred_count, scaling->centred_capacity);
    scaling->centred[scaling->centred_count++] = (uint32_t)scaling->set;
}

/* Sets the scaling of columns that are scaled, or the squares of others; the other pointer is
 * NULL. */
static int set_elements(struct scaling *scaling, uint64_t first,
                        const struct column_scaling *columns, const double *squares,
                        uint64_t count) {
    assert(!columns == !scaling->used && !squares == scaling->used);
    /* Pieces come in order, so the elements that are lacking are the last ones. */
    while (scaling->set < scaling->count && scaling->first + scaling->set < scaling->weights) {
        uint64_t column = (scaling->first + scaling->set) / scaling->outputs;
        if (column < first)
            return error_set(ERROR_INTERNAL, "coordinates from column %llu on are missing",
                             (unsigned long long)column);
        if (column - first >= count)
            break;
        if (columns)
            set_element(scaling, &columns[column - first]);
        else
            scaling->square[scaling->set] = squares[column - first];
        note_set(scaling);
    }
    set_others(scaling);
    return 0;
}

int scaling_set_columns(struct scaling *scaling, uint64_t first,
                        const struct column_scaling *columns, uint64_t count) {
    if (!scaling->used)
        return error_set(ERROR_INTERNAL, "coordinates came, but the weights are their own");
    return set_elements(scaling, first, columns, NULL, count);
}

int scaling_set_squares(struct scaling *scaling, uint64_t first, const double *squares,
                        uint64_t count) {
    if (scaling->used || !scaling->square)
        return error_set(ERROR_INTERNAL, "squares of columns came that nobody asked for");
    return set_elements(scaling, first, NULL, squares, count);
}

bool scaling_is_complete(const struct scaling *scaling) {
    return scaling->set == scaling->count;
}

void scaling_read_biases(struct scaling *scaling, const struct bounds *bounds, double weight_sum) {
    assert(weight_sum > 0 && (!scaling->outputs || scaling->biases % scaling->outputs == 0));
    int bound = bounds_exponent(bounds, scaling->bias_tensor);
    for (size_t k = 0; k < scaling->biases; k++) {
        double gradient;
        vector_from_fixed(1, &gradient, &scaling->bias_sum[k], scaling->bias_exponent - bound,
                          weight_sum);
        bool first = k < scaling->outputs; /* others share the weight of an earlier one */
        scaling->bias_gradient[k % scaling->outputs] =
            first ? gradient : scaling->bias_gradient[k % scaling->outputs] + gradient;
    }
}

void scaling_gradient_to_scaled(const struct scaling *scaling, size_t offset, size_t count,
                                double *gradient) {
    assert(scaling->used && offset + count <= scaling->count);
    const double *mean = scaling->mean + offset, *scale = scaling->scale + offset;
    uint64_t k = (scaling->first + offset) % scaling->outputs;
    for (size_t i = 0; i < count; i++) {
        gradient[i] = scale[i] * (gradient[i] - mean[i] * scaling->bias_gradient[k]);
        if (++k == scaling->outputs)
            k = 0;
    }
}

/* Columns that are not centred have mean 0, which is not read: each mean would be a line of memory
 * of its own. */
void scaling_picked_to_scaled(const struct scaling *scaling, const uint32_t *at, size_t count,
                              double *gradient) {
    size_t next = count ? elements_before(scaling->centred, scaling->centred_count, at[0]) : 0;
    assert(scaling->used);
    for (size_t i = 0; i < count; i++) {
        if (next < scaling->centred_count && scaling->centred[next] == at[i]) {
            uint64_t k = (scaling->first + at[i]) % scaling->outputs;
            gradient[i] -= scaling->mean[at[i]] * scaling->bias_gradient[k];
            next++;
        }
        gradient[i] *= scaling->scale[at[i]];
    }
}

void scaling_weigh(const struct scaling *scaling, size_t offset, size_t count, double *out,
                   const double *in, bool inverse) {
    assert(scaling->used && offset + count <= scaling->count);
    const double *root = scaling->root + offset;
    for (size_t i = 0; i < count; i++)
        out[i] = inverse ? in[i] / root[i] : in[i] * root[i];
}

double scaling_weight_penalty(const struct scaling *scaling, size_t element) {
    return scaling->penalty[element] / scaling->scale[element] / scaling->scale[element];
}

void scaling_point_from_scaled(const struct scaling *scaling, double *point) {
    assert(!scaling->first && scaling->count >= scaling->weights + scaling->biases);
    double *biases = point + scaling->weights;
    for (size_t i = 0; i < scaling->weights; i++) {
        point[i] *= scaling->scale[i];
        for (size_t k = i % scaling->outputs; k < scaling->biases; k += scaling->outputs)
            biases[k] -= scaling->mean[i] * point[i];
    }
}

void scaling_gradient_from_scaled(const struct scaling *scaling, double *gradient) {
    assert(!scaling->first && scaling->count >= scaling->weights + scaling->biases);
    const double *biases = gradient + scaling->weights;
    for (size_t i = 0; i < scaling->weights; i++) {
        gradient[i] /= scaling->scale[i];
        for (size_t k = i % scaling->outputs; k < scaling->biases; k += scaling->outputs)
            gradient[i] += scaling->mean[i] * biases[k];
    }
}

void scaling_step_to_scaled(const struct scaling *scaling, double *step) {
    assert(!scaling->first && scaling->count >= scaling->weights + scaling->biases);
    double *biases = step + scaling->weights;
    for (size_t i = 0; i < scaling->weights; i++) {
        for (size_t k = i % scaling->outputs; k < scaling->biases; k += scaling->outputs)
            biases[k] += scaling->mean[i] * step[i];
        step[i] /= scaling->scale[i];
    }
}
