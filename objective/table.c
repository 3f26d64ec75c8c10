#include <string.h>

#include "numeric/fixed.h"
#include "objective/parts.h"

static const struct loss *const losses[] = {
    [OBJECTIVE_LOGISTIC] = &loss_logistic,
    [OBJECTIVE_SQUARED] = &loss_squared,
    [OBJECTIVE_SOFTMAX] = &loss_softmax,
};

const struct loss *loss_of(enum objective_kind kind) {
    return losses[kind];
}

const char *objective_name(enum objective_kind kind) {
    return losses[kind]->name;
}

int objective_from_name(const char *name) {
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (strcmp(losses[i]->name, name) == 0)
            return (int)i;
    return -1;
}

bool objective_is_bounded(enum objective_kind kind) {
    return losses[kind]->bounded;
}

struct layout objective_layout(const struct objective_shape *shape) {
    return layout_linear(shape->features, shape->outputs, shape->intercept);
}

uint64_t objective_parameters(const struct objective_shape *shape) {
    struct layout layout = objective_layout(shape);
    return layout_parameters(&layout);
}

double scale_of(const struct objective_scale *scale, size_t number) {
    return fixed_power(scale->exponent ? scale->exponent[number] : scale->uniform);
}
