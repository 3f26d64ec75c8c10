#include "tests/fuzz/small_work.h"

#include <math.h>
#include <string.h>

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
    answer->values = ACTIVE;
    answer->rows = (struct row_range){0, work->rows};
    uint32_t elements = parts_take_rows(&computation->parts) ? work->rows : work->active;
    for (uint32_t i = 0; i < elements && i < ACTIVE; i++) {
        double off = computation->parameters[i] - 1;
        loss += small_work_curvature(i) / 2 * off * off;
        note(&answer->maxima, computation->bounds.count, isnan(off) ? INFINITY : fabs(off));
    }
    for (uint32_t i = 0; i < answer->totals.count; i++)
        exact_add(&answer->totals.sum[i], loss * computation->count);
    bool bounded = evaluation_sums(&computation->parts) != SUMS_ROWS;
    answer->exceeded = squared && bounded && maxima_exceed(&answer->maxima, &computation->bounds);
    work->summed = computation->clear ? 0 : work->summed;
    work->chunks = computation->clear ? 0 : work->chunks;
    for (uint32_t i = 0; i < computation->count && computation->sums; i++)
        work->chunks |= UINT64_C(1) << (computation->first + i) % 64;
    work->summed += computation->sums ? computation->count % 1024 : 0;
    work->bounds = computation->bounds;
    work->computing = false;
}

static int64_t fixed(double value) {
    return fabs(value) < 0x1p60 ? (int64_t)value : 1;
}

/* A vector of rows: the bits of each number, of the chunks that were computed. */
static void gather_rows(struct replica_work *work) {
    bool product = work->computation.parts.items[0].kind == EVALUATION_PRODUCT;
    for (uint32_t row = 0; row < work->rows; row++) {
        bool known = product && work->active;
        double number = known ? work->computation.parameters[row % work->active] : row % 2;
        int64_t bits;
        memcpy(&bits, &number, sizeof bits);
        work->into[row] = work->chunks >> row / BLOCK_ROWS & 1 ? bits : 0;
    }
}

/* The columns' sums of a vector of rows. */
static void gather_columns(struct replica_work *work) {
    int exponent = EXPONENT - work->bounds.exponent[0];
    for (uint32_t row = 0; row < work->rows; row++)
        if (row % ACTIVE < work->active && work->chunks >> row / BLOCK_ROWS & 1)
            work->into[row % ACTIVE] += fixed(ldexp(work->computation.parameters[row], exponent));
}

static void gather_slopes(struct replica_work *work) {
    for (uint32_t i = 0; i < work->active; i++) {
        double slope = small_work_curvature(i) * (work->computation.parameters[i] - 1);
        work->into[i] = fixed(ldexp(slope * work->summed, EXPONENT - work->bounds.exponent[0]));
    }
}

void small_work_gather(struct replica_work *work) {
    const struct evaluation_parts *parts = &work->computation.parts;
    if (evaluation_sums(parts) == SUMS_ROWS)
        gather_rows(work);
    else if (parts_take_rows(parts))
        gather_columns(work);
    else
        gather_slopes(work);
    work->gathering = false;
    work->chunks = 0;
    work->summed = 0;
}
