/* Where the bins of a column of numbers part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/random.h"
#include "data/set/bins.h"
#include "tests/unit/suites.h"

enum { MOST = 256, VALUES = 5000 };

struct parted {
    double edge[MOST];
    uint64_t in_bin[MOST];
    uint32_t edges;
};

static struct parted part(const double *value, uint64_t count, uint32_t bins) {
    struct parted parted;
    parted.edges = bins_part(value, count, bins, parted.edge, parted.in_bin);
    return parted;
}

static void even_values_are_parted_into_even_shares(void **state) {
    (void)state;
    double value[1000];
    for (int i = 0; i < 1000; i++)
        value[i] = i;
    struct parted parted = part(value, 1000, 4);
    assert_int_equal(parted.edges, 3);
    for (int i = 0; i < 3; i++)
        assert_true(parted.edge[i] == 250 * (i + 1));
    for (int i = 0; i < 4; i++)
        assert_int_equal(parted.in_bin[i], 250);
}

static void amounts_beside_many_zeros_have_the_other_bins(void **state) {
    (void)state;
    double value[1000] = {0};
    for (int i = 920; i < 1000; i++)
        value[i] = i;
    struct parted parted = part(value, 1000, 5);
    assert_int_equal(parted.edges, 4);
    assert_int_equal(parted.in_bin[0], 920);
    for (int i = 1; i < 5; i++)
        assert_int_equal(parted.in_bin[i], 20);
    assert_true(parted.edge[0] == 920 && parted.edge[3] == 980);
}

static void a_frequent_value_within_others_is_a_bin_of_its_own(void **state) {
    (void)state;
    double value[300];
    for (int i = 0; i < 300; i++)
        value[i] = i < 100 ? i - 100 : i < 200 ? 0 : i;
    struct parted parted = part(value, 300, 5);
    const double edges[] = {-50, 0, 200, 250};
    assert_int_equal(parted.edges, 4);
    for (int i = 0; i < 4; i++)
        assert_true(parted.edge[i] == edges[i]);
}

static void a_frequent_value_is_alone_although_few_numbers_stand_beside_it(void **state) {
    (void)state;
    double value[1000];
    for (int i = 0; i < 1000; i++) /* normal amounts with 600 zeros, and three debts */
        value[i] = i < 3 ? i - 3 : i < 603 ? 0 : i;
    for (uint32_t bins = 3; bins <= 100; bins++) {
        struct parted parted = part(value, 1000, bins);
        assert_true(parted.edge[0] == 0 && parted.edge[1] == 603);
        assert_int_equal(parted.in_bin[0], 3);
        assert_int_equal(parted.in_bin[1], 600);
    }
}

static void a_constant_has_one_bin(void **state) {
    (void)state;
    const double value[3] = {7, 7, 7};
    struct parted parted = part(value, 3, 2);
    assert_int_equal(parted.edges, 0);
    assert_int_equal(parted.in_bin[0], 3);
    assert_int_equal(part(value, 1, MOST).edges, 0);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Values of which some are frequent; some sets have fewer different ones than bins. */
static uint64_t draw(struct random *random, double *value) {
    uint64_t count = 1 + random_below(random, VALUES), different = 1 + random_below(random, 400);
    uint64_t often = random_below(random, 100);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t few = random_below(random, 100) < often ? 1 + different / 50 : different;
        value[i] = (double)random_below(random, few) - 3;
    }
    qsort(value, count, sizeof *value, compare);
    return count;
}

static void bins_cover_all_values_and_none_is_empty(void **state) {
    (void)state;
    static double value[VALUES];
    struct random random;
    random_init(&random, 3);
    for (int turn = 0; turn < 2000; turn++) {
        uint64_t count = draw(&random, value), at = 0;
        uint32_t bins = 2 + (uint32_t)random_below(&random, MOST - 1);
        struct parted parted = part(value, count, bins);
        assert_true(parted.edges < bins);
        for (uint32_t i = 0; i <= parted.edges; i++) {
            assert_true(parted.in_bin[i] > 0);
            assert_true(i == 0 || value[at] == parted.edge[i - 1]);
            assert_true(i == 0 || value[at - 1] < parted.edge[i - 1]);
            at += parted.in_bin[i];
        }
        assert_int_equal(at, count);
    }
}

static uint64_t frequent_values(const double *value, uint64_t count, uint32_t bins) {
    uint64_t frequent = 0;
    for (uint64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && value[end] == value[i];)
            end++;
        frequent += end - i >= count / bins + 1;
    }
    return frequent;
}

static void each_frequent_value_is_alone_in_its_bin(void **state) {
    (void)state;
    static double value[VALUES];
    struct random random;
    random_init(&random, 5);
    for (int turn = 0; turn < 2000; turn++) {
        uint64_t count = draw(&random, value), alone = 0, at = 0;
        uint32_t bins = 2 + (uint32_t)random_below(&random, 100);
        const uint64_t frequent = frequent_values(value, count, bins);
        struct parted parted = part(value, count, bins);
        for (uint32_t i = 0; i <= parted.edges; at += parted.in_bin[i++])
            alone += parted.in_bin[i] >= count / bins + 1 &&
                     value[at] == value[at + parted.in_bin[i] - 1];
        assert_true(alone == frequent || 2 * frequent + 1 > bins);
    }
}

/* What a bin has before its last value is less than a share, which is of all at most. */
static void a_bin_ends_once_it_has_a_share(void **state) {
    (void)state;
    static double value[VALUES];
    struct random random;
    random_init(&random, 4);
    for (int turn = 0; turn < 2000; turn++) {
        uint64_t count = draw(&random, value), at = 0;
        uint32_t bins = 2 + (uint32_t)random_below(&random, 100);
        struct parted parted = part(value, count, bins);
        const bool plain = !frequent_values(value, count, bins);
        for (uint32_t i = 0; plain && i + 1 < bins && i <= parted.edges; i++) {
            uint64_t end = at + parted.in_bin[i], before = parted.in_bin[i];
            while (before && value[at + before - 1] == value[end - 1])
                before--;
            assert_true(before < count / bins + 1);
            at = end;
        }
    }
}

SUITE(bins) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_values_are_parted_into_even_shares),
        cmocka_unit_test(amounts_beside_many_zeros_have_the_other_bins),
        cmocka_unit_test(a_frequent_value_within_others_is_a_bin_of_its_own),
        cmocka_unit_test(a_frequent_value_is_alone_although_few_numbers_stand_beside_it),
        cmocka_unit_test(a_constant_has_one_bin),
        cmocka_unit_test(bins_cover_all_values_and_none_is_empty),
        cmocka_unit_test(each_frequent_value_is_alone_in_its_bin),
        cmocka_unit_test(a_bin_ends_once_it_has_a_share),
    };
    return cmocka_run_group_tests_name("bins", tests, NULL, NULL);
}
