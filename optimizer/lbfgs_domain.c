/* The domains of L-BFGS: lbfgs_programs.h. */
#include <assert.h>
#include <math.h>

#include "base/mutant.h"
#include "optimizer/lbfgs_phase.h"

/* Where the scalars of a domain stand. */
enum {
    DOMAIN_FALLS,
    DOMAIN_ENDS,
    DOMAIN_STEP_SQUARE,
    DOMAIN_NORM_1,
    DOMAIN_NONZERO,
    DOMAIN_SCALARS, /* of every box; then those of a gap that is bounded, */
    DOMAIN_GAP_PRODUCT = DOMAIN_SCALARS,
    DOMAIN_GAP_EXCESS,
    DOMAIN_MOVING = DOMAIN_SCALARS, /* or of columns' limits, which have no bound of the gap */
    DOMAIN_AT_BOUND,
};

/* ---- anywhere ---- */

/* A pair is kept if s·y > this · (−α g·d): under the strong Wolfe conditions it always is. */
#define CURVATURE_LEAST 1e-4

static uint8_t gradient(const struct lbfgs *o, struct bytes *program) {
    (void)program;
    return programs_initial(o)->gradient_x;
}

static bool curves(const struct lbfgs *o, const struct measured *m) {
    double sy = m->products[o->history.pairs].sy;
    return sy > CURVATURE_LEAST * -o->plan.way->directions->fall(o);
}

static enum linesearch_answer search(struct linesearch *search, const struct measured *m) {
    return linesearch_next(search, m->loss, m->slope);
}

static const struct domain anywhere = {.gradient_x = REGISTER_G,
                                       .gradient_t = REGISTER_H,
                                       .descend = gradient,
                                       .keeps_pair = curves,
                                       .search = search,
                                       .refused = linesearch_refused};

/* ---- boxes: without bounds the orthants of l1 ---- */

void domain_pseudo_gradient(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t x,
                            uint8_t g) {
    assert(a != x && a != g && o->plan.domain->gradient_x == REGISTER_QG);
    program_add(
        program,
        &(struct operation){
            .code = OPERATION_PSEUDO_GRADIENT, .a = a, .b = x, .c = g, .l1 = o->settings.l1});
}

static uint8_t box_descend(const struct lbfgs *o, struct bytes *program) {
    if (!o->unconditioned || !mutant(ORTHANT_FORGOTTEN))
        domain_pseudo_gradient(o, program, REGISTER_QG, REGISTER_X, REGISTER_G);
    return REGISTER_QG;
}

static void box_mask(const struct lbfgs *o, struct bytes *program) {
    program_add(program, &(struct operation){.code = OPERATION_MASK,
                                             .slot = o->history.candidate,
                                             .a = REGISTER_T,
                                             .b = REGISTER_X});
}

static void box_finish(const struct lbfgs *o, struct bytes *program) {
    domain_pseudo_gradient(o, program, REGISTER_QH, REGISTER_T, REGISTER_H);
}

static void box_measure(const struct lbfgs *o, struct bytes *program) {
    program_add(program, &(struct operation){.code = OPERATION_DESCENT,
                                             .a = REGISTER_T,
                                             .b = REGISTER_X,
                                             .c = REGISTER_QG,
                                             .d = REGISTER_H,
                                             .l1 = o->settings.l1});
    program_add(program, &(struct operation){.code = OPERATION_NORM_1, .a = REGISTER_T});
}

static void box_take(const struct lbfgs *o, const double *scalars, double square,
                     struct measured *m) {
    (void)square;
    m->loss += o->settings.l1 * scalars[DOMAIN_NORM_1];
    m->falls = scalars[DOMAIN_FALLS];
    m->ends = scalars[DOMAIN_ENDS];
    m->step_square = scalars[DOMAIN_STEP_SQUARE];
    m->nonzero = m->moving = (uint64_t)scalars[DOMAIN_NONZERO];
}

/* A step ends where F falls enough, at any slope: its pair may curve very little. */
static bool box_curves(const struct lbfgs *o, const struct measured *m) {
    const struct pairs_products *candidate = &m->products[o->history.pairs];
    return box_keeps_pair(candidate->sy, m->step_square, candidate->yy);
}

static enum linesearch_answer box_search(struct linesearch *search, const struct measured *m) {
    return box_search_next(
        search, &(struct box_trial){.loss = m->loss, .falls = m->falls, .ends = m->ends});
}

#define BOX                                                                                        \
    .gradient_x = REGISTER_QG, .gradient_t = REGISTER_QH, .descend = box_descend,                  \
    .align = OPERATION_ALIGN, .project = OPERATION_PROJECT, .mask = box_mask,                      \
    .finish = box_finish, .keeps_pair = box_curves, .search = box_search,                          \
    .refused = box_search_refused

static const struct domain box = {BOX, .scalars = DOMAIN_SCALARS, .measure = box_measure,
                                  .take = box_take};

/* ---- where the loss and the model bound the gap ---- */

static void measure_gap(const struct lbfgs *o, struct bytes *program) {
    box_measure(o, program);
    program_add(program,
                &(struct operation){.code = OPERATION_DOT, .a = REGISTER_T, .b = REGISTER_H});
    program_add(program, &(struct operation){.code = OPERATION_EXCESS,
                                             .a = REGISTER_H,
                                             .b = REGISTER_T,
                                             .alpha = o->settings.l2,
                                             .l1 = o->settings.l1});
}

/* Without l2 the largest component counts. What it exceeds l1 by is at most the root of the sum,
 * whatever the scaling. */
static void take_gap(const struct lbfgs *o, const double *scalars, double square,
                     struct measured *m) {
    double l1 = o->settings.l1, l2 = o->settings.l2, excess = scalars[DOMAIN_GAP_EXCESS];
    struct l1_gap gap = {.mean_loss = o->mean_loss,
                         .norm_1 = scalars[DOMAIN_NORM_1],
                         .square = square,
                         .wr = scalars[DOMAIN_GAP_PRODUCT] - l2 * square,
                         .excess = l2 > 0 ? excess : l1 + sqrt(excess)};
    box_take(o, scalars, square, m);
    m->gap_bound = l1_gap_bound(l1, l2, &gap);
}

static const struct domain box_with_gap = {BOX, .scalars = DOMAIN_GAP_EXCESS + 1,
                                           .measure = measure_gap, .take = take_gap};

/* ---- where columns have bounds, or an l1 of their own ---- */

static void columns_measure(const struct lbfgs *o, struct bytes *program) {
    box_measure(o, program);
    program_add(program,
                &(struct operation){.code = OPERATION_HELD, .a = REGISTER_T, .l1 = o->settings.l1});
}

static void columns_take(const struct lbfgs *o, const double *scalars, double square,
                         struct measured *m) {
    box_take(o, scalars, square, m);
    m->moving = (uint64_t)scalars[DOMAIN_MOVING];
    m->at_bound = (uint64_t)scalars[DOMAIN_AT_BOUND];
}

static const struct domain box_of_columns = {BOX, .clip = OPERATION_CLIP,
                                             .scalars = DOMAIN_AT_BOUND + 1,
                                             .measure = columns_measure, .take = columns_take};

const struct domain *domain_of(const struct optimizer_settings *settings) {
    assert(!settings->bounds_gap || !settings->limited);
    if (settings->limited)
        return &box_of_columns;
    if (settings->l1 <= 0)
        return &anywhere;
    return settings->bounds_gap ? &box_with_gap : &box;
}
