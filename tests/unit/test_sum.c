/* Integer sums that note the columns of rows, so that few of them are gathered without a look at
 * the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "replica/sum.h"
#include "tests/unit/suites.h"

enum { COLUMNS = 1000, WEIGHTS = 3, ALL = COLUMNS * WEIGHTS + WEIGHTS, SUMS = 2, UNTOUCHED = -7 };

static struct sum sums[SUMS];
static struct sum *const both[SUMS] = {&sums[0], &sums[1]};
static struct touched columns;
static int64_t into[ALL];

static int make_sums(void **state) {
    (void)state;
    for (unsigned i = 0; i < SUMS; i++) {
        sum_init(&sums[i], ALL);
        sum_look(&sums[i], COLUMNS);
    }
    touched_init(&columns, COLUMNS);
    for (unsigned i = 0; i < ALL; i++)
        into[i] = UNTOUCHED;
    return 0;
}

static int free_sums(void **state) {
    (void)state;
    for (unsigned i = 0; i < SUMS; i++) {
        sum_release(&sums[i]);
        sums[i] = (struct sum){0};
    }
    touched_release(&columns);
    return 0;
}

/* Adds 1 to every element of these columns, and of what lies behind all. */
static void add_row(struct sum *sum, uint32_t count, const uint32_t *features) {
    const uint32_t start[] = {0, count};
    sum_hold(sum);
    sum_note(
        sum,
        &(struct rows){
            .count = 1, .features = COLUMNS, .values = count, .start = start, .feature = features});
    for (uint32_t i = 0; i <= count; i++)
        for (uint32_t k = 0; k < WEIGHTS; k++)
            sum->element[(i < count ? features[i] : COLUMNS) * WEIGHTS + k] += 1;
}

static void gather(void) {
    sums_columns(both, SUMS, &columns);
    assert_true(columns.some);
    sums_gather_columns(both, SUMS, &columns, WEIGHTS, ALL, into);
    sums_gathered(both, SUMS);
}

static void the_columns_of_all_sums_are_gathered_one_behind_the_other_and_no_others(void **state) {
    (void)state;
    add_row(&sums[0], 3, (const uint32_t[]){1, 70, 999});
    add_row(&sums[1], 2, (const uint32_t[]){0, 70});
    gather();
    for (unsigned i = 0; i < ALL; i++) { /* 0, 1, 70, 999 and what lies behind all columns */
        unsigned place = i / WEIGHTS;
        bool both_have = place == 2 || place == 4;
        assert_int_equal(into[i], place > 4 ? UNTOUCHED : both_have ? 2 : 1);
    }
}

static void columns_of_many_weights_are_gathered_as_those_of_few(void **state) {
    enum { MANY = 40, FOUND = 70 };
    static int64_t wide[COLUMNS * MANY];
    struct sum sum = {0}, *one = &sum;
    struct touched touched = {0};
    const uint32_t start[] = {0, 1}, feature = FOUND;
    (void)state;
    sum_init(&sum, COLUMNS * MANY);
    sum_look(&sum, COLUMNS);
    touched_init(&touched, COLUMNS);
    sum_hold(&sum);
    sum_note(
        &sum,
        &(struct rows){
            .count = 1, .features = COLUMNS, .values = 1, .start = start, .feature = &feature});
    for (unsigned k = 0; k < MANY; k++)
        sum.element[FOUND * MANY + k] = k + 1;
    sums_columns(&one, 1, &touched);
    sums_gather_columns(&one, 1, &touched, MANY, COLUMNS * MANY, wide);
    for (unsigned k = 0; k < MANY; k++) {
        assert_int_equal(wide[k], k + 1);
        assert_int_equal(sum.element[FOUND * MANY + k], 0);
    }
    touched_release(&touched);
    sum_release(&sum);
}

static void what_was_gathered_is_zero_and_no_longer_noted(void **state) {
    (void)state;
    add_row(&sums[0], 2, (const uint32_t[]){5, 6});
    gather();
    for (unsigned i = 0; i < ALL; i++)
        assert_int_equal(sums[0].element[i], 0);
    add_row(&sums[0], 1, (const uint32_t[]){8});
    sums_columns(both, SUMS, &columns);
    assert_int_equal(touched_total(&columns), 1);
}

static void rows_of_many_values_are_not_noted(void **state) {
    (void)state;
    uint32_t features[COLUMNS / SUM_FEW];
    for (uint32_t i = 0; i < COLUMNS / SUM_FEW; i++)
        features[i] = i;
    add_row(&sums[1], 1, features);
    add_row(&sums[0], COLUMNS / SUM_FEW, features);
    sums_columns(both, SUMS, &columns);
    assert_false(columns.some);
}

SUITE(sum) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_many_weights_are_gathered_as_those_of_few),
        cmocka_unit_test_setup_teardown(
            the_columns_of_all_sums_are_gathered_one_behind_the_other_and_no_others, make_sums,
            free_sums),
        cmocka_unit_test_setup_teardown(what_was_gathered_is_zero_and_no_longer_noted, make_sums,
                                        free_sums),
        cmocka_unit_test_setup_teardown(rows_of_many_values_are_not_noted, make_sums, free_sums),
    };
    return cmocka_run_group_tests_name("sums of a replica", tests, NULL, NULL);
}
