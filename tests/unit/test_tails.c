/* Tails and quantiles of distributions, compared with values of mpmath 1.4.1 with 60 digits: the
 * hypergeometric form of the incomplete beta function, or a quadrature of the density for 10⁶
 * degrees of freedom. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "numeric/tails.h"

#define RELATIVE 1e-12

struct value {
    double argument, freedom, result;
};

static const struct value normal[] = {
    {0, 0, 1.0},
    {1e-300, 0, 1.0},
    {1e-08, 0, 9.9999999202115439197e-1},
    {0.5, 0, 6.1707507745197379272e-1},
    {1.96, 0, 4.9995790296440872426e-2},
    {6, 0, 1.9731752900753962814e-9},
    {20, 0, 5.5072482372124673902e-89},
    {37, 0, 1.1451142445049153645e-299},
};

static const struct value student[] = {
    {1e-09, 0.5, 9.9999999946064739881e-1},
    {2, 0.5, 4.4551489018313123119e-1},
    {10000000000.0, 0.5, 6.4140195082844580068e-6},
    {1, 1, 5.0e-1},
    {1e+150, 1, 6.3661977236758135528e-151},
    {1e+300, 1, 6.3661977236758130965e-301},
    {0.1, 2.5, 9.2780654406248957595e-1},
    {3, 2.5, 7.2576095549031843893e-2},
    {1e+60, 2.5, 1.438679438166344665e-150},
    {3.2, 3, 4.9331842962696214955e-2},
    {1e+90, 3, 2.2053155816871684198e-270},
    {1.5, 10, 1.6450732644544018085e-1},
    {50, 10, 2.4743103293026799747e-13},
    {1000000000000.0, 10, 2.4609375e-116},
    {0.5, 31, 6.2060595124771892652e-1},
    {2, 31, 5.4327215367175707669e-2},
    {100, 31, 1.7727988290521341298e-40},
    {2.04, 33, 4.942035926982664598e-2},
    {30, 33, 1.5819475207839273426e-25},
    {0.001, 1000, 9.9920231501845273028e-1},
    {1.96, 1000, 5.0273184955748718435e-2},
    {30, 1000, 1.5374687444043482211e-141},
    {1.96, 9999, 5.0023523005210208739e-2},
    {20, 9999, 2.7657076275757334946e-87},
    {38, 9999, 2.9092494362471231353e-295},
    {0.1, 10001, 9.2034632983063894741e-1},
    {1.96, 10001, 5.0023517459010531552e-2},
    {20, 10001, 2.7635981534240824245e-87},
    {38, 10001, 2.884009993095126312e-295},
    {1.96, 60000, 5.0000411804691520552e-2},
    {38, 60000, 3.0207553093531728341e-312},
    {0.1, 1e6, 9.2034434549204315737e-1},
    {1.96, 1e6, 4.9996067585269790686e-2},
    {5, 1e6, 5.733997870890741569e-7},
    {10, 1e6, 1.5278610768178249553e-23},
};

static const struct value normal_quantile[] = {
    {1, 0, 0.0},
    {0.5, 0, 6.744897501960817432e-1},
    {0.05, 0, 1.9599639845400542118},
    {0.01, 0, 2.5758293035489007538},
    {1e-10, 0, 6.4669510872405161663},
    {1e-300, 0, 3.7065787880772130393e+1},
};

static const struct value student_quantile[] = {
    {0.05, 1, 1.2706204736174703938e+1},  {0.05, 3, 3.1824463052837095204},
    {0.01, 2.5, 7.163728138948785458},    {1e-06, 30, 6.1190756203842168454},
    {0.05, 12345, 1.9601561676005672114}, {0.5, 0.5, 1.5537739740300373073},
};

static void assert_near(double actual, double expected) {
    if (!(fabs(actual - expected) <= RELATIVE * fabs(expected)))
        fail_msg("%.17g is not %.17g", actual, expected);
}

#define EACH(values, call)                                                                         \
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {                                \
        const struct value *at = &values[i];                                                       \
        assert_near(call, at->result);                                                             \
    }

static void tails_have_twelve_digits_over_their_whole_range(void **state) {
    (void)state;
    EACH(normal, tail_normal(at->argument))
    EACH(normal, tail_normal(-at->argument))
    EACH(normal, tail_student(at->argument, INFINITY))
    EACH(student, tail_student(at->argument, at->freedom))
    EACH(student, tail_student(-at->argument, at->freedom))
}

static void quantiles_invert_tails(void **state) {
    (void)state;
    EACH(normal_quantile, quantile_student(at->argument, INFINITY))
    EACH(student_quantile, quantile_student(at->argument, at->freedom))
    for (double freedom = 0.3; freedom < 1e9; freedom *= 3)
        for (double p = 1; p > 1e-280; p *= 1e-7)
            if (isfinite(quantile_student(p, freedom)))
                assert_true(fabs(tail_student(quantile_student(p, freedom), freedom) - p) <=
                            1e-11 * p);
}

static void what_lies_beyond_is_zero_and_what_is_no_question_is_no_number(void **state) {
    (void)state;
    assert_true(tail_normal(40) == 0 && tail_normal(INFINITY) == 0);
    assert_true(tail_student(INFINITY, 3) == 0 && tail_student(DBL_MAX, 1e6) == 0);
    assert_true(tail_student(0, 7) == 1);
    assert_true(isnan(tail_normal(NAN)) && isnan(tail_student(NAN, 3)));
    assert_true(isnan(tail_student(1, 0)) && isnan(tail_student(1, NAN)));
    assert_true(isnan(quantile_student(0, 1)) && isnan(quantile_student(1.5, 1)) &&
                isnan(quantile_student(0.05, NAN)));
    assert_true(quantile_student(1, INFINITY) == 0);
    assert_true(isinf(quantile_student(1e-300, 0.1)));
}

SUITE(tails) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails_have_twelve_digits_over_their_whole_range),
        cmocka_unit_test(quantiles_invert_tails),
        cmocka_unit_test(what_lies_beyond_is_zero_and_what_is_no_question_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
