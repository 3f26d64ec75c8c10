/* Vectors of rows on the shards: what the products of lbfgs_span.c and lbfgs_products.c have in
 * common, and the phase that begins each attempt with the rows' own numbers: labels, weights and
 * offsets, in tiles the sizes of rows, too; of a network shards have nothing but sizes. */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/mutant.h"
#include "optimizer/lbfgs_phase.h"

/* ---- evaluations of rows ---- */

/* What a stage evaluates, and what is reported of it; NULL: that depends on what is found. */
static const struct {
    uint32_t kind;
    const char *outcome;
} stages[] = {
    [COMMON_LABELS] = {EVALUATION_LABELS, "labels"},
    [COMMON_WEIGHTS] = {EVALUATION_WEIGHTS, "weights"},
    [COMMON_SIZES] = {EVALUATION_SIZES, "sizes"},
    [COMMON_MARGINS] = {EVALUATION_PRODUCT, "margins"},
    [COMMON_PRODUCT] = {EVALUATION_PRODUCT, "product"},
    [COMMON_HOLDOUT] = {EVALUATION_LOSS, "holdout"},
    [COMMON_TRANSPOSE] = {EVALUATION_TRANSPOSE, NULL},
    [COMMON_CHECK] = {EVALUATION_GRADIENT, NULL},
    [COMMON_OFFSETS] = {EVALUATION_OFFSETS, "offsets"},
    [COMMON_DERIVATIVES] = {EVALUATION_DERIVATIVES, "derivatives"},
};

const char *rows_outcome(enum common_stage stage) {
    assert(stage > COMMON_NONE && stage < sizeof stages / sizeof stages[0]);
    return stages[stage].outcome;
}

enum optimizer_want rows_evaluate(struct lbfgs *o, enum common_stage stage) {
    assert(stage > COMMON_NONE && stage < sizeof stages / sizeof stages[0]);
    o->common.stage = stage;
    return lbfgs_evaluate(o);
}

bool rows_tiled(const struct lbfgs *o) {
    return o->data.tiles > 0;
}

bool rows_holdout_counts(const struct lbfgs *o) {
    return o->settings.patience && o->data.holdout_chunks;
}

/* The gradient of a network's upper layers comes with that of the first, over the training rows, as
 * tiles of one more strip. Its bounds, and that of the derivatives, follow from what the evaluation
 * of the derivatives before it has found, which has no bounds but what a sum can hold. Beside the
 * derivatives comes the loss on the holdout, if it counts, as shards of a network know no losses.
 */
static void network_request(const struct lbfgs *o, struct optimizer_request *request) {
    const struct optimizer_data *data = &o->data;
    struct evaluation_parts *parts = &request->parts;
    if (o->common.stage == COMMON_DERIVATIVES) {
        parts->items[0] = (struct evaluation_part){EVALUATION_DERIVATIVES, 0, data->chunks};
        if (rows_holdout_counts(o))
            parts->items[parts->count++] =
                (struct evaluation_part){EVALUATION_LOSS, data->chunks, data->holdout_chunks};
        request->bounded = true;
        request->largest = DBL_MAX;
    } else if (o->common.stage == COMMON_TRANSPOSE) {
        parts->items[parts->count++] =
            (struct evaluation_part){EVALUATION_UPPER, data->tiles, data->chunks};
        request->bounded = false;
        request->again = true;
    }
}

void rows_request(const struct lbfgs *o, struct optimizer_request *request) {
    const struct optimizer_data *data = &o->data;
    uint32_t kind = stages[o->common.stage].kind;
    if (o->common.stage == COMMON_CHECK && rows_tiled(o))
        kind = EVALUATION_TRANSPOSE;
    bool product = kind == EVALUATION_PRODUCT, transpose = kind == EVALUATION_TRANSPOSE;
    struct evaluation_part part = {kind, 0,
                                   data->chunks + (rows_tiled(o) ? data->holdout_chunks : 0)};
    if (o->common.stage == COMMON_HOLDOUT)
        part = (struct evaluation_part){kind, data->chunks, data->holdout_chunks};
    else if (rows_tiled(o) && (product || transpose))
        part.count = data->tiles;
    request->parts = (struct evaluation_parts){.items = {part}, .count = 1};
    request->rows = transpose;
    request->bounded = transpose || (rows_tiled(o) && product);
    request->largest = transpose ? o->common.span.derivative : o->common.point_max;
    if (data->upper)
        network_request(o, request);
}

/* ---- the holdout ---- */

/* In tiles shards have the margins of held-out rows, too, and find their losses themselves. Else,
 * and for a network, replicas do. */
static bool shards_have_holdout(const struct lbfgs *o) {
    return rows_tiled(o) && !o->data.upper && rows_holdout_counts(o);
}

void rows_add_held(const struct lbfgs *o, struct bytes *program) {
    if (shards_have_holdout(o))
        program_add(program, &(struct operation){.code = OPERATION_ROWS_HELD});
}

uint32_t rows_take_held(struct lbfgs *o, const double *scalars) {
    if (!shards_have_holdout(o))
        return 0;
    lbfgs_take_held(o, held_of(scalars, &o->data));
    return 2;
}

void rows_add_take(struct bytes *program, enum row_vector vector, uint16_t slot) {
    program_add(program,
                &(struct operation){.code = OPERATION_ROWS_TAKE, .vector = vector, .slot = slot});
}

/* ---- the rows' own numbers ---- */

static enum optimizer_want begin_at_x(struct lbfgs *o, struct bytes *program) {
    if (o->started)
        return lbfgs_leave(o, program);
    return products_run(o) ? lbfgs_start_trial(o, program) : common_start(o, program);
}

/* The rows' own numbers need no point; replicas get one all the same. */
static enum optimizer_want ask(struct lbfgs *o, enum common_stage stage, struct bytes *program) {
    program_return(program);
    return rows_evaluate(o, stage);
}

static enum optimizer_want ask_sizes(struct lbfgs *o, struct bytes *program) {
    if (!rows_tiled(o) || (o->started && mutant(SIZES_NOT_FETCHED)))
        return begin_at_x(o, program);
    return ask(o, COMMON_SIZES, program);
}

static enum optimizer_want ask_offsets(struct lbfgs *o, struct bytes *program) {
    if (!o->settings.offsets || (o->started && mutant(OFFSETS_NOT_FETCHED)))
        return ask_sizes(o, program);
    return ask(o, COMMON_OFFSETS, program);
}

static enum optimizer_want ask_weights(struct lbfgs *o, struct bytes *program) {
    if (!o->settings.weighted || (o->started && mutant(WEIGHTS_NOT_FETCHED)))
        return ask_offsets(o, program);
    return ask(o, COMMON_WEIGHTS, program);
}

enum optimizer_want rows_begin(struct lbfgs *o, struct bytes *program) {
    assert(lbfgs_by_rows(o) && !o->accepted);
    if (o->started && mutant(LABELS_NOT_FETCHED))
        return lbfgs_leave(o, program);
    return ask(o, o->data.upper ? COMMON_SIZES : COMMON_LABELS, program);
}

static enum optimizer_want rows_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                          struct optimizer_request *request) {
    static const struct {
        enum row_vector vector;
        enum optimizer_want (*next)(struct lbfgs *, struct bytes *);
    } numbers[] = {
        [COMMON_LABELS] = {ROWS_LABELS, ask_weights},
        [COMMON_WEIGHTS] = {ROWS_WEIGHTS, ask_offsets},
        [COMMON_SIZES] = {ROWS_SIZES, begin_at_x},
        [COMMON_OFFSETS] = {ROWS_OFFSETS, ask_sizes},
    };
    enum common_stage stage = o->common.stage;
    (void)found;
    assert(stage < sizeof numbers / sizeof numbers[0] && numbers[stage].next);
    lbfgs_report(&request->report, o, rows_outcome(stage), NAN, NAN);
    o->common.stage = COMMON_NONE;
    rows_add_take(request->program, numbers[stage].vector, 0);
    return numbers[stage].next(o, request->program);
}

static bool rows_are_asked_for(const struct lbfgs *o) {
    enum common_stage stage = o->common.stage;
    return stage == COMMON_LABELS || stage == COMMON_WEIGHTS || stage == COMMON_OFFSETS ||
           stage == COMMON_SIZES;
}

static void rows_resume(struct lbfgs *o) {
    o->common.stage = COMMON_NONE;
    o->common.checked = false;
    o->common.ends = REASON_NONE;
}

const struct phase rows_phase = {
    .evaluates = rows_are_asked_for,
    .request = rows_request,
    .evaluated = rows_evaluated,
    .resume = rows_resume,
};
