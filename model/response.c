#include "model/response.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "objective/objective.h"

struct response *response_new(uint32_t outputs) {
    assert(outputs > 0);
    struct response *response = memory_new(1, sizeof *response);
    response->outputs = outputs;
    return response;
}

void response_free(struct response *response) {
    if (!response)
        return;
    for (uint32_t k = 0; response->calibration && k < response->outputs; k++)
        calibration_release(&response->calibration[k]);
    free(response->calibration);
    free(response->shift);
    free(response->threshold);
    free(response->rule);
    free(response);
}

void response_drop_thresholds(struct response *response) {
    free(response->threshold);
    free(response->rule);
    response->threshold = NULL;
    response->rule = NULL;
}

bool response_is_plain(const struct response *response) {
    return !response->shift && !response->threshold && !response_is_calibrated(response);
}

bool response_is_calibrated(const struct response *response) {
    return response->calibration || response->temperature > 0;
}

bool response_has_temperature(const struct objective *objective) {
    return objective->predict && objective->labels == LABEL_CLASSES &&
           (objective->figures & FIGURE_LOG_LOSS);
}

bool response_has_thresholds(const struct objective *objective) {
    return objective->predict &&
           (objective->labels == LABEL_BINARY || objective->labels == LABEL_LISTS);
}

bool response_has_prior(const struct objective *objective) {
    bool has_margin_a_class =
        objective->labels == LABEL_BINARY || objective->labels == LABEL_CLASSES;
    return has_margin_a_class && (objective->figures & FIGURE_LOG_LOSS) && objective->loss;
}

/* A class of weight w has w times the odds that it has in the data. */
void response_set_prior(struct response *response, const struct objective *objective,
                        const double *class_weight, uint32_t classes) {
    assert(response_has_prior(objective));
    for (uint32_t k = 0; k < classes; k++)
        if (!(class_weight[k] > 0))
            return;
    bool binary = objective->labels == LABEL_BINARY;
    assert(response->outputs == (binary ? 1 : classes));
    response->shift = memory_new(response->outputs, sizeof *response->shift);
    for (uint32_t k = 0; k < response->outputs; k++)
        response->shift[k] =
            binary ? log(class_weight[0] / class_weight[1]) : -log(class_weight[k]);
}

/* ---- examples ---- */

const double *response_shifted(const struct model_layout *layout, const double *margins,
                               double *room) {
    const struct response *response = layout->response;
    if (!response || !response->shift)
        return margins;
    assert(room && response->outputs == layout->outputs);
    for (uint32_t k = 0; k < layout->outputs; k++)
        room[k] = margins[k] + response->shift[k];
    return room;
}

/* The shifted margin of one output. */
static double shifted_one(const struct model_layout *layout, uint32_t k, double margin) {
    const struct response *response = layout->response;
    return response && response->shift ? margin + response->shift[k] : margin;
}

static bool has_temperature(const struct model_layout *layout) {
    return layout->response && layout->response->temperature > 0;
}

static const struct calibration *calibration_of(const struct model_layout *layout, uint32_t k) {
    const struct response *response = layout->response;
    assert(!response || k < response->outputs);
    bool has =
        response && response->calibration && response->calibration[k].method != CALIBRATION_NONE;
    return has ? &response->calibration[k] : NULL;
}

/* The calibrated prediction of an output whose margin is shifted. */
static double calibrated(const struct objective *objective, const struct calibration *calibration,
                         double margin) {
    if (calibration && calibration->method == CALIBRATION_ISOTONIC)
        return calibration_probability(calibration, margin);
    if (calibration)
        margin = calibration->slope * margin + calibration->offset;
    if (objective->predict)
        objective->predict(1, &margin);
    return margin;
}

bool response_out_of_reach(const struct objective *objective, double margin) {
    double prediction = margin;
    if (objective->predict && objective->labels == LABEL_TARGET)
        objective->predict(1, &prediction);
    return !isfinite(margin) || !isfinite(prediction);
}

void response_predict(const struct objective *objective, const struct model_layout *layout,
                      const double *margins, double *prediction) {
    const double *shifted = response_shifted(layout, margins, prediction);
    if (shifted != prediction)
        memcpy(prediction, shifted, layout->outputs * sizeof *prediction);
    for (uint32_t k = 0; has_temperature(layout) && k < layout->outputs; k++)
        prediction[k] /= layout->response->temperature;
    if (layout->response && layout->response->calibration)
        for (uint32_t k = 0; k < layout->outputs; k++)
            prediction[k] = calibrated(objective, calibration_of(layout, k), prediction[k]);
    else if (objective->predict)
        objective->predict(layout->outputs, prediction);
}

double response_probability(const struct objective *objective, const struct model_layout *layout,
                            uint32_t k, double margin) {
    return calibrated(objective, calibration_of(layout, k), shifted_one(layout, k, margin));
}

void response_both(const struct objective *objective, const struct model_layout *layout,
                   double margin, double chances[2]) {
    const struct calibration *calibration = calibration_of(layout, 0);
    double shifted = shifted_one(layout, 0, margin);
    chances[1] = calibrated(objective, calibration, shifted);
    if (calibration && calibration->method == CALIBRATION_ISOTONIC) {
        chances[0] = 1 - chances[1];
        return;
    }
    /* The probability of the other class is that of the opposite margin. */
    chances[0] = -(calibration ? calibration->slope * shifted + calibration->offset : shifted);
    objective->predict(1, chances);
}

uint32_t response_class(const struct objective *objective, const struct model_layout *layout,
                        const double *margins, const double *prediction) {
    if (layout->response && layout->response->threshold)
        return prediction[0] >= layout->response->threshold[0];
    return (uint32_t)objective_class(objective, layout->outputs, margins);
}

bool response_has_class(const struct model_layout *layout, uint32_t k, double margin,
                        double probability) {
    assert(k < layout->outputs);
    if (layout->response && layout->response->threshold)
        return probability >= layout->response->threshold[k];
    return margin > 0;
}

/* log(1 + e^−m) for the own margin m: accurate also where it is tiny. */
static double log_loss(double margin) {
    return log1p(exp(-fabs(margin))) + fmax(-margin, 0);
}

/* log Σ e^m − m of the class. */
static double softmax_log_loss(const double *margins, uint32_t outputs, uint32_t class) {
    double most = margins[0], rest = 0;
    uint32_t best = 0;
    for (uint32_t k = 1; k < outputs; k++)
        if (margins[k] > most)
            most = margins[best = k];
    for (uint32_t k = 0; k < outputs; k++)
        rest += k == best ? 0 : exp(margins[k] - most);
    return most - margins[class] + log1p(rest);
}

double response_log_loss(const struct model_layout *layout, const double *margins, uint32_t class,
                         double *room) {
    assert(layout->response && class < (layout->outputs > 1 ? layout->outputs : 2));
    const struct calibration *calibration = calibration_of(layout, 0);
    const double *all = response_shifted(layout, margins, room);
    double shifted = all[0];
    if (has_temperature(layout)) {
        for (uint32_t k = 0; k < layout->outputs; k++)
            room[k] = all[k] / layout->response->temperature;
        return softmax_log_loss(room, layout->outputs, class);
    }
    if (calibration && calibration->method == CALIBRATION_ISOTONIC) {
        double chance = calibration_probability(calibration, shifted);
        return class ? -log(chance) : -log1p(-chance);
    }
    if (calibration)
        shifted = calibration->slope * shifted + calibration->offset;
    return log_loss(class ? shifted : -shifted);
}

double response_threshold(const struct objective *objective, const struct model_layout *layout,
                          uint32_t k) {
    assert(k < layout->outputs);
    const struct response *response = layout->response;
    if (!response || !response_has_thresholds(objective))
        return NAN;
    if (response->threshold)
        return response->threshold[k];
    return response_probability(objective, layout, k, 0);
}

/* ---- model.json ---- */

static json_t *numbers_json(const double *numbers, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t k = 0; k < count; k++)
        json_array_append_new(list, json_real(numbers[k]));
    return list;
}

static json_t *calibration_members(const struct response *response, bool summary) {
    json_t *outputs = json_array();
    for (uint32_t k = 0; k < response->outputs; k++) {
        const struct calibration *calibration = &response->calibration[k];
        json_t *one =
            calibration->method == CALIBRATION_NONE ? json_null() : calibration_json(calibration);
        if (summary && calibration->method == CALIBRATION_ISOTONIC) {
            json_decref(one);
            one = json_pack("{s:I}", "knots", (json_int_t)calibration->knots);
        }
        json_array_append_new(outputs, one);
    }
    return json_pack("{s:s, s:o}", "method", calibration_names[response->method], "outputs",
                     outputs);
}

static void add_members(const struct response *response, bool summary, json_t *all) {
    if (response->shift)
        json_object_set_new(all, "prior_correction",
                            numbers_json(response->shift, response->outputs));
    if (response->calibration)
        json_object_set_new(all, "calibration", calibration_members(response, summary));
    if (response->temperature > 0)
        json_object_set_new(all, "calibration",
                            json_pack("{s:s, s:f}", "method",
                                      calibration_names[CALIBRATION_TEMPERATURE], "temperature",
                                      response->temperature));
    if (response->threshold)
        json_object_set_new(all, "threshold",
                            json_pack("{s:s, s:o}", "rule", response->rule, "probabilities",
                                      numbers_json(response->threshold, response->outputs)));
}

void response_describe(const struct response *response, json_t *all) {
    add_members(response, false, all);
}

void response_summarise(const struct response *response, json_t *all) {
    add_members(response, true, all);
}

/* ---- reading ---- */

/* A finite number for each output; NULL if the list is not that. */
static double *read_numbers(const json_t *list, uint32_t outputs) {
    double *numbers = memory_new(outputs, sizeof *numbers);
    bool valid = json_array_size(list) == outputs;
    for (uint32_t k = 0; valid && k < outputs; k++) {
        numbers[k] = json_number_value(json_array_get(list, k));
        valid = json_is_number(json_array_get(list, k)) && isfinite(numbers[k]);
    }
    if (valid)
        return numbers;
    free(numbers);
    return NULL;
}

static bool read_calibration(const json_t *object, struct response *response) {
    const char *name = json_string_value(json_object_get(object, "method"));
    const json_t *outputs = json_object_get(object, "outputs");
    for (int method = CALIBRATION_PLATT; name && method < CALIBRATION_TEMPERATURE; method++)
        if (strcmp(name, calibration_names[method]) == 0)
            response->method = (enum calibration_method)method;
    bool valid =
        response->method != CALIBRATION_NONE && json_array_size(outputs) == response->outputs;
    if (!valid)
        return false;
    response->calibration = memory_new(response->outputs, sizeof *response->calibration);
    for (uint32_t k = 0; valid && k < response->outputs; k++) {
        const json_t *one = json_array_get(outputs, k);
        valid =
            json_is_null(one) || calibration_read(one, response->method, &response->calibration[k]);
    }
    return valid;
}

static bool read_threshold(const json_t *object, struct response *response) {
    const char *rule = json_string_value(json_object_get(object, "rule"));
    response->rule = memory_copy_string(rule ? rule : "");
    response->threshold = read_numbers(json_object_get(object, "probabilities"), response->outputs);
    return response->threshold != NULL;
}

static bool read_temperature(const json_t *object, struct response *response) {
    const char *method = json_string_value(json_object_get(object, "method"));
    response->temperature = json_number_value(json_object_get(object, "temperature"));
    return method && !strcmp(method, calibration_names[CALIBRATION_TEMPERATURE]) &&
           response->temperature > 0 && isfinite(response->temperature);
}

/* The member that is wrong, or that does not suit the objective; NULL: none. */
static const char *read_members(const json_t *details, const struct objective *objective,
                                struct response *response) {
    const json_t *prior = json_object_get(details, "prior_correction");
    const json_t *calibration = json_object_get(details, "calibration");
    const json_t *threshold = json_object_get(details, "threshold");
    bool suits = response_has_thresholds(objective);
    if (prior)
        response->shift = read_numbers(prior, response->outputs);
    if (prior && (!response->shift || !response_has_prior(objective)))
        return "prior_correction";
    if (calibration &&
        !(suits                                 ? read_calibration(calibration, response)
          : response_has_temperature(objective) ? read_temperature(calibration, response)
                                                : false))
        return "calibration";
    if (threshold && (!suits || !read_threshold(threshold, response)))
        return "threshold";
    return NULL;
}

int response_read(const json_t *details, const char *path, const struct model_layout *layout,
                  struct response **response) {
    struct response *found = response_new(layout->outputs);
    const char *wrong = read_members(details, objective_find(layout->objective), found);
    *response = NULL;
    if (!wrong && !response_is_plain(found))
        *response = found;
    else
        response_free(found);
    return wrong ? error_set(ERROR_DATA, "%s: `%s` is not what a model for %s has", path, wrong,
                             layout->objective)
                 : 0;
}
