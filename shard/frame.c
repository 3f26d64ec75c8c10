#include "shard/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/clock.h"
#include "base/memory.h"
#include "numeric/vector.h"

enum { ELEMENTS_A_BEAT = 1 << 20 };

void frame_release(struct frame *frame) {
    free(frame->mean);
    free(frame->scale);
    free(frame->penalty);
    free(frame->root);
    free(frame->bias_sum);
    free(frame->bias_gradient);
    *frame = (struct frame){0};
}

static void note_set(struct frame *frame) {
    if (frame->set++ % ELEMENTS_A_BEAT == 0)
        heartbeat();
}

/* What is no weight of the first tensor is what it is: nobody sends coordinates for it. */
static void set_others(struct frame *frame) {
    while (frame->set < frame->count && frame->first + frame->set >= frame->weights) {
        frame->scale[frame->set] = frame->penalty[frame->set] = frame->root[frame->set] = 1;
        note_set(frame);
    }
}

void frame_set_up(struct frame *frame, const struct message_shard_setup *setup,
                  const struct layout *layout) {
    frame_release(frame);
    frame->used = setup->coordinates;
    if (!frame->used)
        return;
    const struct layout_tensor *weights = &layout->tensor[0];
    frame->first = setup->first;
    frame->count = setup->count;
    frame->weights = weights->rows * weights->columns;
    frame->outputs = weights->columns;
    const struct layout_tensor *bias = layout_input_bias(layout);
    frame->biases = bias ? bias->columns : 0;
    frame->bias_tensor = bias ? (uint32_t)(bias - layout->tensor) : 0;
    frame->bias_exponent = (int)setup->bias_exponent;
    frame->mean = memory_new(frame->count, sizeof *frame->mean);
    frame->scale = memory_new(frame->count, sizeof *frame->scale);
    frame->penalty = memory_new(frame->count, sizeof *frame->penalty);
    frame->root = memory_new(frame->count, sizeof *frame->root);
    frame->bias_sum = memory_new(frame->biases, sizeof *frame->bias_sum);
    frame->bias_gradient = memory_new(frame->outputs, sizeof *frame->bias_gradient);
    set_others(frame);
}

int frame_take(struct frame *frame, uint64_t first, const struct coordinate *columns,
               uint64_t count) {
    if (!frame->used)
        return error_set(ERROR_INTERNAL, "coordinates came, but the weights are their own");
    /* Pieces come in order, so the elements that are lacking are the last ones. */
    while (frame->set < frame->count && frame->first + frame->set < frame->weights) {
        uint64_t column = (frame->first + frame->set) / frame->outputs;
        if (column < first)
            return error_set(ERROR_INTERNAL, "coordinates from column %llu on are missing",
                             (unsigned long long)column);
        if (column - first >= count)
            break;
        frame->mean[frame->set] = columns[column - first].mean;
        frame->scale[frame->set] = columns[column - first].scale;
        frame->penalty[frame->set] = columns[column - first].penalty;
        frame->root[frame->set] = sqrt(columns[column - first].penalty);
        note_set(frame);
    }
    set_others(frame);
    return 0;
}

bool frame_is_complete(const struct frame *frame) {
    return frame->set == frame->count;
}

void frame_read_biases(struct frame *frame, const struct bounds *bounds, double weight_sum) {
    int bound = bounds_exponent(bounds, frame->bias_tensor);
    for (size_t k = 0; k < frame->biases; k++) {
        double gradient;
        vector_from_fixed(1, &gradient, &frame->bias_sum[k], frame->bias_exponent - bound,
                          weight_sum);
        bool first = k < frame->outputs; /* or it adds to those that share the weight */
        frame->bias_gradient[k % frame->outputs] =
            first ? gradient : frame->bias_gradient[k % frame->outputs] + gradient;
    }
}

void frame_turn_gradient(const struct frame *frame, size_t offset, size_t count, double *gradient) {
    const double *mean = frame->mean + offset, *scale = frame->scale + offset;
    uint64_t k = (frame->first + offset) % frame->outputs;
    for (size_t i = 0; i < count; i++) {
        gradient[i] = scale[i] * (gradient[i] - mean[i] * frame->bias_gradient[k]);
        if (++k == frame->outputs)
            k = 0;
    }
}

void frame_penalise(const struct frame *frame, size_t offset, size_t count, double *out,
                    const double *in) {
    for (size_t i = 0; i < count; i++)
        out[i] = frame->penalty[offset + i] * in[i];
}

void frame_weigh(const struct frame *frame, size_t offset, size_t count, double *out,
                 const double *in, bool inverse) {
    const double *root = frame->root + offset;
    for (size_t i = 0; i < count; i++)
        out[i] = inverse ? in[i] / root[i] : in[i] * root[i];
}

double frame_weight_penalty(const struct frame *frame, size_t element) {
    return frame->penalty[element] / frame->scale[element] / frame->scale[element];
}

void frame_to_weights(const struct frame *frame, double *gradient) {
    const double *biases = gradient + frame->weights;
    for (size_t i = 0; i < frame->weights; i++) {
        gradient[i] /= frame->scale[i];
        for (size_t k = i % frame->outputs; k < frame->biases; k += frame->outputs)
            gradient[i] += frame->mean[i] * biases[k];
    }
}

void frame_from_weights(const struct frame *frame, double *step) {
    double *biases = step + frame->weights;
    for (size_t i = 0; i < frame->weights; i++) {
        for (size_t k = i % frame->outputs; k < frame->biases; k += frame->outputs)
            biases[k] += frame->mean[i] * step[i];
        step[i] /= frame->scale[i];
    }
}
