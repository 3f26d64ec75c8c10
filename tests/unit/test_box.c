/* Projected gradients and steps within bounds, element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "tests/unit/suites.h"
#include "numeric/box.h"
#include "numeric/steps.h"
#include "base/random.h"

static void a_side_that_is_closed_does_not_count(void **state) {
    (void)state;
    const struct box_limit free = {0, -INFINITY, INFINITY}, positive = {0, 0, INFINITY},
                           narrow = {0, -1, 2}, none = {0, 0.5, 0.5}, dear = {0.3, 0, 1};
    const struct {
        const struct box_limit *limit;
        double x, g, q;
    } cases[] = {{&free, 0, -2, -2},
                 {&free, 3, 2, 2},
                 {&positive, 0, 1, 0},
                 {&positive, 0, -1, -1},
                 {&positive, 0.1, 1, 1},
                 {&narrow, 2, -1, 0},
                 {&narrow, 2, 1, 1},
                 {&narrow, -1, 1, 0},
                 {&narrow, -1, -1, -1},
                 {&none, 0.5, 7, 0},
                 {&none, 0.5, -7, 0},
                 {&dear, 0, -0.25, 0},
                 {&dear, 0, -0.5, -0.2},
                 {&dear, 0, 5, 0},
                 {&dear, 1, -1, 0},
                 {&dear, 1, 1, 1.3},
                 {&dear, 0.5, -0.2, 0.3 - 0.2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(box_pseudo(cases[i].limit, cases[i].x, cases[i].g) == cases[i].q);
    assert_true(isnan(box_pseudo(&none, 0.5, NAN)));
    assert_false(signbit(box_pseudo(&positive, 0, 1)));
}

static void a_step_that_ends_at_a_bound_but_for_rounding_ends_there(void **state) {
    (void)state;
    const struct box_limit limit = {0, 0.1, 0.3};
    struct random random;
    random_init(&random, 4);
    for (unsigned i = 0; i < 1000; i++) {
        double x = 0.1 + 0.2 * random_unit(&random);
        assert_true(box_clip(&limit, x, x + (0.1 - x)) == 0.1);
        assert_true(box_clip(&limit, x, x + (0.3 - x)) == 0.3);
        assert_true(box_clip(&limit, x, x) == x);
    }
    assert_true(box_clip(&limit, 0.2, -5) == 0.1 && box_clip(&limit, 0.2, 5) == 0.3);
    assert_true(isnan(box_clip(&limit, 0.2, NAN)));
}

enum { COUNT = 64 };

/* Without bounds, and with one l1, it is orthant-wise minimisation: the same bits. */
static void without_bounds_it_is_orthant_wise(void **state) {
    (void)state;
    double ones[COUNT], low[COUNT], high[COUNT], x[COUNT], g[COUNT], t[COUNT], q[2][COUNT],
        moved[2][COUNT];
    struct random random;
    random_init(&random, 5);
    for (unsigned j = 0; j < COUNT; j++) {
        ones[j] = 1;
        low[j] = -INFINITY;
        high[j] = INFINITY;
        x[j] = j % 3 ? 0 : random_unit(&random) - 0.5;
        g[j] = random_unit(&random) - 0.5;
        moved[0][j] = moved[1][j] = t[j] = x[j] + random_unit(&random) - 0.5;
    }
    const struct box box = {0.25, ones, low, high};
    box_pseudo_gradient(&box, COUNT, q[0], x, g);
    orthant_pseudo_gradient(COUNT, q[1], x, g, 0.25);
    assert_memory_equal(q[0], q[1], sizeof q[0]);
    box_project(&box, COUNT, moved[0], x, q[0]);
    orthant_project(COUNT, moved[1], x, q[0]);
    assert_memory_equal(moved[0], moved[1], sizeof t);
    box_align(&box, COUNT, t, x, q[0]);
    orthant_align(COUNT, g, x, q[0]);
    double counts[2];
    box_count(&box, COUNT, x, counts);
    assert_true(counts[0] == (double)orthant_nonzeros(COUNT, x) && counts[1] == 0);
    double sums[2][3];
    box_descent(&box, COUNT, moved[0], x, q[0], t, sums[0]);
    orthant_descent(COUNT, moved[0], x, q[0], t, 0.25, sums[1]);
    for (unsigned k = 0; k < 3; k++)
        assert_true(fabs(sums[0][k] - sums[1][k]) < 1e-13);
}

SUITE(box) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_side_that_is_closed_does_not_count),
        cmocka_unit_test(a_step_that_ends_at_a_bound_but_for_rounding_ends_there),
        cmocka_unit_test(without_bounds_it_is_orthant_wise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
