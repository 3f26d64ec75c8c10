#include "model/calibration.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/ranking.h"
#include "numeric/exact.h"

const char *const calibration_names[] = {"none", "platt", "isotonic", "temperature", NULL};

void calibration_release(struct calibration *calibration) {
    free(calibration->margin);
    free(calibration->probability);
    *calibration = (struct calibration){0};
}

/* ---- Platt ---- */

/* The loss over all rows at slope and offset, with its first and second derivatives. */
struct platt_sums {
    double loss, by_slope, by_offset, slope_slope, slope_offset, offset_offset;
};

struct platt_targets {
    double positive, negative;
};

/* The loss of a row is log(1 + e^−f) + (1 − target)·f, written so that neither part overflows. */
static struct platt_sums platt_at(const struct ranked_score *scores, uint64_t count,
                                  struct platt_targets targets, double slope, double offset) {
    struct exact sum[6];
    for (size_t i = 0; i < 6; i++)
        exact_init(&sum[i]);
    for (uint64_t i = 0; i < count; i++) {
        double x = scores[i].score, f = slope * x + offset, weight = fabs(scores[i].weight);
        double target = scores[i].weight > 0 ? targets.positive : targets.negative;
        double e = exp(-fabs(f)), p = (f >= 0 ? 1 : e) / (1 + e);
        double second = weight * e / ((1 + e) * (1 + e));
        exact_add(&sum[0], weight * (log1p(e) + (f >= 0 ? (1 - target) * f : -target * f)));
        exact_add(&sum[1], weight * (p - target) * x);
        exact_add(&sum[2], weight * (p - target));
        exact_add(&sum[3], second * x * x);
        exact_add(&sum[4], second * x);
        exact_add(&sum[5], second);
    }
    return (struct platt_sums){exact_value(&sum[0]), exact_value(&sum[1]), exact_value(&sum[2]),
                               exact_value(&sum[3]), exact_value(&sum[4]), exact_value(&sum[5])};
}

#define PLATT_STEPS_MAX 100
#define PLATT_HALVINGS_MAX 40
#define PLATT_TOLERANCE 1e-14 /* of the slope along a step, as a share of the loss */

/* Newton's method with steps that are halved until the loss falls, as Lin, Lin and Weng (A note on
 * Platt's probabilistic outputs, 2007). The sums are exact, so no order of rows matters. */
static void fit_platt(const struct ranked_score *scores, uint64_t count, double positives,
                      double negatives, struct calibration *found) {
    assert(positives > 0 && negatives > 0);
    const struct platt_targets targets = {(positives + 1) / (positives + 2), 1 / (negatives + 2)};
    found->offset = log((positives + 1) / (negatives + 1));
    struct platt_sums at = platt_at(scores, count, targets, found->slope, found->offset);
    for (int step = 0; step < PLATT_STEPS_MAX; step++) {
        /* Where all margins are one, any slope fits: the diagonal is raised a little. */
        double a = at.slope_slope * (1 + 1e-12) + 1e-300, b = at.slope_offset;
        double c = at.offset_offset * (1 + 1e-12) + 1e-300, determinant = a * c - b * b;
        double slope = -(c * at.by_slope - b * at.by_offset) / determinant;
        double offset = -(a * at.by_offset - b * at.by_slope) / determinant;
        double fall = -(slope * at.by_slope + offset * at.by_offset), length = 1;
        if (!isfinite(slope) || !isfinite(offset))
            return;
        bool last = !(fall > PLATT_TOLERANCE * at.loss); /* the loss cannot tell the points apart */
        struct platt_sums next = at;
        for (int halvings = 0; !last && halvings < PLATT_HALVINGS_MAX; halvings++, length /= 2) {
            next = platt_at(scores, count, targets, found->slope + length * slope,
                            found->offset + length * offset);
            if (next.loss < at.loss)
                break;
        }
        found->slope += length * slope;
        found->offset += length * offset;
        if (last || !(next.loss < at.loss))
            return;
        at = next;
    }
}

/* ---- isotonic ---- */

/* A run of margins with one probability. */
struct isotonic_pool {
    double first, last; /* margins */
    double positives, weight;
};

static double pool_value(const struct isotonic_pool *pool) {
    return pool->positives / pool->weight;
}

/* Pools of adjacent violators (Ayer and others, 1955), from the lowest margin up; of equal margins
 * one pool. `scores` are sorted, from the highest down. Returns how many pools there are. */
static uint64_t make_pools(const struct ranked_score *scores, uint64_t count,
                           struct isotonic_pool *pool) {
    uint64_t pools = 0;
    for (uint64_t i = count; i > 0;) {
        struct isotonic_pool next = {.first = scores[i - 1].score, .last = scores[i - 1].score};
        for (; i > 0 && scores[i - 1].score == next.first; i--) {
            next.positives += fmax(scores[i - 1].weight, 0);
            next.weight += fabs(scores[i - 1].weight);
        }
        for (; pools && pool_value(&pool[pools - 1]) >= pool_value(&next); pools--) {
            next.first = pool[pools - 1].first;
            next.positives += pool[pools - 1].positives;
            next.weight += pool[pools - 1].weight;
        }
        pool[pools++] = next;
    }
    return pools;
}

static void add_knot(struct calibration *calibration, double margin, double probability) {
    calibration->margin[calibration->knots] = margin;
    calibration->probability[calibration->knots++] = probability;
}

static void fit_isotonic(struct ranked_score *scores, uint64_t count, struct calibration *found) {
    double least = 1 / ((double)count + 2);
    struct isotonic_pool *pool = memory_new(count, sizeof *pool);
    ranking_sort(scores, count);
    uint64_t pools = make_pools(scores, count, pool);
    assert(pools > 0 && pools <= count);
    found->margin = memory_new(2 * pools, sizeof(double));
    found->probability = memory_new(2 * pools, sizeof(double));
    for (uint64_t i = 0; i < pools; i++) {
        double value = fmin(fmax(pool_value(&pool[i]), least), 1 - least);
        add_knot(found, pool[i].first, value);
        if (pool[i].last > pool[i].first)
            add_knot(found, pool[i].last, value);
    }
    free(pool);
}

double calibration_probability(const struct calibration *calibration, double margin) {
    const double *x = calibration->margin, *p = calibration->probability;
    assert(calibration->method == CALIBRATION_ISOTONIC && calibration->knots > 0);
    uint32_t low = 0, high = calibration->knots; /* knots below `low` are at most the margin */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (x[middle] <= margin)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || low == calibration->knots)
        return p[low ? low - 1 : 0];
    double share = (margin - x[low - 1]) / (x[low] - x[low - 1]);
    return fmin(p[low - 1] + (p[low] - p[low - 1]) * share, p[low]);
}

/* ---- temperature ---- */

/* The loss over all rows at margins times `factor`, with its derivatives by that. */
struct temperature_sums {
    double loss, first, second;
};

static void add_softmax(const double *margins, uint32_t outputs, uint32_t class, double weight,
                        double factor, struct exact sum[3]) {
    double most = margins[0], all = 0, mean = 0, variance = 0;
    for (uint32_t k = 1; k < outputs; k++)
        most = fmax(most, margins[k]);
    for (uint32_t k = 0; k < outputs; k++) {
        double part = exp(factor * (margins[k] - most));
        all += part;
        mean += part * (margins[k] - most);
    }
    mean /= all;
    for (uint32_t k = 0; k < outputs; k++) {
        double distance = margins[k] - most - mean;
        variance += exp(factor * (margins[k] - most)) / all * distance * distance;
    }
    exact_add(&sum[0], weight * (log(all) + factor * (most - margins[class])));
    exact_add(&sum[1], weight * (mean - (margins[class] - most)));
    exact_add(&sum[2], weight * variance);
}

static struct temperature_sums temperature_at(const struct ranking *margins, const double *shift,
                                              double factor, double *room) {
    struct exact sum[3];
    struct ranking_row row;
    for (size_t i = 0; i < 3; i++)
        exact_init(&sum[i]);
    for (uint64_t i = 0; ranking_row(margins, i, &row); i++) {
        for (uint32_t k = 0; k < row.outputs; k++)
            room[k] = row.scores[k] + (shift ? shift[k] : 0);
        add_softmax(room, row.outputs, row.class, row.weight, factor, sum);
    }
    return (struct temperature_sums){exact_value(&sum[0]), exact_value(&sum[1]),
                                     exact_value(&sum[2])};
}

/* Newton's method as for Platt; the loss is convex in the factor. */
double calibration_temperature(const struct ranking *margins, const double *shift) {
    struct ranking_row row;
    if (!ranking_row(margins, 0, &row))
        return 0;
    double factor = 1, *room = memory_new(row.outputs, sizeof *room);
    struct temperature_sums at = temperature_at(margins, shift, factor, room), next;
    bool last = false;
    while (!last && at.second > 0) {
        double step = -at.first / at.second, length = 1;
        last = !(fabs(step * at.first) > PLATT_TOLERANCE * at.loss);
        for (int halvings = 0; halvings < PLATT_HALVINGS_MAX; halvings++, length /= 2) {
            next = temperature_at(margins, shift, factor + length * step, room);
            if (next.loss < at.loss || last)
                break;
        }
        last |= !(next.loss < at.loss);
        factor += length * step;
        at = next;
    }
    free(room);
    return factor > 0 && isfinite(1 / factor) ? 1 / factor : 0;
}

/* ---- both ---- */

struct calibration calibration_fit(enum calibration_method method, struct ranked_score *scores,
                                   uint64_t count) {
    assert(count > 0 && (method == CALIBRATION_PLATT || method == CALIBRATION_ISOTONIC));
    struct calibration found = {.method = method};
    struct exact positives, negatives;
    exact_init(&positives);
    exact_init(&negatives);
    for (uint64_t i = 0; i < count; i++)
        exact_add(scores[i].weight > 0 ? &positives : &negatives, fabs(scores[i].weight));
    if (method == CALIBRATION_PLATT)
        fit_platt(scores, count, exact_value(&positives), exact_value(&negatives), &found);
    else
        fit_isotonic(scores, count, &found);
    return found;
}

static json_t *numbers_json(const double *numbers, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(numbers[i]));
    return list;
}

json_t *calibration_json(const struct calibration *calibration) {
    assert(calibration->method == CALIBRATION_PLATT || calibration->knots > 0);
    if (calibration->method == CALIBRATION_PLATT)
        return json_pack("{s:f, s:f}", "slope", calibration->slope, "offset", calibration->offset);
    return json_pack("{s:o, s:o}", "margins", numbers_json(calibration->margin, calibration->knots),
                     "probabilities", numbers_json(calibration->probability, calibration->knots));
}

static double *read_numbers(const json_t *list, size_t count) {
    double *numbers = memory_new(count, sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(list, i);
        numbers[i] = json_is_number(number) ? json_number_value(number) : NAN;
    }
    return numbers;
}

bool calibration_read(const json_t *object, enum calibration_method method,
                      struct calibration *calibration) {
    assert(method == CALIBRATION_PLATT || method == CALIBRATION_ISOTONIC);
    *calibration = (struct calibration){.method = method};
    if (method == CALIBRATION_PLATT) {
        const json_t *slope = json_object_get(object, "slope");
        const json_t *offset = json_object_get(object, "offset");
        calibration->slope = json_number_value(slope);
        calibration->offset = json_number_value(offset);
        return json_is_number(slope) && json_is_number(offset);
    }
    const json_t *margins = json_object_get(object, "margins");
    const json_t *probabilities = json_object_get(object, "probabilities");
    size_t knots = json_array_size(margins);
    if (knots != json_array_size(probabilities) || knots >= UINT32_MAX)
        return false;
    calibration->knots = (uint32_t)knots;
    calibration->margin = read_numbers(margins, knots);
    calibration->probability = read_numbers(probabilities, knots);
    const double *x = calibration->margin, *p = calibration->probability;
    bool valid = calibration->knots > 0;
    for (uint32_t i = 0; i < calibration->knots; i++) {
        valid &= isfinite(x[i]) && p[i] > 0 && p[i] < 1;
        valid &= !i || (x[i] > x[i - 1] && p[i] >= p[i - 1]);
    }
    return valid;
}
