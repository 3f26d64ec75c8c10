/* The scaling by Kronecker factors, and the eigenvalues that they are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/dense.h"
#include "objective/kronecker.h"

enum { FEATURES = 5, HIDDEN = 40, OUTPUTS = 3, ROWS = 200 };

static const struct objective_shape shape = {
    .kind = OBJECTIVE_SOFTMAX,
    .features = FEATURES,
    .outputs = OUTPUTS,
    .intercept = true,
    .network = {.layers = 1, .units = {HIDDEN}, .seed = 7},
};
static double value[ROWS * FEATURES], label[ROWS];
static struct column_scaling columns[FEATURES];

static struct rows rows_of_data(void) {
    struct random random;
    random_init(&random, 3);
    for (unsigned i = 0; i < ROWS * FEATURES; i++)
        value[i] = (i % FEATURES + 1) * (random_unit(&random) + 1);
    for (unsigned i = 0; i < ROWS; i++)
        label[i] = i % OUTPUTS;
    for (unsigned j = 0; j < FEATURES; j++)
        columns[j] = (struct column_scaling){1.5 * (j + 1), 0.5, 1, 0, 0};
    return (struct rows){.count = ROWS,
                         .features = FEATURES,
                         .values = ROWS * FEATURES,
                         .dense = true,
                         .type = VALUE_DOUBLE,
                         .value = value,
                         .label = label};
}

static double *factors_of(const struct rows *rows, double *point) {
    struct layout layout = objective_layout(&shape);
    layout_start(&layout, 0, layout_parameters(&layout), point);
    struct kronecker_sample *sample = kronecker_sample_new(&shape, columns);
    kronecker_sample_add(sample, rows, 100);
    struct rows later = *rows;
    later.value = value + 100 * FEATURES;
    later.label = label + 100;
    later.count = ROWS - 100;
    kronecker_sample_add(sample, &later, KRONECKER_ROWS);
    double *factors = kronecker_find(sample, point);
    kronecker_sample_free(sample);
    return factors;
}

static void the_inverse_undoes_what_is_applied(void **state) {
    (void)state;
    struct layout layout = objective_layout(&shape);
    uint64_t n = layout_parameters(&layout);
    struct rows rows = rows_of_data();
    double *point = memory_new(n, sizeof *point), *applied = memory_new(n, sizeof *applied);
    double *factors = factors_of(&rows, point);
    struct kronecker *kronecker = kronecker_new(&layout, factors);
    assert_non_null(kronecker);
    struct kronecker_work *work = kronecker_work_new(kronecker);
    memcpy(applied, point, n * sizeof *point);
    kronecker_apply(kronecker, work, applied);
    double moved = 0;
    for (uint64_t i = 0; i < n; i++)
        moved += fabs(applied[i] - point[i]);
    assert_true(moved > 1);
    kronecker_apply_inverse(kronecker, work, applied);
    for (uint64_t i = 0; i < n; i++)
        assert_true(fabs(applied[i] - point[i]) < 1e-11 * (1 + fabs(point[i])));
    kronecker_work_free(work);
    kronecker_free(kronecker);
    free(factors);
    free(point);
    free(applied);
}

/* ⟨g, T·z⟩ = ⟨T·g, z⟩: what scales points scales gradients. */
static void what_is_applied_is_symmetric(void **state) {
    (void)state;
    struct layout layout = objective_layout(&shape);
    uint64_t n = layout_parameters(&layout);
    struct rows rows = rows_of_data();
    double *z = memory_new(n, sizeof *z), *g = memory_new(n, sizeof *g);
    double *tz = memory_new(n, sizeof *tz), *tg = memory_new(n, sizeof *tg);
    double *factors = factors_of(&rows, z), left = 0, right = 0, size = 0;
    struct kronecker *kronecker = kronecker_new(&layout, factors);
    struct kronecker_work *work = kronecker_work_new(kronecker);
    for (uint64_t i = 0; i < n; i++)
        tg[i] = g[i] = sin((double)i), tz[i] = z[i] = cos(1.7 * (double)i);
    kronecker_apply(kronecker, work, tz);
    kronecker_apply(kronecker, work, tg);
    for (uint64_t i = 0; i < n; i++) {
        left += g[i] * tz[i];
        right += tg[i] * z[i];
        size += fabs(g[i] * tz[i]);
    }
    assert_true(fabs(left - right) < 1e-12 * size);
    kronecker_work_free(work);
    kronecker_free(kronecker);
    free(factors);
    free(z), free(g), free(tz), free(tg);
}

/* The input side has all its eigenvalues: P·(A + ρ)·P = 1, up to what the other side multiplies. */
static void the_first_layer_has_even_curvature_in_its_input(void **state) {
    (void)state;
    enum { IN = FEATURES + 1 };
    struct layout layout = objective_layout(&shape);
    uint64_t n = layout_parameters(&layout);
    struct rows rows = rows_of_data();
    double *point = memory_new(n, sizeof *point), *factors = factors_of(&rows, point);
    double a[IN][IN] = {{0}}, p[IN][IN];
    for (unsigned i = 0; i < ROWS; i++) {
        double x[IN] = {[FEATURES] = 1};
        for (unsigned j = 0; j < FEATURES; j++)
            x[j] = (value[i * FEATURES + j] - columns[j].mean) * columns[j].scale;
        for (unsigned r = 0; r < IN; r++)
            for (unsigned c = 0; c < IN; c++)
                a[r][c] += x[r] * x[c] / ROWS;
    }
    const double *root = factors + 1, *u = root + IN;
    double damping = 1 / (factors[0] * factors[0]); /* all eigenvalues are there: the rest is 0 */
    for (unsigned r = 0; r < IN; r++)
        for (unsigned c = 0; c < IN; c++) {
            p[r][c] = r == c;
            for (unsigned i = 0; i < IN; i++)
                p[r][c] += (1 / root[i] - 1) * u[i * IN + r] * u[i * IN + c];
            p[r][c] *= factors[0];
        }
    for (unsigned r = 0; r < IN; r++)
        for (unsigned c = 0; c < IN; c++) {
            double sum = 0;
            for (unsigned i = 0; i < IN; i++)
                for (unsigned k = 0; k < IN; k++)
                    sum += p[r][i] * (a[i][k] + (i == k ? damping : 0)) * p[k][c];
            assert_true(fabs(sum - (r == c)) < 1e-9);
        }
    free(point);
    free(factors);
}

static void factors_that_are_unsound_are_refused(void **state) {
    (void)state;
    struct layout layout = objective_layout(&shape);
    struct rows rows = rows_of_data();
    double *point = memory_new(layout_parameters(&layout), sizeof *point);
    double *factors = factors_of(&rows, point), wrong[] = {0, -1, NAN, INFINITY};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double kept = factors[0];
        factors[0] = wrong[i];
        assert_null(kronecker_new(&layout, factors));
        factors[0] = kept;
    }
    free(point);
    free(factors);
}

/* All inputs 0, or beyond all squares: nothing is known, and nothing is changed. */
static void a_sample_that_says_nothing_changes_nothing(void **state) {
    (void)state;
    struct layout layout = objective_layout(&shape);
    uint64_t n = layout_parameters(&layout);
    const double fill[] = {0, 1e300, INFINITY};
    double *point = memory_new(n, sizeof *point), *applied = memory_new(n, sizeof *applied);
    for (unsigned f = 0; f < sizeof fill / sizeof *fill; f++) {
        struct rows rows = rows_of_data();
        for (unsigned i = 0; i < ROWS * FEATURES; i++)
            value[i] = fill[f];
        double *factors = factors_of(&rows, point);
        struct kronecker *kronecker = kronecker_new(&layout, factors);
        assert_non_null(kronecker);
        struct kronecker_work *work = kronecker_work_new(kronecker);
        memcpy(applied, point, n * sizeof *point);
        kronecker_apply(kronecker, work, applied);
        for (uint64_t i = 0; i < n; i++)
            assert_true(isfinite(applied[i]));
        kronecker_work_free(work);
        kronecker_free(kronecker);
        free(factors);
    }
    free(point);
    free(applied);
}

static void apply_by_sample(const struct rows *rows, double *applied) {
    struct layout layout = objective_layout(&shape);
    uint64_t n = layout_parameters(&layout);
    double *point = memory_new(n, sizeof *point);
    layout_start(&layout, 0, n, point);
    struct kronecker_sample *sample = kronecker_sample_new(&shape, columns);
    kronecker_sample_add(sample, rows, KRONECKER_ROWS);
    double *factors = kronecker_find(sample, point);
    struct kronecker *kronecker = kronecker_new(&layout, factors);
    struct kronecker_work *work = kronecker_work_new(kronecker);
    memcpy(applied, point, n * sizeof *point);
    kronecker_apply(kronecker, work, applied);
    kronecker_work_free(work);
    kronecker_free(kronecker);
    kronecker_sample_free(sample);
    free(factors);
    free(point);
}

/* Weights of 0, 1 and 2, in which the rows of weight 0 may hold anything. */
static void rows_count_with_their_weights(void **state) {
    (void)state;
    static double weight[ROWS], repeated[2 * ROWS * FEATURES], label_of[2 * ROWS];
    struct layout layout = objective_layout(&shape);
    uint64_t n = layout_parameters(&layout);
    double *one = memory_new(n, sizeof *one), *other = memory_new(n, sizeof *other);
    struct rows rows = rows_of_data(), all = rows;
    all.count = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        weight[i] = (i * 7 + i / 3) % 3;
        for (unsigned copy = 0; copy < (unsigned)weight[i]; copy++) {
            memcpy(repeated + all.count * FEATURES, value + i * FEATURES, FEATURES * sizeof *value);
            label_of[all.count++] = label[i];
        }
        for (unsigned j = 0; weight[i] == 0 && j < FEATURES; j++)
            value[i * FEATURES + j] = 1e200;
    }
    rows.weight = weight;
    all.value = repeated;
    all.label = label_of;
    all.values = all.count * FEATURES;
    apply_by_sample(&rows, one);
    apply_by_sample(&all, other);
    for (uint64_t i = 0; i < n; i++)
        assert_true(fabs(one[i] - other[i]) <= 1e-6 * (fabs(other[i]) + 0.1));
    free(one);
    free(other);
}

static void only_narrow_networks_with_weights_of_their_own_have_them(void **state) {
    (void)state;
    assert_true(kronecker_suits(&shape));
    struct objective_shape other = shape;
    other.network.layers = 0;
    assert_false(kronecker_suits(&other));
    other = shape;
    other.kind = OBJECTIVE_ORDINAL;
    assert_false(kronecker_suits(&other));
    other = shape;
    other.network.units[0] = 60000;
    assert_false(kronecker_suits(&other));
    other = shape;
    other.features = 1000000;
    assert_false(kronecker_suits(&other));
}

/* A·v = λ·v for all of a small matrix, and for the largest of a larger one. */
static void eigenvalues_are_those_of_the_matrix(void **state) {
    (void)state;
    enum { M = 60, N = 30, COUNT = 4 };
    static double a[M * N];
    double values[COUNT], vectors[N * COUNT];
    for (unsigned i = 0; i < M; i++)
        for (unsigned j = 0; j < N; j++)
            a[i * N + j] = sin(1.0 + i * 0.7 + j * 0.3) * (j < 3 ? 9 : 1) + cos(i * j * 1.1) / 4;
    struct matrix_scratch *scratch = matrix_scratch_new();
    eigen_largest(scratch, M, N, a, COUNT, values, vectors);
    for (unsigned k = 0; k < COUNT; k++) {
        double off = 0;
        for (unsigned r = 0; r < N; r++) {
            double sum = 0;
            for (unsigned i = 0; i < M; i++) {
                double dot = 0;
                for (unsigned j = 0; j < N; j++)
                    dot += a[i * N + j] * vectors[j * COUNT + k];
                sum += a[i * N + r] * dot / M;
            }
            off += fabs(sum - values[k] * vectors[r * COUNT + k]);
        }
        assert_true(k == 0 || values[k] <= values[k - 1]);
        assert_true(off < 1e-3 * values[0]);
    }
    matrix_scratch_free(scratch);
}

SUITE(kronecker) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_inverse_undoes_what_is_applied),
        cmocka_unit_test(what_is_applied_is_symmetric),
        cmocka_unit_test(the_first_layer_has_even_curvature_in_its_input),
        cmocka_unit_test(factors_that_are_unsound_are_refused),
        cmocka_unit_test(a_sample_that_says_nothing_changes_nothing),
        cmocka_unit_test(rows_count_with_their_weights),
        cmocka_unit_test(only_narrow_networks_with_weights_of_their_own_have_them),
        cmocka_unit_test(eigenvalues_are_those_of_the_matrix),
    };
    return cmocka_run_group_tests_name("kronecker", tests, NULL, NULL);
}
