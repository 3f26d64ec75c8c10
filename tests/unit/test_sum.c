/* Integer sums that note the columns of rows, so that few of them are listed without a look at the
 * others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "replica/sum.h"
#include "tests/unit/suites.h"

enum { COLUMNS = 1000, WEIGHTS = 3, ALL = COLUMNS * WEIGHTS + WEIGHTS, SUMS = 2 };

static struct sum sums[SUMS];
static struct sum *const both[SUMS] = {&sums[0], &sums[1]};
static struct sum_list all;

static int make_sums(void **state) {
    (void)state;
    for (unsigned i = 0; i < SUMS; i++) {
        sum_init(&sums[i], ALL);
        sum_look(&sums[i], COLUMNS, WEIGHTS, ALL);
    }
    return 0;
}

static int free_sums(void **state) {
    (void)state;
    for (unsigned i = 0; i < SUMS; i++) {
        sum_release(&sums[i]);
        sums[i] = (struct sum){0};
    }
    sum_list_release(&all);
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

/* Lists both, and adds them up. */
static void list_all(void) {
    const struct sum_list *items[] = {&sums[0].list, &sums[1].list};
    for (unsigned i = 0; i < SUMS; i++)
        sum_list(&sums[i]);
    assert_true(sums[0].listed && sums[1].listed);
    sum_list_release(&all);
    sum_lists_add(&(struct sum_lists){.items = items, .count = SUMS}, &all);
}

static void assert_all_zero(const struct sum *sum) {
    for (unsigned i = 0; i < ALL; i++)
        assert_int_equal(sum->element[i], 0);
}

static void lists_have_the_elements_of_noted_columns_and_what_lies_behind_all(void **state) {
    const unsigned columns[] = {0, 1, 70, 999, COLUMNS};
    (void)state;
    add_row(&sums[0], 3, (const uint32_t[]){1, 70, 999});
    add_row(&sums[1], 2, (const uint32_t[]){0, 70});
    list_all();
    assert_int_equal(all.count, 5 * WEIGHTS);
    for (unsigned i = 0; i < all.count; i++) {
        unsigned column = columns[i / WEIGHTS];
        assert_int_equal(all.element[i], column * WEIGHTS + i % WEIGHTS);
        assert_int_equal(all.value[i], column == 70 || column == COLUMNS ? 2 : 1);
    }
    assert_all_zero(&sums[0]);
    assert_all_zero(&sums[1]);
}

static void what_came_to_nothing_is_in_no_list(void **state) {
    (void)state;
    add_row(&sums[0], 1, (const uint32_t[]){4});
    sums[0].element[4 * WEIGHTS] = 0;
    sum_list(&sums[0]);
    assert_int_equal(sums[0].list.count, 2 * WEIGHTS - 1);
    assert_int_equal(sums[0].list.element[0], 4 * WEIGHTS + 1);
}

static void a_sum_that_is_added_to_after_it_was_listed_has_all(void **state) {
    (void)state;
    add_row(&sums[0], 2, (const uint32_t[]){5, 6});
    sum_list(&sums[0]);
    add_row(&sums[0], 2, (const uint32_t[]){6, 7});
    assert_int_equal(sums[0].element[5 * WEIGHTS], 1);
    sum_list(&sums[0]);
    assert_int_equal(sums[0].list.count, 4 * WEIGHTS);
    for (unsigned i = 0; i < 4 * WEIGHTS; i++)
        assert_int_equal(sums[0].list.value[i], i / WEIGHTS % 2 ? 2 : 1);
}

static void what_was_gathered_or_given_up_is_zero_and_no_longer_noted(void **state) {
    (void)state;
    for (int given_up = 0; given_up <= 1; given_up++) {
        add_row(&sums[0], 2, (const uint32_t[]){5, 6});
        sum_list(&sums[0]);
        if (given_up)
            sum_void(&sums[0]);
        else
            sums_gathered(both, SUMS);
        assert_all_zero(&sums[0]);
        add_row(&sums[0], 1, (const uint32_t[]){8});
        sum_list(&sums[0]);
        assert_int_equal(sums[0].list.count, 2 * WEIGHTS);
        assert_int_equal(sums[0].list.element[0], 8 * WEIGHTS);
        sums_gathered(both, SUMS);
    }
}

static void rows_of_many_values_are_not_listed(void **state) {
    (void)state;
    uint32_t features[COLUMNS / SUM_FEW];
    for (uint32_t i = 0; i < COLUMNS / SUM_FEW; i++)
        features[i] = i;
    add_row(&sums[0], COLUMNS / SUM_FEW, features);
    sum_list(&sums[0]);
    assert_false(sums[0].listed);
    assert_int_equal(sums[0].element[0], 1);
}

SUITE(sum) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            lists_have_the_elements_of_noted_columns_and_what_lies_behind_all, make_sums,
            free_sums),
        cmocka_unit_test_setup_teardown(what_came_to_nothing_is_in_no_list, make_sums, free_sums),
        cmocka_unit_test_setup_teardown(a_sum_that_is_added_to_after_it_was_listed_has_all,
                                        make_sums, free_sums),
        cmocka_unit_test_setup_teardown(what_was_gathered_or_given_up_is_zero_and_no_longer_noted,
                                        make_sums, free_sums),
        cmocka_unit_test_setup_teardown(rows_of_many_values_are_not_listed, make_sums, free_sums),
    };
    return cmocka_run_group_tests_name("sums of a replica", tests, NULL, NULL);
}
