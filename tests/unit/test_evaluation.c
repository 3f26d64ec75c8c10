/* Kinds of evaluation, and lists of parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "wire/evaluation.h"

static const char *why(const struct evaluation_part *items, uint32_t length) {
    return evaluation_fault(&(struct part_list){items, length});
}

static void parts_that_rise_are_an_evaluation(void **state) {
    (void)state;
    const struct evaluation_part parts[] = {{EVALUATION_GRADIENT, 0, 7},
                                            {EVALUATION_LOSS, 7, 1},
                                            {EVALUATION_GRADIENT, 20, UINT32_MAX - 20}};
    assert_null(why(parts, 1));
    assert_null(why(parts, 2));
    assert_null(why(parts, 3));
}

static void what_is_no_evaluation_is_refused_with_a_reason(void **state) {
    (void)state;
    const struct evaluation_part loss = {EVALUATION_LOSS, 4, 2};
    const struct {
        struct evaluation_part parts[2];
        const char *reason;
    } cases[] = {
        {{loss, {0, 6, 1}}, "unknown kind"},
        {{loss, {EVALUATION_UPPER + 1, 6, 1}}, "unknown kind"},
        {{loss, {UINT32_MAX, 6, 1}}, "unknown kind"},
        {{loss, {EVALUATION_LOSS, 6, 0}}, "without chunks"},
        {{loss, {EVALUATION_LOSS, 6, UINT32_MAX}}, "beyond the last"},
        {{loss, {EVALUATION_LOSS, 5, 1}}, "do not rise"},
        {{loss, {EVALUATION_LOSS, 0, 1}}, "do not rise"},
        {{{EVALUATION_GRADIENT, 0, 2}, {EVALUATION_CURVATURE, 2, 1}}, "two layouts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_non_null(why(cases[i].parts, 2));
        assert_non_null(strstr(why(cases[i].parts, 2), cases[i].reason));
    }
    struct evaluation_part many[EVALUATION_PARTS_MAX + 1];
    for (uint32_t i = 0; i <= EVALUATION_PARTS_MAX; i++)
        many[i] = (struct evaluation_part){EVALUATION_LOSS, i, 1};
    assert_null(why(many, EVALUATION_PARTS_MAX));
    assert_non_null(why(many, EVALUATION_PARTS_MAX + 1));
    assert_non_null(why(many, 0));
}

static void a_chunk_is_found_in_its_part(void **state) {
    (void)state;
    const struct evaluation_parts parts = {{{EVALUATION_GRADIENT, 2, 3}, {EVALUATION_LOSS, 9, 1}},
                                           2};
    const uint32_t expected[] = {2, 2, 0, 0, 0, 2, 2, 2, 2, 1, 2};
    for (uint32_t chunk = 0; chunk < sizeof expected / sizeof *expected; chunk++)
        assert_int_equal(evaluation_part_at(&parts, chunk), expected[chunk]);
    assert_int_equal(evaluation_part_at(&parts, UINT32_MAX), 2);
}

static void totals_follow_the_parts_and_sums_are_those_of_the_gradient(void **state) {
    (void)state;
    struct evaluation_parts parts = {{{EVALUATION_LOSS, 0, 1}, {EVALUATION_GRADIENT, 1, 1}}, 2};
    assert_int_equal(evaluation_totals(&parts), 3);
    assert_int_equal(evaluation_first_total(&parts, 1), 2);
    assert_int_equal(evaluation_sums(&parts), SUMS_PARAMETERS);
    parts.count = 1;
    assert_int_equal(evaluation_totals(&parts), 2);
    assert_int_equal(evaluation_sums(&parts), SUMS_NONE);
    assert_string_equal(evaluation_kind_name(EVALUATION_LOSS), "loss");
    assert_string_equal(evaluation_kind_name(99), "?");
}

static const struct sums_sizes hundred = {.parameters = 100, .order = 100};

static void holds(enum sums_layout layout, uint64_t first, uint64_t count, uint64_t first_sum,
                  uint64_t sums) {
    struct sums_range range = evaluation_sums_range(layout, &hundred, first, count);
    assert_true(range.first == first_sum && range.count == sums);
}

static void a_shard_has_the_sums_of_its_parameters_and_the_first_the_whole_triangle(void **state) {
    (void)state;
    assert_true(evaluation_sums_total(SUMS_NONE, &hundred) == 0);
    assert_true(evaluation_sums_total(SUMS_PARAMETERS, &hundred) == 100);
    assert_true(evaluation_sums_total(SUMS_TRIANGLE, &hundred) == 5050);
    holds(SUMS_NONE, 0, 100, 0, 0);
    holds(SUMS_PARAMETERS, 0, 60, 0, 60);
    holds(SUMS_PARAMETERS, 60, 40, 60, 40);
    holds(SUMS_TRIANGLE, 0, 100, 0, 5050);
    holds(SUMS_TRIANGLE, 100, 0, 5050, 0);
    holds(SUMS_TRIANGLE, 0, 0, 5050, 0);
}

/* However the parameters are divided. */
static void each_row_is_on_one_shard_in_whole_blocks(void **state) {
    (void)state;
    const uint64_t rows[] = {1, ROW_BLOCK, 7 * ROW_BLOCK + 3, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t shards = 1; shards <= 9; shards++) {
            const struct sums_sizes sizes = {
                .parameters = 8 * BLOCK_ELEMENTS + 5, .rows = rows[i], .outputs = 3};
            uint64_t next = 0, parameter = 0;
            for (uint64_t shard = 0; shard < shards; shard++) {
                uint64_t end = sizes.parameters * (shard + 1) / shards;
                struct sums_range own = evaluation_rows(&sizes, parameter, end - parameter);
                struct sums_range sums =
                    evaluation_sums_range(SUMS_ROWS, &sizes, parameter, end - parameter);
                assert_true(own.first == next);
                assert_true(sums.first == 3 * own.first && sums.count == 3 * own.count);
                next += own.count;
                parameter = end;
                assert_true(next % ROW_BLOCK == 0 || next == rows[i]);
            }
            assert_true(next == rows[i]);
        }
}

/* However many columns there are beside it. */
static void a_triangle_is_of_the_columns_of_the_block_and_the_biases(void **state) {
    (void)state;
    struct layout layout = layout_linear(1 << 20, 3, true);
    struct sums_sizes sizes = evaluation_sums_sizes(&layout, PRECONDITION_LEADING, 10);
    assert_true(sizes.parameters == (3 << 20) + 3 && sizes.order == 11); /* outputs share it */
    assert_true(evaluation_sums_total(SUMS_TRIANGLE, &sizes) == 11 * 12 / 2);
    assert_true(evaluation_sums_most(&sizes) == sizes.parameters);
    assert_true(evaluation_sums_range(SUMS_TRIANGLE, &sizes, 0, 4096).count == 11 * 12 / 2);
    assert_true(evaluation_sums_range(SUMS_TRIANGLE, &sizes, 4096, 4096).count == 0);
    sizes = evaluation_sums_sizes(&layout, PRECONDITION_LISTED, 10);
    assert_true(sizes.order == 13); /* ten weights, three biases */
    assert_true(evaluation_listed_sums(&sizes, 10, 10) == 13 * 14 / 2);
    assert_true(evaluation_listed_sums(&sizes, 10, 4) == 7 * 8 / 2);
    sizes = evaluation_sums_sizes(&layout, PRECONDITION_NONE, 0);
    assert_true(sizes.order == 0 && evaluation_sums_total(SUMS_TRIANGLE, &sizes) == 0);
}

SUITE(evaluation) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_rise_are_an_evaluation),
        cmocka_unit_test(what_is_no_evaluation_is_refused_with_a_reason),
        cmocka_unit_test(a_chunk_is_found_in_its_part),
        cmocka_unit_test(totals_follow_the_parts_and_sums_are_those_of_the_gradient),
        cmocka_unit_test(a_shard_has_the_sums_of_its_parameters_and_the_first_the_whole_triangle),
        cmocka_unit_test(each_row_is_on_one_shard_in_whole_blocks),
        cmocka_unit_test(a_triangle_is_of_the_columns_of_the_block_and_the_biases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
