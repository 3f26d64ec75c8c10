#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/orthogonal.h"

enum { ORDER = 6, ROWS = 121 };

/* 2⁻⁹⁸ */
#define EXACT 0x1p-98

static bool equal(struct doubled a, struct doubled b) {
    struct doubled difference = doubled_add(a, doubled_negative(b));
    return fabs(difference.high) <= EXACT * fabs(b.high);
}

static void arithmetic_has_twice_the_digits(void **state) {
    (void)state;
    struct doubled third = doubled_quotient(doubled_of(1), doubled_of(3));
    assert_true(third.low != 0);
    assert_true(equal(doubled_times(third, doubled_of(3)), doubled_of(1)));
    struct doubled root = doubled_root(doubled_of(2));
    assert_true(root.low != 0 && equal(doubled_times(root, root), doubled_of(2)));
    struct doubled tiny = doubled_add(doubled_of(1), doubled_of(0x1p-100));
    assert_true(doubled_value(doubled_minus(tiny, doubled_of(1), doubled_of(1))) == 0x1p-100);
    assert_true(doubled_value(doubled_root(doubled_of(0))) == 0);
    assert_true(doubled_value(doubled_sum(1e16, 1)) == 1e16 && doubled_sum(1e16, 1).low == 1);
}

/* Powers of a year up to the fifth, as differences from those of another one. */
static void take_year(int year, double *power) {
    double middle = 1;
    power[0] = 1;
    for (int k = 1; k < ORDER; k++) {
        middle *= 1960;
        power[k] = pow(year, k) - middle;
    }
}

static struct orthogonal of_years(int copies) {
    struct orthogonal r = orthogonal_new(ORDER);
    for (int i = 0; i < ROWS * copies; i++) {
        double power[ORDER];
        struct doubled row[ORDER];
        take_year(1900 + i % ROWS, power);
        for (int k = 0; k < ORDER; k++)
            row[k] = doubled_of(power[k]);
        orthogonal_add(&r, row);
    }
    return r;
}

static void powers_of_a_year_are_told_apart(void **state) {
    (void)state;
    struct orthogonal r = of_years(1);
    struct doubled b[ORDER] = {{0}};
    /* XᵀXw = Xᵀ(Xw): the weights come back, though XᵀX in doubles has lost the last powers. */
    for (int i = 0; i < ROWS; i++) {
        double power[ORDER];
        struct doubled y = {0, 0};
        take_year(1900 + i, power);
        for (int k = 0; k < ORDER; k++)
            y = doubled_plus(y, doubled_of(power[k]), doubled_of(k - 2.5));
        for (int k = 0; k < ORDER; k++)
            b[k] = doubled_plus(b[k], doubled_of(power[k]), y);
    }
    double own = r.element[ORDER * ORDER - 1].high, all = 0;
    for (int k = 1; k < ORDER; k++)
        all += r.element[k * ORDER + ORDER - 1].high * r.element[k * ORDER + ORDER - 1].high;
    assert_true(own > 0 && own * own < 1e-15 * all);
    orthogonal_solve_transposed(&r, ORDER, b);
    orthogonal_solve(&r, ORDER, b);
    for (int k = 3; k < ORDER; k++) /* the others are far less than the sum of these */
        assert_true(fabs(doubled_value(b[k]) - (k - 2.5)) < 1e-6);
    orthogonal_release(&r);
}

static void rows_that_come_twice_double_the_product(void **state) {
    (void)state;
    struct orthogonal once = of_years(1), twice = of_years(2);
    struct doubled root = doubled_root(doubled_of(2));
    for (int row = 0; row < ORDER; row++)
        for (int c = row; c < ORDER; c++) {
            double a = once.element[row * ORDER + c].high * root.high;
            assert_true(fabs(twice.element[row * ORDER + c].high - a) <= 1e-12 * fabs(a) + 1e-20);
        }
    orthogonal_release(&once);
    orthogonal_release(&twice);
}

/* A column that is left out is as if it had been 0 in all rows. */
static void a_column_is_left_out(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 5);
    struct orthogonal all = orthogonal_new(ORDER), without = orthogonal_new(ORDER);
    for (int i = 0; i < ROWS; i++) {
        struct doubled row[ORDER], less[ORDER];
        for (int k = 0; k < ORDER; k++)
            row[k] = doubled_of(random_unit(&random) - 0.5);
        row[3] = doubled_add(row[0], row[1]); /* it follows from these */
        memcpy(less, row, sizeof row);
        less[3] = doubled_of(0);
        orthogonal_add(&all, row);
        orthogonal_add(&without, less);
    }
    assert_true(all.element[3 * ORDER + 3].high < 1e-28);
    orthogonal_leave_out(&all, 3);
    for (int i = 0; i < ORDER * ORDER; i++)
        assert_true(fabs(all.element[i].high - without.element[i].high) <= 1e-28);
    struct doubled b[ORDER];
    for (int k = 0; k < ORDER; k++)
        b[k] = doubled_of(1);
    orthogonal_solve(&all, ORDER, b);
    assert_true(doubled_value(b[3]) == 0 && doubled_value(b[2]) != 0);
    orthogonal_release(&all);
    orthogonal_release(&without);
}

SUITE(orthogonal) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_has_twice_the_digits),
        cmocka_unit_test(powers_of_a_year_are_told_apart),
        cmocka_unit_test(rows_that_come_twice_double_the_product),
        cmocka_unit_test(a_column_is_left_out),
    };
    return cmocka_run_group_tests_name("orthogonal", tests, NULL, NULL);
}
