/* Which chunks are handed out, which are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/dispatch/plan.h"
#include "tests/unit/suites.h"

static struct chunk_ranges list(const struct chunk_range *ranges, uint32_t length) {
    return (struct chunk_ranges){.items = ranges, .length = length};
}

static struct evaluation_parts all_of(uint32_t chunks) {
    return (struct evaluation_parts){{{EVALUATION_GRADIENT, 0, chunks}}, 1};
}

/* A plan for one evaluation over all chunks. */
static void begin(struct plan *plan, uint32_t chunks, uint32_t homes) {
    struct evaluation_parts all = all_of(chunks);
    plan_init(plan, chunks, chunks, homes);
    plan_begin(plan, &all);
}

static void a_home_range_is_handed_out_in_sequence(void **state) {
    (void)state;
    struct plan plan;
    struct chunk_range range;
    begin(&plan, 10, 2);
    assert_true(plan_take(&plan, 1, 3, &range));
    assert_int_equal(range.first, 5);
    assert_int_equal(range.count, 3);
    assert_true(plan_take(&plan, 1, 3, &range));
    assert_int_equal(range.first, 8);
    assert_int_equal(range.count, 2);
    plan_release(&plan);
}

static void who_is_done_takes_from_the_end_of_the_range_furthest_behind(void **state) {
    (void)state;
    struct plan plan;
    struct chunk_range range;
    begin(&plan, 9, 3);
    plan_take(&plan, 0, 3, &range);
    plan_take(&plan, 1, 1, &range);
    assert_true(plan_take(&plan, 0, 2, &range));
    assert_int_equal(range.first, 7);
    assert_int_equal(range.count, 2);
    plan_release(&plan);
}

static void every_chunk_is_handed_out_once(void **state) {
    (void)state;
    for (uint32_t homes = 1; homes <= 7; homes++) {
        struct plan plan;
        struct chunk_range range;
        uint32_t seen[23] = {0};
        begin(&plan, 23, homes);
        for (uint32_t i = 0; plan_take(&plan, i % homes, 1 + i % 3, &range); i++)
            for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++)
                seen[chunk]++;
        for (int chunk = 0; chunk < 23; chunk++)
            assert_int_equal(seen[chunk], 1);
        plan_release(&plan);
    }
}

/* Whether it is over all tiles, over one strip or over one more. */
static void every_home_has_its_share_of_the_tiles_of_an_evaluation(void **state) {
    (void)state;
    enum { STRIP = 6, STRIPS = 3, HOMES = 3 };
    struct plan plan;
    plan_init(&plan, STRIP * (STRIPS + 1), STRIP, HOMES);
    for (uint32_t strips = 1; strips <= STRIPS + 1; strips++) {
        const struct evaluation_parts parts = all_of(STRIP * strips);
        uint32_t of_home[HOMES] = {0};
        plan_begin(&plan, &parts);
        for (uint32_t chunk = 0; chunk < STRIP * strips; chunk++)
            of_home[plan_home(&plan, chunk)]++;
        for (uint32_t home = 0; home < HOMES; home++)
            assert_int_equal(of_home[home], STRIP * strips / HOMES);
    }
    plan_release(&plan);
}

/* A replica has the columns of one strip at a time. */
static void what_is_handed_out_of_tiles_lies_in_a_strip(void **state) {
    (void)state;
    enum { STRIP = 7, STRIPS = 4 };
    struct evaluation_parts all = all_of(STRIP * STRIPS), labels = all_of(STRIP);
    for (uint32_t homes = 1; homes <= 5; homes++) {
        struct plan plan;
        struct chunk_range range;
        uint32_t seen[STRIP * STRIPS] = {0};
        plan_init(&plan, STRIP * STRIPS, STRIP, homes);
        plan_begin(&plan, &all);
        for (uint32_t i = 0; plan_take(&plan, i % homes, 3 + i % 3, &range); i++) {
            assert_int_equal(range.first / STRIP, (range.first + range.count - 1) / STRIP);
            for (uint32_t tile = range.first; tile < range.first + range.count; tile++)
                seen[tile]++;
        }
        for (uint32_t tile = 0; tile < STRIP * STRIPS; tile++)
            assert_int_equal(seen[tile], 1);
        plan_begin(&plan, &labels);
        uint32_t taken = 0;
        while (plan_take(&plan, homes - 1, STRIP * STRIPS, &range))
            taken += range.count;
        assert_int_equal(taken, STRIP);
        plan_release(&plan);
    }
}

/* A flush has the sums of one strip. */
static void tiles_of_two_strips_may_not_count_together(void **state) {
    (void)state;
    enum { STRIP = 7, STRIPS = 3 };
    const struct chunk_range across[] = {{STRIP - 1, 2}}, two[] = {{STRIP - 1, 1}, {STRIP, 1}};
    const struct chunk_range one[] = {{STRIP, 2}, {2 * STRIP - 1, 1}};
    const struct chunk_ranges bad[] = {list(across, 1), list(two, 2)}, good = list(one, 2);
    struct evaluation_parts all = all_of(STRIP * STRIPS);
    struct plan plan;
    plan_init(&plan, STRIP * STRIPS, STRIP, 2);
    plan_begin(&plan, &all);
    assert_false(plan_may_count(&plan, &bad[0]));
    assert_false(plan_may_count(&plan, &bad[1]));
    assert_true(plan_may_count(&plan, &good));
    plan_release(&plan);
}

static void only_uncounted_chunks_come_back(void **state) {
    (void)state;
    struct plan plan;
    struct chunk_range range;
    begin(&plan, 8, 1);
    plan_take(&plan, 0, 8, &range);
    struct chunk_range counted[] = {{.first = 2, .count = 1}, {.first = 5, .count = 2}};
    struct chunk_ranges counted_list = list(counted, 2), all = list(&range, 1);
    plan_count(&plan, &counted_list, 0);
    plan_return(&plan, &all);
    assert_int_equal(plan.waiting, 5);
    uint32_t given = 0;
    while (plan_take(&plan, 0, 8, &range)) {
        struct chunk_ranges one = list(&range, 1);
        assert_true(plan_may_count(&plan, &one));
        plan_count(&plan, &one, 0);
        given += range.count;
    }
    assert_int_equal(given, 5);
    assert_true(plan_complete(&plan));
    plan_release(&plan);
}

/* A replica that got a chunk twice would bring a flush that is dropped, and gives it back. */
static void a_chunk_that_comes_back_twice_is_handed_out_once(void **state) {
    (void)state;
    struct plan plan;
    struct chunk_range range;
    begin(&plan, 4, 1);
    plan_take(&plan, 0, 3, &range);
    struct chunk_range twice[] = {{.first = 2, .count = 1}, {.first = 1, .count = 3}};
    struct chunk_ranges ranges = list(twice, 2);
    plan_return(&plan, &ranges);
    assert_int_equal(plan.waiting, 3); /* chunk 3 was waiting all the time */
    uint32_t seen[4] = {0};
    while (plan_take(&plan, 0, 4, &range))
        for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++)
            seen[chunk]++;
    assert_int_equal(seen[0], 0);
    for (int chunk = 1; chunk < 4; chunk++)
        assert_int_equal(seen[chunk], 1);
    plan_release(&plan);
}

static void what_was_counted_while_it_waited_is_not_handed_out(void **state) {
    (void)state;
    struct plan plan;
    struct chunk_range range, counted[] = {{.first = 1, .count = 2}, {.first = 7, .count = 3}};
    struct chunk_ranges ranges = list(counted, 2);
    begin(&plan, 10, 2);
    plan_count(&plan, &ranges, 0);
    assert_int_equal(plan.waiting, 5);
    const struct chunk_range expected[] = {{0, 1}, {3, 2}, {6, 1}, {5, 1}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(plan_take(&plan, 0, i < 2 ? 4 : 1, &range));
        assert_memory_equal(&range, &expected[i], sizeof range);
    }
    assert_false(plan_take(&plan, 0, 4, &range));
    plan_release(&plan);
}

static void what_overlaps_is_counted_or_lies_outside_may_not_count(void **state) {
    (void)state;
    struct plan plan;
    begin(&plan, 8, 1);
    struct chunk_range counted = {.first = 3, .count = 1};
    struct chunk_ranges counted_list = list(&counted, 1);
    plan_count(&plan, &counted_list, 0);
    struct chunk_range bad[][2] = {
        {{.first = 0, .count = 2}, {.first = 1, .count = 1}}, /* overlap */
        {{.first = 0, .count = 1}, {.first = 2, .count = 2}}, /* counted */
        {{.first = 0, .count = 1}, {.first = 7, .count = 2}}, /* outside */
        {{.first = 0, .count = 1}, {.first = 4, .count = 0}}, /* empty */
        {{.first = 0, .count = 1}, {.first = 7, .count = UINT32_MAX}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct chunk_ranges ranges = list(bad[i], 2);
        assert_false(plan_may_count(&plan, &ranges));
    }
    plan_release(&plan);
}

static void a_new_evaluation_starts_from_nothing(void **state) {
    (void)state;
    struct plan plan;
    struct chunk_range range;
    begin(&plan, 5, 2);
    plan_take(&plan, 0, 5, &range);
    struct chunk_ranges one = list(&range, 1);
    plan_count(&plan, &one, 0);
    struct evaluation_parts all = all_of(5);
    plan_begin(&plan, &all);
    assert_int_equal(plan.waiting, 5);
    assert_int_equal(plan.counted_chunks, 0);
    assert_true(plan_may_count(&plan, &one));
    plan_release(&plan);
}

/* Hands out all there is, to each home in turn, and counts how often each chunk comes. */
static void hand_out(struct plan *plan, uint32_t *seen) {
    struct chunk_range range;
    for (uint32_t i = 0; plan_take(plan, i % plan->homes, 1 + i % 3, &range); i++) {
        struct chunk_ranges one = list(&range, 1);
        assert_true(plan_may_count(plan, &one));
        plan_count(plan, &one, 0);
        for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++)
            seen[chunk]++;
    }
}

static void only_the_chunks_of_the_parts_are_handed_out_and_counted(void **state) {
    (void)state;
    const struct evaluation_parts parts = {
        {{EVALUATION_GRADIENT, 1, 4}, {EVALUATION_LOSS, 5, 2}, {EVALUATION_LOSS, 11, 9}}, 3};
    for (uint32_t homes = 1; homes <= 7; homes++) {
        struct plan plan;
        uint32_t seen[23] = {0};
        begin(&plan, 23, homes);
        plan_begin(&plan, &parts);
        assert_int_equal(plan.waiting, 15);
        assert_false(plan_complete(&plan));
        hand_out(&plan, seen);
        assert_true(plan_complete(&plan));
        for (uint32_t chunk = 0; chunk < 23; chunk++)
            assert_int_equal(seen[chunk], evaluation_part_at(&parts, chunk) < parts.count);
        plan_release(&plan);
    }
}

static void chunks_that_no_part_asks_for_may_not_count(void **state) {
    (void)state;
    const struct evaluation_parts parts = {{{EVALUATION_LOSS, 2, 2}, {EVALUATION_LOSS, 6, 1}}, 2};
    const struct chunk_range bad[] = {{0, 1}, {1, 2}, {3, 2}, {2, 5}, {7, 1}};
    const struct chunk_range good[] = {{2, 2}, {6, 1}};
    struct plan plan;
    begin(&plan, 8, 1);
    plan_begin(&plan, &parts);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct chunk_ranges one = list(&bad[i], 1);
        assert_false(plan_may_count(&plan, &one));
    }
    struct chunk_ranges both = list(good, 2);
    assert_true(plan_may_count(&plan, &both));
    plan_count(&plan, &both, 0);
    assert_true(plan_complete(&plan));
    plan_release(&plan);
}

SUITE(plan) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_home_range_is_handed_out_in_sequence),
        cmocka_unit_test(who_is_done_takes_from_the_end_of_the_range_furthest_behind),
        cmocka_unit_test(every_chunk_is_handed_out_once),
        cmocka_unit_test(every_home_has_its_share_of_the_tiles_of_an_evaluation),
        cmocka_unit_test(what_is_handed_out_of_tiles_lies_in_a_strip),
        cmocka_unit_test(tiles_of_two_strips_may_not_count_together),
        cmocka_unit_test(only_uncounted_chunks_come_back),
        cmocka_unit_test(a_chunk_that_comes_back_twice_is_handed_out_once),
        cmocka_unit_test(what_was_counted_while_it_waited_is_not_handed_out),
        cmocka_unit_test(what_overlaps_is_counted_or_lies_outside_may_not_count),
        cmocka_unit_test(a_new_evaluation_starts_from_nothing),
        cmocka_unit_test(only_the_chunks_of_the_parts_are_handed_out_and_counted),
        cmocka_unit_test(chunks_that_no_part_asks_for_may_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
