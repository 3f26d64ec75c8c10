/* Products and transposes of tiles: over all strips what whole rows give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "numeric/fixed.h"
#include "numeric/setup.h"
#include "objective/block.h"
#include "objective/halves.h"
#include "objective/shape.h"
#include "tests/unit/canned.h"

enum { MARGINS = CANNED_ROWS * CANNED_OUTPUTS_MAX };

/* The point's bound, and that of the derivatives. */
enum { POINT = 4, EXPONENT = 8 };

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0), CANNED_SHAPE(SQUARED, 1, false, 0),
    CANNED_SHAPE(SOFTMAX, 11, true, 0), CANNED_SHAPE(ORDINAL, 5, true, 0)};
static const uint32_t widths[] = {1, 7, 12, 36};

static int16_t sizes[CANNED_ROWS];

static void measure(const struct canned *canned) {
    for (size_t i = 0; i < CANNED_ROWS; i++) {
        double sum = 1;
        for (uint32_t at = canned->start[i]; at < canned->start[i + 1]; at++)
            sum += fabs(canned->wide[at]);
        sizes[i] = 0;
        while (ldexp(1, sizes[i]) < sum)
            sizes[i]++;
    }
}

struct tile {
    struct objective_shape shape;
    struct rows rows;
    struct layout_span span;
    uint32_t column;
    uint32_t start[CANNED_ROWS + 1], feature[CANNED_VALUES];
    double value[CANNED_VALUES];
};

static void cut(const struct canned *canned, uint32_t width, uint32_t strip, struct tile *tile) {
    struct layout layout = objective_layout(&canned->shape);
    uint32_t count = 0;
    tile->shape = objective_strip(&canned->shape, width, strip);
    tile->span = layout_strip(&layout, width, strip);
    tile->column = strip * width;
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        tile->start[i] = count;
        for (uint32_t at = canned->start[i]; at < canned->start[i + 1]; at++)
            if (canned->feature[at] / width == strip) {
                tile->feature[count] = canned->feature[at] - tile->column;
                tile->value[count++] = canned->wide[at];
            }
    }
    tile->start[CANNED_ROWS] = count;
    tile->rows = canned->rows;
    tile->rows.features = objective_columns(&tile->shape);
    tile->rows.start = tile->start;
    tile->rows.feature = tile->feature;
    tile->rows.value = tile->value;
    tile->rows.values = count;
    tile->rows.size = sizes;
    assert_int_equal(objective_parameters(&tile->shape), tile->span.count);
}

static void product(const struct tile *tile, int point, const double *parameters, int64_t *sum,
                    struct objective_result *result) {
    struct objective_scratch *scratch = objective_scratch_new(&tile->shape);
    struct objective_scale scale = {.bounds = bounds_of_one(point)};
    objective_product(&tile->shape, &scale, &tile->rows, parameters + tile->span.first, sum,
                      scratch, result);
    objective_scratch_free(scratch);
}

static void check_products(const struct canned *canned, uint32_t width) {
    static struct tile tile;
    static int64_t sum[MARGINS], backwards[MARGINS];
    static double whole[MARGINS];
    struct layout layout = objective_layout(&canned->shape);
    const uint32_t strips = layout_strips(&layout, width), outputs = canned->shape.outputs;
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    struct objective_result result;
    memset(sum, 0, sizeof sum);
    memset(backwards, 0, sizeof backwards);
    objective_margins(&canned->shape, &canned->rows, canned->parameters, scratch, whole);
    for (uint32_t s = 0; s < strips; s++) {
        cut(canned, width, s, &tile);
        product(&tile, POINT, canned->parameters, sum, &result);
        assert_true(!result.exceeded && !result.maxima.count);
        cut(canned, width, strips - 1 - s, &tile);
        product(&tile, POINT, canned->parameters, backwards, &result);
    }
    assert_memory_equal(sum, backwards, sizeof sum);
    for (size_t i = 0; i < (size_t)CANNED_ROWS * outputs; i++) {
        int size = sizes[i / outputs];
        double margin = ldexp((double)sum[i], fixed_tile_exponent(size, POINT));
        assert_true(fabs(margin - whole[i]) <= 1e-15 * ldexp(1, size + POINT));
    }
    objective_scratch_free(scratch);
}

/* Derivatives: any will do. */
static void check_transposes(const struct canned *canned, uint32_t width) {
    static struct tile tile;
    static double derivatives[MARGINS];
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS], whole[CANNED_PARAMETERS];
    struct layout layout = objective_layout(&canned->shape);
    struct objective_scale scale = {.exponent = canned->exponent,
                                    .bounds = bounds_of_one(EXPONENT)};
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    struct objective_result of_whole, result;
    for (size_t i = 0; i < MARGINS; i++)
        derivatives[i] = sin((double)i);
    memset(sum, 0, sizeof sum);
    memset(whole, 0, sizeof whole);
    objective_transpose(&canned->shape, &scale, &canned->rows, derivatives, whole, scratch,
                        &of_whole);
    for (uint32_t s = 0; s < layout_strips(&layout, width); s++) {
        cut(canned, width, s, &tile);
        struct objective_scratch *own = objective_scratch_new(&tile.shape);
        scale.exponent = canned->exponent + tile.column;
        objective_transpose(&tile.shape, &scale, &tile.rows, derivatives, sum + tile.span.first,
                            own, &result);
        assert_true(result.maxima.value[0] == of_whole.maxima.value[0] && !result.exceeded);
        objective_scratch_free(own);
    }
    assert_memory_equal(sum, whole, sizeof sum);
    objective_scratch_free(scratch);
}

static void for_all(void (*check)(const struct canned *canned, uint32_t width)) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int weighted = 0; weighted < 2; weighted++) {
            struct canned *canned = canned_new(shapes[s], false, VALUE_DOUBLE, NULL, s + 1);
            if (weighted)
                canned_weigh(canned, 1, s + 1);
            measure(canned);
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                check(canned, widths[w]);
            free(canned);
        }
}

static void products_of_tiles_add_up_to_that_of_whole_rows_in_any_order(void **state) {
    (void)state;
    for_all(check_products);
}

static void transposes_of_tiles_have_the_bits_of_that_of_whole_rows(void **state) {
    (void)state;
    for_all(check_transposes);
}

static void a_point_beyond_its_bound_is_told_with_or_without_sums(void **state) {
    (void)state;
    static struct tile tile;
    static int64_t sum[MARGINS];
    struct objective_result result, alone;
    struct canned *canned = canned_new(shapes[0], false, VALUE_DOUBLE, NULL, 1);
    measure(canned);
    cut(canned, 12, 1, &tile);
    product(&tile, -40, canned->parameters, sum, &result);
    product(&tile, -40, canned->parameters, NULL, &alone);
    assert_true(result.exceeded && alone.exceeded);
    assert_true(result.maxima.value[0] > 0x1p-40 && isfinite(result.maxima.value[0]));
    assert_true(alone.maxima.value[0] == result.maxima.value[0]);
    /* A bound that holds this much is kept to. */
    product(&tile, ilogb(result.maxima.value[0]) + 1, canned->parameters, sum, &result);
    assert_false(result.exceeded);
    canned->parameters[13] = NAN;
    product(&tile, POINT, canned->parameters, sum, &result);
    assert_true(result.exceeded && result.maxima.value[0] == INFINITY);
    free(canned);
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

/* What is computed on has few columns, however many there are. */
static void a_strip_far_beyond_32_bits_has_columns_of_its_own(void **state) {
    (void)state;
    enum { WIDE = 1 << 21 };
    const struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = COLUMNS_MAX - 5, .outputs = 1, .intercept = true};
    const uint32_t last = (uint32_t)strips_of(shape.features, WIDE) - 1;
    assert_int_equal(last, COLUMNS_MAX / WIDE - 1);
    struct objective_shape strip = objective_strip(&shape, WIDE, last - 1);
    assert_int_equal(objective_columns(&strip), WIDE);
    assert_false(strip.intercept);
    strip = objective_strip(&shape, WIDE, last);
    assert_int_equal(objective_columns(&strip), WIDE - 5);
    assert_true(strip.intercept);
}

SUITE(tile_products) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_tiles_add_up_to_that_of_whole_rows_in_any_order),
        cmocka_unit_test(transposes_of_tiles_have_the_bits_of_that_of_whole_rows),
        cmocka_unit_test(a_point_beyond_its_bound_is_told_with_or_without_sums),
        cmocka_unit_test(a_strip_far_beyond_32_bits_has_columns_of_its_own),
    };
    return cmocka_run_group_tests_name("tile products", tests, set_up, NULL);
}
