/* Networks beside what JAX and scikit-learn compute at the same parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "tests/unit/network_fixture.h"

enum { ROWS = 9, FEATURES = 5, GRADIENT_MAX = 51 };

static const struct oracle {
    enum objective_kind kind;
    enum activation activation;
    double loss;
    double gradient[GRADIENT_MAX];
} oracles[] = {
#include "tests/unit/network_oracle.def"
};
enum { ORACLES = sizeof oracles / sizeof *oracles };

static double label_of(enum objective_kind kind, int i) {
    if (kind == OBJECTIVE_SQUARED)
        return 3 * i % 7 / 4.0;
    return (5 * i + i / 3) % (kind == OBJECTIVE_SOFTMAX ? 3 : 2);
}

/* The rows and parameters of tests/unit/network_oracle.py. */
static struct net *net_of(const struct oracle *oracle, enum precision precision, bool dense) {
    struct objective_shape shape = net_shape(oracle->kind, oracle->activation, precision);
    struct net *net = net_new(shape, ROWS, dense, VALUE_FLOAT, 1);
    uint32_t v = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < FEATURES; j++) {
            double value = (i + j) % 3 ? ((7 * i + 13 * j + 3) % 17 - 8) / 8.0 : 0;
            if (value == 0 && !dense)
                continue;
            net->feature[v] = (uint32_t)j;
            net->narrow[v] = (float)value;
            net->wide[v++] = value;
        }
        net->start[i + 1] = v;
        net->label[i] = label_of(oracle->kind, i);
    }
    net->rows.values = v;
    for (uint64_t k = 0; k < net->n; k++)
        net->parameters[k] = ((double)((29 * k + 11) % 31) - 15) / 32;
    net_measure(net);
    return net;
}

/* The largest difference, relative to 1 or more. */
static double difference(enum precision precision) {
    double worst = 0;
    for (int o = 0; o < ORACLES; o++)
        for (int dense = 0; dense < 2; dense++) {
            const struct oracle *oracle = &oracles[o];
            struct net *net = net_of(oracle, precision, dense);
            double gradient[NET_PARAMETERS_MAX];
            struct objective_result result = net_gradient(net, gradient);
            worst = fmax(worst, fabs(result.loss - oracle->loss) / oracle->loss);
            for (uint64_t k = 0; k < net->n; k++)
                worst = fmax(worst, fabs(gradient[k] - oracle->gradient[k]) /
                                        (1 + fabs(oracle->gradient[k])));
            net_free(net);
        }
    return worst;
}

static void in_double_they_agree_to_12_digits(void **state) {
    (void)state;
    double worst = difference(PRECISION_DOUBLE);
    printf("# largest difference in double: %.2g\n", worst);
    assert_true(worst <= 1e-12);
}

static void in_float_they_agree_to_5_digits(void **state) {
    (void)state;
    double worst = difference(PRECISION_FLOAT);
    printf("# largest difference in float: %.2g\n", worst);
    assert_true(worst <= 1e-5);
    assert_true(worst >= 1e-9); /* else it was not computed in float */
}

SUITE(network_oracle) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_double_they_agree_to_12_digits),
        cmocka_unit_test(in_float_they_agree_to_5_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
