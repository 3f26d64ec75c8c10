/* Which chunks are handed out, which are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/plan.h"

static struct run_list list(const struct run *runs, uint32_t length) {
    return (struct run_list){.items = runs, .length = length};
}

static void a_home_range_is_handed_out_in_sequence(void **state) {
    (void)state;
    struct plan plan;
    struct run run;
    plan_init(&plan, 10, 2);
    assert_true(plan_take(&plan, 1, 3, &run));
    assert_int_equal(run.first, 5);
    assert_int_equal(run.count, 3);
    assert_true(plan_take(&plan, 1, 3, &run));
    assert_int_equal(run.first, 8);
    assert_int_equal(run.count, 2);
    plan_release(&plan);
}

static void who_is_done_takes_from_the_end_of_the_range_furthest_behind(void **state) {
    (void)state;
    struct plan plan;
    struct run run;
    plan_init(&plan, 9, 3);
    plan_take(&plan, 0, 3, &run);
    plan_take(&plan, 1, 1, &run);
    assert_true(plan_take(&plan, 0, 2, &run));
    assert_int_equal(run.first, 7);
    assert_int_equal(run.count, 2);
    plan_release(&plan);
}

static void every_chunk_is_handed_out_once(void **state) {
    (void)state;
    for (uint32_t homes = 1; homes <= 7; homes++) {
        struct plan plan;
        struct run run;
        uint32_t seen[23] = {0};
        plan_init(&plan, 23, homes);
        for (uint32_t i = 0; plan_take(&plan, i % homes, 1 + i % 3, &run); i++)
            for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
                seen[chunk]++;
        for (int chunk = 0; chunk < 23; chunk++)
            assert_int_equal(seen[chunk], 1);
        plan_release(&plan);
    }
}

static void only_uncounted_chunks_come_back(void **state) {
    (void)state;
    struct plan plan;
    struct run run;
    plan_init(&plan, 8, 1);
    plan_take(&plan, 0, 8, &run);
    struct run counted[] = {{.first = 2, .count = 1}, {.first = 5, .count = 2}};
    struct run_list counted_list = list(counted, 2), all = list(&run, 1);
    plan_count(&plan, &counted_list, 0);
    plan_return(&plan, &all);
    assert_int_equal(plan.waiting, 5);
    uint32_t given = 0;
    while (plan_take(&plan, 0, 8, &run)) {
        struct run_list one = list(&run, 1);
        assert_true(plan_may_count(&plan, &one));
        plan_count(&plan, &one, 0);
        given += run.count;
    }
    assert_int_equal(given, 5);
    assert_true(plan_complete(&plan));
    plan_release(&plan);
}

static void what_overlaps_is_counted_or_lies_outside_may_not_count(void **state) {
    (void)state;
    struct plan plan;
    plan_init(&plan, 8, 1);
    struct run counted = {.first = 3, .count = 1};
    struct run_list counted_list = list(&counted, 1);
    plan_count(&plan, &counted_list, 0);
    struct run bad[][2] = {
        {{.first = 0, .count = 2}, {.first = 1, .count = 1}}, /* overlap */
        {{.first = 0, .count = 1}, {.first = 2, .count = 2}}, /* counted */
        {{.first = 0, .count = 1}, {.first = 7, .count = 2}}, /* outside */
        {{.first = 0, .count = 1}, {.first = 4, .count = 0}}, /* empty */
        {{.first = 0, .count = 1}, {.first = 7, .count = UINT32_MAX}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct run_list runs = list(bad[i], 2);
        assert_false(plan_may_count(&plan, &runs));
    }
    plan_release(&plan);
}

static void a_new_evaluation_starts_from_nothing(void **state) {
    (void)state;
    struct plan plan;
    struct run run;
    plan_init(&plan, 5, 2);
    plan_take(&plan, 0, 5, &run);
    struct run_list one = list(&run, 1);
    plan_count(&plan, &one, 0);
    plan_begin(&plan);
    assert_int_equal(plan.waiting, 5);
    assert_int_equal(plan.counted_chunks, 0);
    assert_true(plan_may_count(&plan, &one));
    plan_release(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_home_range_is_handed_out_in_sequence),
        cmocka_unit_test(who_is_done_takes_from_the_end_of_the_range_furthest_behind),
        cmocka_unit_test(every_chunk_is_handed_out_once),
        cmocka_unit_test(only_uncounted_chunks_come_back),
        cmocka_unit_test(what_overlaps_is_counted_or_lies_outside_may_not_count),
        cmocka_unit_test(a_new_evaluation_starts_from_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
