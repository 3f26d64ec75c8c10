/* Calibrations and thresholds, found on held-out rows. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "model/response.h"
#include "model/ranking.h"
#include "objective/objective.h"

bool response_is_found(const struct response_wanted *wanted) {
    return wanted->calibration != CALIBRATION_NONE || threshold_is_found(&wanted->threshold);
}

/* Whether the rows have what nothing can be found without: examples of the class, and others. */
static bool has_both(const struct ranked_score *scores, uint64_t count) {
    struct ranking_point all = ranking_all(scores, count);
    return all.positives > 0 && all.predicted > all.positives;
}

static const char *class_name(const struct model_layout *layout, uint32_t k) {
    return layout->class_names[layout->outputs == 1 ? 1 : k];
}

static void calibrate(const struct response_wanted *wanted, const struct model_layout *layout,
                      uint32_t k, struct ranked_score *scores, uint64_t count,
                      struct response *response) {
    for (uint64_t i = 0; response->shift && i < count; i++)
        scores[i].score += response->shift[k];
    if (has_both(scores, count))
        response->calibration[k] = calibration_fit(wanted->calibration, scores, count);
    else
        log_warning("not calibrated: the holdout has no row of the class \"%s\", or no other row",
                    class_name(layout, k));
    if (response->calibration[k].method == CALIBRATION_PLATT &&
        !(response->calibration[k].slope > 0))
        log_warning("calibration: on the holdout the class \"%s\" is not more frequent where its "
                    "margin is larger: look at the figures before you use this model",
                    class_name(layout, k));
}

/* The scores become probabilities. */
static double find_threshold(const struct response_wanted *wanted,
                             const struct model_layout *layout, uint32_t k,
                             struct ranked_score *scores, uint64_t count) {
    bool reached;
    if (!has_both(scores, count)) {
        log_warning("threshold = %s: the holdout has no row of the class \"%s\", or no other row: "
                    "the threshold is 0.5",
                    wanted->rule, class_name(layout, k));
        return 0.5;
    }
    double found = threshold_find(&wanted->threshold, scores, count, &reached);
    if (!reached)
        log_warning("threshold = %s: no threshold has that precision for the class \"%s\" on the "
                    "holdout; %.6g has the largest",
                    wanted->rule, class_name(layout, k), found);
    return found;
}

static void fit_output(const struct response_wanted *wanted, const struct model_layout *layout,
                       uint32_t k, const struct ranking *margins, struct response *response) {
    uint64_t count;
    const struct objective *objective = objective_find(layout->objective);
    struct ranked_score *scores = ranking_scores(margins, k, &count);
    if (wanted->calibration != CALIBRATION_NONE)
        calibrate(wanted, layout, k, scores, count, response);
    free(scores);
    if (!threshold_is_found(&wanted->threshold))
        return;
    scores = ranking_scores(margins, k, &count);
    for (uint64_t i = 0; i < count; i++)
        scores[i].score = response_probability(objective, layout, k, scores[i].score);
    response->threshold[k] = find_threshold(wanted, layout, k, scores, count);
    free(scores);
}

void response_fit(const struct response_wanted *wanted, const struct model_layout *layout,
                  const struct ranking *margins, struct response *response) {
    struct model_layout decided = *layout;
    bool held = margins && (!ranking_overflowed(margins) || ranking_is_binned(margins));
    if (margins && !held) {
        log_warning("the scores of the holdout are more than %u MiB: there is no threshold and no "
                    "calibration; hold out fewer rows",
                    (unsigned)(RANKING_BYTES_MAX >> 20));
        return;
    }
    if (margins && ranking_is_binned(margins))
        log_info("the scores of the holdout are more than %u MiB: what is found on them is found "
                 "by bins of scores, 256 from each power of two to the next",
                 (unsigned)(RANKING_BYTES_MAX >> 20));
    const struct threshold_rule *rule = &wanted->threshold;
    /* Calibrated probabilities say by themselves which class is more likely. */
    bool calibrated = wanted->calibration != CALIBRATION_NONE || response_is_calibrated(response);
    bool half = rule->kind == THRESHOLD_AUTO && calibrated && !wanted->classes_weighted;
    decided.response = response;
    assert(!response->threshold && !response->rule);
    if (wanted->calibration == CALIBRATION_TEMPERATURE) {
        response->temperature = calibration_temperature(margins, response->shift);
        if (!(response->temperature > 0))
            log_warning(
                "not calibrated: no temperature fits the holdout, where the classes are not "
                "more frequent where their margins are larger");
        return;
    }
    if (wanted->calibration != CALIBRATION_NONE) {
        response->method = wanted->calibration;
        response->calibration = memory_new(response->outputs, sizeof *response->calibration);
    }
    if (rule->kind != THRESHOLD_AUTO || half) {
        response->rule = memory_copy_string(wanted->rule);
        response->threshold = memory_new(response->outputs, sizeof *response->threshold);
    }
    for (uint32_t k = 0; k < response->outputs; k++) {
        if (response->threshold)
            response->threshold[k] = half ? 0.5 : rule->value;
        if (margins)
            fit_output(wanted, &decided, k, margins, response);
    }
}
