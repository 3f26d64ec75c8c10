/* What L-BFGS evaluates: the one file of it that names kinds of evaluations.
 *
 * There is a table for each form in which replicas have the rows: whole, by strips of columns, and
 * by strips below the other layers of a network. A row of it is the evaluation of a stage: its
 * parts, and the bounds under which it is computed. What else of a step differs with that form, and
 * with common directions, is a row of struct lbfgs_way; that of a run is chosen when it is set up.
 * Second derivatives are of one kind each, over whole rows, with bounds of their own. */
#include <assert.h>
#include <float.h>

#include "optimizer/lbfgs_phase.h"

/* Where the bounds of an evaluation come from. */
enum asked_bound {
    BOUND_FOLLOWS,     /* from the evaluations before it */
    BOUND_POINT,       /* from the largest element of its point */
    BOUND_DERIVATIVES, /* from the largest derivative by a margin */
    BOUND_OF_SUMS,     /* there is none but what a sum can hold */
    ASKED_BOUNDS
};

struct asked {
    struct {
        uint32_t kind;
        enum asked_chunks over;
    } parts[2]; /* one without chunks is left out */
    enum asked_bound bound;
    bool rows;           /* replicas get the derivatives of rows (D) in place of the point */
    bool again;          /* the bounds are those that the evaluation before it has found */
    const char *outcome; /* what is reported of it; NULL: that depends on what is found */
};

/* A step that is along a direction takes one evaluation, of the gradient; one in a span of common
 * directions takes a product and its transpose. */
static const struct asked of_whole_rows[COMMON_STAGES] = {
    [COMMON_NONE] = {{{EVALUATION_GRADIENT, CHUNKS_TRAINING}, {EVALUATION_LOSS, CHUNKS_HELD}},
                     .bound = BOUND_FOLLOWS},
    [COMMON_LABELS] = {{{EVALUATION_LABELS, CHUNKS_TRAINING}}, .outcome = "labels"},
    [COMMON_WEIGHTS] = {{{EVALUATION_WEIGHTS, CHUNKS_TRAINING}}, .outcome = "weights"},
    [COMMON_OFFSETS] = {{{EVALUATION_OFFSETS, CHUNKS_TRAINING}}, .outcome = "offsets"},
    [COMMON_MARGINS] = {{{EVALUATION_PRODUCT, CHUNKS_TRAINING}}, .outcome = "margins"},
    [COMMON_PRODUCT] = {{{EVALUATION_PRODUCT, CHUNKS_TRAINING}}, .outcome = "product"},
    [COMMON_HOLDOUT] = {{{EVALUATION_LOSS, CHUNKS_HELD}}, .outcome = "holdout"},
    [COMMON_TRANSPOSE] = {{{EVALUATION_TRANSPOSE, CHUNKS_TRAINING}},
                          BOUND_DERIVATIVES,
                          .rows = true},
    [COMMON_CHECK] = {{{EVALUATION_GRADIENT, CHUNKS_TRAINING}}, .bound = BOUND_FOLLOWS},
};

/* Shards have the margins of held-out rows, too. A product is fixed point, so its bound must be
 * known before. */
static const struct asked of_tiles[COMMON_STAGES] = {
    [COMMON_LABELS] = {{{EVALUATION_LABELS, CHUNKS_ALL}}, .outcome = "labels"},
    [COMMON_WEIGHTS] = {{{EVALUATION_WEIGHTS, CHUNKS_ALL}}, .outcome = "weights"},
    [COMMON_OFFSETS] = {{{EVALUATION_OFFSETS, CHUNKS_ALL}}, .outcome = "offsets"},
    [COMMON_SIZES] = {{{EVALUATION_SIZES, CHUNKS_ALL}}, .outcome = "sizes"},
    [COMMON_MARGINS] = {{{EVALUATION_PRODUCT, CHUNKS_TILES}}, BOUND_POINT, .outcome = "margins"},
    [COMMON_PRODUCT] = {{{EVALUATION_PRODUCT, CHUNKS_TILES}}, BOUND_POINT, .outcome = "product"},
    [COMMON_TRANSPOSE] = {{{EVALUATION_TRANSPOSE, CHUNKS_TILES}}, BOUND_DERIVATIVES, .rows = true},
    [COMMON_CHECK] = {{{EVALUATION_TRANSPOSE, CHUNKS_TILES}}, BOUND_DERIVATIVES, .rows = true},
};

/* The gradient of the upper layers comes with that of the first, over the training rows, as tiles
 * of one more strip. Its bounds, and those of the first layer's, follow from what the evaluation of
 * the derivatives before it has found. The loss on the holdout comes beside the derivatives, as
 * shards of a network know no losses. */
static const struct asked of_network[COMMON_STAGES] = {
    [COMMON_SIZES] = {{{EVALUATION_SIZES, CHUNKS_ALL}}, .outcome = "sizes"},
    [COMMON_MARGINS] = {{{EVALUATION_PRODUCT, CHUNKS_TILES}}, BOUND_POINT, .outcome = "margins"},
    [COMMON_DERIVATIVES] = {{{EVALUATION_DERIVATIVES, CHUNKS_TRAINING},
                             {EVALUATION_LOSS, CHUNKS_HELD}},
                            BOUND_OF_SUMS,
                            .outcome = "derivatives"},
    [COMMON_TRANSPOSE] = {{{EVALUATION_TRANSPOSE, CHUNKS_TILES}, {EVALUATION_UPPER, CHUNKS_UPPER}},
                          .rows = true,
                          .again = true},
};

#define IN_TILES                                                                                   \
    .asked = of_tiles, .products = &span_in_tiles, .losses = products_losses,                      \
    .held = HELD_BY_SHARDS,                                                                        \
    .numbers = {COMMON_LABELS, COMMON_WEIGHTS, COMMON_OFFSETS, COMMON_SIZES}

static const struct lbfgs_way whole_rows = {
    .directions = &search_phase,
    .trials = &search_phase,
    .asked = of_whole_rows,
    .held = HELD_BY_REPLICAS,
};
static const struct lbfgs_way whole_rows_and_window = {
    .directions = &span_phase,
    .trials = &span_phase,
    .asked = of_whole_rows,
    .products = &span_of_rows,
    .held = HELD_BY_REPLICAS,
    .numbers = {COMMON_LABELS, COMMON_WEIGHTS, COMMON_OFFSETS},
};
static const struct lbfgs_way tiles = {
    .directions = &search_phase, .trials = &products_phase, IN_TILES};
static const struct lbfgs_way tiles_and_window = {
    .directions = &span_phase, .trials = &span_phase, IN_TILES};
static const struct lbfgs_way network_in_tiles = {
    .directions = &search_phase,
    .trials = &products_phase,
    .asked = of_network,
    .losses = products_derivatives,
    .held = HELD_BY_REPLICAS,
    .numbers = {COMMON_SIZES},
};

void lbfgs_plan_evaluations(struct lbfgs_plan *plan, const struct optimizer_settings *settings,
                            const struct optimizer_data *data) {
    static const struct lbfgs_way *const ways[2][2] = {{&whole_rows, &whole_rows_and_window},
                                                       {&tiles, &tiles_and_window}};
    const bool has[COMMON_STAGES] = {[COMMON_LABELS] = true,
                                     [COMMON_WEIGHTS] = settings->weighted,
                                     [COMMON_OFFSETS] = settings->offsets,
                                     [COMMON_SIZES] = true};
    const bool decides = settings->patience && data->holdout_chunks;
    const uint32_t held = decides ? data->holdout_chunks : 0;
    assert(!data->upper || (data->tiles && !settings->directions));
    plan->way = data->upper ? &network_in_tiles : ways[data->tiles > 0][settings->directions > 0];
    plan->held = decides ? plan->way->held : HELD_BY_NONE;
    enum common_stage *next = plan->numbers;
    for (unsigned i = 0; i < OWN_NUMBERS; i++)
        if (has[plan->way->numbers[i]])
            *next++ = plan->way->numbers[i];
    *next = COMMON_NONE;
    plan->chunks[CHUNKS_TRAINING] = (struct chunks){0, data->chunks};
    plan->chunks[CHUNKS_HELD] = (struct chunks){data->chunks, held};
    plan->chunks[CHUNKS_ALL] = (struct chunks){0, data->chunks + data->holdout_chunks};
    plan->chunks[CHUNKS_TILES] = (struct chunks){0, data->tiles};
    plan->chunks[CHUNKS_UPPER] = (struct chunks){data->tiles, data->chunks};
}

void lbfgs_request(const struct lbfgs *o, struct optimizer_request *request) {
    const struct asked *asked = &o->plan.way->asked[o->common.stage];
    const double largest[ASKED_BOUNDS] = {[BOUND_POINT] = o->common.point_max,
                                          [BOUND_DERIVATIVES] = o->common.span.derivative,
                                          [BOUND_OF_SUMS] = DBL_MAX};
    struct evaluation_parts *parts = &request->parts;
    assert(o->common.stage < COMMON_STAGES && asked->parts[0].kind);
    parts->count = 0;
    for (unsigned i = 0; i < sizeof asked->parts / sizeof asked->parts[0]; i++) {
        struct chunks over = o->plan.chunks[asked->parts[i].over];
        if (asked->parts[i].kind && over.count)
            parts->items[parts->count++] =
                (struct evaluation_part){asked->parts[i].kind, over.first, over.count};
    }
    request->rows = asked->rows;
    request->again |= asked->again;
    request->bounded = asked->bound != BOUND_FOLLOWS;
    request->largest = largest[asked->bound];
}

void lbfgs_request_hessian(const struct lbfgs *o, enum kind_hessian hessian,
                           struct optimizer_request *request) {
    request->parts = (struct evaluation_parts){
        .items = {{kind_of_hessian(hessian), 0, o->data.chunks}}, .count = 1};
}

const char *lbfgs_outcome(const struct lbfgs *o) {
    assert(o->common.stage > COMMON_NONE && o->common.stage < COMMON_STAGES);
    return o->plan.way->asked[o->common.stage].outcome;
}

enum optimizer_want lbfgs_evaluate_stage(struct lbfgs *o, enum common_stage stage) {
    assert(stage > COMMON_NONE && stage < COMMON_STAGES && o->plan.way->asked[stage].parts[0].kind);
    o->common.stage = stage;
    return lbfgs_evaluate(o);
}
