/* The scaling of columns: margins are kept, and a walk may be cut anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/layout.h"
#include "base/random.h"

enum { COLUMNS = 37, OUTPUTS = 3, ALL = COLUMNS * OUTPUTS + OUTPUTS };

static struct column_scaling columns[COLUMNS];
static double vector[ALL];

static void draw(void) {
    struct random random;
    random_init(&random, 5);
    for (unsigned j = 0; j < COLUMNS; j++)
        columns[j] =
            (struct column_scaling){random_unit(&random) * 10 - 5,
                                    ldexp(0.5 + random_unit(&random), (int)(j % 9) - 4), 1, 0, 0};
    for (unsigned i = 0; i < ALL; i++)
        vector[i] = random_unit(&random) - 0.5;
}

typedef void step(struct scaling_walk *, uint64_t, uint64_t, const double *, double *);

/* The whole vector, in pieces of `piece` elements. */
static void walk(const struct layout *layout, step *through, uint64_t piece, const double *in,
                 double *out) {
    struct scaling_walk walk = {0};
    uint64_t all = layout_parameters(layout);
    scaling_walk_begin(&walk, layout, columns);
    for (uint64_t first = 0; first < all; first += piece) {
        uint64_t count = all - first < piece ? all - first : piece;
        through(&walk, first, count, in + first, out + first);
    }
    scaling_walk_end(&walk);
}

/* Of a model whose features have that many weights each. */
static void assert_margins(unsigned weights) {
    struct layout layout = layout_linear_of(COLUMNS, weights, OUTPUTS);
    double left[ALL];
    draw();
    walk(&layout, scaling_walk_from_scaled, ALL, vector, left);
    for (unsigned k = 0; k < OUTPUTS; k++) {
        double plain = left[COLUMNS * weights + k], scaled = vector[COLUMNS * weights + k];
        for (unsigned j = 0; j < COLUMNS; j++) {
            double x = j % 5 - 1.5;
            plain += x * left[j * weights + k % weights];
            scaled += columns[j].scale * (x - columns[j].mean) * vector[j * weights + k % weights];
        }
        assert_true(fabs(plain - scaled) < 1e-11);
    }
}

static void a_margin_is_that_of_shifted_and_scaled_columns(void **state) {
    (void)state;
    assert_margins(OUTPUTS);
}

static void outputs_that_share_their_weights_share_the_shift(void **state) {
    (void)state;
    assert_margins(1);
}

static void what_is_scaled_and_unscaled_is_what_it_was(void **state) {
    (void)state;
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, true);
    double there[ALL];
    draw();
    walk(&layout, scaling_walk_to_scaled, ALL, vector, there);
    assert_true(fabs(there[0] - vector[0]) > 1e-3);
    walk(&layout, scaling_walk_from_scaled, ALL, there, there);
    for (unsigned i = 0; i < ALL; i++)
        assert_true(fabs(there[i] - vector[i]) < 1e-12 * (1 + fabs(vector[i])) * 100);
}

static void a_walk_has_the_same_bits_however_it_is_cut(void **state) {
    (void)state;
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, true);
    double whole[ALL], cut[ALL];
    step *const steps[] = {scaling_walk_to_scaled, scaling_walk_from_scaled};
    draw();
    for (unsigned s = 0; s < 2; s++) {
        walk(&layout, steps[s], ALL, vector, whole);
        for (uint64_t piece = 1; piece < ALL; piece += 7) {
            walk(&layout, steps[s], piece, vector, cut);
            assert_memory_equal(cut, whole, sizeof whole);
        }
    }
}

static void without_biases_columns_are_only_scaled(void **state) {
    (void)state;
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, false);
    double left[ALL];
    draw();
    walk(&layout, scaling_walk_from_scaled, ALL, vector, left);
    for (unsigned i = 0; i < COLUMNS * OUTPUTS; i++)
        assert_true(left[i] == columns[i / OUTPUTS].scale * vector[i]);
}

static void only_layouts_of_columns_and_biases_can_be_scaled(void **state) {
    (void)state;
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, true);
    assert_true(layout_can_scale(&layout));
    strcpy(layout.tensor[1].name, "other");
    assert_false(layout_can_scale(&layout));
    layout = layout_linear_of(COLUMNS, 1, OUTPUTS);
    assert_true(layout_can_scale(&layout));
    layout.tensor[0].columns = 2;
    assert_false(layout_can_scale(&layout));
    layout.count = 1;
    assert_true(layout_can_scale(&layout));
    layout.count = 0;
    assert_false(layout_can_scale(&layout));
}

/* W1, W2, b1, b2, as in a network with one hidden layer of OUTPUTS units. */
static struct layout of_network(void) {
    struct layout layout = {0};
    const struct layout_tensor tensors[] = {
        {.name = "W1", .rows = COLUMNS, .columns = OUTPUTS},
        {.name = "W2", .rows = OUTPUTS, .columns = 2, .exponents = LAYOUT_ONE_EXPONENT},
        {.name = "b1", .rows = 1, .columns = OUTPUTS, .exponents = LAYOUT_ONE_EXPONENT},
        {.name = "b2", .rows = 1, .columns = 2, .exponents = LAYOUT_ONE_EXPONENT},
    };
    for (unsigned i = 0; i < 4; i++)
        assert_true(layout_add(&layout, &tensors[i]));
    return layout;
}

enum { BEHIND = OUTPUTS * 2, IN_NETWORK = ALL + BEHIND + 2 };

static void the_first_layer_of_a_network_is_shifted_as_a_linear_model_is(void **state) {
    (void)state;
    struct layout network = of_network(), linear = layout_linear(COLUMNS, OUTPUTS, true);
    double in[IN_NETWORK], out[IN_NETWORK], back[IN_NETWORK], expected[ALL];
    draw();
    assert_true(layout_can_scale(&network));
    memcpy(in, vector, COLUMNS * OUTPUTS * sizeof *in);
    for (unsigned i = 0; i < BEHIND; i++)
        in[COLUMNS * OUTPUTS + i] = 0.5 + i;
    memcpy(in + COLUMNS * OUTPUTS + BEHIND, vector + COLUMNS * OUTPUTS, OUTPUTS * sizeof *in);
    in[IN_NETWORK - 2] = 7, in[IN_NETWORK - 1] = -8;
    walk(&linear, scaling_walk_from_scaled, ALL, vector, expected);
    for (uint64_t piece = 1; piece <= IN_NETWORK; piece += 5) {
        walk(&network, scaling_walk_from_scaled, piece, in, out);
        assert_memory_equal(out, expected, COLUMNS * OUTPUTS * sizeof *out);
        assert_memory_equal(out + COLUMNS * OUTPUTS, in + COLUMNS * OUTPUTS, BEHIND * sizeof *out);
        assert_memory_equal(out + COLUMNS * OUTPUTS + BEHIND, expected + COLUMNS * OUTPUTS,
                            OUTPUTS * sizeof *out);
        assert_memory_equal(out + IN_NETWORK - 2, in + IN_NETWORK - 2, 2 * sizeof *out);
    }
    walk(&network, scaling_walk_to_scaled, IN_NETWORK, out, back);
    for (unsigned i = 0; i < IN_NETWORK; i++)
        assert_true(fabs(back[i] - in[i]) <= 1e-12 * (1 + fabs(in[i])));
}

static void limits_have_a_penalty_and_bounds_that_a_number_can_be_within(void **state) {
    (void)state;
    static const struct column_limit odd[] = {
        {-1, 0, 1},  {NAN, 0, 1}, {INFINITY, 0, 1},        {1, 1, 0},
        {1, NAN, 0}, {1, 0, NAN}, {1, INFINITY, INFINITY}, {1, -INFINITY, -INFINITY}};
    static const struct column_limit sound[] = {
        {0, -INFINITY, INFINITY}, {2, 1, 1}, {0.5, 0, INFINITY}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_false(column_limit_is_valid(&odd[i]));
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        assert_true(column_limit_is_valid(&sound[i]));
}

SUITE(layout_scaling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_have_a_penalty_and_bounds_that_a_number_can_be_within),
        cmocka_unit_test(a_margin_is_that_of_shifted_and_scaled_columns),
        cmocka_unit_test(outputs_that_share_their_weights_share_the_shift),
        cmocka_unit_test(what_is_scaled_and_unscaled_is_what_it_was),
        cmocka_unit_test(a_walk_has_the_same_bits_however_it_is_cut),
        cmocka_unit_test(without_biases_columns_are_only_scaled),
        cmocka_unit_test(only_layouts_of_columns_and_biases_can_be_scaled),
        cmocka_unit_test(the_first_layer_of_a_network_is_shifted_as_a_linear_model_is),
    };
    return cmocka_run_group_tests_name("layout scaling", tests, NULL, NULL);
}
