#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/product.h"

/* Shapes around every way of cutting: rows, outputs and columns that fill registers, and that leave
 * one over. */
static const size_t rows_of[] = {1, 2, 3, 7, 24, 25, PRODUCT_ROWS_MAX};
static const size_t outputs_of[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 20, 27};
static const size_t columns_of[] = {1, 2, 7, 8, 9, 40, 195, 196, 197, 401};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* Numbers of such different sizes that another order of additions gives other bits. */
static double *numbers(size_t count, struct random *random) {
    double *made = memory_new(count, sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = (random_unit(random) - 0.5) * (double)(1 + random_below(random, 1000));
    return made;
}

static void check_plain(size_t m, size_t n, size_t k, struct random *random) {
    double *a = numbers(m * k, random), *b = numbers(k * n, random);
    double *packed = memory_new(product_packed(k, n), sizeof *packed);
    double *c = numbers(m * n, random);
    product_pack(k, n, b, packed);
    product_plain(m, n, k, a, packed, c);
    for (size_t i = 0; i < m; i++)
        for (size_t o = 0; o < n; o++) {
            double sum = 0;
            for (size_t j = 0; j < k; j++)
                sum += a[i * k + j] * b[j * n + o];
            assert_true(c[i * n + o] == sum);
        }
    free(a);
    free(b);
    free(c);
    free(packed);
}

static void check_transposed(size_t m, size_t n, size_t k, struct random *random) {
    double *a = numbers(k * m, random), *b = numbers(k * n, random);
    double *before = numbers(n * m, random), *c = memory_new(n * m, sizeof *c);
    for (size_t i = 0; i < n * m; i++)
        c[i] = before[i];
    product_transposed(m, n, k, a, b, c, a + k * m, sizeof *a);
    for (size_t o = 0; o < n; o++)
        for (size_t j = 0; j < m; j++) {
            double sum = 0;
            for (size_t i = 0; i < k; i++)
                sum += a[i * m + j] * b[i * n + o];
            assert_true(c[o * m + j] == before[o * m + j] + sum);
        }
    free(a);
    free(b);
    free(before);
    free(c);
}

static void check_triangle(size_t m, size_t k, struct random *random) {
    double *a = numbers(k * m, random), *b = numbers(k * m, random);
    double *before = numbers(m * m, random), *c = memory_new(m * m, sizeof *c);
    for (size_t i = 0; i < m * m; i++)
        c[i] = before[i];
    product_triangle(m, k, a, b, c);
    for (size_t o = 0; o < m; o++)
        for (size_t j = 0; j <= o; j++) {
            double sum = 0;
            for (size_t i = 0; i < k; i++)
                sum += a[i * m + j] * b[i * m + o];
            assert_true(c[o * m + j] == before[o * m + j] + sum);
        }
    free(a);
    free(b);
    free(before);
    free(c);
}

static void a_triangle_has_the_elements_of_the_whole_product(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (size_t m = 0; m < 45; m++)
        for (size_t r = 0; r < LENGTH(rows_of); r++)
            check_triangle(m, rows_of[r], &random);
}

static void for_all_shapes(void (*check)(size_t m, size_t n, size_t k, struct random *random),
                           bool columns_first) {
    struct random random;
    random_init(&random, 1);
    for (size_t r = 0; r < LENGTH(rows_of); r++)
        for (size_t o = 0; o < LENGTH(outputs_of); o++)
            for (size_t c = 0; c < LENGTH(columns_of); c++)
                check(columns_first ? columns_of[c] : rows_of[r], outputs_of[o],
                      columns_first ? rows_of[r] : columns_of[c], &random);
}

static void a_product_adds_over_the_columns_in_order_from_zero(void **state) {
    (void)state;
    for_all_shapes(check_plain, false);
}

static void a_transposed_product_adds_over_the_rows_in_order_and_then_to_the_result(void **state) {
    (void)state;
    for_all_shapes(check_transposed, true);
}

SUITE(product) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_adds_over_the_columns_in_order_from_zero),
        cmocka_unit_test(a_transposed_product_adds_over_the_rows_in_order_and_then_to_the_result),
        cmocka_unit_test(a_triangle_has_the_elements_of_the_whole_product),
    };
    return cmocka_run_group_tests_name("product", tests, NULL, NULL);
}
