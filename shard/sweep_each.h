/* Steps of a sweep that make elements (shard/sweep_step.h). */
#ifndef DML_SHARD_SWEEP_EACH_H
#define DML_SHARD_SWEEP_EACH_H

#include "numeric/step_element.h"
#include "numeric/sum_element.h"
#include "shard/sweep_step.h"

PORTABLE double sweep_stored(uint32_t wide, const void *stored, uint64_t i) {
    return wide ? ((const double *)stored)[i] : (double)((const float *)stored)[i];
}

/* What was stored. */
PORTABLE double sweep_store(uint32_t wide, void *stored, uint64_t i, double value) {
    if (wide)
        ((double *)stored)[i] = value;
    else
        ((float *)stored)[i] = (float)value;
    return sweep_stored(wide, stored, i);
}

/* As vector_from_fixed(). */
PORTABLE double sweep_gradient(const struct sweep_range *range, const struct sweep_step *step,
                               uint64_t i) {
    int exponent = (range->exponents ? range->exponents[i] : range->exponent) - step->bound;
    int half = exponent / 2;
    return (double)range->sum[i] * fixed_power(-half) * fixed_power(half - exponent) / step->alpha;
}

/* As frame_turn_gradient(). */
PORTABLE double sweep_turned(const struct sweep_range *range, uint64_t i, double gradient) {
    double of_bias = range->bias_gradient[(range->output + i) % range->outputs];
    return range->scale[i] * (gradient - range->mean[i] * of_bias);
}

/* Where vectors are in coordinates, the gradient is of the columns: see shard/orthant.c. */
PORTABLE double sweep_pseudo(const struct sweep_range *range, const struct sweep_step *step,
                             uint64_t i) {
    double root = range->root ? range->root[i] : 1;
    double g = range->root ? step->c[i] / root : step->c[i];
    double q;
    element_pseudo(&q, &step->b[i], &g, step->l1);
    return range->root ? q * root : q;
}

PORTABLE void sweep_mask(const struct sweep_range *range, const struct sweep_step *step, uint64_t i,
                         double *y) {
    uint64_t keep;
    element_moving(&keep, &step->a[i], &step->b[i]);
    if (!keep) {
        *y = 0;
        sweep_store(range->wide, step->q, i, 0);
    }
}

/* With l1 of the columns where vectors are in coordinates: see shrink() in shard/interpreter.c. */
PORTABLE void sweep_adagrad(const struct sweep_range *range, const struct sweep_step *step,
                            uint64_t i) {
    double l1 = range->root ? step->l1 * range->root[i] : step->l1;
    if (step->code == SWEEP_ADAGRAD)
        element_adagrad_step(&step->a[i], &step->sums[i], &step->c[i], step->alpha);
    else if (step->code == SWEEP_SHRINK)
        element_adagrad_shrink(&step->a[i], &step->b[i], &l1, step->alpha);
    else
        element_adagrad_diagonal(&step->a[i], step->alpha, step->beta);
}

/* q *= a number of its own. */
PORTABLE void sweep_scale_q(const struct sweep_range *range, const struct sweep_step *step,
                            uint64_t i, double factor) {
    sweep_store(range->wide, step->q, i, factor * sweep_stored(range->wide, step->q, i));
}

/* Takes element i of the range through a step; y of the last PAIR is at *y. */
PORTABLE void sweep_element(const struct sweep_range *range, const struct sweep_step *step,
                            uint64_t i, double *y) {
    switch (step->code) {
    case SWEEP_ZERO:
        step->a[i] = 0;
        break;
    case SWEEP_ADD:
        step->a[i] = step->b[i] + step->alpha * step->c[i];
        break;
    case SWEEP_SCALE:
        step->a[i] = step->alpha * step->b[i];
        break;
    case SWEEP_MULTIPLY:
        step->a[i] *= step->b[i];
        break;
    case SWEEP_GRADIENT:
        step->a[i] = sweep_gradient(range, step, i);
        break;
    case SWEEP_TURN:
        step->a[i] = sweep_turned(range, i, step->a[i]);
        break;
    case SWEEP_REGULARIZE:
        step->a[i] += step->alpha * (step->weight ? step->weight[i] * step->b[i] : step->b[i]);
        break;
    case SWEEP_STORE_S:
        sweep_store(range->wide, step->s, i, step->a[i] - step->b[i]);
        break;
    case SWEEP_STORE_Q:
        *y = sweep_store(range->wide, step->q, i, step->a[i] - step->b[i]);
        break;
    case SWEEP_DIFFERENCE:
        *y = step->a[i] - step->b[i];
        break;
    case SWEEP_SCALE_Q:
        sweep_scale_q(range, step, i, step->alpha);
        break;
    case SWEEP_MULTIPLY_Q:
        sweep_scale_q(range, step, i, step->a[i]);
        break;
    case SWEEP_PSEUDO:
        step->a[i] = sweep_pseudo(range, step, i);
        break;
    case SWEEP_PROJECT:
        element_project(&step->a[i], &step->b[i], &step->c[i], 0);
        break;
    case SWEEP_ALIGN:
        element_align(&step->a[i], &step->b[i], &step->c[i], 0);
        break;
    case SWEEP_MASK:
        sweep_mask(range, step, i, y);
        break;
    default:
        sweep_adagrad(range, step, i);
        break;
    }
}

/* How many elements a thread has under way: as many reads of memory do not wait for each other. */
#define SWEEP_AT_ONCE 4

/* As history_add(), pair after pair: each vector of the history is read once. `wide` is a constant
 * where this is called, so that loops do not ask for it. */
PORTABLE void sweep_add_stored(uint32_t wide, const struct sweep_step *step,
                               const struct sweep_term *terms, uint64_t begin, uint64_t end) {
    for (uint64_t from = begin; from < end; from += SWEEP_AT_ONCE * SWEEP_THREADS) {
        double sum[SWEEP_AT_ONCE];
        for (uint32_t k = 0; k < SWEEP_AT_ONCE; k++)
            sum[k] = from + k * SWEEP_THREADS < end ? step->a[from + k * SWEEP_THREADS] : 0;
        for (uint32_t t = 0; t < step->terms; t++) {
            const struct sweep_term term = terms[step->first_term + t];
            for (uint32_t k = 0; k < SWEEP_AT_ONCE; k++) {
                uint64_t i = from + k * SWEEP_THREADS;
                if (i < end)
                    sum[k] += term.p * sweep_stored(wide, term.s, i) +
                              term.r * sweep_stored(wide, term.q, i);
            }
        }
        for (uint32_t k = 0; k < SWEEP_AT_ONCE; k++)
            if (from + k * SWEEP_THREADS < end)
                step->a[from + k * SWEEP_THREADS] = sum[k];
    }
}

PORTABLE void sweep_add_history(const struct sweep_range *range, const struct sweep_step *step,
                                const struct sweep_term *terms, uint64_t begin, uint64_t end) {
    if (range->wide)
        sweep_add_stored(1, step, terms, begin, end);
    else
        sweep_add_stored(0, step, terms, begin, end);
}

#endif
