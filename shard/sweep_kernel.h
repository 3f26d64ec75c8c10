/* The kernels of a shard on a device. */
#ifndef DML_SHARD_SWEEP_KERNEL_H
#define DML_SHARD_SWEEP_KERNEL_H

#include "device/kernel.h"
#include "shard/sweep_sums.h"

/* ---- the operations of a sweep, block by block ---- */

/* The elements of a step that lie in the block that begins at `offset`. Steps that take y are about
 * whole blocks. */
PORTABLE struct sweep_part sweep_part_of(const struct sweep_step *step, uint64_t offset,
                                         uint64_t end, const double *y) {
    struct sweep_part part;
    uint64_t last = step->end < end ? step->end : end;
    part.first = step->first > offset ? step->first : offset;
    part.count = last > part.first ? last - part.first : 0;
    part.y = y;
    return part;
}

/* The element of its own from `least` on: those of a thread do not depend on where a step begins.
 */
PORTABLE uint64_t sweep_first(const struct place *place, uint64_t offset, uint64_t least) {
    uint64_t own = offset + place->thread;
    return own >= least ? own
                        : own + (least - own + SWEEP_THREADS - 1) / SWEEP_THREADS * SWEEP_THREADS;
}

PORTABLE void sweep_each(const struct place *place, const struct sweep_arguments *arguments,
                         const struct sweep_step *step, uint64_t offset, uint64_t end, double *y) {
    const struct sweep_part part = sweep_part_of(step, offset, end, y);
    uint64_t last = part.first + part.count;
    uint64_t begin = sweep_first(place, offset, part.first);
    if (step->code == SWEEP_ADD_HISTORY) {
        sweep_add_history(&arguments->range, step, arguments->terms, begin, last);
        return;
    }
    for (uint64_t i = begin; i < last; i += SWEEP_THREADS)
        sweep_element(&arguments->range, step, i, &y[i - offset]);
}

PORTABLE void sweep_sums(const struct place *place, const struct sweep_arguments *arguments,
                         const struct sweep_step *step, const struct sweep_part *part,
                         double *lanes, uint32_t kind) {
    uint32_t lane = place->thread - step->thread; /* far above if it is before */
    double *first = lanes + step->thread * SWEEP_RESULTS;
    if (kind == SWEEP_LANES && lane < step->lanes)
        sweep_lane(&arguments->range, step, part, lane, first + lane * SWEEP_RESULTS);
    else if (kind == SWEEP_FOLD && lane < step->results)
        sweep_fold(&arguments->range, step, part, first, lane, arguments->yields);
}

PORTABLE void sweep_body(const struct place *place, const struct sweep_arguments *arguments,
                         void *shared, uint32_t phase) {
    double *y = (double *)shared, *lanes = y + SWEEP_BLOCK;
    const struct sweep_phase now = arguments->phase[phase];
    const uint64_t offset = (uint64_t)place->block * SWEEP_BLOCK;
    const uint64_t left = arguments->range.count - offset;
    const uint64_t end = offset + (left < SWEEP_BLOCK ? left : SWEEP_BLOCK);
    for (uint32_t i = now.first; i < now.end; i++) {
        const struct sweep_step *step = &arguments->steps[i];
        const struct sweep_part part = sweep_part_of(step, offset, end, y);
        if (!part.count)
            continue;
        if (now.kind == SWEEP_EACH)
            sweep_each(place, arguments, step, offset, end, y);
        else
            sweep_sums(place, arguments, step, &part, lanes, now.kind);
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
