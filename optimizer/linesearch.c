#include "optimizer/linesearch.h"

#include <assert.h>
#include <math.h>

#define SUFFICIENT_DECREASE 1e-4 /* c₁ */
#define CURVATURE 0.9            /* c₂ */
#define STEP_MAX 1e20
#define INTERVAL_LEAST 1e-15 /* relative width at which an interval is exhausted */
#define EXTRAPOLATION_LEAST 1.1
#define EXTRAPOLATION_MOST 4.0
#define GUESSED_CURVATURE 0.5 /* c₂ where the length of the first trial was a guess */
#define GUESSED_MOST 1e9     /* times the trial: beyond, the difference of the slopes is rounding */
#define FRACTION_LEAST 1e-12 /* of an interval: below, the cubic is rounding */
#define SHRINK 0.1           /* after a trial that was not finite, or at most so far */
#define SHRINK_LEAST 0.5     /* after one of which only the value is known */

void linesearch_begin(struct linesearch *search, double value, double slope, double noise,
                      double step, bool guessed) {
    assert(slope <= 0 && step > 0 && noise >= 0);
    struct linesearch_point start = {.step = 0, .value = value, .slope = slope};
    *search = (struct linesearch){
        .step = step,
        .value0 = value,
        .slope0 = slope,
        .noise = noise,
        .step_max = STEP_MAX,
        .best = start,
        .other = start,
        .least = 0,
        .most = step + EXTRAPOLATION_MOST * step,
        .width = STEP_MAX,
        .width_before = 2 * STEP_MAX,
        .guessed = guessed,
        .decreasing = true,
    };
    assert(search->best.step < search->step && search->step < search->most);
}

/* The minimiser of the cubic that has the values and slopes of a and b, as a fraction of the way
 * from a to b. `guard` keeps the radicand from being negative where a minimiser may not exist. */
static double cubic_fraction(const struct linesearch_point *a, const struct linesearch_point *b,
                             bool guard) {
    double theta = 3 * (a->value - b->value) / (b->step - a->step) + a->slope + b->slope;
    double scale = fmax(fabs(theta), fmax(fabs(a->slope), fabs(b->slope)));
    double radicand = (theta / scale) * (theta / scale) - (a->slope / scale) * (b->slope / scale);
    double gamma = scale * sqrt(guard ? fmax(0, radicand) : radicand);
    if (b->step < a->step)
        gamma = -gamma;
    double p = (gamma - a->slope) + theta;
    double q = ((gamma - a->slope) + gamma) + b->slope;
    return p / q;
}

/* Case 1: a higher value. The minimum is bracketed; cubic or quadratic, whichever is nearer. Where
 * it is next to `best` the cubic is lost in rounding, and the quadratic is not. */
static double step_for_higher_value(const struct linesearch_point *best,
                                    const struct linesearch_point *trial) {
    assert(trial->value > best->value);
    double length = trial->step - best->step;
    double fraction = cubic_fraction(best, trial, false);
    double cubic = best->step + fraction * length;
    double quadratic = best->step + best->slope /
                                        ((best->value - trial->value) / length + best->slope) / 2 *
                                        length;
    if (fraction < FRACTION_LEAST)
        return quadratic;
    if (fabs(cubic - best->step) < fabs(quadratic - best->step))
        return cubic;
    return cubic + (quadratic - cubic) / 2;
}

/* Cases 3 and 4 where the length of the first trial was a guess. Slopes that differ by rounding
 * tell nothing but that the minimiser is far. */
static double step_for_guessed(const struct linesearch *search,
                               const struct linesearch_point *trial) {
    assert(search->guessed && !search->bracketed);
    double flattened = 1 - trial->slope / search->best.slope;
    double length = trial->step - search->best.step;
    double most = GUESSED_MOST * trial->step, secant = search->best.step + length / flattened;
    if (flattened < -1 / GUESSED_MOST)
        return search->most; /* steeper */
    if (flattened < 1 / GUESSED_MOST)
        secant = most;
    return fmax(search->least, fmin(secant, most));
}

/* Case 3: a lower value and a slope that flattens. The cubic only where it tends to infinity in
 * the direction of the step or its minimum lies beyond the trial; else the secant. */
static double step_for_flatter_slope(const struct linesearch *search,
                                     const struct linesearch_point *trial) {
    const struct linesearch_point *best = &search->best;
    double length = best->step - trial->step;
    double fraction = cubic_fraction(trial, best, true);
    double cubic;
    assert(fabs(trial->slope) < fabs(best->slope));
    if (fraction < 0 && isfinite(fraction))
        cubic = trial->step + fraction * length;
    else
        cubic = trial->step > best->step ? search->most : search->least;
    double secant = trial->step + trial->slope / (trial->slope - best->slope) * length;
    if (!search->bracketed) {
        double step = fabs(cubic - trial->step) > fabs(secant - trial->step) ? cubic : secant;
        return fmin(search->most, fmax(search->least, step));
    }
    double step = fabs(cubic - trial->step) < fabs(secant - trial->step) ? cubic : secant;
    double limit = trial->step + 0.66 * (search->other.step - trial->step);
    return trial->step > best->step ? fmin(limit, step) : fmax(limit, step);
}

/* Case 4: a lower value and a slope that does not flatten. */
static double step_for_steeper_slope(const struct linesearch *search,
                                     const struct linesearch_point *trial) {
    assert(!(trial->value > search->best.value));
    if (search->bracketed) {
        double length = search->other.step - trial->step;
        return trial->step + cubic_fraction(trial, &search->other, false) * length;
    }
    return trial->step > search->best.step ? search->most : search->least;
}

/* Updates the interval with the trial and answers with the next step (Moré and Thuente, section
 * 4). Values may be those of the auxiliary function psi. */
static double interval_update(struct linesearch *search, const struct linesearch_point *trial) {
    assert(trial->step >= 0 && search->best.step >= 0);
    double step;
    bool opposite = trial->slope * (search->best.slope / fabs(search->best.slope)) < 0;
    bool higher = trial->value > search->best.value;
    bool bracketed = search->bracketed;
    if (higher) {
        step = step_for_higher_value(&search->best, trial);
        bracketed = true;
    } else if (opposite) {
        /* Case 2: a lower value and slopes of opposite sign. Bracketed; cubic or secant, the
         * farther. */
        double length = search->best.step - trial->step;
        double cubic = trial->step + cubic_fraction(trial, &search->best, false) * length;
        double secant = trial->step + trial->slope / (trial->slope - search->best.slope) * length;
        step = fabs(cubic - trial->step) > fabs(secant - trial->step) ? cubic : secant;
        bracketed = true;
    } else if (search->guessed && !bracketed) {
        step = step_for_guessed(search, trial);
    } else if (fabs(trial->slope) < fabs(search->best.slope)) {
        step = step_for_flatter_slope(search, trial);
    } else {
        step = step_for_steeper_slope(search, trial);
    }
    search->bracketed = bracketed;
    if (higher) {
        search->other = *trial;
    } else {
        if (opposite)
            search->other = search->best;
        search->best = *trial;
    }
    return step;
}

static struct linesearch_point tilted(struct linesearch_point point, double slope) {
    point.value -= slope * point.step;
    point.slope -= slope;
    return point;
}

/* In the first stage the interval is updated with psi(α) = phi(α) − phi(0) − c₁·α·phi'(0). */
static double next_step(struct linesearch *search, const struct linesearch_point *trial,
                        double enough) {
    double tilt = SUFFICIENT_DECREASE * search->slope0;
    assert(search->slope0 <= 0);
    if (!search->decreasing || trial->value > search->best.value || trial->value <= enough)
        return interval_update(search, trial);
    struct linesearch_point turned = tilted(*trial, tilt);
    search->best = tilted(search->best, tilt);
    search->other = tilted(search->other, tilt);
    double step = interval_update(search, &turned);
    search->best = tilted(search->best, -tilt);
    search->other = tilted(search->other, -tilt);
    return step;
}

/* `step` is the next trial, and these are the bounds of the one after it. An extrapolation must go
 * on from the next trial: bounds around the trial just made, which often is `best` now, would
 * shrink to that.
 */
static void bounds_update(struct linesearch *search, double step) {
    double best = search->best.step, other = search->other.step;
    if (search->bracketed) {
        search->least = fmin(best, other);
        search->most = fmax(best, other);
        assert(search->least <= search->most);
    } else {
        search->least = step + EXTRAPOLATION_LEAST * (step - best);
        search->most = step + EXTRAPOLATION_MOST * (step - best);
    }
}

/* If the step is not a number, the values contradict each other: nothing is left either. */
static bool interval_exhausted(const struct linesearch *search, double step) {
    assert(!search->bracketed || search->least <= search->most);
    if (!search->bracketed)
        return isnan(step);
    return !(step > search->least && step < search->most) ||
           search->most - search->least <= INTERVAL_LEAST * search->most;
}

/* Nothing better can be found: the best trial is gone back to if it decreases enough. */
static enum linesearch_answer give_up(struct linesearch *search, double trial_step) {
    const struct linesearch_point *best = &search->best;
    assert(search->trials > 0 && best->step >= 0 && search->slope0 <= 0);
    double enough = search->value0 + SUFFICIENT_DECREASE * best->step * search->slope0;
    if (!(best->step > 0) || best->rounded || !(best->value <= enough))
        return LINESEARCH_FAIL;
    if (search->best.step == trial_step)
        return LINESEARCH_ACCEPT;
    search->last_chance = true;
    search->step = search->best.step;
    return LINESEARCH_TRY;
}

/* To a share of the way from the best point to the trial. */
static enum linesearch_answer shrink(struct linesearch *search, double share) {
    double reach = search->step - search->best.step;
    assert(share > 0 && share < 1);
    if (reach == 0 || search->trials >= LINESEARCH_TRIALS_MAX)
        return give_up(search, search->step);
    search->step_max = search->best.step + reach / 2;
    search->step = search->best.step + share * reach;
    search->most = search->step_max;
    assert(search->trials < LINESEARCH_TRIALS_MAX);
    return LINESEARCH_TRY;
}

enum linesearch_answer linesearch_next(struct linesearch *search, double value, double slope) {
    assert(search->trials < LINESEARCH_TRIALS_MAX || search->last_chance);
    search->trials++;
    if (!isfinite(value) || !isfinite(slope))
        return shrink(search, SHRINK);

    struct linesearch_point trial = {.step = search->step, .value = value, .slope = slope};
    if (fabs(value - search->value0) <= search->noise) {
        trial.value = search->value0 + trial.step * (search->slope0 + slope) / 2;
        trial.rounded = true;
    }

    double enough = search->value0 + SUFFICIENT_DECREASE * trial.step * search->slope0;
    double flat = (search->guessed ? GUESSED_CURVATURE : CURVATURE) * -search->slope0;
    if (trial.value <= enough && fabs(slope) <= flat)
        return LINESEARCH_ACCEPT;
    if (search->last_chance)
        return trial.value <= enough ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
    if (search->decreasing && trial.value <= enough && slope >= 0)
        search->decreasing = false;
    if (trial.step >= search->step_max && trial.value <= enough && slope <= 0)
        return LINESEARCH_ACCEPT; /* downhill as far as the function is finite */

    double step = next_step(search, &trial, enough);
    if (search->bracketed) {
        double width = fabs(search->other.step - search->best.step);
        if (width >= 0.66 * search->width_before)
            step = search->best.step + (search->other.step - search->best.step) / 2;
        search->width_before = search->width;
        search->width = width;
    }
    if (step > search->step_max)
        step = search->step_max;
    bounds_update(search, step);
    if (interval_exhausted(search, step) || search->trials >= LINESEARCH_TRIALS_MAX)
        return give_up(search, trial.step);
    assert(!search->bracketed || (search->least < step && step < search->most));
    search->step = step;
    return LINESEARCH_TRY;
}

bool linesearch_refuses(const struct linesearch *search, double bound) {
    assert(search->noise >= 0);
    return bound > search->value0 + search->noise && search->step > search->best.step;
}

/* The minimiser of the quadratic with value and slope of the best point and the value of the trial,
 * within limits. */
enum linesearch_answer linesearch_refused(struct linesearch *search, double bound) {
    assert(linesearch_refuses(search, bound));
    double fall = search->best.slope * (search->step - search->best.step);
    double share = -fall / (2 * (bound - search->best.value - fall));
    search->trials++;
    if (search->last_chance)
        return LINESEARCH_FAIL;
    return shrink(search, fmax(SHRINK, fmin(share, SHRINK_LEAST)));
}

#define TRIALS_MAX 30
#define COSINE_LEAST 1e-10 /* of s and y */

/* A share of the step, between SHRINK and SHRINK_LEAST. `expected` is what the slope
 * promised for it, below 0. */
static double share_left(double change, double expected) {
    assert(expected <= 0);
    if (change <= expected)
        return SHRINK_LEAST;
    double share = -expected / (2 * (change - expected));
    return fmax(SHRINK, fmin(SHRINK_LEAST, share));
}

enum linesearch_answer box_search_next(struct linesearch *search, const struct box_trial *trial) {
    assert(search->trials < TRIALS_MAX);
    bool finite = isfinite(trial->loss) && isfinite(trial->falls) && isfinite(trial->ends);
    double change = trial->loss - search->value0;
    search->trials++;
    if (fabs(change) <= search->noise)
        change = (trial->falls + trial->ends) / 2;
    if (finite && trial->falls < 0 && change <= SUFFICIENT_DECREASE * trial->falls)
        return LINESEARCH_ACCEPT;
    if (search->trials >= TRIALS_MAX)
        return LINESEARCH_FAIL;
    search->step *= finite ? share_left(change, search->slope0 * search->step) : SHRINK;
    return LINESEARCH_TRY;
}

enum linesearch_answer box_search_refused(struct linesearch *search, double bound) {
    assert(bound > search->value0 && search->trials < TRIALS_MAX);
    if (++search->trials >= TRIALS_MAX)
        return LINESEARCH_FAIL;
    search->step *= share_left(bound - search->value0, search->slope0 * search->step);
    return LINESEARCH_TRY;
}

enum linesearch_answer convex_search_next(struct linesearch *search, double loss) {
    assert(search->trials < TRIALS_MAX && search->slope0 < 0);
    double change = loss - search->value0, promise = search->step * search->slope0;
    bool rounding = fabs(change) <= search->noise;
    search->trials++;
    if (change <= SUFFICIENT_DECREASE * promise || (rounding && change <= 0))
        return LINESEARCH_ACCEPT;
    if (search->trials >= TRIALS_MAX || rounding)
        return LINESEARCH_FAIL;
    search->step *= isfinite(loss) ? share_left(change, promise) : SHRINK;
    return LINESEARCH_TRY;
}

bool box_keeps_pair(double sy, double step_square, double yy) {
    return isfinite(sy) && sy > COSINE_LEAST * sqrt(step_square) * sqrt(yy);
}

double l1_gap_bound(double l1, double l2, const struct l1_gap *gap) {
    assert(l1 > 0 && l2 >= 0);
    double penalty = l1 * gap->norm_1 + l2 / 2 * gap->square;
    double scale = fmin(1, l1 / gap->excess);
    double bound = l2 > 0 ? gap->wr + penalty + gap->excess / (2 * l2)
                          : (1 - scale) * gap->mean_loss + scale * gap->wr + penalty;
    return isfinite(bound) ? fmax(bound, 0) : NAN;
}

/* ---- in the record of the state ---- */

static void serialize_point(struct codec *codec, struct linesearch_point *point) {
    serialize_f64(codec, &point->step);
    serialize_f64(codec, &point->value);
    serialize_f64(codec, &point->slope);
    serialize_bool(codec, &point->rounded);
}

void linesearch_serialize(struct codec *codec, struct linesearch *search) {
    serialize_f64(codec, &search->step);
    serialize_f64(codec, &search->value0);
    serialize_f64(codec, &search->slope0);
    serialize_f64(codec, &search->noise);
    serialize_f64(codec, &search->step_max);
    serialize_point(codec, &search->best);
    serialize_point(codec, &search->other);
    serialize_f64(codec, &search->least);
    serialize_f64(codec, &search->most);
    serialize_f64(codec, &search->width);
    serialize_f64(codec, &search->width_before);
    serialize_bool(codec, &search->bracketed);
    serialize_bool(codec, &search->decreasing);
    serialize_bool(codec, &search->guessed);
    serialize_bool(codec, &search->last_chance);
    serialize_u32(codec, &search->trials);
}
