/* How far F is above its minimum, about: struct gap_settings says how that is told.
 *
 * What tells it at a trial is a row below: by P, by l2, or by the columns. Which one that is may
 * change with P. */
#include <assert.h>
#include <math.h>

#include "optimizer/lbfgs.h"
#include "optimizer/lbfgs_phase.h"

struct gap_row {
    uint32_t sums;    /* scalars that it takes, */
    uint32_t metrics; /* and for a step from x */
    double factor;    /* a step that shows less curvature than this counts */
    void (*add)(const struct lbfgs *o, uint8_t gradient, bool step, struct bytes *program);
    /* The gap by its sums, with the square of the gradient; what a step shows of the curvature, by
     * its pair's products and its metric (NULL: nothing); and the estimate. */
    double (*measured)(const struct lbfgs *o, const double *sums, double square);
    double (*steepness)(const struct pairs_products *pair, const double *metric);
    double (*estimate)(const struct lbfgs *o, const struct measured *m);
};

#define FALLS_AHEAD 10.0 /* steps like the last ones that are still to come */

/* How much larger the gap may be than without what the last steps showed. */
static double flatness(const struct lbfgs *o, double factor) {
    double least = 1;
    for (unsigned i = 0; i < STEEPS_KEPT; i++)
        least = fmin(least, o->steepness[i]);
    return fmax(1, 1 / (factor * least));
}

/* The estimate by the last steps, where the sums say `gap`, and `trusted` that no other step may
 * show more of it. No loss is below 0, and what duality bounds is certain. */
static double by_steps(const struct lbfgs *o, const struct measured *m, double gap, bool trusted) {
    double rest = working_rest(&o->working);
    bool waits = o->settings.gap.waited_for && !trusted && isnan(rest);
    gap = fmax(gap, rest);
    for (unsigned i = 0; i < o->plan.gaps_kept && waits; i++)
        gap = fmax(gap, o->gaps[(o->step + GAPS_KEPT_BARE - i) % GAPS_KEPT_BARE]);
    if (!trusted)
        gap = fmax(gap, FALLS_AHEAD * lbfgs_fall(o));
    gap = fmin(gap, m->loss);
    return isnan(m->gap_bound) ? gap : fmin(gap, m->gap_bound);
}

/* Rounded curvature, or what is none, tells nothing. */
static double steepness_in(double curvature, double metric) {
    double steepness = curvature / metric;
    return steepness > 0 && steepness < 1 ? steepness : 1;
}

static const struct gap_row *row_of(const struct lbfgs *o);

/* It is not told. */
static const struct gap_row unknown = {.sums = 0};

/* ---- P tells it: one sum is P's, one that of what P hides ---- */

#define NEWTON_FACTOR 2.0

/* That is so where P is of all parameters: beyond a leading block it is rough. */
static bool newton_tells(const struct lbfgs *o) {
    return o->plan.newton_tells && o->history.preconditioned;
}

/* Rows that are nearly fitted curve as little as they lose: where F has fallen so far since P was
 * made, P may have that much too much curvature, and tells nothing of the gap. */
#define FALL_OUTDATED 10.0

bool gap_is_outdated(const struct lbfgs *o, double loss) {
    bool constant = o->settings.preconditioner.constant;
    return newton_tells(o) && !constant && loss * FALL_OUTDATED < o->preconditioner.loss;
}

static void add_newton(const struct lbfgs *o, uint8_t gradient, bool step, struct bytes *program) {
    (void)o, (void)gradient, (void)step;
    program_add(program,
                &(struct operation){.code = OPERATION_DOT, .a = REGISTER_H, .b = REGISTER_PH});
    program_add(program, &(struct operation){.code = OPERATION_HIDDEN});
}

static double measured_by_newton(const struct lbfgs *o, const double *sums, double square) {
    (void)o, (void)square;
    return 0.5 * NEWTON_FACTOR * (sums[0] + sums[1]);
}

/* What pairs have of P is the metric. */
static double shown_to_newton(const struct pairs_products *pair, const double *metric) {
    (void)metric;
    return steepness_in(pair->yy, pair->sy);
}

/* Where P had five times the curvature that a step showed, its next estimate may be as wrong. */
#define FLATNESS_TRUSTED 5.0

static double estimate_by_newton(const struct lbfgs *o, const struct measured *m) {
    double gap = gap_is_outdated(o, m->loss) ? m->loss : m->gap * flatness(o, 1);
    return by_steps(o, m, gap, flatness(o, 1) <= FLATNESS_TRUSTED);
}

static const struct gap_row by_newton = {.sums = 2,
                                         .factor = 1,
                                         .add = add_newton,
                                         .measured = measured_by_newton,
                                         .steepness = shown_to_newton,
                                         .estimate = estimate_by_newton};

/* ---- l2 tells it alone ---- */

#define MEAN_FACTOR 8.0 /* as bias_scale is |E|x||² to a factor of 2, and c is uncertain */

/* What second derivatives are as a rule; where that is not known F stands for them. */
static double second_typical(const struct lbfgs *o) {
    const struct gap_settings *gap = &o->settings.gap;
    return gap->typical_second > 0 ? gap->typical_second : o->mean_loss;
}

static bool rather_is_less(const struct lbfgs *o) {
    double typical_second = second_typical(o);
    return typical_second > 0 && typical_second < o->settings.gap.second;
}

static void add_l2(const struct lbfgs *o, uint8_t gradient, bool step, struct bytes *program) {
    (void)o, (void)step;
    program_add(program, &(struct operation){
                             .code = OPERATION_DOT_REGULARIZED, .a = gradient, .b = gradient});
}

/* The sum is of the squares of the gradient's weights; the biases have the rest of `square`. */
static double measured_by_l2(const struct lbfgs *o, const double *sums, double square) {
    const struct gap_settings *gap = &o->settings.gap;
    double l2 = o->settings.l2, scale = o->settings.bias_scale;
    double c = rather_is_less(o) ? second_typical(o) : gap->second, uneven = gap->second / c;
    double mean = scale < 1 ? MEAN_FACTOR * scale * uneven * uneven : INFINITY;
    double biases = fmax(0, square - sums[0]);
    double moved = sqrt(sums[0]) + sqrt(fmin(mean, gap->mean_square) * biases);
    return 0.5 * (moved * moved / l2 + COLUMNS_FACTOR / c * biases);
}

static double estimate_by_l2(const struct lbfgs *o, const struct measured *m) {
    (void)o;
    return fmin(m->gap, m->loss);
}

static const struct gap_row by_l2 = {.sums = 1,
                                     .factor = COLUMNS_FACTOR,
                                     .add = add_l2,
                                     .measured = measured_by_l2,
                                     .estimate = estimate_by_l2};

/* ---- columns tell it: one sum for each second derivative to divide by ---- */

static void add_columns(const struct lbfgs *o, uint8_t gradient, bool step, struct bytes *program) {
    const double second[] = {o->settings.gap.second, second_typical(o)};
    struct operation operation = {.code = OPERATION_GAP,
                                  .a = gradient,
                                  .beta = o->settings.l2,
                                  .gamma = o->settings.gap.bias_share};
    for (uint32_t i = 0; i < row_of(o)->sums; i++) {
        operation.alpha = second[i];
        program_add(program, &operation);
    }
    if (!step)
        return;
    operation.code = OPERATION_METRIC;
    operation.a = REGISTER_T;
    operation.b = REGISTER_X;
    operation.alpha = second[0];
    program_add(program, &operation);
}

static double measured_by_columns(const struct lbfgs *o, const double *sums, double square) {
    (void)square;
    double gap = 0.5 * sums[0] * COLUMNS_FACTOR;
    return row_of(o)->sums > 1 ? fmax(gap, 0.5 * sums[1]) : gap;
}

/* A step that the columns have more curvature for than F has tells how nearly collinear they are.
 */
static double shown_to_columns(const struct pairs_products *pair, const double *metric) {
    return steepness_in(pair->sy, *metric);
}

static double estimate_by_columns(const struct lbfgs *o, const struct measured *m) {
    return by_steps(o, m, m->gap * flatness(o, COLUMNS_FACTOR), false);
}

static const struct gap_row by_columns = {.sums = 1,
                                          .metrics = 1,
                                          .factor = COLUMNS_FACTOR,
                                          .add = add_columns,
                                          .measured = measured_by_columns,
                                          .steepness = shown_to_columns,
                                          .estimate = estimate_by_columns};
static const struct gap_row by_both = {.sums = 2,
                                       .metrics = 1,
                                       .factor = COLUMNS_FACTOR,
                                       .add = add_columns,
                                       .measured = measured_by_columns,
                                       .steepness = shown_to_columns,
                                       .estimate = estimate_by_columns};

/* ---- at a trial ---- */

static const struct gap_row *row_of(const struct lbfgs *o) {
    if (!o->settings.gap.known)
        return &unknown;
    if (newton_tells(o))
        return &by_newton;
    if (o->settings.gap.mean_square > 0)
        return &by_l2;
    return rather_is_less(o) ? &by_both : &by_columns;
}

uint32_t gap_scalars(const struct lbfgs *o, bool step) {
    const struct gap_row *row = row_of(o);
    return row->sums + (step ? row->metrics : 0);
}

void gap_add(const struct lbfgs *o, uint8_t gradient, bool step, struct bytes *program) {
    const struct gap_row *row = row_of(o);
    if (row->add)
        row->add(o, gradient, step, program);
}

void gap_take(const struct lbfgs *o, const double *scalars, bool step, struct measured *m) {
    const struct gap_row *row = row_of(o);
    m->gap = row->measured ? row->measured(o, scalars, m->square) : NAN;
    if (row->measured && isnan(m->gap))
        m->gap = INFINITY;
    m->steepness = step && row->steepness
                       ? row->steepness(&m->products[o->history.pairs], scalars + row->sums)
                       : 1;
}

/* ---- at accepted points ---- */

void lbfgs_note_gap(struct lbfgs *o, const struct measured *m) {
    assert(m->steepness > 0);
    if (isnan(m->gap))
        return;
    o->steepness[o->step % STEEPS_KEPT] = m->steepness;
    o->gaps[o->step % GAPS_KEPT_BARE] = m->gap * flatness(o, row_of(o)->factor);
}

double lbfgs_gap_estimate(const struct lbfgs *o, const struct measured *m) {
    return isnan(m->gap) ? NAN : row_of(o)->estimate(o, m);
}

/* Where no step is left, the estimates of the points before the last one are not asked if its own
 * is as small as rounding makes it: at the very minimum there is no lower loss to find. */
void lbfgs_take_last_gap(struct lbfgs *o) {
    const struct gap_settings *gap = &o->settings.gap;
    double last = o->gaps[o->step % GAPS_KEPT_BARE];
    if (gap->known && !isnan(o->gap_estimate) && last <= GAP_ROUNDED * fmax(o->loss, gap->least))
        o->gap_estimate = fmin(o->gap_estimate, last);
}
