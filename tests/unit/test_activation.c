#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/special.h"

enum { N = 20003 };
static double x[N], y[N], back[N], gradient[N];
static float fx[N], fy[N], fback[N], fgradient[N];

/* The distance from the true value in units of its last place, of a type with so many digits and
 * such a least exponent of normal numbers. */
static long double units_off(long double value, long double expected, int digits, int least) {
    int exponent;
    frexpl(expected, &exponent);
    if (expected == 0 || exponent < least)
        exponent = least;
    return fabsl(value - expected) / ldexpl(1, exponent - digits);
}

static long double double_off(double value, long double expected) {
    return units_off(value, expected, DBL_MANT_DIG, DBL_MIN_EXP);
}

static long double float_off(float value, long double expected) {
    return units_off(value, expected, FLT_MANT_DIG, FLT_MIN_EXP);
}

/* Of every size, around every limit that the code may have. */
static void draw(uint64_t seed, int exponents) {
    struct random random;
    random_init(&random, seed);
    for (int i = 0; i < N; i++) {
        const double unit = 2 * random_unit(&random) - 1;
        x[i] = i % 3 == 0   ? ldexp(unit, -(int)random_below(&random, (uint64_t)exponents))
               : i % 3 == 1 ? 1.3 * unit
                            : 25 * unit;
        fx[i] = (float)x[i];
        gradient[i] = random_unit(&random) - 0.5;
        fgradient[i] = (float)gradient[i];
    }
}

static void tanh_is_right_to_the_last_places(void **state) {
    (void)state;
    draw(1, 1060);
    activation_tanh(N, y, x);
    for (int i = 0; i < N; i++)
        assert_true(double_off(y[i], tanhl(x[i])) < 1.6L);
    draw(2, 145);
    activation_tanh_float(N, fy, fx);
    for (int i = 0; i < N; i++)
        assert_true(float_off(fy[i], tanhl(fx[i])) < 2);
}

static void tanh_holds_at_the_ends(void **state) {
    (void)state;
    const double in[] = {0.0, -0.0, INFINITY, -INFINITY, 1e300, -1e300, 0x1p-1074, -0x1p-1074};
    const double expected[] = {0.0, -0.0, 1, -1, 1, -1, 0x1p-1074, -0x1p-1074};
    enum { COUNT = sizeof in / sizeof *in };
    double out[COUNT];
    float narrow[COUNT], narrow_out[COUNT];
    activation_tanh(COUNT, out, in);
    assert_memory_equal(out, expected, sizeof out);
    for (int i = 0; i < COUNT; i++)
        narrow[i] = i < 6 ? (float)in[i] : copysignf(0x1p-149f, (float)in[i]);
    activation_tanh_float(COUNT, narrow_out, narrow);
    for (int i = 0; i < COUNT; i++)
        narrow[i] = i < 6 ? (float)expected[i] : narrow[i];
    assert_memory_equal(narrow_out, narrow, sizeof narrow);
}

/* Odd, never above 1 and never falling. */
static void tanh_rises(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = 0.5 + i * (23.0 / N);
        y[i] = -x[i];
    }
    activation_tanh(N, back, y);
    activation_tanh(N, y, x);
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == -back[i] && y[i] <= 1);
        assert_true(i == 0 || y[i] >= y[i - 1]);
    }
}

static void tanh_passes_its_derivative_on(void **state) {
    (void)state;
    draw(3, 30);
    activation_tanh(N, y, x);
    activation_tanh_back(N, back, gradient, y);
    activation_tanh_float(N, fy, fx);
    activation_tanh_back_float(N, fback, fgradient, fy);
    for (int i = 0; i < N; i++) {
        long double wide = y[i], narrow = fy[i];
        assert_true(double_off(back[i], gradient[i] * ((1 - wide) * (1 + wide))) < 2);
        assert_true(float_off(fback[i], fgradient[i] * ((1 - narrow) * (1 + narrow))) < 2);
    }
}

static void relu_passes_what_is_above_zero(void **state) {
    (void)state;
    const double in[] = {3,    -3,       0x1p-1074, -0x1p-1074, 0.0,
                         -0.0, INFINITY, -INFINITY, 1e-300,     -1e300};
    const double expected[] = {3, 0, 0x1p-1074, 0, 0, 0, INFINITY, 0, 1e-300, 0};
    const double passed[] = {7, 0, 7, 0, 0, 0, 7, 0, 7, 0};
    enum { COUNT = sizeof in / sizeof *in };
    double out[COUNT];
    float narrow[COUNT], narrow_out[COUNT];
    activation_relu(COUNT, out, in);
    assert_memory_equal(out, expected, sizeof out);
    for (int i = 0; i < COUNT; i++) {
        gradient[i] = 7;
        fgradient[i] = 7;
        narrow[i] = fabs(in[i]) < 1e-100 ? (float)(in[i] * 0x1p900) : (float)in[i];
    }
    activation_relu_float(COUNT, narrow_out, narrow);
    for (int i = 0; i < COUNT; i++)
        assert_true(narrow_out[i] == (narrow[i] > 0 ? narrow[i] : 0));
    gradient[1] = fgradient[1] = INFINITY; /* nothing of it comes through */
    activation_relu_back(COUNT, out, gradient, in);
    assert_memory_equal(out, passed, sizeof out);
    activation_relu_back_float(COUNT, narrow_out, fgradient, narrow);
    for (int i = 0; i < COUNT; i++)
        assert_true(narrow_out[i] == (narrow[i] > 0 ? 7 : 0));
}

static const long double pi = 3.14159265358979323846264338327950288L;

static long double inner(long double t) {
    return sqrtl(2 / pi) * (t + 0.044715L * t * t * t);
}

static long double inner_slope(long double t) {
    return sqrtl(2 / pi) * (1 + 3 * 0.044715L * t * t);
}

/* (1 + tanh u)/2. */
static long double share(long double t) {
    return 1 / (1 + expl(-2 * inner(t)));
}

static long double gelu(long double t) {
    return t * share(t);
}

static long double gelu_slope(long double t) {
    return share(t) * (1 + 2 * t * share(-t) * inner_slope(t));
}

/* The exponential of 2u, with its relative error of three roundings, is as much further off. */
static long double room(long double t) {
    return 4 + 6 * fabsl(inner(t));
}

static void gelu_is_what_its_formula_gives(void **state) {
    (void)state;
    draw(4, 1060);
    activation_gelu(N, y, x);
    for (int i = 0; i < N; i++)
        if (x[i] > -14)
            assert_true(double_off(y[i], gelu(x[i])) < room(x[i]));
        else
            assert_true(fabs(y[i]) < 1e-90);
    draw(5, 140);
    activation_gelu_float(N, fy, fx);
    for (int i = 0; i < N; i++)
        if (fx[i] > -8)
            assert_true(float_off(fy[i], gelu(fx[i])) < room(fx[i]));
        else
            assert_true(fabsf(fy[i]) < 1e-20F);
}

/* Relative to 1: it has a zero. */
static void gelu_passes_its_derivative_on(void **state) {
    (void)state;
    draw(6, 200);
    activation_gelu_back(N, back, gradient, x);
    activation_gelu_back_float(N, fback, fgradient, fx);
    for (int i = 0; i < N; i++) {
        assert_true(fabsl(back[i] - gradient[i] * gelu_slope(x[i])) < 0x1p-51L);
        assert_true(fabsl(fback[i] - fgradient[i] * gelu_slope(fx[i])) < 0x1p-22L);
    }
}

static void gelu_holds_at_the_ends(void **state) {
    (void)state;
    const double in[] = {0.0, -0.0, INFINITY, -INFINITY, 1e300, -1e300, 0x1p-1074};
    enum { COUNT = sizeof in / sizeof *in };
    const double slopes[COUNT] = {0.5, 0.5, 1, 0, 1, 0, 0.5};
    double out[COUNT], ones[COUNT] = {1, 1, 1, 1, 1, 1, 1};
    float narrow[COUNT], narrow_out[COUNT], narrow_ones[COUNT] = {1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < COUNT; i++)
        narrow[i] = (float)in[i];
    activation_gelu(COUNT, out, in);
    activation_gelu_float(COUNT, narrow_out, narrow);
    assert_true(out[0] == 0 && out[1] == 0 && out[3] == 0 && out[5] == 0 && out[4] == 1e300);
    assert_true(isinf(out[2]) && out[2] > 0 && isinf(narrow_out[4]) && narrow_out[4] > 0);
    assert_true(narrow_out[0] == 0 && narrow_out[1] == 0 && narrow_out[3] == 0);
    activation_gelu_back(COUNT, out, ones, in);
    activation_gelu_back_float(COUNT, narrow_out, narrow_ones, narrow);
    for (int i = 0; i < COUNT; i++)
        assert_true(out[i] == slopes[i] && narrow_out[i] == (float)slopes[i]);
}

typedef void values(size_t n, double *out, const double *x);
typedef void float_values(size_t n, float *out, const float *x);
typedef void slopes(size_t n, double *out, const double *gradient, const double *x);
typedef void float_slopes(size_t n, float *out, const float *gradient, const float *x);

static values *const all_values[] = {activation_tanh, activation_relu, activation_gelu};
static float_values *const all_float_values[] = {activation_tanh_float, activation_relu_float,
                                                 activation_gelu_float};
static slopes *const all_slopes[] = {activation_tanh_back, activation_relu_back,
                                     activation_gelu_back};
static float_slopes *const all_float_slopes[] = {
    activation_tanh_back_float, activation_relu_back_float, activation_gelu_back_float};
enum { FUNCTIONS = 3 };

static void a_nan_stays_a_nan_of_either_sign(void **state) {
    (void)state;
    const double in[] = {NAN, -NAN};
    const float narrow[] = {NAN, -NAN};
    for (int f = 0; f < FUNCTIONS; f++) {
        double out[2], ones[2] = {1, 1};
        float narrow_out[2], narrow_ones[2] = {1, 1};
        all_values[f](2, out, in);
        all_float_values[f](2, narrow_out, narrow);
        assert_true(isnan(out[0]) && isnan(out[1]));
        assert_true(isnan(narrow_out[0]) && isnan(narrow_out[1]));
        all_slopes[f](2, out, ones, in);
        all_float_slopes[f](2, narrow_out, narrow_ones, narrow);
        assert_true(isnan(out[0]) && isnan(out[1]));
        assert_true(isnan(narrow_out[0]) && isnan(narrow_out[1]));
    }
}

/* From every place, for every count, onto themselves too. */
static void the_bits_do_not_depend_on_the_place(void **state) {
    (void)state;
    draw(7, 20);
    for (int f = 0; f < FUNCTIONS; f++)
        for (size_t first = 0; first < 17; first++) {
            const size_t count = 40 - first;
            all_values[f](100, y, x);
            memcpy(back, x + first, count * sizeof *x);
            all_values[f](count, back, back);
            assert_memory_equal(back, y + first, count * sizeof *y);
            all_float_values[f](100, fy, fx);
            memcpy(fback, fx + first, count * sizeof *fx);
            all_float_values[f](count, fback, fback);
            assert_memory_equal(fback, fy + first, count * sizeof *fy);
            all_slopes[f](100, y, gradient, x);
            memcpy(back, gradient + first, count * sizeof *x);
            all_slopes[f](count, back, back, x + first);
            assert_memory_equal(back, y + first, count * sizeof *y);
            all_float_slopes[f](100, fy, fgradient, fx);
            memcpy(fback, fgradient + first, count * sizeof *fx);
            all_float_slopes[f](count, fback, fback, fx + first);
            assert_memory_equal(fback, fy + first, count * sizeof *fy);
        }
}

SUITE(activation) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tanh_is_right_to_the_last_places),
        cmocka_unit_test(tanh_holds_at_the_ends),
        cmocka_unit_test(tanh_rises),
        cmocka_unit_test(tanh_passes_its_derivative_on),
        cmocka_unit_test(relu_passes_what_is_above_zero),
        cmocka_unit_test(gelu_is_what_its_formula_gives),
        cmocka_unit_test(gelu_passes_its_derivative_on),
        cmocka_unit_test(gelu_holds_at_the_ends),
        cmocka_unit_test(a_nan_stays_a_nan_of_either_sign),
        cmocka_unit_test(the_bits_do_not_depend_on_the_place),
    };
    return cmocka_run_group_tests_name("activation", tests, NULL, NULL);
}
