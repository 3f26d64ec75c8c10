#include "optimizer/working.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h> /* qsort */
#include <string.h>

#include "base/memory.h"
#include "optimizer/row.h"
#include "wire/program.h"

#define VIOLATORS_LEAST 64
#define SHARE 0.5
#define SHARE_DAMPED 0.75
#define SHARE_NEAR 0.25 /* from a model on: most of what will not be 0 is not */
#define ROWS_A_PARAMETER 100
#define GROWTH_MAX 20
#define DAMPING_FIRST 1e-3
#define DAMPING_NEAR 1e-6 /* from a model on: its rows are fitted as they will be */
#define DAMPING_LEAST 1e-12
#define DAMPING_MOST 1.0
#define DAMPING_FACTOR 8.0
#define SHORT_STEP 0.5
#define FAILURES_MAX 3
#define FALL_LEAST 0.25 /* of what the quadratic says */
#define FALL_GOOD 0.75

/* Damping hides directions along which F curves less. */
#define DAMPING_TELLS 1e-5
#define TELLS_LEAST 0.5 /* of what the quadratic says */
#define TELLS_MOST 2.0
#define COST_MAX 20.0 /* passes */

/* With several outputs pairs of weights are many, and products of a pass cheap: second derivatives
 * for more passes than the first are waited for, and for more than the second not taken. */
#define COST_AT_ONCE 3.0
#define COST_OUTPUTS_MAX 5.0

void working_init(struct working *w, const struct preconditioner_settings *settings) {
    w->damping = settings->near ? DAMPING_NEAR : DAMPING_FIRST;
    w->falls[0] = w->falls[1] = INFINITY;
}

/* A row says something of the weights of each output. */
static uint64_t rows_wanted(const struct working *w, const struct preconditioner_settings *settings,
                            uint64_t count) {
    double rows = ROWS_A_PARAMETER * (double)count / sqrt(settings->parts);
    uint64_t wanted = (uint64_t)rows << w->growth;
    return wanted < settings->rows ? wanted : settings->rows;
}

/* Terms of a row grow as the square of the set. Before any were counted all columns count alike. */
static bool is_too_costly(const struct working *w, const struct preconditioner *p,
                          const struct preconditioner_settings *settings, uint64_t count) {
    double rows = (double)rows_wanted(w, settings, count), pairs = (double)count * (double)count;
    double density = w->density > 0 ? w->density : settings->density * settings->density / 2;
    double cost = settings->cost_all + rows * pairs * density * settings->cost_term;
    return settings->parts > 1 &&
           (cost > COST_OUTPUTS_MAX || cost > fmax(COST_AT_ONCE, (double)p->passes));
}

bool working_is_too_costly(const struct working *w, const struct preconditioner *p,
                           const struct preconditioner_settings *settings) {
    return is_too_costly(w, p, settings, w->count);
}

bool working_due(const struct working *w, const struct preconditioner *p,
                 const struct preconditioner_settings *settings, uint64_t nonzero) {
    assert(w->count <= WORKING_SET_MAX);
    /* A set that is full of what is not 0 lets nothing in, unless it is all there is. */
    double all = ((double)settings->columns - 1) * settings->parts;
    bool whole = all <= settings->block_columns;
    bool has_room = nonzero + (whole ? 0 : VIOLATORS_LEAST) <= settings->block_columns;
    return settings->form == PRECONDITION_LISTED && !w->left && w->failures < FAILURES_MAX &&
           has_room && !is_too_costly(w, p, settings, nonzero);
}

uint32_t working_limit(const struct working *w, const struct preconditioner_settings *settings,
                       uint64_t nonzero) {
    assert(nonzero <= settings->block_columns);
    uint64_t most = settings->block_columns - nonzero;
    double share = settings->near ? SHARE_NEAR : SHARE;
    if (working_damping(w) > DAMPING_TELLS)
        share = SHARE_DAMPED;
    if (settings->parts > 1)
        share = 1;
    uint64_t enter = (uint64_t)(share * (double)nonzero);
    uint64_t wanted = enter > VIOLATORS_LEAST ? enter : VIOLATORS_LEAST;
    return (uint32_t)(wanted < most ? wanted : most);
}

/* ---- the choice ---- */

/* What is in the set in any case comes first, then by falling excess; the order is total. */
static int by_excess(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    if (a->excess != b->excess)
        return a->excess > b->excess ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_number(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

void working_choose(struct working *w, const struct listed *listed, uint32_t count,
                    uint32_t limit) {
    struct listed *all = memory_new(count, sizeof *all);
    assert(limit <= WORKING_SET_MAX);
    uint32_t taken = 0;
    memcpy(all, listed, count * sizeof *all);
    qsort(all, count, sizeof *all, by_excess);
    w->count = 0;
    for (uint32_t i = 0; i < count && w->count < WORKING_SET_MAX; i++) {
        bool enters = isfinite(all[i].excess);
        if (enters && taken++ >= limit)
            break;
        w->items[w->count++] = all[i];
    }
    free(all);
    qsort(w->items, w->count, sizeof *w->items, by_number);
}

uint32_t working_weights(const struct working *w, uint64_t *weights) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->items[i].regularized)
            weights[count++] = w->items[i].number;
    return count;
}

struct row_sampling working_sampling(const struct working *w, const struct preconditioner *p,
                                     const struct preconditioner_settings *settings) {
    return preconditioner_sampling_of(p, settings, rows_wanted(w, settings, w->count));
}

/* ---- the step ---- */

double working_damping(const struct working *w) {
    assert(w->damping > 0);
    return w->damping;
}

static void damp(struct working *w, double factor) {
    w->damping = fmin(fmax(working_damping(w) * factor, DAMPING_LEAST), DAMPING_MOST);
}

double working_promise(const struct working *w, const double *step, double l1) {
    double promise = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct listed *listed = &w->items[i];
        double own_l1 = listed->regularized ? l1 * listed->lasso : 0;
        promise +=
            listed->gradient * step[i] + own_l1 * (fabs(listed->x + step[i]) - fabs(listed->x));
    }
    return isfinite(promise) ? promise : NAN;
}

void working_scatter(const struct working *w, const double *step, uint8_t a,
                     struct bytes *program) {
    struct bytes values;
    uint32_t count = 0;
    bytes_init(&values);
    for (uint32_t i = 0; i < w->count; i++)
        if (step[i] != 0) {
            value_put(&values, w->items[i].number, step[i]);
            count++;
        }
    program_add(program,
                &(struct operation){
                    .code = OPERATION_SCATTER, .a = a, .listed = count, .list = values.data});
    bytes_release(&values);
}

static void note_fall(struct working *w, double fall) {
    w->falls[1] = w->falls[0];
    w->falls[0] = fall;
}

void working_passed_over(struct working *w) {
    note_fall(w, INFINITY);
}

double working_rest(const struct working *w) {
    double last = w->falls[0], before = w->falls[1];
    if (!isfinite(last) || !isfinite(before) || !(before > 0))
        return NAN;
    return last * fmin(1, last / before);
}

/* At the minimum of a quadratic the promise is twice the fall. */
void working_stepped(struct working *w, double length, double promise, double fall) {
    double share = -2 * fall / promise;
    assert(length > 0 && promise < 0);
    bool tells = length == 1 && share > TELLS_LEAST && share < TELLS_MOST &&
                 working_damping(w) <= DAMPING_TELLS;
    note_fall(w, tells ? -promise / 2 : INFINITY);
    w->stage = WORKING_NONE;
    w->failures = 0;
    if (length < SHORT_STEP || share < FALL_LEAST)
        damp(w, DAMPING_FACTOR);
    else if (length == 1 && share > FALL_GOOD)
        damp(w, 1 / DAMPING_FACTOR);
}

void working_failed(struct working *w) {
    w->stage = WORKING_NONE;
    w->failures++;
    damp(w, DAMPING_FACTOR);
    if (w->growth < GROWTH_MAX)
        w->growth++;
}

void working_paid(struct working *w, const struct curvature_found *found, double passes) {
    double pairs = (double)w->count * (double)w->count;
    assert(w->count > 0);
    if (found->rows > 0)
        w->density = found->terms / (found->rows * pairs);
    w->left |= !(passes <= COST_MAX);
}

/* ---- in the record of the state ---- */

static void serialize_listed(struct codec *codec, struct listed *listed) {
    uint32_t exponent = (uint32_t)listed->exponent;
    serialize_u64(codec, &listed->number);
    serialize_bool(codec, &listed->regularized);
    serialize_u32(codec, &exponent);
    listed->exponent = (int32_t)exponent;
    serialize_f64(codec, &listed->x);
    serialize_f64(codec, &listed->gradient);
    serialize_f64(codec, &listed->mean);
    serialize_f64(codec, &listed->scale);
    serialize_f64(codec, &listed->penalty);
    serialize_f64(codec, &listed->square);
    serialize_f64(codec, &listed->lasso);
    serialize_f64(codec, &listed->low);
    serialize_f64(codec, &listed->high);
    serialize_f64(codec, &listed->excess);
}

void working_serialize(struct codec *codec, struct working *w) {
    w->stage = serialize_enum(codec, w->stage, WORKING_STEP + 1);
    serialize_bool(codec, &w->left);
    serialize_u32(codec, &w->failures);
    serialize_u32(codec, &w->growth);
    serialize_f64(codec, &w->density);
    serialize_f64(codec, &w->damping);
    serialize_f64(codec, &w->falls[0]);
    serialize_f64(codec, &w->falls[1]);
    serialize_u32(codec, &w->count);
    serialize_fails_if(codec, w->growth > GROWTH_MAX || w->count > WORKING_SET_MAX);
    serialize_fails_if(codec, !(w->damping > 0));
    if (w->count > WORKING_SET_MAX)
        w->count = 0;
    for (uint32_t i = 0; i < w->count && !codec->in.failed; i++)
        serialize_listed(codec, &w->items[i]);
}
