/* Bounds of an evaluation: what is found under them adds up in any order, and is compared a tensor
 * at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "base/bounds.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxima_merge_in_any_order),
        cmocka_unit_test(nothing_found_changes_no_maxima),
        cmocka_unit_test(each_tensor_has_its_own_bound),
        cmocka_unit_test(one_bound_holds_for_all_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
