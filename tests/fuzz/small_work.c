#include "tests/fuzz/small_work.h"

#include <math.h>

#include "replica/compute.h"

double small_work_curvature(uint32_t element) {
    return 1 + 10 * (element % 7);
}

/* The elements are of the first tensor; something is found in the others too. */
static void note(struct maxima *maxima, uint32_t bounds, double found) {
    struct maxima more = {.count = bounds};
    for (uint32_t i = 0; i < bounds; i++)
        more.value[i] = found / (i + 1);
    maxima_merge(maxima, &more);
}

/* Σ curvature/2·(x − 1)², once for each chunk. */
void small_work_compute(struct replica_work *work, bool squared, struct computed *answer) {
    const struct computation *computation = &work->computation;
    double loss = 0;
    computed_init(answer, &computation->parts);
    answer->values = CURVED;
    for (uint32_t i = 0; i < work->curved; i++) {
        double off = computation->parameters[i] - 1;
        loss += small_work_curvature(i) / 2 * off * off;
        note(&answer->maxima, computation->bounds.count, isnan(off) ? INFINITY : fabs(off));
    }
    for (uint32_t i = 0; i < answer->totals.count; i++)
        exact_add(&answer->totals.sum[i], loss * computation->count);
    answer->exceeded = squared && maxima_exceed(&answer->maxima, &computation->bounds);
    work->summed = computation->clear ? 0 : work->summed;
    work->summed += computation->sums ? computation->count % 1024 : 0;
    work->bounds = computation->bounds;
    work->computing = false;
}

static int64_t fixed(double value) {
    return fabs(value) < 0x1p60 ? (int64_t)value : 1;
}

void small_work_gather(struct replica_work *work) {
    for (uint32_t i = 0; i < work->curved; i++) {
        double slope = small_work_curvature(i) * (work->computation.parameters[i] - 1);
        work->into[i] = fixed(ldexp(slope * work->summed, EXPONENT - work->bounds.exponent[0]));
    }
    work->gathering = false;
    work->summed = 0;
}
