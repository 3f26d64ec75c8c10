#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/exact.h"

__extension__ typedef __int128 wide_integer;

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Any finite double, evenly over the bit patterns: every exponent, denormals too. */
static double any_finite(struct random *random) {
    for (;;) {
        double value = from_bits(random_next(random));
        if (isfinite(value))
            return value;
    }
}

static double sum_of(size_t n, const double *terms) {
    struct exact sum;
    exact_init(&sum);
    for (size_t i = 0; i < n; i++)
        exact_add(&sum, terms[i]);
    return exact_value(&sum);
}

static void assert_same_bytes(const struct exact *a, const struct exact *b) {
    struct bytes x, y;
    bytes_init(&x);
    bytes_init(&y);
    exact_encode(a, &x);
    exact_encode(b, &y);
    assert_int_equal(x.length, y.length);
    assert_memory_equal(x.data, y.data, x.length);
    assert_true(x.length <= EXACT_ENCODED_MAX);
    bytes_release(&x);
    bytes_release(&y);
}

/* As threads of a device do: limbs without carries, in any order, which are merged as they are. */
static void limbs_of_split_terms_are_the_sum(void **state) {
    (void)state;
    const double edges[] = {0,       -0.0,     0x1p-1074, -0x1p-1074, 0x1p-1022,
                            DBL_MAX, -DBL_MAX, 1,         -1,         0x1.fffffffffffffp31};
    struct random random;
    random_init(&random, 8);
    for (int repeat = 0; repeat < 200; repeat++) {
        struct exact expected, limbs, merged;
        exact_init(&expected);
        exact_init(&limbs);
        exact_init(&merged);
        for (int i = 0; i < 100; i++) {
            double value = i < 10 ? edges[i] : any_finite(&random);
            struct exact_term term = exact_split(value);
            assert_true(term.limb + 3 <= EXACT_LIMBS && !term.special);
            for (int part = 0; part < 3; part++)
                limbs.limb[term.limb + (uint32_t)part] += term.part[part];
            limbs.pending++;
            exact_add(&expected, value);
        }
        exact_merge(&merged, &limbs);
        assert_same_bytes(&merged, &expected);
    }
}

static void what_is_no_number_splits_into_a_bit(void **state) {
    (void)state;
    const double values[] = {NAN, -NAN, INFINITY, -INFINITY};
    const uint32_t bits[] = {EXACT_NOT_A_NUMBER, EXACT_NOT_A_NUMBER, EXACT_POSITIVE_INFINITY,
                             EXACT_NEGATIVE_INFINITY};
    for (int i = 0; i < 4; i++) {
        struct exact_term term = exact_split(values[i]);
        assert_int_equal(term.special, bits[i]);
        assert_true(term.limb == 0 && !term.part[0] && !term.part[1] && !term.part[2]);
    }
}

static void one_term_is_its_own_sum(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < 20000; i++) {
        double term = any_finite(&random);
        assert_true(sum_of(1, &term) == term);
    }
    double edges[] = {0,         DBL_MIN,    -DBL_MIN, DBL_MAX, -DBL_MAX,
                      0x1p-1074, -0x1p-1074, 1,        -1,      0x1.fffffffffffffp-1023};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        assert_true(sum_of(1, &edges[i]) == edges[i]);
}

static void a_sum_of_two_is_the_rounded_sum(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 2);
    for (int i = 0; i < 20000; i++) {
        double terms[2] = {any_finite(&random), any_finite(&random)};
        assert_true(sum_of(2, terms) == terms[0] + terms[1]);
        terms[1] = terms[0] * (random_unit(&random) - 0.5);
        assert_true(sum_of(2, terms) == terms[0] + terms[1]);
    }
}

static void sums_agree_with_wide_integers(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 3);
    for (int round = 0; round < 500; round++) {
        struct exact sum;
        exact_init(&sum);
        wide_integer wide = 0;
        for (int i = 0; i < 200; i++) {
            int64_t mantissa = (int64_t)(random_next(&random) >> 11);
            if (random_next(&random) & 1)
                mantissa = -mantissa;
            int shift = (int)random_below(&random, 60);
            wide += (wide_integer)mantissa * ((wide_integer)1 << shift);
            exact_add(&sum, ldexp((double)mantissa, shift - 70));
        }
        assert_true(exact_value(&sum) == ldexp((double)wide, -70)); /* rounds once, to even */
    }
}

static void ties_go_to_even_unless_something_lies_below(void **state) {
    (void)state;
    assert_true(sum_of(2, (double[]){1, 0x1p-53}) == 1);
    assert_true(sum_of(2, (double[]){1 + 0x1p-52, 0x1p-53}) == 1 + 0x1p-51);
    assert_true(sum_of(3, (double[]){1, 0x1p-53, 0x1p-1074}) == 1 + 0x1p-52);
    assert_true(sum_of(3, (double[]){1, 0x1p-53, -0x1p-1074}) == 1);
    assert_true(sum_of(3, (double[]){-1, -0x1p-53, -0x1p-1074}) == -1 - 0x1p-52);
    assert_true(sum_of(3, (double[]){1e300, 1, -1e300}) == 1);
}

static void overflow_is_infinite_only_if_the_sum_is(void **state) {
    (void)state;
    assert_true(isinf(sum_of(2, (double[]){DBL_MAX, DBL_MAX})));
    assert_true(sum_of(3, (double[]){DBL_MAX, DBL_MAX, -DBL_MAX}) == DBL_MAX);
    assert_true(sum_of(2, (double[]){DBL_MAX, 0x1p969}) == DBL_MAX);
    assert_true(isinf(sum_of(2, (double[]){DBL_MAX, 0x1p970})));
}

static void a_sum_of_nothing_left_is_positive_zero(void **state) {
    (void)state;
    assert_true(!signbit(sum_of(1, (double[]){-0.0})));
    assert_true(!signbit(sum_of(2, (double[]){-3, 3})));
}

static void infinities_and_nan_decide_the_sum(void **state) {
    (void)state;
    assert_true(sum_of(2, (double[]){INFINITY, -DBL_MAX}) == INFINITY);
    assert_true(sum_of(2, (double[]){-INFINITY, DBL_MAX}) == -INFINITY);
    assert_true(isnan(sum_of(2, (double[]){-INFINITY, INFINITY})));
    assert_true(isnan(sum_of(2, (double[]){1, NAN})));
    struct exact a, b;
    exact_init(&a);
    exact_init(&b);
    exact_add(&a, INFINITY);
    exact_add(&a, -INFINITY);
    exact_add(&b, NAN);
    exact_add(&b, 7);
    assert_same_bytes(&a, &b);
}

/* Adds terms in shuffled order into `parts` sums and merges those, some by way of bytes. */
static void add_shuffled(struct exact *sum, struct random *random, size_t n, double *terms) {
    enum { PARTS = 5 };
    struct exact parts[PARTS];
    for (int p = 0; p < PARTS; p++)
        exact_init(&parts[p]);
    for (size_t left = n; left > 0; left--) {
        size_t pick = random_below(random, left);
        exact_add(&parts[random_below(random, PARTS)], terms[pick]);
        double last = terms[left - 1];
        terms[left - 1] = terms[pick];
        terms[pick] = last;
    }
    exact_init(sum);
    for (int p = 0; p < PARTS; p++) {
        struct bytes bytes;
        bytes_init(&bytes);
        exact_encode(&parts[p], &bytes);
        struct cursor cursor = cursor_over(bytes.data, bytes.length);
        struct exact decoded;
        assert_true(exact_decode(&decoded, &cursor));
        assert_int_equal(cursor_left(&cursor), 0);
        exact_merge(sum, p % 2 ? &decoded : &parts[p]);
        bytes_release(&bytes);
    }
}

static void order_and_grouping_do_not_matter(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 4);
    double terms[300];
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 300; i++)
            terms[i] = round % 2 ? any_finite(&random) : random_unit(&random) - 0.5;
        struct exact first, second;
        add_shuffled(&first, &random, 300, terms);
        add_shuffled(&second, &random, 300, terms);
        assert_same_bytes(&first, &second);
        double a = exact_value(&first), b = exact_value(&second);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static void carries_propagate_before_limbs_overflow(void **state) {
    (void)state;
    struct exact sum;
    exact_init(&sum);
    exact_add(&sum, 0x1.fffffffffffffp100);
    long double expected = 0x1.fffffffffffffp100L;
    for (int i = 0; i < 100; i++) { /* doubling: 2¹⁰⁰ terms */
        struct exact same = sum;
        exact_merge(&sum, &same);
        expected *= 2;
    }
    assert_true(exact_value(&sum) == (double)expected);
    sum.pending = UINT32_MAX / 4 - 1; /* as if a billion terms had been added */
    exact_add(&sum, 0x1p100);
    exact_add(&sum, -0x1p100);
    assert_true(sum.pending < 10);
    assert_true(exact_value(&sum) == (double)expected);
}

static void a_typical_sum_takes_few_bytes(void **state) {
    (void)state;
    struct exact sum;
    exact_init(&sum);
    struct bytes bytes;
    bytes_init(&bytes);
    exact_encode(&sum, &bytes);
    assert_int_equal(bytes.length, 4);
    bytes_clear(&bytes);
    for (int i = 1; i < 1000; i++)
        exact_add(&sum, -1.0 / i);
    exact_encode(&sum, &bytes);
    assert_true(bytes.length <= 24);
    bytes_release(&bytes);
}

static void garbage_is_refused_or_canonical(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 5);
    uint8_t garbage[EXACT_ENCODED_MAX];
    for (int round = 0; round < 50000; round++) {
        size_t length = random_below(&random, sizeof garbage);
        for (size_t i = 0; i < length; i++)
            garbage[i] = (uint8_t)random_next(&random);
        if (round % 2 && length > 4) { /* closer to what is accepted */
            garbage[0] = (uint8_t)(garbage[0] & 15);
            garbage[1] = (uint8_t)(garbage[1] % 70);
            garbage[2] = (uint8_t)(garbage[2] % 8);
            garbage[3] = 0;
        }
        struct cursor cursor = cursor_over(garbage, length);
        struct exact sum, zero;
        exact_init(&zero);
        if (!exact_decode(&sum, &cursor)) {
            assert_memory_equal(&sum, &zero, sizeof sum);
            assert_true(cursor.failed);
            continue;
        }
        struct bytes again;
        bytes_init(&again);
        exact_encode(&sum, &again);
        assert_int_equal(again.length, length - cursor_left(&cursor));
        assert_memory_equal(again.data, garbage, again.length);
        bytes_release(&again);
    }
}

SUITE(exact) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_term_is_its_own_sum),
        cmocka_unit_test(limbs_of_split_terms_are_the_sum),
        cmocka_unit_test(what_is_no_number_splits_into_a_bit),
        cmocka_unit_test(a_sum_of_two_is_the_rounded_sum),
        cmocka_unit_test(sums_agree_with_wide_integers),
        cmocka_unit_test(ties_go_to_even_unless_something_lies_below),
        cmocka_unit_test(overflow_is_infinite_only_if_the_sum_is),
        cmocka_unit_test(a_sum_of_nothing_left_is_positive_zero),
        cmocka_unit_test(infinities_and_nan_decide_the_sum),
        cmocka_unit_test(order_and_grouping_do_not_matter),
        cmocka_unit_test(carries_propagate_before_limbs_overflow),
        cmocka_unit_test(a_typical_sum_takes_few_bytes),
        cmocka_unit_test(garbage_is_refused_or_canonical),
    };
    return cmocka_run_group_tests_name("exact", tests, NULL, NULL);
}
