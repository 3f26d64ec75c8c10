#include "model/onnx_response.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/response.h"
#include "objective/objective.h"

struct answering {
    struct onnx_graph *graph;
    const struct model_layout *layout;
    const struct objective *objective;
    const struct response *response; /* or NULL */
};

static const char *node(const struct answering *a, const char *op, const char *x, const char *y) {
    return onnx_node(a->graph, op, x, y, NULL);
}

static const char *constant(const struct answering *a, double value) {
    return onnx_double(a->graph, value);
}

static const char *row_of(const struct answering *a, const double *values) {
    return onnx_doubles(a->graph, values, a->layout->outputs, 0);
}

/* ---- probabilities ---- */

/* 1/(1 + e^−x). The operator Sigmoid says the same, but onnxruntime takes it from 1 where x is
 * below 0, so that what is small has few digits and, from 1e-16 on, none. Where e^−x is infinite,
 * the answer is 0, as it must be. */
static const char *sigmoid(const struct answering *a, const char *x) {
    const char *power = node(a, "Exp", node(a, "Neg", x, NULL), NULL);
    return node(a, "Reciprocal", node(a, "Add", power, constant(a, 1)), NULL);
}

/* calibration_probability(): linear between the knots on both sides of the margin, of which there
 * is one beyond the first and the last. */
static const char *isotonic(const struct answering *a, const struct calibration *calibration,
                            const char *margin) {
    assert(calibration->knots > 0);
    struct onnx_graph *graph = a->graph;
    const char *x = onnx_doubles(graph, calibration->margin, calibration->knots, 0);
    const char *p = onnx_doubles(graph, calibration->probability, calibration->knots, 0);
    const char *reached = onnx_cast(graph, node(a, "GreaterOrEqual", margin, x), ONNX_INT64);
    const char *high = node(a, "ReduceSum", reached, onnx_int64(graph, 1));
    const char *low = node(a, "Sub", high, onnx_int64(graph, 1));
    low = node(a, "Max", low, onnx_int64(graph, 0));
    high = node(a, "Min", high, onnx_int64(graph, calibration->knots - INT64_C(1)));
    const char *x0 = node(a, "Gather", x, low), *x1 = node(a, "Gather", x, high);
    const char *p0 = node(a, "Gather", p, low), *p1 = node(a, "Gather", p, high);
    const char *share = node(a, "Div", node(a, "Sub", margin, x0), node(a, "Sub", x1, x0));
    const char *between = node(a, "Add", p0, node(a, "Mul", node(a, "Sub", p1, p0), share));
    between = node(a, "Min", between, p1);
    return onnx_node(graph, "Where", node(a, "Equal", low, high), p0, between);
}

static const char *platt(const struct answering *a, const struct calibration *calibration,
                         const char *margin) {
    const char *scaled = node(a, "Mul", margin, constant(a, calibration->slope));
    return node(a, "Add", scaled, constant(a, calibration->offset));
}

/* The probability of each output by itself. */
static const char *logistic_of(const struct answering *a, uint32_t k, const char *margin) {
    assert(k < a->layout->outputs);
    const struct calibration *calibration =
        a->response && a->response->calibration ? &a->response->calibration[k] : NULL;
    if (calibration && calibration->method == CALIBRATION_ISOTONIC)
        return isotonic(a, calibration, margin);
    if (calibration && calibration->method == CALIBRATION_PLATT)
        margin = platt(a, calibration, margin);
    return sigmoid(a, margin);
}

static const char *logistics(const struct answering *a, const char *margins) {
    uint32_t outputs = a->layout->outputs;
    if (!a->response || !a->response->calibration)
        return sigmoid(a, margins);
    const char **column = memory_new(outputs, sizeof *column);
    for (uint32_t k = 0; k < outputs; k++)
        column[k] = logistic_of(a, k, onnx_column(a->graph, margins, k));
    const char *all = onnx_concat(a->graph, column, outputs);
    free(column);
    return all;
}

/* The probability of the other of two classes is that of the opposite margin, which has all its
 * digits where it is small. */
static const char *both(const struct answering *a, const char *margin) {
    const struct calibration *calibration =
        a->response && a->response->calibration ? &a->response->calibration[0] : NULL;
    const char *pair[2] = {NULL, logistic_of(a, 0, margin)};
    if (calibration && calibration->method == CALIBRATION_ISOTONIC) {
        pair[0] = node(a, "Sub", constant(a, 1), pair[1]);
    } else {
        if (calibration && calibration->method == CALIBRATION_PLATT)
            margin = platt(a, calibration, margin);
        pair[0] = sigmoid(a, node(a, "Neg", margin, NULL));
    }
    return onnx_concat(a->graph, pair, 2);
}

/* The differences between the probabilities of being in a class or a higher one, which may not
 * rise. */
static const char *ordered(const struct answering *a, const char *margins) {
    assert(a->layout->shared && a->layout->outputs > 0);
    uint32_t outputs = a->layout->outputs;
    const char *chances = sigmoid(a, margins), *above = NULL;
    const char **column = memory_new(outputs + (size_t)1, sizeof *column);
    for (uint32_t k = 0; k < outputs; k++) {
        const char *next = onnx_column(a->graph, chances, k);
        next = above ? node(a, "Min", next, above) : next;
        column[k] = node(a, "Sub", above ? above : constant(a, 1), next);
        above = next;
    }
    column[outputs] = above;
    const char *all = onnx_concat(a->graph, column, outputs + 1);
    free(column);
    return all;
}

static const char *shifted(const struct answering *a, const char *margins) {
    const struct response *response = a->response;
    if (response && response->shift)
        margins = node(a, "Add", margins, row_of(a, response->shift));
    if (response && response->temperature > 0)
        margins = node(a, "Div", margins, constant(a, response->temperature));
    return margins;
}

/* NULL: the objective has none. */
static const char *probabilities(const struct answering *a, const char *margins) {
    if (!a->objective->predict)
        return NULL;
    margins = shifted(a, margins);
    switch (a->objective->labels) {
    case LABEL_BINARY:
        return both(a, margins);
    case LABEL_ORDERED:
        return ordered(a, margins);
    default:
        return response_has_temperature(a->objective) /* it is softmax */
                   ? onnx_node_with(a->graph, "Softmax", margins, "axis", 1)
                   : logistics(a, margins);
    }
}

/* ---- labels ---- */

static const char *is_positive(const struct answering *a, const char *margins) {
    return node(a, "Greater", margins, constant(a, 0));
}

/* Whether the second of two classes, or each class of a list, is predicted. */
static const char *is_reached(const struct answering *a, const char *margins, const char *chances) {
    const double *threshold = a->response ? a->response->threshold : NULL;
    if (!threshold)
        return is_positive(a, margins);
    if (a->objective->labels == LABEL_BINARY)
        chances = onnx_column(a->graph, chances, 1);
    return node(a, "GreaterOrEqual", chances, row_of(a, threshold));
}

/* How many margins are above 0 before the first that is not. */
static const char *count_above(const struct answering *a, const char *margins) {
    const char *above = onnx_cast(a->graph, is_positive(a, margins), ONNX_INT64);
    const char *reached = onnx_column(a->graph, above, 0), *count = reached;
    for (uint32_t k = 1; k < a->layout->outputs; k++) {
        reached = node(a, "Mul", reached, onnx_column(a->graph, above, k));
        count = node(a, "Add", count, reached);
    }
    return count;
}

/* The number of the class, in any shape. */
static const char *best_class(const struct answering *a, const char *margins, const char *chances) {
    if (a->objective->labels == LABEL_BINARY)
        return onnx_cast(a->graph, is_reached(a, margins, chances), ONNX_INT64);
    if (a->objective->labels == LABEL_ORDERED)
        return count_above(a, margins);
    return onnx_node_with(a->graph, "ArgMax", margins, "axis", 1);
}

static void add_label(const struct answering *a, const char *margins, const char *chances) {
    const struct model_layout *layout = a->layout;
    if (a->objective->labels == LABEL_LISTS) {
        onnx_output(a->graph, ONNX_LABELS, is_reached(a, margins, chances), ONNX_BOOL,
                    layout->classes);
        return;
    }
    const char *class = best_class(a, margins, chances);
    class = node(a, "Reshape", class, onnx_int64(a->graph, -1));
    const char *names = onnx_strings(a->graph, layout->class_names, layout->classes);
    onnx_output(a->graph, ONNX_LABEL, node(a, "Gather", names, class), ONNX_STRING, 0);
}

void onnx_add_response(struct onnx_graph *graph, const struct model_layout *layout,
                       const char *margins) {
    const struct answering answering = {.graph = graph,
                                        .layout = layout,
                                        .objective = objective_find(layout->objective),
                                        .response = layout->response};
    const struct answering *a = &answering;
    if (a->objective->labels == LABEL_TARGET) {
        const char *value = a->objective->predict ? node(a, "Exp", margins, NULL) : margins;
        value = node(a, "Reshape", value, onnx_int64(graph, -1));
        onnx_output(graph, ONNX_VALUE, value, ONNX_DOUBLE, 0);
    } else {
        const char *chances = probabilities(a, margins);
        add_label(a, margins, chances);
        if (chances)
            onnx_output(graph, ONNX_PROBABILITIES, chances, ONNX_DOUBLE, layout->classes);
    }
    onnx_output(graph, ONNX_MARGINS, margins, ONNX_DOUBLE, layout->outputs);
}
