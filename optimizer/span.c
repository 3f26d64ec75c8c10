#include "optimizer/span.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "numeric/dense.h"

#define STEPS_MAX 5
#define STEPS_SAMPLED 3 /* after which a sample must have been enough */
/* Rows of a sample for each direction, of one output. Rows of K outputs curve in K − 1 ways, so
 * fewer of them do, but not fewer than the least. The simulator has few rows. */
#ifdef MUTANTS
#define ROWS_EACH 5
#define ROWS_LEAST 5
#else
#define ROWS_EACH 150
#define ROWS_LEAST 25
#endif
#define RATE_MOST 0.25 /* of a sample: one of most rows costs nearly as much as all of them do */
#define SUFFICIENT_DECREASE 1e-4
#define DECREMENT_ENOUGH 3e-2 /* of the first one */
#define LENGTH_LEAST 1e-15
#define SHRINK_MOST 0.5
#define SHRINK_LEAST 0.1
#define SHRINK_FAR 0.01 /* where trials were far too long, or not finite */
#define TRIALS_NEAR 4   /* of a step: then it is far too long */
#define DAMPING_FIRST 0x1p-6
#define DAMPING_FACTOR 4.0
#define DAMPING_MOST 16.0
#define DAMPING_LEAST 0x1p-14
#define FALL_POOR 0.25    /* of the fall that the quadratic says: it is damped more */
#define FALL_GOOD 0.75    /* it is damped less */
#define PIVOT_LEAST 1e-12 /* relative to the diagonal: below, a direction depends on newer ones */
#define REACH_GROWTH 4.0

/* The least curvature of a step, relative to what was known: below, slopes tell nothing. */
#define CURVATURE_LEAST 1e-3

/* ---- phi ---- */

/* The penalty is from c and the Gram matrix: Σ c_i·x·p_i + ½·Σ c_i·c_j·p_i·p_j. */
static double value_of(const struct span *span, const struct window *window, const double *c,
                       double loss) {
    const struct span_settings *settings = &span->settings;
    double sum = 0;
    for (uint32_t i = 0; i < span->count; i++) {
        double product = 0;
        for (uint32_t j = 0; j < span->count; j++)
            product += window->gram[i][j] * c[j];
        sum += c[i] * (window->point[i] + product / 2);
    }
    return loss / settings->weight_sum + (settings->l2 > 0 ? settings->l2 * sum : 0);
}

/* The slopes of phi at a point. */
static void slopes_of(const struct span *span, const struct window *window, const double *c,
                      const double *sums, double *slopes) {
    const struct span_settings *settings = &span->settings;
    for (uint32_t i = 0; i < span->count; i++) {
        double product = window->point[i];
        for (uint32_t j = 0; j < span->count; j++)
            product += window->gram[i][j] * c[j];
        slopes[i] =
            sums[i] / settings->weight_sum + (settings->l2 > 0 ? settings->l2 * product : 0);
    }
}

static double dot(uint32_t count, const double *a, const double *b) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void span_point(const struct span *span, double *point) {
    for (uint32_t i = 0; i < span->count; i++)
        point[i] = span->length > 0 ? span->c[i] + span->length * span->step[i] : span->c[i];
}

double span_fall(const struct span *span) {
    return dot(span->count, span->c, span->slopes);
}

/* ---- steps ---- */

/* Where an element of the triangle is; a is not less than b. */
static size_t place_of(uint32_t a, uint32_t b) {
    return (size_t)a * (a + 1) / 2 + b;
}

static size_t size_of(uint32_t count) {
    return place_of(count, 0);
}

/* The Hessian of phi, with the newest direction first, in units of its diagonal, and those units:
 * 0 for a direction without curvature. */
static void scaled_hessian(const struct span *span, const struct window *window, double *h,
                           double *units) {
    uint32_t n = span->count;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++) {
            uint32_t a = n - 1 - j, b = n - 1 - i; /* a is not older than b */
            double sum = span->kept.second[place_of(a, b)] / span->settings.weight_sum;
            h[(size_t)i * n + j] =
                span->settings.l2 > 0 ? sum + span->settings.l2 * window->gram[a][b] : sum;
        }
    for (uint32_t i = 0; i < n; i++) {
        double unit = 1 / sqrt(h[(size_t)i * n + i]);
        units[i] = isfinite(unit) && unit > 0 ? unit : 0;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            h[(size_t)i * n + j] *= units[i] * units[j];
}

/* What is known of a step. */
struct newton {
    bool positive;  /* the second derivative along the newest direction is */
    bool dependent; /* a direction along which H is positive seems to depend on newer ones */
};

/* The step −(H + damping)⁻¹γ, and its curvature by H. */
static struct newton newton_step(struct span *span, const struct window *window,
                                 const double *slopes) {
    uint32_t n = span->count;
    double *h = memory_new((size_t)n * n, sizeof *h);
    double units[DIRECTIONS_MAX], b[DIRECTIONS_MAX];
    scaled_hessian(span, window, h, units);
    for (uint32_t i = 0; i < n; i++)
        b[i] = -units[i] * slopes[n - 1 - i];
    for (uint32_t i = 0; i < n; i++)
        h[(size_t)i * n + i] += span->damping;
    dense_semidefinite_solve(n, h, PIVOT_LEAST, b);
    struct newton found = {.positive = units[0] > 0};
    for (uint32_t i = 0; i < n; i++) {
        span->step[n - 1 - i] = units[i] * b[i];
        found.dependent |= b[i] == 0 || units[i] == 0;
    }
    span->curvature = -dot(n, slopes, span->step) - span->damping * dot(n, b, b);
    free(h);
    return found;
}

/* Where no row curves the newest direction is gone along, farther each time. */
static void plain_step(struct span *span) {
    memset(span->step, 0, span->count * sizeof span->step[0]);
    span->step[span->count - 1] = span->reach;
    span->curvature = 0;
    span->reach *= REACH_GROWTH;
}

static enum span_answer stop(struct span *span) {
    span->length = 0;
    return span->steps > 0 ? SPAN_ACCEPT : SPAN_FAIL;
}

static enum span_answer measure_anew(struct span *span) {
    span->length = 0;
    return SPAN_ALL;
}

static enum span_answer take_all_rows(struct span *span) {
    assert(span->rate < 1);
    span->rate = 1;
    return measure_anew(span);
}

/* The last step needs no more than the loss at its end. */
static enum span_answer try_step(struct span *span) {
    span->length = 1;
    span->tried = 0;
    return span->steps + 1 < STEPS_MAX ? SPAN_SLOPES : SPAN_LOSS;
}

/* From c, where slopes are known, and second derivatives about. */
static enum span_answer next_step(struct span *span, const struct window *window) {
    double slopes[DIRECTIONS_MAX];
    slopes_of(span, window, span->c, span->sums, slopes);
    if (span->steps == 0)
        memcpy(span->slopes, slopes, span->count * sizeof slopes[0]);
    struct newton found = newton_step(span, window, slopes);
    if (!span->kept.exact && (found.dependent || !found.positive))
        return measure_anew(span);
    if (!found.positive && span->rate < 1)
        return take_all_rows(span);
    if (!found.positive)
        plain_step(span);
    span->slope = dot(span->count, slopes, span->step);
    bool falls = span->slope < 0 && isfinite(span->slope);
    if (!falls && !span->kept.exact)
        return measure_anew(span);
    if (!falls)
        return span->rate < 1 ? take_all_rows(span) : stop(span);
    if (span->steps == 0)
        span->decrement = -span->slope;
    else if (found.positive && -span->slope <= DECREMENT_ENOUGH * span->decrement)
        return stop(span);
    if (span->steps >= STEPS_SAMPLED && span->rate < 1)
        return take_all_rows(span);
    return try_step(span);
}

/* ---- second derivatives that are kept ---- */

/* BFGS: what slopes say of the step that was made. False if it does not curve. */
static bool correct(struct span *span, const double *sums) {
    double *second = span->kept.second, change[DIRECTIONS_MAX], product[DIRECTIONS_MAX] = {0};
    uint32_t n = span->count;
    for (uint32_t i = 0; i < n; i++) {
        change[i] = sums[i] - span->sums[i];
        for (uint32_t j = 0; j < n; j++)
            product[i] += second[i > j ? place_of(i, j) : place_of(j, i)] * span->step[j];
    }
    double found = dot(n, change, span->step) / span->length;
    double known = dot(n, product, span->step);
    if (!(found > CURVATURE_LEAST * known) || !(known > 0) || !isfinite(found))
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            second[place_of(i, j)] +=
                change[i] * change[j] / (span->length * span->length * found) -
                product[i] * product[j] / known;
    return true;
}

void span_stepped(struct span *span) {
    span->kept.count = span->count;
}

void span_drop_oldest(struct span *span) {
    double *second = span->kept.second;
    if (!span->kept.count)
        return;
    span->kept.count--;
    for (uint32_t i = 0; i < span->kept.count; i++)
        for (uint32_t j = 0; j <= i; j++)
            second[place_of(i, j)] = second[place_of(i + 1, j + 1)];
    memmove(span->sums, span->sums + 1, span->kept.count * sizeof span->sums[0]);
}

/* ---- trials ---- */

static void damp(struct span *span, bool more) {
    double damping =
        more ? fmax(span->damping * DAMPING_FACTOR, DAMPING_FIRST) : span->damping / DAMPING_FACTOR;
    span->damping = damping < DAMPING_LEAST ? 0 : fmin(damping, DAMPING_MOST);
}

/* By how much a trial was too long: to the minimum of the parabola through it. */
static double share_of(const struct span *span, double fall) {
    if (span->tried >= TRIALS_NEAR || !isfinite(fall))
        return SHRINK_FAR;
    double expected = span->length * span->slope;
    return fmax(SHRINK_LEAST, fmin(SHRINK_MOST, expected / (2 * (expected - fall))));
}

static enum span_answer shrink(struct span *span, double fall) {
    if (!span->tried++)
        damp(span, true);
    span->length *= share_of(span, fall);
    if (span->length < LENGTH_LEAST || span->trials >= SPAN_TRIALS_MAX)
        return stop(span);
    return SPAN_LOSS;
}

/* How well the quadratic foretold a step; false: not well. Where second derivatives were measured
 * for it, a step that was not shortened says how to damp the next. */
static bool learn(struct span *span, double fall) {
    double foretold = span->slope + span->curvature / 2;
    if (span->tried || !(foretold < 0))
        return false;
    bool good = fall < FALL_GOOD * foretold;
    if (span->kept.exact && fall > FALL_POOR * foretold)
        damp(span, true);
    else if (good)
        damp(span, false);
    return good;
}

static enum span_answer accept(struct span *span, const struct window *window,
                               const struct span_trial *trial, double value, bool good) {
    bool known = trial->slopes && good && correct(span, trial->slopes);
    if (trial->slopes)
        memcpy(span->sums, trial->slopes, span->count * sizeof span->sums[0]);
    span->kept.exact = false;
    span->kept.slopes = trial->slopes;
    span_point(span, span->c);
    span->value = value;
    span->loss = trial->loss / span->settings.weight_sum;
    span->derivative = trial->derivative;
    span->length = 0;
    span->steps++;
    if (span->steps >= STEPS_MAX || span->trials >= SPAN_TRIALS_MAX)
        return stop(span);
    if (known)
        return next_step(span, window);
    return span->kept.slopes ? SPAN_SECOND : SPAN_ALL;
}

static enum span_answer check_trial(struct span *span, const struct window *window,
                                    const struct span_trial *trial) {
    double point[DIRECTIONS_MAX], slopes[DIRECTIONS_MAX];
    span_point(span, point);
    double value = value_of(span, window, point, trial->loss);
    double fall = isfinite(value) && isfinite(trial->derivative) ? value - span->value : INFINITY;
    if (fabs(fall) <= span->settings.noise) {
        if (!trial->slopes)
            return SPAN_SLOPES;
        slopes_of(span, window, point, trial->slopes, slopes);
        fall = span->length * (span->slope + dot(span->count, slopes, span->step)) / 2;
    }
    bool falls = fall <= SUFFICIENT_DECREASE * span->length * span->slope;
    if (!falls && !span->kept.exact)
        return measure_anew(span);
    if (!falls)
        return shrink(span, fall);
    return accept(span, window, trial, value, learn(span, fall));
}

double span_rate(uint32_t directions, uint64_t rows, uint32_t outputs) {
    double each = outputs > 2 ? fmax((double)ROWS_EACH / (outputs - 1), ROWS_LEAST) : ROWS_EACH;
    double rate = each * directions / (double)rows;
    return rate <= RATE_MOST ? rate : 1;
}

/* What the search before has found at x, with the slope of the newest direction: the shards need
 * not find it again. */
static void begin_known(struct span *span, const struct window *window, const struct span *before) {
    const struct span_settings *settings = &span->settings;
    double slope = settings->slope - settings->l2 * window->point[window->count];
    memcpy(span->sums, before->sums, window->count * sizeof span->sums[0]);
    span->sums[window->count] = settings->weight_sum * slope;
    span->value = span->loss = before->loss;
    span->derivative = before->derivative;
}

enum span_answer span_begin(struct span *span, const struct window *window,
                            const struct span_settings *settings) {
    struct span_kept *kept = &span->kept;
    assert(window->count < window->most && settings->weight_sum > 0 && settings->rows > 0);
    assert(settings->first > 0 && settings->noise >= 0);
    const struct span before = *span;
    bool stepped = kept->count && kept->count == window->count;
    bool keeps = stepped && kept->searches < SPAN_SEARCHES_KEPT;
    double rate = keeps ? span->rate : span_rate(window->most, settings->rows, settings->outputs);
    if (!keeps)
        kept->sample_seed = settings->sample_seed;
    kept->count = 0; /* until a step is made */
    kept->slopes = stepped && kept->slopes;
    kept->searches++;
    *span = (struct span){.settings = *settings,
                          .count = window->count + 1,
                          .rate = rate,
                          .reach = settings->first,
                          .damping = settings->damping,
                          .kept = *kept};
    if (!span->kept.slopes)
        return keeps ? SPAN_NEWEST : SPAN_ALL;
    begin_known(span, window, &before);
    return keeps ? SPAN_HESSIAN_PRODUCT : SPAN_SECOND;
}

enum span_answer span_next(struct span *span, const struct window *window,
                           const struct span_trial *trial) {
    assert(span->count == window->count + 1 && span->trials <= SPAN_TRIALS_MAX);
    if (span->length > 0) {
        span->trials++;
        return check_trial(span, window, trial);
    }
    /* Takes what was measured at c itself, without a step. */
    struct span_kept *kept = &span->kept;
    assert((trial->slopes || kept->slopes) && (trial->second || trial->newest));
    if (trial->slopes)
        memcpy(span->sums, trial->slopes, span->count * sizeof span->sums[0]);
    kept->slopes = true;
    if (trial->second) {
        memcpy(kept->second, trial->second, size_of(span->count) * sizeof kept->second[0]);
        kept->exact = true;
        kept->searches = 0;
    } else {
        memcpy(kept->second + size_of(span->count - 1), trial->newest,
               span->count * sizeof kept->second[0]);
    }
    if (span->steps == 0 && trial->slopes) {
        span->loss = trial->loss / span->settings.weight_sum;
        span->derivative = trial->derivative;
        span->value = value_of(span, window, span->c, trial->loss);
        if (!isfinite(span->value))
            return stop(span);
    }
    return next_step(span, window);
}

/* ---- in the record of the state ---- */

static void serialize_settings(struct codec *codec, struct span_settings *settings) {
    serialize_f64(codec, &settings->weight_sum);
    serialize_f64(codec, &settings->l2);
    serialize_u64(codec, &settings->rows);
    serialize_u32(codec, &settings->outputs);
    serialize_f64(codec, &settings->noise);
    serialize_f64(codec, &settings->first);
    serialize_f64(codec, &settings->damping);
    serialize_u64(codec, &settings->sample_seed);
    serialize_f64(codec, &settings->slope);
}

static void serialize_kept(struct codec *codec, struct span_kept *kept, uint32_t count) {
    serialize_u32(codec, &kept->count);
    serialize_fails_if(codec, kept->count > count);
    if (!mutant(SEARCHES_FORGOTTEN))
        serialize_u32(codec, &kept->searches);
    serialize_bool(codec, &kept->exact);
    serialize_bool(codec, &kept->slopes);
    if (!mutant(DICE_FORGOTTEN))
        serialize_u64(codec, &kept->sample_seed);
    for (size_t i = 0; i < size_of(count) && !codec->in.failed && !mutant(SECOND_FORGOTTEN); i++)
        serialize_f64(codec, &kept->second[i]);
}

void span_serialize(struct codec *codec, struct span *span) {
    serialize_settings(codec, &span->settings);
    serialize_u32(codec, &span->count);
    serialize_fails_if(codec, span->count > DIRECTIONS_MAX);
    serialize_u32(codec, &span->steps);
    serialize_u32(codec, &span->trials);
    serialize_u32(codec, &span->tried);
    serialize_f64(codec, &span->rate);
    for (uint32_t i = 0; i < span->count && !codec->in.failed; i++) {
        serialize_f64(codec, &span->c[i]);
        serialize_f64(codec, &span->step[i]);
        serialize_f64(codec, &span->slopes[i]);
        serialize_f64(codec, &span->sums[i]);
    }
    serialize_f64(codec, &span->length);
    serialize_f64(codec, &span->value);
    serialize_f64(codec, &span->slope);
    serialize_f64(codec, &span->loss);
    if (!mutant(TRANSPOSE_BOUND_FORGOTTEN))
        serialize_f64(codec, &span->derivative);
    serialize_f64(codec, &span->decrement);
    serialize_f64(codec, &span->reach);
    serialize_f64(codec, &span->damping);
    serialize_f64(codec, &span->curvature);
    serialize_kept(codec, &span->kept, span->count);
}
