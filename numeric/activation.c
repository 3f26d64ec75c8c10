#include "numeric/activation.h"

#include <math.h>

#define GELU_SCALE 0.79788456080286535588 /* √(2/π) */
#define GELU_CUBE 0.044715

#define OVER(name, number, value)                                                                  \
    void name(size_t n, number *out, const number *x) {                                            \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = (number)(value);                                                              \
    }
#define BACK(name, number, derivative)                                                             \
    void name(size_t n, number *out, const number *gradient, const number *x) {                    \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = gradient[i] * (number)(derivative);                                           \
    }

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x)));
}

static double gelu_derivative(double x) {
    double t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
}

OVER(activation_tanh, double, tanh(x[i]))
OVER(activation_tanh_float, float, tanh(x[i]))
OVER(activation_relu, double, x[i] < 0 ? 0 : x[i])
OVER(activation_relu_float, float, x[i] < 0 ? 0 : x[i])
OVER(activation_gelu, double, gelu(x[i]))
OVER(activation_gelu_float, float, gelu(x[i]))
BACK(activation_tanh_back, double, 1 - x[i] * x[i])
BACK(activation_tanh_back_float, float, 1 - x[i] * x[i])
BACK(activation_gelu_back, double, gelu_derivative(x[i]))
BACK(activation_gelu_back_float, float, gelu_derivative(x[i]))

#define RELU_BACK(name, number)                                                                    \
    void name(size_t n, number *out, const number *gradient, const number *y) {                    \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = y[i] > 0 ? gradient[i] : y[i] <= 0 ? 0 : y[i];                                \
    }
RELU_BACK(activation_relu_back, double)
RELU_BACK(activation_relu_back_float, float)
