#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/clones.h"
#include "numeric/fixed.h"
#include "numeric/special.h"
#include "objective/loss_row.h"
#include "objective/parts.h"

static const struct objective *const objectives[OBJECTIVE_KINDS] = {
#define OBJECTIVE(NAME, name) [OBJECTIVE_##NAME] = &objective_##name,
#include "objective/objectives.def"
    [OBJECTIVE_PLUGIN_VALUE] = &objective_plugin_value,
    [OBJECTIVE_PLUGIN_SCORE] = &objective_plugin_score,
    [OBJECTIVE_PLUGIN_MARGIN] = &objective_plugin_margin,
    [OBJECTIVE_PLUGIN_SCORES] = &objective_plugin_scores,
    [OBJECTIVE_PLUGIN_MARGINS] = &objective_plugin_margins,
};

const struct objective *objective_of(enum objective_kind kind) {
    assert((unsigned)kind < OBJECTIVE_KINDS && objectives[kind]);
    return objectives[kind];
}

uint32_t objective_outputs(const struct objective *objective, uint32_t classes) {
    return objective->output_a_class ? classes : objective->shares_weights ? classes - 1 : 1;
}

double objective_second_at_zero(const struct objective_shape *shape) {
    const struct objective *objective = objective_of(shape->kind);
    size_t outputs = shape->outputs;
    assert(objective->second && outputs > 0);
    double *label = memory_new(4 * outputs, sizeof *label), loss, sum = 0;
    double *margins = label + outputs, *work = margins + outputs, *diagonal = work + outputs;
    objective->losses(&shape->loss, 1, outputs, label, margins, &loss, work);
    objective->second(&shape->loss, 1, outputs, label, margins, work, diagonal);
    for (size_t k = 0; k < outputs; k++)
        sum += diagonal[k];
    free(label);
    return sum / (double)outputs;
}

uint32_t objective_weights(const struct objective *objective, uint32_t outputs) {
    return objective->shares_weights ? 1 : outputs;
}

uint32_t objective_predictions(const struct objective *objective, uint32_t outputs) {
    return objective->shares_weights ? outputs + 1 : outputs;
}

const char *objective_name(enum objective_kind kind) {
    return objectives[kind]->name;
}

int objective_from_name(const char *name) {
    for (int kind = 0; kind < OBJECTIVE_KINDS; kind++)
        if (objectives[kind] && strcmp(objectives[kind]->name, name) == 0)
            return kind;
    return -1;
}

const struct objective *objective_find(const char *name) {
    int kind = objective_from_name(name);
    return kind < 0 ? NULL : objectives[kind];
}

size_t objective_best(size_t outputs, const double *margins) {
    return best_output(outputs, margins);
}

size_t objective_class(const struct objective *objective, size_t outputs, const double *margins) {
    assert(outputs > 0);
    if (objective->output_a_class)
        return best_output(outputs, margins);
    return outputs_below(outputs, margins);
}

bool objective_has_classes(const struct objective *objective) {
    return (objective->figures & (FIGURE_ACCURACY | FIGURE_LISTS)) != 0;
}

bool objective_is_correct(const struct objective *objective, size_t outputs, const double *margins,
                          const double *label) {
    if (!objective_has_classes(objective))
        return false;
    if (objective->labels != LABEL_LISTS)
        return (double)objective_class(objective, outputs, margins) == *label;
    return check_lists(outputs, margins, label);
}

double objective_loss(const struct objective *objective, const struct loss_parameters *parameters,
                      size_t outputs, const double *margins, double label) {
    if (objective->loss)
        return objective->loss(parameters, outputs, margins, label);
    if (!objective->losses)
        return NAN; /* a plug-in's loss does not follow from its margins */
    double margin = margins[0], loss, work;
    objective->losses(parameters, 1, 1, &label, &margin, &loss, &work);
    return loss;
}

static const struct loss_parameter parameters_of[OBJECTIVE_KINDS][LOSS_PARAMETERS_MAX] = {
#define LOSS_PARAMETER(KIND, kind, number, name, initial, word, least, most, help)                 \
    [OBJECTIVE_##KIND][number] = {#name, initial, least, most},
#include "objective/objectives.def"
};

const struct loss_parameter *objective_parameter(enum objective_kind kind, uint32_t number) {
    bool has = number < LOSS_PARAMETERS_MAX && parameters_of[kind][number].name;
    return has ? &parameters_of[kind][number] : NULL;
}

struct loss_parameters objective_defaults(enum objective_kind kind) {
    static const struct label_summary no_labels;
    const struct loss_parameter *parameter;
    struct loss_parameters defaults = {0};
    for (uint32_t i = 0; (parameter = objective_parameter(kind, i)); i++)
        defaults.value[i] = strtod(parameter->initial, NULL); /* 0 for "auto" */
    if (objectives[kind]->complete)
        objectives[kind]->complete(&defaults, &no_labels, INFINITY);
    return defaults;
}

const struct loss_parameter *objective_parameter_invalid(enum objective_kind kind,
                                                         const struct loss_parameters *parameters) {
    const struct loss_parameter *parameter;
    for (uint32_t i = 0; (parameter = objective_parameter(kind, i)); i++)
        if (!(parameters->value[i] >= parameter->least && parameters->value[i] <= parameter->most))
            return parameter;
    return NULL;
}

double scale_of(const struct objective_scale *scale, size_t number) {
    return fixed_power(scale->exponent ? scale->exponent[number] : scale->uniform);
}

/* Losses over arrays of rows, in lanes. */

#define LOSS
#define NAME(function) function
#define LOSS_PIECE 64
#define NUMBERS lanes
#define WORDS word_lanes
#define ALL(number) ((lanes){0} + (number))
#define ABOVE lanes_above
#define CHOOSE lanes_choose
#define FUNCTION LANES_INLINE
#define CLONED VECTOR_CLONES static
#include "objective/losses.def"
