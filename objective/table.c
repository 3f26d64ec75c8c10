#include <stdlib.h>
#include <string.h>

#include "numeric/fixed.h"
#include "objective/parts.h"

static const struct objective *const objectives[OBJECTIVES] = {
#define OBJECTIVE(NAME, name) [OBJECTIVE_##NAME] = &objective_##name,
#include "objective/objectives.def"
};

const struct objective *objective_of(enum objective_kind kind) {
    return objectives[kind];
}

uint32_t objective_outputs(const struct objective *objective, uint32_t classes) {
    return objective->output_a_class ? classes : 1;
}

const char *objective_name(enum objective_kind kind) {
    return objectives[kind]->name;
}

int objective_from_name(const char *name) {
    for (int kind = 0; kind < OBJECTIVES; kind++)
        if (strcmp(objectives[kind]->name, name) == 0)
            return kind;
    return -1;
}

const struct objective *objective_find(const char *name) {
    int kind = objective_from_name(name);
    return kind < 0 ? NULL : objectives[kind];
}

size_t objective_best(size_t outputs, const double *margins) {
    size_t best = 0;
    for (size_t k = 1; k < outputs; k++)
        if (margins[k] > margins[best])
            best = k;
    return best;
}

static const struct loss_parameter parameters_of[OBJECTIVES][LOSS_PARAMETERS_MAX] = {
#define LOSS_PARAMETER(KIND, kind, number, name, initial, word, least, most, help)                 \
    [OBJECTIVE_##KIND][number] = {#name, initial, least, most},
#include "objective/parameters.def"
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
        objectives[kind]->complete(&defaults, &no_labels);
    return defaults;
}

const struct loss_parameter *objective_parameter_amiss(enum objective_kind kind,
                                                       const struct loss_parameters *parameters) {
    const struct loss_parameter *parameter;
    for (uint32_t i = 0; (parameter = objective_parameter(kind, i)); i++)
        if (!(parameters->value[i] >= parameter->least && parameters->value[i] <= parameter->most))
            return parameter;
    return NULL;
}

struct layout objective_layout(const struct objective_shape *shape) {
    struct layout layout = layout_linear(shape->features, shape->outputs, shape->intercept);
    if (shape->intercept && shape->start != 0 && layout.count) {
        struct layout_tensor *bias = &layout.tensor[layout.count - 1];
        bias->start = LAYOUT_START_CONSTANT;
        bias->bound = shape->start;
    }
    return layout;
}

uint64_t objective_parameters(const struct objective_shape *shape) {
    struct layout layout = objective_layout(shape);
    return layout_parameters(&layout);
}

double scale_of(const struct objective_scale *scale, size_t number) {
    return fixed_power(scale->exponent ? scale->exponent[number] : scale->uniform);
}
