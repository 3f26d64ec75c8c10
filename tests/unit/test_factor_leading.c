/* The preconditioner of a leading block against dense arithmetic: the second derivatives by the
 * scaled weights of the first columns, and a diagonal for all other elements. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"
#include "shard/factor.h"

enum { ROWS = 90, FEATURES = 9, OUTPUTS_MAX = 3, BOUND = 1 };

struct shape {
    uint32_t outputs, weights, biases; /* margins a row; weights a column; biases: outputs, or 0 */
    uint32_t block;                    /* columns */
};

static const struct shape shapes[] = {
    {1, 1, 1, 4}, {1, 1, 0, 4}, {3, 3, 3, 4}, {2, 2, 0, 9},
    {3, 1, 3, 5}, {3, 1, 0, 5}, {3, 3, 3, 1},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* Rows with second derivatives by their margins, in columns that are shifted and scaled. */
struct table {
    struct shape shape;
    double x[ROWS][FEATURES], second[ROWS][OUTPUTS_MAX][OUTPUTS_MAX];
    struct column_scaling columns[FEATURES];
    struct registers registers;
};

static const struct factor_terms terms = {.lambda = 1e-3, .beta = 0.7, .gamma = 0.2, .serial = 7};

/* Outputs that share their weights have second derivatives of their own; others have one number
 * that is the same for all, as they share the block. */
static void make_second(struct table *table, struct random *random, size_t row) {
    size_t outputs = table->shape.outputs;
    bool shares = table->shape.weights < outputs;
    double p[OUTPUTS_MAX];
    for (size_t k = 0; k < outputs; k++)
        p[k] = (0.1 + 0.9 * random_unit(random)) / (double)outputs;
    for (size_t k = 0; k < outputs; k++)
        for (size_t l = 0; l < outputs; l++)
            table->second[row][k][l] = k != l ? 0 : shares ? p[k] : p[0];
}

static struct table *table_new(struct shape shape) {
    struct table *table = memory_new(1, sizeof *table);
    struct random random;
    random_init(&random, 5);
    table->shape = shape;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < FEATURES; j++)
            table->x[i][j] = random_unit(&random) - 0.3;
        make_second(table, &random, i);
    }
    for (size_t j = 0; j < FEATURES; j++)
        table->columns[j] = (struct column_scaling){.mean = shape.biases ? 0.1 * (double)j : 0,
                                                    .scale = ldexp(1.5, (int)j - 4),
                                                    .penalty = 0.2 + (double)j / FEATURES};
    return table;
}

static void table_free(struct table *table) {
    registers_release(&table->registers);
    free(table);
}

static size_t block_weights(const struct table *table) {
    return (size_t)table->shape.block * table->shape.weights;
}

/* The derivative of margin `k` of a row by element `r` of the block and its biases. */
static double margin_by(const struct table *table, size_t row, size_t k, size_t r, bool scaled) {
    size_t weights = table->shape.weights, column = r / weights;
    if (r >= block_weights(table))
        return r - block_weights(table) == k;
    const struct column_scaling *of = &table->columns[column];
    double value = table->x[row][column];
    if (weights > 1 && r % weights != k)
        return 0;
    return scaled ? of->scale * (value - of->mean) : value;
}

/* A row's second derivative by two elements. */
static double second_by(const struct table *table, size_t row, size_t r, size_t c, bool scaled) {
    double sum = 0;
    for (size_t k = 0; k < table->shape.outputs; k++)
        for (size_t l = 0; l < table->shape.outputs; l++)
            sum += margin_by(table, row, k, r, scaled) * table->second[row][k][l] *
                   margin_by(table, row, l, c, scaled);
    return sum;
}

static int exponent_of_column(const struct table *table, size_t column) {
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++)
        sum += fabs(table->x[i][column]);
    return fixed_exponent(sum, ROWS);
}

/* Of all parameters, on one shard. */
static void set_up(struct table *table) {
    const struct shape *shape = &table->shape;
    struct layout layout = layout_linear_of(FEATURES, shape->weights, shape->biases);
    int16_t exponents[FEATURES + 1];
    for (size_t j = 0; j < FEATURES; j++)
        exponents[j] = (int16_t)exponent_of_column(table, j);
    exponents[FEATURES] = (int16_t)fixed_exponent(ROWS, ROWS);
    struct message message = setup(0, 0, layout_parameters(&layout));
    message.shard_setup.layout = blob_of_layout(&layout);
    message.shard_setup.weight_sum = ROWS;
    message.shard_setup.hessian.precondition = PRECONDITION_LEADING;
    message.shard_setup.hessian.block_columns = shape->block;
    message.shard_setup.scaling.coordinates = 1;
    message.shard_setup.scaling.block_bias_exponent = exponents[FEATURES];
    assert_int_equal(registers_set_up(&table->registers, &message.shard_setup), 0);
    assert_int_equal(registers_set_exponents(&table->registers, 0, exponents, FEATURES + 1), 0);
    assert_int_equal(scaling_set_columns(&table->registers.scaling, 0, table->columns, FEATURES),
                     0);
}

/* The element of a row of the triangle: of the first output, if all share the block. */
static size_t element_of(const struct table *table, size_t row) {
    size_t block = table->shape.block;
    return row < block ? row * table->shape.weights : block_weights(table) + row - block;
}

static int exponent_of_row(const struct table *table, size_t row) {
    return row < table->shape.block ? exponent_of_column(table, row) : fixed_exponent(ROWS, ROWS);
}

/* Adds up the triangle as replicas do. */
static void add_up(struct table *table) {
    set_up(table);
    bool shared = table->shape.weights > 1;
    size_t biases = shared ? table->shape.biases > 0 : table->shape.biases;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t r = 0; r < table->shape.block + biases; r++)
            for (size_t c = 0; c <= r; c++) {
                int power = exponent_of_row(table, r) + exponent_of_row(table, c) - 62 - BOUND;
                double second =
                    second_by(table, i, element_of(table, r), element_of(table, c), false);
                fixed_add(&table->registers.sum[r * (r + 1) / 2 + c], ldexp(second, power));
            }
}

static double penalty_of(const struct table *table, size_t element) {
    return table->columns[element / table->shape.weights].penalty;
}

/* The second derivatives of the mean loss and l2 by scaled weights, and what is added to them,
 * [order × order]. */
static double *dense_block(const struct table *table, double lambda) {
    size_t order = block_weights(table);
    double *h = memory_new(order * order, sizeof *h);
    for (size_t r = 0; r < order; r++) {
        for (size_t c = 0; c < order; c++)
            for (size_t i = 0; i < ROWS; i++)
                h[r * order + c] += second_by(table, i, r, c, true) / ROWS;
        h[r * order + r] += lambda * penalty_of(table, r) + FACTOR_CURVATURE_LEAST * terms.beta;
    }
    return h;
}

/* P·b from a dense block and the diagonal of what is beyond it. */
static void solve(const struct table *table, double *h, double *b) {
    lapack_int order = (lapack_int)block_weights(table);
    size_t weights = (size_t)FEATURES * table->shape.weights;
    assert_int_equal(LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', order, 1, h, order, b, 1), 0);
    for (size_t i = block_weights(table); i < weights + table->shape.biases; i++)
        b[i] /= terms.beta + (i < weights ? terms.gamma * penalty_of(table, i) : 0);
}

static struct factor *make(const struct table *table, double lambda) {
    struct factor_terms with = terms;
    double added;
    with.lambda = lambda;
    struct factor *factor = factor_make(&table->registers, BOUND, &with, &added);
    assert_non_null(factor);
    assert_true(added == 0);
    return factor;
}

/* Compares P·b with the dense block, which is freed. */
static void assert_applies(struct table *table, double *h, double lambda, double tolerance) {
    size_t all = table->registers.count;
    double found[FEATURES * OUTPUTS_MAX + OUTPUTS_MAX],
        expected[FEATURES * OUTPUTS_MAX + OUTPUTS_MAX];
    for (size_t i = 0; i < all; i++)
        found[i] = expected[i] = 1 + cos((double)i);
    struct factor *factor = make(table, lambda);
    assert_int_equal(factor->order, table->shape.block);
    factor_apply_leading(factor, &table->registers.scaling, found, found);
    factor_drop(factor);
    solve(table, h, expected);
    for (size_t i = 0; i < all; i++)
        assert_true(fabs(found[i] - expected[i]) <= tolerance * fabs(expected[i]));
    free(h);
}

static void the_block_is_centred_and_the_rest_a_diagonal(void **state) {
    (void)state;
    const double lambdas[] = {1e-6, 1e-2, 10};
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t i = 0; i < 3; i++) {
            struct table *table = table_new(shapes[s]);
            add_up(table);
            assert_applies(table, dense_block(table, lambdas[i]), lambdas[i], 1e-6);
            table_free(table);
        }
}

/* Means and deviations far apart, as of years: what centring leaves is exact to its deviation. */
static void a_large_mean_costs_no_precision_that_matters(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct table *table = table_new(shapes[s]);
        for (size_t i = 0; table->shape.biases && i < ROWS; i++)
            table->x[i][0] += 2000;
        table->columns[0].mean += table->shape.biases ? 2000 : 0;
        add_up(table);
        assert_applies(table, dense_block(table, 1e-2), 1e-2, 1e-6);
        table_free(table);
    }
}

static void a_constant_column_has_the_curvature_of_one_beyond_the_block(void **state) {
    (void)state;
    const double lambdas[] = {0, 1e-2};
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t i = 0; i < 2; i++) {
            struct table *table = table_new(shapes[s]);
            size_t order = block_weights(table), weights = table->shape.weights;
            for (size_t row = 0; row < ROWS; row++)
                table->x[row][0] = table->shape.biases ? 3.7 : 0;
            table->columns[0].mean = table->x[0][0];
            add_up(table);
            double *h = dense_block(table, lambdas[i]);
            for (size_t r = 0; r < weights; r++)
                h[r * order + r] = terms.beta + terms.gamma * penalty_of(table, r);
            assert_applies(table, h, lambdas[i], 1e-6);
            table_free(table);
        }
}

/* Another shard has no triangle: its elements are divided by what the program says. */
static void a_range_that_does_not_begin_the_vector_is_a_diagonal(void **state) {
    (void)state;
    enum { COLUMNS = BLOCK_ELEMENTS + 5 };
    struct layout layout = layout_linear(COLUMNS, 1, true);
    struct message message = setup(0, BLOCK_ELEMENTS, 6);
    message.shard_setup.layout = blob_of_layout(&layout);
    message.shard_setup.hessian.precondition = PRECONDITION_LEADING;
    message.shard_setup.hessian.block_columns = 10;
    message.shard_setup.scaling.coordinates = 1;
    struct registers registers = {0};
    struct column_scaling columns[5];
    double added, in[6] = {1, 2, 3, 4, 5, 6}, out[6];
    for (size_t j = 0; j < 5; j++)
        columns[j] = (struct column_scaling){.scale = 3, .penalty = 1 + (double)j};
    assert_int_equal(registers_set_up(&registers, &message.shard_setup), 0);
    assert_int_equal(scaling_set_columns(&registers.scaling, BLOCK_ELEMENTS, columns, 5), 0);
    struct factor *factor = factor_make(&registers, BOUND, &terms, &added);
    assert_true(factor && factor->order == 0 && factor->serial == 7);
    factor_apply_leading(factor, &registers.scaling, out, in);
    for (size_t j = 0; j < 5; j++)
        assert_true(out[j] == in[j] / (terms.beta + terms.gamma * columns[j].penalty));
    assert_true(out[5] == in[5] / terms.beta);
    factor_drop(factor);
    registers_release(&registers);
}

static void a_diagonal_that_is_not_positive_makes_none(void **state) {
    (void)state;
    const double odd[][2] = {{0, 1}, {-1, 1}, {NAN, 1}, {INFINITY, 1}, {1, NAN}, {1, -INFINITY}};
    struct table *table = table_new(shapes[0]);
    add_up(table);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct factor_terms with = terms;
        double added = 0;
        with.beta = odd[i][0];
        with.gamma = odd[i][1];
        assert_null(factor_make(&table->registers, BOUND, &with, &added));
        assert_true(isinf(added) && added > 0);
    }
    table_free(table);
}

SUITE(factor_leading) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_block_is_centred_and_the_rest_a_diagonal),
        cmocka_unit_test(a_large_mean_costs_no_precision_that_matters),
        cmocka_unit_test(a_constant_column_has_the_curvature_of_one_beyond_the_block),
        cmocka_unit_test(a_range_that_does_not_begin_the_vector_is_a_diagonal),
        cmocka_unit_test(a_diagonal_that_is_not_positive_makes_none),
    };
    return cmocka_run_group_tests_name("factor_leading", tests, NULL, NULL);
}
