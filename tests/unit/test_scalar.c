#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/special.h"
#include "numeric/scalar.h"

/* What a device computes number by number is what lanes compute, to the bit. */

enum { N = 100003 };
static double x[N], gradient[N], lanes[N];
static float fx[N], fgradient[N], flanes[N];

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static bool same_float(float a, float b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Of every size, and around every limit that the code may have. */
static double any_number(struct random *random, int i) {
    double unit = 2 * random_unit(random) - 1;
    uint64_t bits = random_next(random);
    double any;
    memcpy(&any, &bits, sizeof any);
    return i % 5 == 0   ? any
           : i % 5 == 1 ? unit * pow(10, (double)random_below(random, 601) - 300)
           : i % 5 == 2 ? 760 * unit
           : i % 5 == 3 ? 50 * unit
                        : 1.5 * unit;
}

static void draw(uint64_t seed) {
    const double edges[] = {0,         -0.0,       INFINITY,  -INFINITY, NAN,      -NAN,
                            0x1p-1074, -0x1p-1074, 0x1p-1022, DBL_MAX,   -DBL_MAX, FLT_MIN,
                            FLT_MAX,   -FLT_MAX,   0x1p-149,  -1,        1,        0.55,
                            22,        40,         -40,       710,       -746,     89,
                            -104,      0x1.6p-2,   -0x1.6p-2};
    const int count = (int)(sizeof edges / sizeof *edges);
    struct random random;
    random_init(&random, seed);
    for (int i = 0; i < N; i++) {
        x[i] = i < count ? edges[i] : any_number(&random, i);
        fx[i] = (float)x[i];
        gradient[i] = any_number(&random, i / 5);
        fgradient[i] = (float)gradient[i];
    }
}

#define EQUALS_LANES(function)                                                                     \
    do {                                                                                           \
        function(N, lanes, x);                                                                     \
        for (int i = 0; i < N; i++)                                                                \
            assert_true(same(function##_one(x[i]), lanes[i]));                                     \
    } while (0)

#define BACK_EQUALS_LANES(function)                                                                \
    do {                                                                                           \
        function(N, lanes, gradient, x);                                                           \
        for (int i = 0; i < N; i++)                                                                \
            assert_true(same(function##_one(gradient[i], x[i]), lanes[i]));                        \
    } while (0)

#define FLOAT_EQUALS_LANES(function)                                                               \
    do {                                                                                           \
        function(N, flanes, fx);                                                                   \
        for (int i = 0; i < N; i++)                                                                \
            assert_true(same_float(function##_one(fx[i]), flanes[i]));                             \
    } while (0)

#define FLOAT_BACK_EQUALS_LANES(function)                                                          \
    do {                                                                                           \
        function(N, flanes, fgradient, fx);                                                        \
        for (int i = 0; i < N; i++)                                                                \
            assert_true(same_float(function##_one(fgradient[i], fx[i]), flanes[i]));               \
    } while (0)

static void exponentials_and_logarithms_of_one_are_those_of_lanes(void **state) {
    (void)state;
    draw(1);
    EQUALS_LANES(special_exp);
    EQUALS_LANES(special_exp_excess);
    EQUALS_LANES(special_log);
    EQUALS_LANES(special_log1p);
}

static void activations_of_one_are_those_of_lanes(void **state) {
    (void)state;
    draw(2);
    EQUALS_LANES(activation_tanh);
    EQUALS_LANES(activation_relu);
    EQUALS_LANES(activation_gelu);
    BACK_EQUALS_LANES(activation_tanh_back);
    BACK_EQUALS_LANES(activation_relu_back);
    BACK_EQUALS_LANES(activation_gelu_back);
}

static void float_activations_of_one_are_those_of_lanes(void **state) {
    (void)state;
    draw(3);
    FLOAT_EQUALS_LANES(activation_tanh_float);
    FLOAT_EQUALS_LANES(activation_relu_float);
    FLOAT_EQUALS_LANES(activation_gelu_float);
    FLOAT_BACK_EQUALS_LANES(activation_tanh_back_float);
    FLOAT_BACK_EQUALS_LANES(activation_relu_back_float);
    FLOAT_BACK_EQUALS_LANES(activation_gelu_back_float);
}

static void arrays_number_by_number_are_those_of_lanes(void **state) {
    (void)state;
    static double each[N];
    draw(4);
    special_log(N, lanes, x);
    special_log_each(N, each, x);
    for (int i = 0; i < N; i++)
        assert_true(same(each[i], lanes[i]));
    special_exp(N, lanes, x);
    special_exp_each(N, x, x);
    for (int i = 0; i < N; i++)
        assert_true(same(x[i], lanes[i]));
}

SUITE(scalar) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_and_logarithms_of_one_are_those_of_lanes),
        cmocka_unit_test(activations_of_one_are_those_of_lanes),
        cmocka_unit_test(float_activations_of_one_are_those_of_lanes),
        cmocka_unit_test(arrays_number_by_number_are_those_of_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
