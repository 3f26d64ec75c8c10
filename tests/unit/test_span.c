/* The minimum in a span, from the scalars that shards would send. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "numeric/dense.h"
#include "optimizer/span.h"
#include "tests/unit/suites.h"

static void a_dependent_row_stays_out_of_a_solution(void **state) {
    (void)state;
    double a[] = {4, 0, 0, 2, 1, 0, 0, 0, 9}, b[] = {8, 4, 18};
    dense_semidefinite_solve(3, a, 1e-12, b);
    assert_true(b[0] == 2 && b[1] == 0 && b[2] == 2);
}

SUITE(span) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dependent_row_stays_out_of_a_solution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
