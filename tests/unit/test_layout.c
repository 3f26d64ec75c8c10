/* What the layout of the parameters answers, and which blobs it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/layout.h"
#include "base/memory.h"
#include "base/random.h"

/* A network of one hidden layer: regularised and others by turns, one without rows between. */
static struct layout network(uint64_t seed) {
    const struct layout_tensor tensors[] = {
        {.name = "W1",
         .rows = 5,
         .columns = 3,
         .regularized = true,
         .exponents = LAYOUT_ONE_EXPONENT,
         .start = LAYOUT_START_UNIFORM,
         .bound = 0.25},
        {.name = "b1", .rows = 1, .columns = 3, .exponents = LAYOUT_ONE_EXPONENT},
        {.name = "none", .rows = 0, .columns = 7, .regularized = true},
        {.name = "W2",
         .rows = 3,
         .columns = 2,
         .regularized = true,
         .start = LAYOUT_START_UNIFORM,
         .bound = 2},
        {.name = "W3", .rows = 2, .columns = 2, .regularized = true},
    };
    struct layout layout = {.seed = seed};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        assert_true(layout_add(&layout, &tensors[i]));
    return layout;
}

static void a_linear_model_is_a_weight_a_feature_and_output_and_a_bias_an_output(void **state) {
    (void)state;
    struct layout layout = layout_linear(7, 3, true);
    assert_int_equal(layout_parameters(&layout), 24);
    assert_int_equal(layout_exponents(&layout), 8);
    for (uint64_t i = 0; i < 24; i++)
        assert_int_equal(layout_exponent_of(&layout, i), i / 3);
    assert_int_equal(layout_find(&layout, "weight")->rows, 7);
    assert_int_equal(layout_find(&layout, "bias")->first, 21);
    assert_null(layout_find(&layout, "W1"));
    layout = layout_linear(7, 3, false);
    assert_int_equal(layout_parameters(&layout), 21);
    assert_null(layout_find(&layout, "bias"));
}

static void a_model_beyond_the_limits_has_no_layout(void **state) {
    (void)state;
    const uint64_t sizes[][2] = {{UINT64_MAX, UINT64_MAX},
                                 {FEATURES_MAX, CLASSES_MAX},
                                 {UINT64_C(1) << 32, UINT64_C(1) << 32},
                                 {PARAMETERS_MAX, 1},
                                 {3, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct layout layout = layout_linear(sizes[i][0], sizes[i][1], true);
        assert_int_equal(layout.count, 0);
        assert_int_equal(layout_parameters(&layout), 0);
    }
}

static void every_element_is_found_where_a_walk_meets_it(void **state) {
    (void)state;
    struct layout layout = network(1);
    struct layout_place walk = layout_locate(&layout, 0);
    for (uint64_t i = 0; i < layout_parameters(&layout); i++) {
        struct layout_place place = layout_locate(&layout, i);
        assert_ptr_equal(place.tensor, walk.tensor);
        assert_int_equal(place.row, walk.row);
        assert_int_equal(place.column, walk.column);
        assert_int_equal(place.tensor->first + place.row * place.tensor->columns + place.column, i);
        layout_advance(&layout, &walk);
    }
    assert_null(walk.tensor);
    /* one for all of W1, one for b1, none, one a row of the others */
    const uint64_t exponents[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                  0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6};
    assert_int_equal(layout_parameters(&layout), sizeof exponents / sizeof *exponents);
    assert_int_equal(layout_exponents(&layout), 7);
    for (uint64_t i = 0; i < layout_parameters(&layout); i++)
        assert_int_equal(layout_exponent_of(&layout, i), exponents[i]);
}

static void regularized_spans_of_any_range_have_exactly_the_elements_of_such_tensors(void **state) {
    (void)state;
    struct layout layout = network(1);
    uint64_t all = layout_parameters(&layout);
    for (uint64_t first = 0; first <= all; first++)
        for (uint64_t count = 0; count <= all - first; count++) {
            struct layout_span spans[TENSORS_MAX];
            uint32_t found = layout_spans(&layout, true, first, count, spans), next = 0;
            for (uint64_t i = 0; i < count; i++) {
                if (next < found && i == spans[next].first + spans[next].count)
                    next++;
                bool within = next < found && i >= spans[next].first;
                assert_true(within == layout_locate(&layout, first + i).tensor->regularized);
            }
            assert_true(found <= 2); /* neighbours are one span */
            assert_true(!found || spans[found - 1].first + spans[found - 1].count <= count);
        }
}

static void the_start_has_the_same_bits_however_it_is_cut_into_parts(void **state) {
    (void)state;
    struct layout layout = network(9);
    double all[64], part[64];
    uint64_t n = layout_parameters(&layout);
    layout_start(&layout, 0, n, all);
    for (uint64_t first = 0; first < n; first++)
        for (uint64_t count = 1; count <= n - first; count++) {
            layout_start(&layout, first, count, part);
            assert_memory_equal(part, all + first, count * sizeof *part);
        }
    /* for ever: a run that goes on after an update starts where it did */
    assert_true(all[0] == -0x1.7a69b32a71658p-5 && all[18] == -0x1.0bb633c6834dap+0);
}

/* From 3 to −3 in four elements, and 0 where there is one alone. */
static void a_start_falls_in_even_steps_however_it_is_cut(void **state) {
    (void)state;
    struct layout layout = {.seed = 1};
    struct layout_tensor four = {
        .name = "four", .rows = 1, .columns = 4, .start = LAYOUT_START_FALLING, .bound = 3};
    struct layout_tensor one = {
        .name = "one", .rows = 1, .columns = 1, .start = LAYOUT_START_FALLING, .bound = 3};
    const double expected[] = {3, 1, -1, -3, 0};
    double found[5];
    assert_true(layout_add(&layout, &four) && layout_add(&layout, &one));
    for (uint64_t first = 0; first < 5; first += 2)
        layout_start(&layout, first, first < 4 ? 2 : 1, found + first);
    for (size_t i = 0; i < 5; i++)
        assert_true(found[i] == expected[i]);
    four.name[0] = 'x';
    four.bound = -1;
    assert_false(layout_add(&layout, &four));
}

static void a_start_is_even_within_its_bounds_and_depends_on_seed_tensor_and_element(void **state) {
    (void)state;
    enum { ROWS = 50000 };
    struct layout layout = {.seed = 3}, other = {.seed = 4};
    const char *const names[] = {"a", "b"};
    for (size_t i = 0; i < 2; i++) {
        struct layout_tensor tensor = {
            .rows = ROWS, .columns = 1, .start = LAYOUT_START_UNIFORM, .bound = 2};
        strcpy(tensor.name, names[i]);
        assert_true(layout_add(&layout, &tensor) && layout_add(&other, &tensor));
    }
    double *x = memory_new(4 * ROWS, sizeof *x), *y = x + 2 * ROWS, sum = 0, square = 0;
    layout_start(&layout, 0, 2 * ROWS, x);
    layout_start(&other, 0, 2 * ROWS, y);
    unsigned same = 0;
    for (size_t i = 0; i < 2 * ROWS; i++) {
        assert_true(x[i] >= -2 && x[i] < 2);
        sum += x[i];
        square += x[i] * x[i];
        same += x[i] == y[i] || x[i] == x[(i + ROWS) % (2 * ROWS)] || (i && x[i] == x[i - 1]);
    }
    assert_int_equal(same, 0);
    assert_true(fabs(sum / (2 * ROWS)) < 0.02); /* 5 standard deviations */
    assert_true(fabs(square / (2 * ROWS) - 4.0 / 3) < 0.02);
    free(x);
}

static void a_layout_comes_out_of_its_blob_as_it_went_in(void **state) {
    (void)state;
    struct layout layout = network(77), back;
    struct bytes blob;
    bytes_init(&blob);
    layout_encode(&layout, &blob);
    assert_null(layout_decode(blob.data, blob.length, &back));
    assert_true(layout_equal(&layout, &back));
    assert_int_equal(layout_parameters(&back), layout_parameters(&layout));
    back.tensor[1].regularized = true;
    assert_false(layout_equal(&layout, &back));
    bytes_release(&blob);
}

/* Whatever is accepted must be within the limits and answer as a layout does. */
static void assert_sound(const uint8_t *blob, size_t length) {
    struct layout layout;
    if (layout_decode(blob, length, &layout))
        return;
    uint64_t n = layout_parameters(&layout);
    struct layout_span spans[TENSORS_MAX];
    assert_true(n >= 1 && n <= PARAMETERS_MAX && layout.count <= TENSORS_MAX);
    assert_true(layout_exponent_of(&layout, n - 1) < layout_exponents(&layout));
    layout_spans(&layout, true, 0, n, spans);
    struct layout_place last = layout_locate(&layout, n - 1);
    layout_advance(&layout, &last);
    assert_null(last.tensor);
}

static void blobs_that_are_damaged_are_refused_or_within_the_limits(void **state) {
    (void)state;
    struct layout layout = network(5), back;
    struct bytes blob;
    struct random random;
    random_init(&random, 1);
    bytes_init(&blob);
    layout_encode(&layout, &blob);
    for (size_t length = 0; length < blob.length; length++)
        assert_non_null(layout_decode(blob.data, length, &back));
    for (size_t bit = 0; bit < 8 * blob.length; bit++) {
        blob.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_sound(blob.data, blob.length);
        blob.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (int i = 0; i < 20000; i++) {
        uint8_t copy[512];
        assert_true(blob.length <= sizeof copy);
        memcpy(copy, blob.data, blob.length);
        for (uint64_t n = 1 + random_below(&random, 9); n; n--)
            copy[random_below(&random, blob.length)] = (uint8_t)random_next(&random);
        assert_sound(copy, blob.length);
    }
    bytes_release(&blob);
}

static void tensors_that_cannot_be_are_not_added(void **state) {
    (void)state;
    const struct layout_tensor wrong[] = {
        {.name = "", .rows = 1, .columns = 1},
        {.name = "a name", .rows = 1, .columns = 1},
        {.name = "W1", .rows = 1, .columns = 1}, /* taken */
        {.name = "columns", .rows = 1, .columns = 0},
        {.name = "wraps", .rows = UINT64_C(1) << 63, .columns = 2},
        {.name = "many", .rows = PARAMETERS_MAX, .columns = 1},
        {.name = "bound", .rows = 1, .columns = 1, .start = LAYOUT_START_UNIFORM, .bound = NAN},
        {.name = "zero", .rows = 1, .columns = 1, .bound = 1},
        {.name = "constant", .rows = 1, .columns = 1, .start = LAYOUT_START_CONSTANT, .bound = NAN},
        {.name = "exponents", .rows = 1, .columns = 1, .exponents = (enum layout_exponents)2},
    };
    struct layout layout = network(1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(layout_add(&layout, &wrong[i]));
    for (uint32_t i = layout.count; i < TENSORS_MAX; i++) {
        struct layout_tensor tensor = {
            .name = {'t', (char)('A' + i / 8), (char)('0' + i % 8)}, .rows = 1, .columns = 1};
        assert_true(layout_add(&layout, &tensor));
    }
    assert_false(
        layout_add(&layout, &(struct layout_tensor){.name = "last", .rows = 1, .columns = 1}));
}

/* A strip is of columns that have local numbers; where it begins takes 64 bits. */
static void strips_of_as_many_columns_as_may_be_follow_each_other(void **state) {
    (void)state;
    enum { WIDE = 1 << 21 };
    const uint64_t columns = COLUMNS_MAX - 5;
    struct layout layout = layout_linear(columns, 1, true);
    const uint32_t strips = layout_strips(&layout, WIDE);
    assert_true(layout_parameters(&layout) == columns + 1);
    assert_int_equal(strips, COLUMNS_MAX / WIDE);
    uint64_t at = 0;
    for (uint32_t i = 0; i < strips; i++) {
        struct layout_span span = layout_strip(&layout, WIDE, i);
        assert_true(span.first == at && span.first == (uint64_t)i * WIDE);
        assert_int_equal(span.count, i + 1 < strips ? WIDE : WIDE - 5 + 1);
        at += span.count;
    }
    assert_true(at == columns + 1);
    struct layout_place place = layout_locate(&layout, columns - 1);
    assert_true(place.row == columns - 1 && place.tensor == &layout.tensor[0]);
    assert_true(layout_exponent_of(&layout, columns - 1) == columns - 1);
}

SUITE(layout) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_model_is_a_weight_a_feature_and_output_and_a_bias_an_output),
        cmocka_unit_test(a_model_beyond_the_limits_has_no_layout),
        cmocka_unit_test(every_element_is_found_where_a_walk_meets_it),
        cmocka_unit_test(regularized_spans_of_any_range_have_exactly_the_elements_of_such_tensors),
        cmocka_unit_test(the_start_has_the_same_bits_however_it_is_cut_into_parts),
        cmocka_unit_test(a_start_falls_in_even_steps_however_it_is_cut),
        cmocka_unit_test(a_start_is_even_within_its_bounds_and_depends_on_seed_tensor_and_element),
        cmocka_unit_test(a_layout_comes_out_of_its_blob_as_it_went_in),
        cmocka_unit_test(blobs_that_are_damaged_are_refused_or_within_the_limits),
        cmocka_unit_test(tensors_that_cannot_be_are_not_added),
        cmocka_unit_test(strips_of_as_many_columns_as_may_be_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
