/* Steps of a sweep that add up (shard/sweep_step.h). */
#ifndef DML_SHARD_SWEEP_SUMS_H
#define DML_SHARD_SWEEP_SUMS_H

#include "shard/sweep_each.h"

/* The elements of a step that lie in a block. */
struct sweep_part {
    uint64_t first, count; /* of the range */
    const double *y;       /* of the last PAIR, from the first element of the block on */
};

PORTABLE double sweep_factor(const struct sweep_step *step, uint64_t i) {
    return step->weight ? step->weight[i] * step->b[i] : step->b[i];
}

PORTABLE double sweep_product(const struct sweep_step *step, uint64_t i) {
    if (step->code == SWEEP_DOT)
        return step->a[i] * sweep_factor(step, i);
    double of_step = step->a[i] - step->b[i];
    return of_step * of_step;
}

/* The bits of |a|, which are in the order of the numbers, with infinity and NaNs above. */
PORTABLE uint64_t sweep_size(double a) {
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits & INT64_MAX;
}

PORTABLE void sweep_max_lane(const struct sweep_step *step, const struct sweep_part *part,
                             uint32_t lane, double *out) {
    uint64_t most = 0;
    for (uint64_t i = lane; i < part->count; i += step->lanes) {
        uint64_t size = sweep_size(step->a[part->first + i]);
        most = size > most ? size : most;
    }
    memcpy(out, &most, sizeof most);
}

/* Elements after the last whole lanes are added by the fold. */
PORTABLE uint64_t sweep_whole(const struct sweep_step *step, const struct sweep_part *part) {
    return part->count - part->count % step->lanes;
}

PORTABLE void sweep_product_lane(const struct sweep_step *step, const struct sweep_part *part,
                                 uint32_t lane, double *out) {
    uint64_t whole = sweep_whole(step, part);
    double sum = 0;
    for (uint64_t i = lane; i < whole; i += step->lanes)
        sum += sweep_product(step, part->first + i);
    out[0] = sum;
}

/* How many elements of a stored vector a thread reads before it uses the first of them: reads of
 * memory do not wait for each other then. */
#define SWEEP_READ_AHEAD 8

/* `wide` is a constant where this is called, so that loops do not ask for it. */
PORTABLE void sweep_history_sums(uint32_t wide, const struct sweep_step *step,
                                 const struct sweep_part *part, uint32_t lane, double *out) {
    const uint64_t whole = sweep_whole(step, part), rounds = whole / SWEEP_HISTORY_LANES;
    const double *a = step->a + part->first;
    double stored[SWEEP_READ_AHEAD], with_a = 0, with_y = 0;
    uint64_t round = 0, i = lane;
    for (; round + SWEEP_READ_AHEAD <= rounds; round += SWEEP_READ_AHEAD) {
        for (uint32_t k = 0; k < SWEEP_READ_AHEAD; k++)
            stored[k] = sweep_stored(wide, step->s, part->first + i + k * SWEEP_HISTORY_LANES);
        for (uint32_t k = 0; k < SWEEP_READ_AHEAD; k++, i += SWEEP_HISTORY_LANES) {
            with_a += stored[k] * a[i];
            with_y += stored[k] * part->y[i];
        }
    }
    for (; i < whole; i += SWEEP_HISTORY_LANES) {
        stored[0] = sweep_stored(wide, step->s, part->first + i);
        with_a += stored[0] * a[i];
        with_y += stored[0] * part->y[i];
    }
    out[0] = with_a;
    out[1] = with_y;
}

PORTABLE void sweep_history_lane(const struct sweep_range *range, const struct sweep_step *step,
                                 const struct sweep_part *part, uint32_t lane, double *out) {
    if (range->wide)
        sweep_history_sums(1, step, part, lane, out);
    else
        sweep_history_sums(0, step, part, lane, out);
}

/* Points and gradients as l1 sees them: see shard/orthant.c. */
PORTABLE void sweep_operands(const struct sweep_range *range, const struct sweep_step *step,
                             uint64_t i, double *operands) {
    const uint32_t weighed = range->root != NULL;
    const double root = weighed ? range->root[i] : 1;
    operands[0] = step->a[i];
    if (step->code != SWEEP_NORM)
        operands[1] = weighed ? step->b[i] * root : step->b[i];
    if (weighed)
        operands[0] = step->code == SWEEP_EXCESS ? operands[0] / root : operands[0] * root;
    if (step->code == SWEEP_DESCENT) {
        operands[2] = weighed ? step->c[i] / root : step->c[i];
        operands[3] = weighed ? step->d[i] / root : step->d[i];
    }
}

/* What lies beyond the end of the block is 0, and adds nothing. */
PORTABLE void sweep_orthant_lane(const struct sweep_range *range, const struct sweep_step *step,
                                 const struct sweep_part *part, uint32_t lane, double *out) {
    double sums[SWEEP_RESULTS] = {0, 0, 0};
    for (uint64_t i = lane; i < sweep_whole(step, part) + step->lanes; i += step->lanes) {
        double operands[4] = {0, 0, 0, 0};
        if (i < part->count)
            sweep_operands(range, step, part->first + i, operands);
        if (step->code == SWEEP_DESCENT) {
            element_add_descent(sums, operands, step->alpha, step->l1);
        } else if (step->code == SWEEP_EXCESS) {
            element_add_excess(sums, operands, step->alpha, step->l1);
        } else {
            element_add_size(sums, operands, step->alpha, step->l1);
            sums[1] += operands[0] != 0;
        }
    }
    for (uint32_t k = 0; k < step->results; k++)
        out[k] = sums[k];
}

/* Sums of a lane of a step, up to SWEEP_RESULTS. */
PORTABLE void sweep_lane(const struct sweep_range *range, const struct sweep_step *step,
                         const struct sweep_part *part, uint32_t lane, double *out) {
    switch (step->code) {
    case SWEEP_DOT:
    case SWEEP_SQUARE_OF_STEP:
        sweep_product_lane(step, part, lane, out);
        break;
    case SWEEP_MAX:
        sweep_max_lane(step, part, lane, out);
        break;
    case SWEEP_HISTORY:
        sweep_history_lane(range, step, part, lane, out);
        break;
    default:
        sweep_orthant_lane(range, step, part, lane, out);
        break;
    }
}

/* ---- lanes become one ---- */

#define SWEEP_LANE(lanes, i) ((lanes)[(i)*SWEEP_RESULTS])

/* 8, 16 or 32 lanes, folded as half_lanes_sum() and those that call it do. */
PORTABLE double sweep_folded(const double *lanes, uint32_t count) {
    double eight[8], four[4];
    for (uint32_t i = 0; i < 8; i++) {
        double sum = SWEEP_LANE(lanes, i);
        if (count > 8)
            sum += SWEEP_LANE(lanes, 8 + i);
        if (count > 16)
            sum += SWEEP_LANE(lanes, 16 + i) + SWEEP_LANE(lanes, 24 + i);
        eight[i] = sum;
    }
    for (uint32_t i = 0; i < 4; i++)
        four[i] = eight[i] + eight[4 + i];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* Result `result` of a step over its part of the block. */
PORTABLE double sweep_sum(const struct sweep_range *range, const struct sweep_step *step,
                          const struct sweep_part *part, const double *lanes, uint32_t result) {
    double sum = sweep_folded(lanes + result, step->lanes);
    uint32_t with_tail = step->code <= SWEEP_HISTORY;
    for (uint64_t i = sweep_whole(step, part); with_tail && i < part->count; i++) {
        uint64_t at = part->first + i;
        if (step->code != SWEEP_HISTORY)
            sum += sweep_product(step, at);
        else
            sum += sweep_stored(range->wide, step->s, at) * (result ? part->y[i] : step->a[at]);
    }
    return sum;
}

PORTABLE uint64_t sweep_max(const struct sweep_step *step, const double *lanes) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < step->lanes; i++) {
        uint64_t size;
        memcpy(&size, &SWEEP_LANE(lanes, i), sizeof size);
        most = size > most ? size : most;
    }
    return most;
}

/* As exact_add(), while other blocks do the same. */
PORTABLE void sweep_add_exactly(struct sweep_yield *yield, double sum) {
    const struct exact_term term = exact_split(sum);
    for (uint32_t i = 0; i < 3; i++)
        if (term.part[i])
            device_add_i64(&yield->limb[term.limb + i], term.part[i]);
    if (term.special)
        device_or_u32(&yield->special, term.special);
}

PORTABLE void sweep_fold(const struct sweep_range *range, const struct sweep_step *step,
                         const struct sweep_part *part, const double *lanes, uint32_t result,
                         struct sweep_yield *yields) {
    struct sweep_yield *yield = &yields[step->yield + result * step->yield_step];
    if (step->code == SWEEP_MAX)
        device_max_u64(&yield->max, sweep_max(step, lanes));
    else
        sweep_add_exactly(yield, sweep_sum(range, step, part, lanes, result));
}

#endif
