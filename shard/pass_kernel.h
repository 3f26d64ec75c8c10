/* The kernels of a shard on a device. A fused pass is one kernel: each block of threads takes one
 * block of the range through all steps, in phases.
 *
 * In an EACH phase every thread takes its own elements through all steps of the phase: element i of
 * the block is always thread i mod PASS_THREADS's, so nothing has to be waited for. Sums are made
 * in two phases: in LANES each lane of each sum is one thread's, in FOLD the lanes of a sum are
 * added up, which is added to the sum over all blocks, exactly. */
#ifndef DML_SHARD_PASS_KERNEL_H
#define DML_SHARD_PASS_KERNEL_H

#include "device/kernel.h"
#include "numeric/step_element.h"
#include "numeric/sum_element.h"
#include "shard/pass_plan.h"

#define PASS_BLOCK 4096 /* elements: BLOCK_ELEMENTS */
#define PASS_THREADS 256
#define PASS_RESULTS 3 /* the most sums that one step makes */
#define PASS_HISTORY_LANES 16

/* Bytes of `shared`: y of the last PAIR, and what lanes add up to. */
#define PASS_SHARED ((PASS_BLOCK + PASS_RESULTS * PASS_THREADS) * 8)

enum pass_kind { PASS_EACH, PASS_LANES, PASS_FOLD };

struct pass_phase {
    uint32_t kind;
    uint32_t first, end; /* steps */
};

/* A sum or a maximum over all blocks. */
struct pass_yield {
    int64_t limb[EXACT_LIMBS]; /* as in numeric/exact.h */
    uint64_t max;              /* the bits of it */
    uint32_t special;          /* enum exact_special */
    uint32_t zero;
};

/* What steps work with, besides their own operands. */
struct pass_range {
    uint64_t count;           /* elements */
    uint32_t wide;            /* stored vectors are of doubles, else of floats */
    int32_t exponent;         /* of all sums, if `exponents` is NULL */
    const int64_t *sum;       /* of the evaluation */
    const int16_t *exponents; /* of each element, or NULL */
    uint64_t output, outputs; /* of the first element; of a feature: with a scaling only */
    const double *mean, *scale, *root, *bias_gradient; /* scaling: see shard/scaling.h; root is
                                                          NULL if the vectors are weights */
};

struct fused_pass_arguments {
    struct pass_range range;
    const struct pass_phase *phase;
    uint32_t phases;
    const struct pass_step *steps;
    const struct pass_term *terms;
    struct pass_yield *yields;
};

/* ---- steps that make elements ---- */

PORTABLE double pass_stored(uint32_t wide, const void *stored, uint64_t i) {
    return wide ? ((const double *)stored)[i] : (double)((const float *)stored)[i];
}

/* What was stored. */
PORTABLE double pass_store(uint32_t wide, void *stored, uint64_t i, double value) {
    if (wide)
        ((double *)stored)[i] = value;
    else
        ((float *)stored)[i] = (float)value;
    return pass_stored(wide, stored, i);
}

/* As vector_from_fixed(). */
PORTABLE double pass_gradient(const struct pass_range *range, const struct pass_step *step,
                              uint64_t i) {
    int exponent = (range->exponents ? range->exponents[i] : range->exponent) - step->bound;
    int half = exponent / 2;
    return (double)range->sum[i] * fixed_power(-half) * fixed_power(half - exponent) / step->alpha;
}

/* As scaling_gradient_to_scaled(). */
PORTABLE double pass_to_scaled(const struct pass_range *range, uint64_t i, double gradient) {
    double of_bias = range->bias_gradient[(range->output + i) % range->outputs];
    return range->scale[i] * (gradient - range->mean[i] * of_bias);
}

/* With scaled columns the gradient is that of the weights: see weighed() in shard/host.c. */
PORTABLE double pass_pseudo(const struct pass_range *range, const struct pass_step *step,
                            uint64_t i) {
    double root = range->root ? range->root[i] : 1;
    double g = range->root ? step->c[i] / root : step->c[i];
    double q;
    element_pseudo(&q, &step->b[i], &g, step->l1);
    return range->root ? q * root : q;
}

PORTABLE void pass_mask(const struct pass_range *range, const struct pass_step *step, uint64_t i,
                        double *y) {
    uint64_t keep;
    element_moving(&keep, &step->a[i], &step->b[i]);
    if (!keep) {
        *y = 0;
        pass_store(range->wide, step->q, i, 0);
    }
}

/* With scaled columns l1 is that of the weights: see weighed() in shard/host.c. */
PORTABLE void pass_adagrad(const struct pass_range *range, const struct pass_step *step,
                           uint64_t i) {
    double l1 = range->root ? step->l1 * range->root[i] : step->l1;
    if (step->code == PASS_ADAGRAD)
        element_adagrad_step(&step->a[i], &step->sums[i], &step->c[i], step->alpha, step->beta);
    else if (step->code == PASS_SHRINK)
        element_adagrad_shrink(&step->a[i], &step->b[i], &l1, step->alpha, step->beta);
    else
        element_adagrad_diagonal(&step->a[i], step->alpha, step->beta);
}

/* q *= a number of its own. */
PORTABLE void pass_scale_q(const struct pass_range *range, const struct pass_step *step, uint64_t i,
                           double factor) {
    pass_store(range->wide, step->q, i, factor * pass_stored(range->wide, step->q, i));
}

/* Takes element i of the range through a step; y of the last PAIR is at *y. */
PORTABLE void pass_element(const struct pass_range *range, const struct pass_step *step, uint64_t i,
                           double *y) {
    switch (step->code) {
    case PASS_ZERO:
        step->a[i] = 0;
        break;
    case PASS_ADD:
        step->a[i] = step->b[i] + step->alpha * step->c[i];
        break;
    case PASS_SCALE:
        step->a[i] = step->alpha * step->b[i];
        break;
    case PASS_MULTIPLY:
        step->a[i] *= step->b[i];
        break;
    case PASS_GRADIENT:
        step->a[i] = pass_gradient(range, step, i);
        break;
    case PASS_TO_SCALED:
        step->a[i] = pass_to_scaled(range, i, step->a[i]);
        break;
    case PASS_REGULARIZE:
        step->a[i] += step->alpha * (step->weight ? step->weight[i] * step->b[i] : step->b[i]);
        break;
    case PASS_STORE_S:
        pass_store(range->wide, step->s, i, step->a[i] - step->b[i]);
        break;
    case PASS_KEEP:
        step->a[i] = pass_store(range->wide, step->s, i, step->a[i]);
        break;
    case PASS_STORE_Q:
        *y = pass_store(range->wide, step->q, i, step->a[i] - step->b[i]);
        break;
    case PASS_DIFFERENCE:
        *y = step->a[i] - step->b[i];
        break;
    case PASS_SCALE_Q:
        pass_scale_q(range, step, i, step->alpha);
        break;
    case PASS_MULTIPLY_Q:
        pass_scale_q(range, step, i, step->a[i]);
        break;
    case PASS_PSEUDO:
        step->a[i] = pass_pseudo(range, step, i);
        break;
    case PASS_PROJECT:
        element_project(&step->a[i], &step->b[i], &step->c[i], 0);
        break;
    case PASS_ALIGN:
        element_align(&step->a[i], &step->b[i], &step->c[i], 0);
        break;
    case PASS_MASK:
        pass_mask(range, step, i, y);
        break;
    default:
        pass_adagrad(range, step, i);
        break;
    }
}

/* How many elements a thread has under way: as many reads of memory do not wait for each other. */
#define PASS_AT_ONCE 4

/* As history_add(), pair after pair: each vector of the history is read once. `wide` is a constant
 * where this is called, so that loops do not ask for it. */
PORTABLE void pass_add_stored(uint32_t wide, const struct pass_step *step,
                              const struct pass_term *terms, uint64_t begin, uint64_t end) {
    for (uint64_t from = begin; from < end; from += PASS_AT_ONCE * PASS_THREADS) {
        double sum[PASS_AT_ONCE];
        for (uint32_t k = 0; k < PASS_AT_ONCE; k++)
            sum[k] = from + k * PASS_THREADS < end ? step->a[from + k * PASS_THREADS] : 0;
        for (uint32_t t = 0; t < step->terms; t++) {
            const struct pass_term term = terms[step->first_term + t];
            for (uint32_t k = 0; k < PASS_AT_ONCE; k++) {
                uint64_t i = from + k * PASS_THREADS;
                if (i < end)
                    sum[k] += term.p * pass_stored(wide, term.s, i) +
                              term.r * pass_stored(wide, term.q, i);
            }
        }
        for (uint32_t k = 0; k < PASS_AT_ONCE; k++)
            if (from + k * PASS_THREADS < end)
                step->a[from + k * PASS_THREADS] = sum[k];
    }
}

PORTABLE void pass_add_history(const struct pass_range *range, const struct pass_step *step,
                               const struct pass_term *terms, uint64_t begin, uint64_t end) {
    if (range->wide)
        pass_add_stored(1, step, terms, begin, end);
    else
        pass_add_stored(0, step, terms, begin, end);
}

/* ---- steps that add up ---- */

/* The elements of a step that lie in a block. */
struct pass_part {
    uint64_t first, count; /* of the range */
    const double *y;       /* of the last PAIR, from the first element of the block on */
};

PORTABLE double pass_factor(const struct pass_step *step, uint64_t i) {
    return step->weight ? step->weight[i] * step->b[i] : step->b[i];
}

PORTABLE double pass_curvature(const struct pass_step *step, uint64_t i) {
    return step->alpha * (step->square ? step->square[i] : 1) +
           step->beta * (step->weight ? step->weight[i] : 1);
}

/* An element that has no curvature counts nothing. */
PORTABLE double pass_by_curvature(const struct pass_step *step, uint64_t i) {
    double curvature = pass_curvature(step, i);
    return curvature > 0 ? step->a[i] / curvature : 0;
}

PORTABLE double pass_product(const struct pass_step *step, uint64_t i) {
    if (step->code == PASS_GAP)
        return step->a[i] * pass_by_curvature(step, i);
    if (step->code == PASS_DOT)
        return step->a[i] * pass_factor(step, i);
    double of_step = step->a[i] - step->b[i];
    double size = step->code == PASS_METRIC ? of_step * pass_curvature(step, i) : of_step;
    return of_step * size;
}

/* The bits of |a|, which are in the order of the numbers, with infinity and NaNs above. */
PORTABLE uint64_t pass_size(double a) {
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits & INT64_MAX;
}

PORTABLE void pass_max_lane(const struct pass_step *step, const struct pass_part *part,
                            uint32_t lane, double *out) {
    uint64_t most = 0;
    for (uint64_t i = lane; i < part->count; i += step->lanes) {
        uint64_t size = pass_size(step->a[part->first + i]);
        most = size > most ? size : most;
    }
    memcpy(out, &most, sizeof most);
}

/* Elements after the last whole lanes are added by the fold. */
PORTABLE uint64_t pass_whole(const struct pass_step *step, const struct pass_part *part) {
    return part->count - part->count % step->lanes;
}

PORTABLE void pass_product_lane(const struct pass_step *step, const struct pass_part *part,
                                uint32_t lane, double *out) {
    uint64_t whole = pass_whole(step, part);
    double sum = 0;
    for (uint64_t i = lane; i < whole; i += step->lanes)
        sum += pass_product(step, part->first + i);
    out[0] = sum;
}

/* How many elements of a stored vector a thread reads before it uses the first of them: reads of
 * memory do not wait for each other then. */
#define PASS_READ_AHEAD 8

/* `wide` is a constant where this is called, so that loops do not ask for it. */
PORTABLE void pass_history_sums(uint32_t wide, const struct pass_step *step,
                                const struct pass_part *part, uint32_t lane, double *out) {
    const uint64_t whole = pass_whole(step, part), rounds = whole / PASS_HISTORY_LANES;
    const double *a = step->a + part->first;
    double stored[PASS_READ_AHEAD], with_a = 0, with_y = 0;
    uint64_t round = 0, i = lane;
    for (; round + PASS_READ_AHEAD <= rounds; round += PASS_READ_AHEAD) {
        for (uint32_t k = 0; k < PASS_READ_AHEAD; k++)
            stored[k] = pass_stored(wide, step->s, part->first + i + k * PASS_HISTORY_LANES);
        for (uint32_t k = 0; k < PASS_READ_AHEAD; k++, i += PASS_HISTORY_LANES) {
            with_a += stored[k] * a[i];
            with_y += stored[k] * part->y[i];
        }
    }
    for (; i < whole; i += PASS_HISTORY_LANES) {
        stored[0] = pass_stored(wide, step->s, part->first + i);
        with_a += stored[0] * a[i];
        with_y += stored[0] * part->y[i];
    }
    out[0] = with_a;
    out[1] = with_y;
}

PORTABLE void pass_history_lane(const struct pass_range *range, const struct pass_step *step,
                                const struct pass_part *part, uint32_t lane, double *out) {
    if (range->wide)
        pass_history_sums(1, step, part, lane, out);
    else
        pass_history_sums(0, step, part, lane, out);
}

PORTABLE double pass_window(const struct pass_range *range, const struct pass_step *step,
                            uint64_t i) {
    double a = step->weight ? step->weight[i] * step->a[i] : step->a[i];
    return pass_stored(range->wide, step->s, i) * a;
}

PORTABLE void pass_window_lane(const struct pass_range *range, const struct pass_step *step,
                               const struct pass_part *part, uint32_t lane, double *out) {
    uint64_t whole = pass_whole(step, part);
    double sum = 0;
    for (uint64_t i = lane; i < whole; i += step->lanes)
        sum += pass_window(range, step, part->first + i);
    out[0] = sum;
}

/* Points and gradients as l1 sees them: see weighed() in shard/host.c. */
PORTABLE void pass_operands(const struct pass_range *range, const struct pass_step *step,
                            uint64_t i, double *operands) {
    const uint32_t weighed = range->root != NULL;
    const double root = weighed ? range->root[i] : 1;
    operands[0] = step->a[i];
    if (step->code != PASS_NORM)
        operands[1] = weighed ? step->b[i] * root : step->b[i];
    if (weighed)
        operands[0] = step->code == PASS_EXCESS ? operands[0] / root : operands[0] * root;
    if (step->code == PASS_DESCENT) {
        operands[2] = weighed ? step->c[i] / root : step->c[i];
        operands[3] = weighed ? step->d[i] / root : step->d[i];
    }
}

/* What lies beyond the end of the block is 0, and adds nothing. */
PORTABLE void pass_orthant_lane(const struct pass_range *range, const struct pass_step *step,
                                const struct pass_part *part, uint32_t lane, double *out) {
    double sums[PASS_RESULTS] = {0, 0, 0};
    for (uint64_t i = lane; i < pass_whole(step, part) + step->lanes; i += step->lanes) {
        double operands[4] = {0, 0, 0, 0};
        if (i < part->count)
            pass_operands(range, step, part->first + i, operands);
        if (step->code == PASS_DESCENT) {
            element_add_descent(sums, operands, step->alpha, step->l1);
        } else if (step->code == PASS_EXCESS) {
            element_add_excess(sums, operands, step->alpha, step->l1);
        } else {
            element_add_size(sums, operands, step->alpha, step->l1);
            sums[1] += operands[0] != 0;
        }
    }
    for (uint32_t k = 0; k < step->results; k++)
        out[k] = sums[k];
}

/* Sums of a lane of a step, up to PASS_RESULTS. */
PORTABLE void pass_lane(const struct pass_range *range, const struct pass_step *step,
                        const struct pass_part *part, uint32_t lane, double *out) {
    switch (step->code) {
    case PASS_DOT:
    case PASS_GAP:
    case PASS_METRIC:
    case PASS_SQUARE_OF_STEP:
        pass_product_lane(step, part, lane, out);
        break;
    case PASS_MAX:
        pass_max_lane(step, part, lane, out);
        break;
    case PASS_WINDOW:
        pass_window_lane(range, step, part, lane, out);
        break;
    case PASS_HISTORY:
        pass_history_lane(range, step, part, lane, out);
        break;
    default:
        pass_orthant_lane(range, step, part, lane, out);
        break;
    }
}

/* ---- lanes become one ---- */

#define PASS_LANE(lanes, i) ((lanes)[(i)*PASS_RESULTS])

/* 8, 16 or 32 lanes, folded as half_lanes_sum() and those that call it do. */
PORTABLE double pass_folded(const double *lanes, uint32_t count) {
    double eight[8], four[4];
    for (uint32_t i = 0; i < 8; i++) {
        double sum = PASS_LANE(lanes, i);
        if (count > 8)
            sum += PASS_LANE(lanes, 8 + i);
        if (count > 16)
            sum += PASS_LANE(lanes, 16 + i) + PASS_LANE(lanes, 24 + i);
        eight[i] = sum;
    }
    for (uint32_t i = 0; i < 4; i++)
        four[i] = eight[i] + eight[4 + i];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* Result `result` of a step over its part of the block. */
PORTABLE double pass_sum(const struct pass_range *range, const struct pass_step *step,
                         const struct pass_part *part, const double *lanes, uint32_t result) {
    double sum = pass_folded(lanes + result, step->lanes);
    uint32_t with_tail = step->code <= PASS_HISTORY;
    for (uint64_t i = pass_whole(step, part); with_tail && i < part->count; i++) {
        uint64_t at = part->first + i;
        if (step->code == PASS_WINDOW)
            sum += pass_window(range, step, at);
        else if (step->code != PASS_HISTORY)
            sum += pass_product(step, at);
        else
            sum += pass_stored(range->wide, step->s, at) * (result ? part->y[i] : step->a[at]);
    }
    return sum;
}

PORTABLE uint64_t pass_max(const struct pass_step *step, const double *lanes) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < step->lanes; i++) {
        uint64_t size;
        memcpy(&size, &PASS_LANE(lanes, i), sizeof size);
        most = size > most ? size : most;
    }
    return most;
}

/* As exact_add(), while other blocks do the same. */
PORTABLE void pass_add_exactly(struct pass_yield *yield, double sum) {
    const struct exact_term term = exact_split(sum);
    for (uint32_t i = 0; i < 3; i++)
        if (term.part[i])
            device_add_i64(&yield->limb[term.limb + i], term.part[i]);
    if (term.special)
        device_or_u32(&yield->special, term.special);
}

PORTABLE void pass_fold(const struct pass_range *range, const struct pass_step *step,
                        const struct pass_part *part, const double *lanes, uint32_t result,
                        struct pass_yield *yields) {
    struct pass_yield *yield = &yields[step->yield + result * step->yield_step];
    if (step->code == PASS_MAX)
        device_max_u64(&yield->max, pass_max(step, lanes));
    else
        pass_add_exactly(yield, pass_sum(range, step, part, lanes, result));
}

/* ---- a pass, block by block ---- */

/* The elements of a step that lie in the block that begins at `offset`. Steps that take y are about
 * whole blocks. */
PORTABLE struct pass_part pass_part_of(const struct pass_step *step, uint64_t offset, uint64_t end,
                                       const double *y) {
    struct pass_part part;
    uint64_t last = step->end < end ? step->end : end;
    part.first = step->first > offset ? step->first : offset;
    part.count = last > part.first ? last - part.first : 0;
    part.y = y;
    return part;
}

/* The element of its own from `least` on: those of a thread do not depend on where a step begins.
 */
PORTABLE uint64_t pass_first(const struct place *place, uint64_t offset, uint64_t least) {
    uint64_t own = offset + place->thread;
    return own >= least ? own
                        : own + (least - own + PASS_THREADS - 1) / PASS_THREADS * PASS_THREADS;
}

PORTABLE void pass_each(const struct place *place, const struct fused_pass_arguments *arguments,
                        const struct pass_step *step, uint64_t offset, uint64_t end, double *y) {
    const struct pass_part part = pass_part_of(step, offset, end, y);
    uint64_t last = part.first + part.count;
    uint64_t begin = pass_first(place, offset, part.first);
    if (step->code == PASS_ADD_HISTORY) {
        pass_add_history(&arguments->range, step, arguments->terms, begin, last);
        return;
    }
    for (uint64_t i = begin; i < last; i += PASS_THREADS)
        pass_element(&arguments->range, step, i, &y[i - offset]);
}

PORTABLE void pass_sums(const struct place *place, const struct fused_pass_arguments *arguments,
                        const struct pass_step *step, const struct pass_part *part, double *lanes,
                        uint32_t kind) {
    uint32_t lane = place->thread - step->thread; /* far above if it is before */
    double *first = lanes + step->thread * PASS_RESULTS;
    if (kind == PASS_LANES && lane < step->lanes)
        pass_lane(&arguments->range, step, part, lane, first + lane * PASS_RESULTS);
    else if (kind == PASS_FOLD && lane < step->results)
        pass_fold(&arguments->range, step, part, first, lane, arguments->yields);
}

PORTABLE void fused_pass_body(const struct place *place,
                              const struct fused_pass_arguments *arguments, void *shared,
                              uint32_t phase) {
    double *y = (double *)shared, *lanes = y + PASS_BLOCK;
    const struct pass_phase now = arguments->phase[phase];
    const uint64_t offset = (uint64_t)place->block * PASS_BLOCK;
    const uint64_t left = arguments->range.count - offset;
    const uint64_t end = offset + (left < PASS_BLOCK ? left : PASS_BLOCK);
    for (uint32_t i = now.first; i < now.end; i++) {
        const struct pass_step *step = &arguments->steps[i];
        const struct pass_part part = pass_part_of(step, offset, end, y);
        if (!part.count)
            continue;
        if (now.kind == PASS_EACH)
            pass_each(place, arguments, step, offset, end, y);
        else
            pass_sums(place, arguments, step, &part, lanes, now.kind);
    }
}

/* ---- slices of sums ---- */

struct merge_slice_arguments {
    int64_t *sum;
    const int64_t *values;   /* [count] */
    const uint32_t *offsets; /* where they are added; NULL: one after the other */
    uint64_t count;
};

PORTABLE void merge_slice_body(const struct place *place,
                               const struct merge_slice_arguments *arguments, void *shared,
                               uint32_t phase) {
    const uint64_t stride = (uint64_t)place->blocks * place->threads;
    (void)shared, (void)phase;
    for (uint64_t i = (uint64_t)place->block * place->threads + place->thread; i < arguments->count;
         i += stride)
        if (arguments->offsets)
            device_add_i64(&arguments->sum[arguments->offsets[i]], arguments->values[i]);
        else
            arguments->sum[i] += arguments->values[i];
}

#endif
