#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "numeric/exact.h"

static void merged_totals_read_back_as_they_were_sent(void **state) {
    (void)state;
    struct totals a, b, back;
    struct bytes bytes;
    totals_init(&a, 3);
    totals_init(&b, 3);
    exact_add(&a.sum[0], 0.1);
    exact_add(&b.sum[0], 1e300);
    exact_add(&b.sum[2], -7);
    totals_merge(&a, &b);
    bytes_init(&bytes);
    totals_encode(&a, &bytes);
    assert_true(totals_decode(&back, 3, bytes.data, bytes.length));
    for (uint32_t i = 0; i < 3; i++)
        assert_true(exact_value(&back.sum[i]) == exact_value(&a.sum[i]));
    assert_true(exact_value(&back.sum[1]) == 0 && exact_value(&back.sum[2]) == -7);
    bytes_release(&bytes);
}

static void another_number_of_totals_is_refused_and_leaves_zeros(void **state) {
    (void)state;
    struct totals totals, back;
    struct bytes bytes;
    totals_init(&totals, 2);
    exact_add(&totals.sum[0], 5);
    bytes_init(&bytes);
    totals_encode(&totals, &bytes);
    assert_true(totals_decode(&back, 2, bytes.data, bytes.length));
    for (uint32_t count = 0; count <= 4; count++)
        assert_int_equal(totals_decode(&back, count, bytes.data, bytes.length), count == 2);
    for (size_t length = 0; length < bytes.length; length++) {
        assert_false(totals_decode(&back, 2, bytes.data, length));
        assert_true(exact_value(&back.sum[0]) == 0);
    }
    bytes_release(&bytes);
}

SUITE(totals) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_totals_read_back_as_they_were_sent),
        cmocka_unit_test(another_number_of_totals_is_refused_and_leaves_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
