#include "model/onnx_margins.h"

#include <assert.h>

#include "base/layout.h"

static const char *node(struct onnx_graph *graph, const char *op, const char *x, const char *y) {
    return onnx_node(graph, op, x, y, NULL);
}

/* ---- linear models ---- */

const char *onnx_linear_margins(struct onnx_graph *graph, const struct model *model,
                                const char *sums) {
    if (!model->bias)
        return sums;
    return node(graph, "Add", sums, onnx_doubles(graph, model->bias, model->layout.outputs, 0));
}

/* ---- networks ---- */

/* x/(1 + e^−(0.0714 x³ + 1.596 x)), with the constants of numeric/lanes.def. */
static const char *gelu(struct onnx_graph *graph, const char *x) {
    const char *cube = onnx_double(graph, 0.071354816272600241);
    const char *linear = onnx_double(graph, 1.5957691216057307118);
    const char *slope = node(graph, "Mul", node(graph, "Mul", x, x), cube);
    slope = node(graph, "Add", slope, linear);
    return node(graph, "Mul", x, node(graph, "Sigmoid", node(graph, "Mul", x, slope), NULL));
}

static const char *activate(struct onnx_graph *graph, enum activation activation,
                            const char *sums) {
    switch (activation) {
    case ACTIVATION_TANH:
        return node(graph, "Tanh", sums, NULL);
    case ACTIVATION_RELU:
        return node(graph, "Relu", sums, NULL);
    default:
        return gelu(graph, sums);
    }
}

/* A tensor of layer `number`, from 1: its weights or, as a vector, its biases. */
static const char *layer_tensor(struct onnx_graph *graph, const struct model *model,
                                const struct layout *layout, const char *letter, uint32_t number) {
    char name[TENSOR_NAME_BYTES];
    snprintf(name, sizeof name, "%s%u", letter, number);
    const struct layout_tensor *tensor = layout_find(layout, name);
    assert(tensor);
    const double *values = model->vector + tensor->first;
    bool weights = *letter == 'W';
    return onnx_doubles(graph, values, weights ? tensor->rows : tensor->columns,
                        weights ? tensor->columns : 0);
}

const char *onnx_network_margins(struct onnx_graph *graph, const struct model *model,
                                 const char *sums) {
    assert(model->vector);
    const struct layout layout = model_tensors(&model->layout);
    const enum activation activation = model->layout.network.activation;
    for (uint32_t number = 1; number <= layout.count / 2; number++) {
        if (number > 1)
            sums = node(graph, "MatMul", activate(graph, activation, sums),
                        layer_tensor(graph, model, &layout, "W", number));
        sums = node(graph, "Add", sums, layer_tensor(graph, model, &layout, "b", number));
    }
    return sums;
}
