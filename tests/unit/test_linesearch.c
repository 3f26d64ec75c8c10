/* The line search alone, on functions of one variable whose minimiser is far from the first trial;
 * phi_1 to phi_4 are those of Moré and Thuente, "Line search algorithms with guaranteed sufficient
 * decrease", ACM TOMS 20 (1994), section 5. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "optimizer/linesearch.h"
#include "tests/unit/suites.h"

struct value {
    double phi, slope;
};
typedef struct value function(double a);

/* Minimum at 1. */
static struct value quadratic(double a) {
    return (struct value){(a - 1) * (a - 1) / 2, a - 1};
}

/* Minimum at 1, and exponential beyond: the first trials of a search that begins far behind it are
 * not finite. */
static struct value exponential(double a) {
    return (struct value){exp(a - 1) - a, exp(a - 1) - 1};
}

/* Minimum at 1, flat on both sides: a secant between two far points says little. */
static struct value bent(double a) {
    double root = sqrt(1e-4 + (a - 1) * (a - 1));
    return (struct value){root, (a - 1) / root};
}

/* Minimum at √2. */
static struct value phi_1(double a) {
    double divisor = a * a + 2;
    return (struct value){-a / divisor, (a * a - 2) / (divisor * divisor)};
}

/* Minimum at 1.596. */
static struct value phi_2(double a) {
    double b = a + 0.004;
    return (struct value){pow(b, 5) - 2 * pow(b, 4), 5 * pow(b, 4) - 8 * pow(b, 3)};
}

/* Minimum at 1, with 39 waves of the slope on the way. */
static struct value phi_3(double a) {
    const double beta = 0.01, pi = 3.14159265358979323846, waves = 39;
    double base = a <= 1 - beta   ? 1 - a
                  : a >= 1 + beta ? a - 1
                                  : (a - 1) * (a - 1) / (2 * beta) + beta / 2;
    double slope = a <= 1 - beta ? -1 : a >= 1 + beta ? 1 : (a - 1) / beta;
    double angle = waves * pi / 2 * a;
    return (struct value){base + 2 * (1 - beta) / (waves * pi) * sin(angle),
                          slope + (1 - beta) * cos(angle)};
}

static double scaled_root(double beta) {
    return sqrt(1 + beta * beta) - beta;
}

/* Nearly flat between two steep ends, minimum in (0, 1). */
static struct value phi_4(double a) {
    const double left = 0.001, right = 0.001;
    double root_r = sqrt((1 - a) * (1 - a) + right * right), root_l = sqrt(a * a + left * left);
    return (struct value){scaled_root(left) * root_r + scaled_root(right) * root_l,
                          scaled_root(left) * -(1 - a) / root_r + scaled_root(right) * a / root_l};
}

/* Searches from a first trial at `first`, and answers how many trials it took to a point that
 * satisfies the strong Wolfe conditions. */
static unsigned trials_from(function *phi, double first, bool guessed) {
    struct linesearch search;
    struct value start = phi(0), here;
    enum linesearch_answer answer;
    linesearch_begin(&search, start.phi, start.slope, 0, first, guessed);
    do {
        assert_true(search.step > 0 && search.trials <= LINESEARCH_TRIALS_MAX);
        here = phi(search.step);
        answer = linesearch_next(&search, here.phi, here.slope);
    } while (answer == LINESEARCH_TRY);
    print_message("from %g: %u trials, step %g\n", first, search.trials, search.step);
    assert_int_equal(answer, LINESEARCH_ACCEPT);
    assert_true(here.phi <= start.phi + 1e-4 * search.step * start.slope);
    assert_true(fabs(here.slope) <= 0.9 * -start.slope);
    return search.trials;
}

static function *const functions[] = {quadratic, exponential, bent, phi_1, phi_2, phi_3, phi_4};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

/* Five times as far with each trial, and then as many as the shape takes. */
static void a_minimiser_far_beyond_the_first_trial_is_reached(void **state) {
    (void)state;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        assert_true(trials_from(functions[i], 1e-3, false) <= 16);
        assert_true(trials_from(functions[i], 1e-6, false) <= 24);
    }
}

static void a_minimiser_far_before_the_first_trial_is_reached(void **state) {
    (void)state;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        assert_true(trials_from(functions[i], 1e3, false) <= 16);
        assert_true(trials_from(functions[i], 1e6, false) <= 24);
    }
    assert_true(trials_from(quadratic, 1e30, false) <= 4);
}

static void an_unscaled_first_trial_tells_how_far_to_go(void **state) {
    (void)state;
    static const double first[] = {1e3, 1, 1e-3, 1e-6};
    for (unsigned i = 0; i < sizeof first / sizeof first[0]; i++) {
        assert_true(trials_from(quadratic, first[i], true) <= 2);
        assert_true(trials_from(exponential, first[i], true) <= 6);
        assert_true(trials_from(quadratic, first[i] * 1e-60, true) <= 10);
        for (unsigned k = 0; k < FUNCTIONS; k++)
            assert_true(trials_from(functions[k], first[i], true) <= 24);
    }
}

/* The step length of a search from a trial that the usual condition would accept: it is short of
 * the minimiser by the factor `short_by`. */
static double step_from(double short_by, bool guessed) {
    struct linesearch search;
    struct value start = quadratic(0), here;
    double minimiser = -start.slope / (quadratic(1).slope - start.slope);
    linesearch_begin(&search, start.phi, start.slope, 0, minimiser / short_by, guessed);
    do
        here = quadratic(search.step);
    while (linesearch_next(&search, here.phi, here.slope) == LINESEARCH_TRY);
    return search.step / minimiser;
}

static void an_unscaled_first_trial_must_come_near_the_minimum_or_the_next_does(void **state) {
    (void)state;
    assert_true(fabs(step_from(5, false) - 0.2) < 1e-9);
    assert_true(fabs(step_from(5, true) - 1) < 1e-9);
    assert_true(fabs(step_from(1.5, true) - 1 / 1.5) < 1e-9);
}

/* Downhill without end: the search goes on to its largest step, and is content with it. */
static struct value linear(double a) {
    return (struct value){-a, -1};
}

static void a_function_that_falls_without_end_is_followed_to_the_largest_step(void **state) {
    (void)state;
    struct linesearch search;
    enum linesearch_answer answer;
    linesearch_begin(&search, 0, -1, 0, 1, false);
    do {
        struct value here = linear(search.step);
        answer = linesearch_next(&search, here.phi, here.slope);
    } while (answer == LINESEARCH_TRY);
    assert_int_equal(answer, LINESEARCH_ACCEPT);
    assert_true(search.step >= 1e20);
}

/* Where phi is above phi(0) the slope is not asked for, and the search still ends at a minimum. */
static void a_trial_above_the_start_is_refused_by_its_value(void **state) {
    (void)state;
    function *const convex[] = {quadratic, exponential, bent};
    for (size_t f = 0; f < sizeof convex / sizeof *convex; f++)
        for (double first = 2.5; first < 500; first *= 2) {
            struct value start = convex[f](0), trial = convex[f](first);
            struct linesearch search;
            linesearch_begin(&search, start.phi, start.slope, 1e-11, first, false);
            enum linesearch_answer answer = LINESEARCH_TRY;
            int refused = 0, trials = 0;
            while (answer == LINESEARCH_TRY && trials++ < LINESEARCH_TRIALS_MAX) {
                double before = search.step;
                trial = convex[f](before);
                assert_int_equal(linesearch_refuses(&search, trial.phi),
                                 trial.phi > start.phi + 1e-11);
                if (!linesearch_refuses(&search, trial.phi)) {
                    answer = linesearch_next(&search, trial.phi, trial.slope);
                    continue;
                }
                answer = linesearch_refused(&search, trial.phi);
                assert_true(search.step >= 0.1 * before && search.step <= 0.5 * before);
                refused++;
            }
            assert_int_equal(answer, LINESEARCH_ACCEPT);
            assert_true(refused && search.trials == (uint32_t)trials);
            assert_true(trial.phi < start.phi);
        }
}

SUITE(linesearch) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trial_above_the_start_is_refused_by_its_value),
        cmocka_unit_test(a_minimiser_far_beyond_the_first_trial_is_reached),
        cmocka_unit_test(a_minimiser_far_before_the_first_trial_is_reached),
        cmocka_unit_test(an_unscaled_first_trial_tells_how_far_to_go),
        cmocka_unit_test(an_unscaled_first_trial_must_come_near_the_minimum_or_the_next_does),
        cmocka_unit_test(a_function_that_falls_without_end_is_followed_to_the_largest_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
