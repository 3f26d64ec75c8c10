/* Bounds of an evaluation: what is found under them adds up in any order, and is compared a tensor
 * at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/bounds.h"
#include "base/layout.h"

static void maxima_merge_in_any_order(void **state) {
    (void)state;
    struct maxima left = {.count = 2, .value = {1, 5}}, right = {.count = 2, .value = {3, 4}};
    struct maxima both = {0}, turned = {0};
    maxima_merge(&both, &left);
    maxima_merge(&both, &right);
    maxima_merge(&turned, &right);
    maxima_merge(&turned, &left);
    assert_memory_equal(&both, &turned, sizeof both);
    assert_int_equal(both.count, 2);
    assert_true(both.value[0] == 3 && both.value[1] == 5);
    assert_true(maxima_largest(&both) == 5);
}

static void nothing_found_changes_no_maxima(void **state) {
    (void)state;
    struct maxima some = maxima_of_one(2), nothing = {0};
    maxima_merge(&some, &nothing);
    assert_true(some.count == 1 && some.value[0] == 2);
    assert_true(maxima_largest(&nothing) == 0);
}

static void each_tensor_has_its_own_bound(void **state) {
    (void)state;
    struct bounds bounds = {.count = 2, .exponent = {-3, 4}};
    struct maxima maxima = {.count = 2, .value = {0.125, 16}};
    assert_false(maxima_exceed(&maxima, &bounds));
    maxima.value[0] = nextafter(0.125, 1);
    assert_true(maxima_exceed(&maxima, &bounds));
    maxima.value[0] = 0;
    maxima.value[1] = INFINITY;
    assert_true(maxima_exceed(&maxima, &bounds));
    assert_int_equal(bounds_exponent(&bounds, 1), 4);
}

static void one_bound_holds_for_all_tensors(void **state) {
    (void)state;
    struct bounds one = bounds_of_one(-7);
    assert_int_equal(bounds_exponent(&one, 0), -7);
    assert_int_equal(bounds_exponent(&one, TENSORS_MAX - 1), -7);
}

static void both_come_back_from_bytes_as_written(void **state) {
    (void)state;
    struct bounds bounds = {.count = 3, .exponent = {-900, 0, 900}};
    struct maxima maxima = {.count = 2, .value = {0, INFINITY}};
    struct bytes bytes;
    bytes_init(&bytes);
    bounds_encode(&bounds, &bytes);
    maxima_encode(&maxima, &bytes);
    struct cursor cursor = cursor_over(bytes.data, bytes.length);
    struct bounds bounds_back = bounds_decode(&cursor);
    struct maxima maxima_back = maxima_decode(&cursor);
    assert_true(!cursor.failed && cursor_left(&cursor) == 0);
    assert_memory_equal(&bounds_back, &bounds, sizeof bounds);
    assert_memory_equal(&maxima_back, &maxima, sizeof maxima);
    bytes_release(&bytes);
}

static void more_than_there_may_be_are_not_read(void **state) {
    (void)state;
    static const uint8_t bytes[4 + 8 * (TENSORS_MAX + 1)] = {TENSORS_MAX + 1};
    struct cursor first = cursor_over(bytes, sizeof bytes), second = first;
    assert_int_equal(bounds_decode(&first).count, 0);
    assert_true(first.failed);
    assert_int_equal(maxima_decode(&second).count, 0);
    assert_true(second.failed);
}

static void linear_models_have_one_bound_and_others_one_a_tensor(void **state) {
    (void)state;
    struct layout linear = layout_linear(5, 3, true), bare = layout_linear(5, 3, false);
    assert_int_equal(layout_bounds(&linear), 1);
    assert_int_equal(layout_bounds(&bare), 1);
    struct layout another = linear; /* has these names, but not an exponent a feature */
    another.tensor[0].exponents = LAYOUT_ONE_EXPONENT;
    assert_int_equal(layout_bounds(&another), 2);
    layout_add(&linear, &(struct layout_tensor){.name = "W2", .rows = 1, .columns = 1});
    assert_int_equal(layout_bounds(&linear), 3);
    layout_add(&bare, &(struct layout_tensor){.name = "b1", .rows = 1, .columns = 1});
    assert_int_equal(layout_bounds(&bare), 2);
}

SUITE(bounds) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxima_merge_in_any_order),
        cmocka_unit_test(nothing_found_changes_no_maxima),
        cmocka_unit_test(each_tensor_has_its_own_bound),
        cmocka_unit_test(one_bound_holds_for_all_tensors),
        cmocka_unit_test(both_come_back_from_bytes_as_written),
        cmocka_unit_test(more_than_there_may_be_are_not_read),
        cmocka_unit_test(linear_models_have_one_bound_and_others_one_a_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
