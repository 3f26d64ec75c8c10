/* The sums of second derivatives over drawn rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"
#include "numeric/setup.h"
#include "tests/unit/curvature_fixture.h"

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0),
    CANNED_SHAPE(LOGISTIC, 1, false, 0),
    CANNED_SHAPE(SQUARED, 1, true, 0),
    CANNED_SHAPE(SQUARED_HINGE, 1, true, 0),
    CANNED_SHAPE(HUBER, 1, true, 3),
    CANNED_SHAPE(SOFTMAX, 2, true, 0),
    CANNED_SHAPE(QUANTILE, 1, true, 0.3, 2),
    CANNED_SHAPE(SMOOTH_HINGE, 1, false, 0),
    CANNED_SHAPE(ONE_VS_REST, 3, true, 0),
    CANNED_SHAPE(POISSON, 1, true, 0),
    CANNED_SHAPE(GAMMA, 1, true, 0),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.3),
    CANNED_SHAPE(SOFTMAX, 7, false, 0),
    CANNED_SHAPE(SOFTMAX, 11, true, 0),
    CANNED_SHAPE(ORDINAL, 1, true, 0),
    CANNED_SHAPE(ORDINAL, 4, true, 0),
    CANNED_SHAPE(ORDINAL, 11, true, 0),
    CANNED_SHAPE(MULTILABEL, 3, true, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 1, true, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 2, true, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 5, true, 0),
};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* The values of row `i` in all columns, that of the intercept last; its margins. */
static void spread(const struct canned *canned, uint32_t i, long double *x, long double *margins) {
    const struct objective_shape *shape = &canned->shape;
    for (uint32_t j = 0; j < CANNED_FEATURES; j++)
        x[j] = 0;
    for (uint32_t v = canned->start[i]; v < canned->start[i + 1]; v++)
        x[canned->feature[v]] = canned->wide[v];
    x[CANNED_FEATURES] = shape->intercept;
    for (uint32_t k = 0; k < shape->outputs; k++) {
        margins[k] = 0;
        for (uint32_t j = 0; j <= CANNED_FEATURES; j++)
            margins[k] += x[j] != 0 ? x[j] * canned->parameters[canned_place(shape, j, k)] : 0;
    }
}

/* An element of the triangle is a sum of parts: one for each pair of outputs, if they share
 * weights, and else one. Where its second derivative is among those by the margins; NOWHERE if it
 * has none. */
#define NOWHERE SIZE_MAX
static bool is_shared(const struct objective_shape *shape) {
    return objective_of(shape->kind)->shares_weights;
}

static uint32_t parts_of(const struct objective_shape *shape) {
    return is_shared(shape) ? shape->outputs * shape->outputs : 1;
}

static size_t second_at(const struct objective_shape *shape, uint32_t part, size_t r, size_t c) {
    size_t outputs = shape->outputs;
    size_t row = CANNED_FEATURES + part / outputs, column = CANNED_FEATURES + part % outputs;
    if (!is_shared(shape))
        return r % outputs * outputs + c % outputs;
    bool has = (r < CANNED_FEATURES || r == row) && (c < CANNED_FEATURES || c == column);
    return has ? part : NOWHERE;
}

/* second_at() of all elements, part after part: the loops over rows ask for it again and again. */
static size_t *seconds_of(const struct objective_shape *shape) {
    size_t n = objective_parameters(shape), *seconds, *next;
    next = seconds = memory_new(parts_of(shape) * triangle_elements(shape), sizeof *seconds);
    for (uint32_t part = 0; part < parts_of(shape); part++)
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c <= r; c++)
                *next++ = second_at(shape, part, r, c);
    return seconds;
}

/* The triangle over all rows in units of the fixed point, not rounded, and the totals. */
static struct objective_hessian reference(const struct canned *canned, int b,
                                          long double *triangle) {
    const struct objective_shape *shape = &canned->shape;
    uint32_t outputs = shape->outputs, parts = parts_of(shape);
    size_t n = objective_parameters(shape), elements = triangle_elements(shape);
    size_t *seconds = seconds_of(shape);
    long double x[CANNED_FEATURES + 1], scaled[CANNED_FEATURES + 1], m[CANNED_OUTPUTS_MAX];
    long double of[CANNED_PARAMETERS]; /* `scaled`, by parameter */
    long double s[CANNED_OUTPUTS_MAX * CANNED_OUTPUTS_MAX];
    struct objective_hessian totals = {0};
    memset(triangle, 0, triangle_elements(shape) * sizeof *triangle);
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        double trace = 0, leverage = 0;
        spread(canned, i, x, m);
        canned_second_matrix(shape, m, canned->label[i], s);
        for (uint32_t j = 0; j <= CANNED_FEATURES; j++) {
            scaled[j] = ldexpl(x[j], canned->exponent[j] - 31);
            leverage += CANNED_ROWS * (double)ldexpl(fabsl(scaled[j]), -31);
        }
        for (uint32_t k = 0; k < outputs; k++)
            trace += (double)s[k * outputs + k];
        totals.trace += canned->weight[i] * trace;
        totals.trace_leverage += canned->weight[i] * trace * leverage;
        for (size_t r = 0; r < n; r++)
            of[r] = scaled[canned_column(shape, r)];
        for (size_t r = 0; r < n; r++) {
            long double left = canned->weight[i] * ldexpl(of[r], -b);
            for (size_t c = 0; c <= r && left != 0; c++)
                for (uint32_t part = 0; part < parts; part++) {
                    size_t element = r * (r + 1) / 2 + c, at = seconds[part * elements + element];
                    triangle[element] += at == NOWHERE ? 0 : s[at] * left * of[c];
                }
        }
    }
    free(seconds);
    return totals;
}

static void assert_near(double found, double expected) {
    assert_true(fabs(found - expected) <= 1e-11 * fabs(expected));
}

/* Every term is rounded by at most ½; margins and second derivatives by a little. */
static void assert_triangle(const struct canned *canned) {
    const struct objective_sample sample = sample_of(canned);
    size_t n = objective_parameters(&canned->shape), elements = triangle_elements(&canned->shape);
    int64_t *triangle = new_triangle(&canned->shape);
    long double *expected = memory_new(elements, sizeof *expected);
    struct objective_hessian hessian = curve(canned, &sample, 3, triangle);
    struct objective_hessian totals = reference(canned, sample.derivative_exponent, expected);
    assert_false(hessian.exceeded);
    uint64_t rows = 0; /* those of weight 0 are not drawn */
    for (uint32_t i = 0; i < CANNED_ROWS; i++)
        rows += canned->weight[i] > 0;
    assert_int_equal(hessian.sampled, rows);
    assert_near(hessian.trace, totals.trace);
    assert_near(hessian.trace_leverage, totals.trace_leverage);
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c <= r; c++) {
            size_t at = r * (r + 1) / 2 + c;
            long double scale = sqrtl(expected[r * (r + 3) / 2] * expected[c * (c + 3) / 2]);
            assert_true(fabsl(triangle[at] - expected[at]) <= CANNED_ROWS + 1e-11L * scale);
            assert_true(llabs(triangle[at]) < INT64_C(1) << 62);
        }
    free(triangle);
    free(expected);
}

static void the_triangle_of_all_rows_is_that_of_the_definitions(void **state) {
    (void)state;
    canned_assert_every_loss(shapes, SHAPES, CANNED_ALL);
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = VALUE_ONES; type <= VALUE_DOUBLE; type++) {
                if ((shapes[s].outputs > 2 || SANITIZED) && (int)(s % 2) != type - 1)
                    continue; /* long triangles: of one type only */
                if (shapes[s].outputs > 5 && dense != type - 1)
                    continue; /* and of one form: both have the same integers, see below */
                struct canned *canned =
                    canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
                assert_triangle(canned);
                free(canned);
            }
}

/* Also where weights are so small that the sums of w·|x| would not bound those of w·x·x. */
static void the_triangle_of_weighted_rows_is_that_of_the_definitions(void **state) {
    (void)state;
    const double decades[] = {1, 12}, times[] = {1, 1e-18};
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int of = 0; of < 2; of++) {
                if ((shapes[s].outputs > 2 || SANITIZED) && (int)(s % 2) != of)
                    continue; /* long triangles: with one kind of weights only */
                if (shapes[s].outputs > 5 && dense == of)
                    continue; /* and of one form */
                struct canned *canned = canned_new(shapes[s], dense, VALUE_FLOAT, NULL, s + 1);
                canned_weigh(canned, decades[of], s + 1);
                for (uint32_t i = 0; i < CANNED_ROWS; i++)
                    canned->weight[i] *= times[of];
                canned_measure(canned);
                assert_triangle(canned);
                free(canned);
            }
}

/* Some columns are 0 in all rows, some constant, and others far apart in scale. */
static void columns_of_any_scale_keep_their_precision(void **state) {
    (void)state;
    const double scales[][4] = {{1e-12, 1, 1e12, 0}, {1e-150, 1e150, 1, 0}, {1e-300, 1e300, 0, 1}};
    for (int s = 0; s < 3; s++)
        for (int dense = 0; dense < 2; dense++) {
            double scale[CANNED_FEATURES];
            for (int j = 0; j < CANNED_FEATURES; j++)
                scale[j] = scales[s][j % 4];
            struct canned *canned = canned_new(shapes[0], dense, VALUE_DOUBLE, scale, 5);
            for (int j = 0; j < CANNED_FEATURES; j++)
                canned->parameters[j] = scale[j] > 0 ? canned->parameters[j] : 0;
            for (uint64_t v = 0; v < canned->rows.values; v++)
                if (canned->feature[v] == 20)
                    canned->wide[v] = scale[20];
            canned_measure(canned);
            assert_triangle(canned);
            free(canned);
        }
}

/* ---- the ways to add a row ---- */

/* Rows of whole numbers, from few values to all, of which some are very large. The same block as
 * sparse and as dense rows. */
struct both {
    struct canned *sparse, *dense;
};

static struct both both_new(struct objective_shape shape, uint64_t seed) {
    struct both both = {canned_new(shape, false, VALUE_DOUBLE, NULL, seed),
                        canned_new(shape, true, VALUE_DOUBLE, NULL, seed)};
    struct canned *s = both.sparse, *d = both.dense;
    struct random random;
    random_init(&random, seed);
    memset(d->wide, 0, sizeof d->wide);
    s->rows.values = 0;
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        uint64_t of = random_below(&random, CANNED_FEATURES) + 1;
        for (uint32_t j = 0; j < CANNED_FEATURES; j++) {
            if (random_below(&random, CANNED_FEATURES) >= of)
                continue;
            double value = (double)random_below(&random, 1000) + 1;
            s->feature[s->rows.values] = j;
            s->wide[s->rows.values++] = d->wide[i * CANNED_FEATURES + j] =
                random_below(&random, 300) ? value : value * 0x1p30;
        }
        s->start[i + 1] = (uint32_t)s->rows.values;
    }
    canned_measure(s);
    memcpy(d->exponent, s->exponent, sizeof s->exponent);
    memcpy(d->label, s->label, sizeof s->label);
    memset(s->parameters, 0, sizeof s->parameters); /* the same margins to the bit */
    memset(d->parameters, 0, sizeof d->parameters);
    return both;
}

/* Element (k, k') of the second derivatives of row `i` at margins 0, to the bit. */
static void second_at_zero(const struct canned *canned, uint32_t i, double *s) {
    const struct objective *objective = objective_of(canned->shape.kind);
    uint32_t outputs = canned->shape.outputs;
    double derivatives[CANNED_OUTPUTS_MAX] = {0}, work[CANNED_OUTPUTS_MAX], loss;
    const double label[CANNED_OUTPUTS_MAX] = {canned->label[i]}; /* or a list of one or none */
    objective->losses(&canned->shape.loss, 1, outputs, label, derivatives, &loss, work);
    if (!objective->second_row)
        objective->second(&canned->shape.loss, 1, 1, &canned->label[i], derivatives, work, s);
    for (uint32_t k = 0; objective->second_row && k < outputs; k++)
        objective->second_row(outputs, canned->label[i], derivatives, k, s + k * outputs);
}

/* All rows at margins 0, term by term, each rounded by itself. */
static void term_by_term(const struct canned *dense, int b, int64_t *triangle) {
    const struct objective_shape *shape = &dense->shape;
    size_t *seconds = seconds_of(shape), n = objective_parameters(shape);
    double s[CANNED_OUTPUTS_MAX * CANNED_OUTPUTS_MAX];
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        double x[CANNED_FEATURES + 1], of[CANNED_PARAMETERS];
        const size_t *next = seconds;
        second_at_zero(dense, i, s);
        for (uint32_t k = 0; k < shape->outputs * shape->outputs; k++)
            s[k] = ldexp(s[k], -b);
        for (uint32_t j = 0; j <= CANNED_FEATURES; j++)
            x[j] = ldexp(j < CANNED_FEATURES ? dense->wide[i * CANNED_FEATURES + j] : 1,
                         dense->exponent[j] - 31);
        for (size_t r = 0; r < n; r++)
            of[r] = x[canned_column(shape, r)];
        for (uint32_t part = 0, parts = parts_of(shape); part < parts; part++)
            for (size_t r = 0; r < n; next += ++r)
                for (size_t c = 0; c <= r && of[r] != 0; c++) {
                    double second = next[c] == NOWHERE ? 0 : s[next[c]];
                    fixed_add(&triangle[r * (r + 1) / 2 + c], of[r] * (second * of[c]));
                }
    }
    free(seconds);
}

static void all_ways_to_add_a_row_give_the_same_integers(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int share = SANITIZED ? (int)(s % 2) : 0; share < 2; share += SANITIZED ? 2 : 1) {
            struct both both = both_new(shapes[s], s + 1);
            struct objective_sample sample = sample_of(both.sparse);
            int64_t *sparse = new_triangle(&shapes[s]), *dense = new_triangle(&shapes[s]);
            sample.derivative_exponent += 2;
            sample.sampling.floor = share ? 0.3 : 1;
            struct objective_hessian first = curve(both.sparse, &sample, 8, sparse);
            struct objective_hessian second = curve(both.dense, &sample, 8, dense);
            assert_int_equal(first.sampled, second.sampled);
            assert_memory_equal(sparse, dense, triangle_elements(&shapes[s]) * sizeof *sparse);
            if (!share) {
                memset(sparse, 0, triangle_elements(&shapes[s]) * sizeof *sparse);
                term_by_term(both.dense, sample.derivative_exponent, sparse);
                assert_memory_equal(sparse, dense, triangle_elements(&shapes[s]) * sizeof *sparse);
            }
            free(both.sparse);
            free(both.dense);
            free(sparse);
            free(dense);
        }
}

static void blocks_add_up_to_the_same_integers_in_any_order(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = SANITIZED ? (int)(s % 2) : 0; dense < 2; dense += SANITIZED ? 2 : 1) {
            struct canned *a = canned_new(shapes[s], dense, VALUE_FLOAT, NULL, 1);
            struct canned *b = canned_new(shapes[s], dense, VALUE_FLOAT, NULL, 2);
            struct objective_sample sample = sample_of(a);
            sample.sampling = (struct row_sampling){.rate = 0.02, .floor = 0.5, .sample_seed = 4};
            sample.derivative_exponent += 1;
            int64_t *first = new_triangle(&shapes[s]), *second = new_triangle(&shapes[s]);
            curve(a, &sample, 1, first);
            curve(b, &sample, 2, first);
            curve(b, &sample, 2, second);
            curve(a, &sample, 1, second);
            assert_memory_equal(first, second, triangle_elements(&shapes[s]) * sizeof *first);
            free(a);
            free(b);
            free(first);
            free(second);
        }
}

/* ---- a block of the first columns ---- */

enum { EACH_TYPE = SANITIZED ? 3 : 1 };

/* Where an element of the block is among all parameters. */
static size_t place_of(const struct objective_shape *shape, uint32_t columns, size_t r) {
    const struct layout layout = objective_layout(shape);
    size_t weights = layout_block_weights(&layout, columns);
    return r < weights ? r : r - weights + layout_block_weights(&layout, objective_columns(shape));
}

/* The triangle over these columns and the biases is a part of the triangle over all, to the bit,
 * and the rows are drawn as for that. */
static void assert_block(const struct canned *canned, struct objective_sample sample,
                         uint32_t columns, const struct objective_hessian *of_all,
                         const int64_t *all) {
    const struct objective_shape *shape = &canned->shape;
    const struct layout layout = objective_layout(shape);
    int64_t *block = new_triangle(shape);
    sample.columns = columns;
    struct objective_hessian of_block = curve(canned, &sample, 2, block);
    size_t order = layout_block(&layout, columns), elements = triangle_elements(shape);
    for (size_t r = 0, at = 0; r < order; r++)
        for (size_t c = 0, row = place_of(shape, columns, r); c <= r; c++)
            assert_true(block[at++] == all[row * (row + 1) / 2 + place_of(shape, columns, c)]);
    for (size_t at = block_elements(shape, columns); at < elements; at++)
        assert_true(block[at] == 0);
    assert_true(of_block.trace == of_all->trace && of_block.sampled == of_all->sampled);
    assert_true(of_block.trace_leverage == of_all->trace_leverage);
    assert_true(columns == shape->features ? of_block.terms == of_all->terms
                                           : of_block.terms < of_all->terms);
    free(block);
}

static void a_block_of_the_first_columns_has_their_part_of_the_triangle(void **state) {
    (void)state;
    const uint32_t blocks[] = {0, 1, 8, 17, CANNED_FEATURES - 1, CANNED_FEATURES};
    for (size_t s = 0; s < SHAPES; s++)
        for (int type = (int)s % EACH_TYPE; type <= VALUE_DOUBLE; type += EACH_TYPE) {
            bool dense = (s + (size_t)type) % 2;
            struct canned *canned =
                canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
            if (s % 3 == 0)
                canned_weigh(canned, 2, s + 1);
            struct objective_sample sample = sample_of(canned);
            sample.derivative_exponent += 3;
            if (s % 2)
                sample.sampling =
                    (struct row_sampling){.rate = 0.002, .floor = 0.25, .sample_seed = 4};
            int64_t *all = new_triangle(&shapes[s]);
            struct objective_hessian of_all = curve(canned, &sample, 2, all);
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
                assert_block(canned, sample, blocks[b], &of_all, all);
            free(all);
            free(canned);
        }
}

/* ---- listed weights ---- */

/* Where row r of the triangle over a list is among all parameters; biases are the last of both. */
static size_t listed_place(const struct objective_shape *shape, const struct weight_list *list,
                           size_t r) {
    size_t weights = objective_weights(objective_of(shape->kind), shape->outputs);
    return r < list->count ? list->column[r] * weights + list->output[r]
                           : shape->features * weights + r - list->count;
}

static void assert_listed(const struct canned *canned, struct objective_sample sample,
                          const struct weight_list *list, const struct objective_hessian *of_all,
                          const int64_t *all) {
    const struct objective_shape *shape = &canned->shape;
    int64_t *listed = new_triangle(shape);
    sample.list = list;
    sample.columns = list->count;
    struct objective_hessian of_list = curve(canned, &sample, 2, listed);
    size_t order = list->count + (shape->intercept ? shape->outputs : 0);
    for (size_t r = 0, at = 0; r < order; r++)
        for (size_t c = 0, row = listed_place(shape, list, r); c <= r; c++)
            assert_true(listed[at++] == all[row * (row + 1) / 2 + listed_place(shape, list, c)]);
    for (size_t at = order * (order + 1) / 2; at < triangle_elements(shape); at++)
        assert_true(listed[at] == 0);
    assert_true(of_list.trace == of_all->trace && of_list.sampled == of_all->sampled);
    bool whole = list->count == objective_weights(objective_of(shape->kind), shape->outputs) *
                                    (size_t)shape->features;
    assert_true(whole ? of_list.trace_leverage == of_all->trace_leverage
                      : of_list.trace_leverage <= of_all->trace_leverage);
    free(listed);
}

/* Of every `step`-th weight from `first` on, or of all. */
static struct weight_list *list_of(const struct objective_shape *shape, size_t first, size_t step) {
    struct weight_list *list = memory_new(1, sizeof *list);
    size_t weights = objective_weights(objective_of(shape->kind), shape->outputs);
    for (size_t i = first; i < shape->features * weights; i += step) {
        list->column[list->count] = (uint32_t)(i / weights);
        list->output[list->count++] = (uint32_t)(i % weights);
    }
    return list;
}

/* None, a few, many, and all: rows are added in each of the ways. */
static void listed_weights_have_their_part_of_the_triangle(void **state) {
    (void)state;
    const size_t lists[][2] = {{10000, 1}, {3, 50}, {1, 5}, {0, 2}, {0, 1}};
    for (size_t s = 0; s < SHAPES; s++)
        for (int type = (int)s % EACH_TYPE; type <= VALUE_DOUBLE; type += EACH_TYPE) {
            bool dense = (s + (size_t)type) % 2;
            struct canned *canned =
                canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
            struct objective_sample sample = sample_of(canned);
            sample.derivative_exponent += 3;
            int64_t *all = new_triangle(&shapes[s]);
            struct objective_hessian of_all = curve(canned, &sample, 2, all);
            for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
                struct weight_list *list = list_of(&canned->shape, lists[i][0], lists[i][1]);
                assert_listed(canned, sample, list, &of_all, all);
                free(list);
            }
            free(all);
            free(canned);
        }
}

/* Of a list, and of all columns that it has not; each counts the intercept. */
static void the_leverage_of_a_row_is_that_by_listed_columns(void **state) {
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        struct canned *canned =
            canned_new((struct objective_shape)CANNED_SHAPE(LOGISTIC, 1, true, 0), dense,
                       VALUE_FLOAT, NULL, 3);
        struct objective_sample sample = sample_of(canned);
        struct weight_list *list = list_of(&canned->shape, 1, 6),
                           *rest = list_of(&canned->shape, 0, 1);
        struct weight_list *none = list_of(&canned->shape, canned->shape.features, 1);
        struct weight_list *all = list_of(&canned->shape, 0, 1);
        rest->count = 0;
        for (uint32_t j = 0; j < canned->shape.features; j++)
            if (j % 6 != 1)
                rest->column[rest->count++] = j;
        const struct weight_list *lists[] = {list, rest, none, all};
        double leverage[4];
        for (size_t i = 0; i < 4; i++) {
            sample.list = lists[i];
            sample.columns = objective_columns(&canned->shape);
            leverage[i] = curve(canned, &sample, 2, NULL).trace_leverage;
        }
        assert_true(leverage[0] > leverage[2] && leverage[0] < leverage[1]);
        assert_near(leverage[0] + leverage[1], leverage[2] + leverage[3]);
        free(list);
        free(rest);
        free(none);
        free(all);
        free(canned);
    }
}

/* One thread adds up chunk after chunk, and evaluation after evaluation. */
static void a_list_may_change_between_evaluations(void **state) {
    (void)state;
    struct canned *canned = canned_new((struct objective_shape)CANNED_SHAPE(SOFTMAX, 2, true, 0),
                                       false, VALUE_FLOAT, NULL, 5);
    struct objective_sample sample = sample_of(canned);
    const struct weight_list first = {3, {0, 4, 4}, {1, 0, 1}}, second = {2, {4, 8}, {1, 1}};
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    const struct weight_list *order[] = {&first, &second, &first};
    for (size_t i = 0; i < 3; i++) {
        int64_t *again = new_triangle(&canned->shape), *alone = new_triangle(&canned->shape);
        struct objective_hessian hessian;
        sample.list = order[i];
        objective_curvature(&canned->shape, &sample, &canned->rows, 1, canned->parameters, again,
                            scratch, &hessian);
        curve(canned, &sample, 1, alone);
        assert_memory_equal(again, alone, triangle_elements(&canned->shape) * sizeof *again);
        free(again);
        free(alone);
    }
    objective_scratch_free(scratch);
    free(canned);
}

/* ---- the edges ---- */

static void a_bound_that_does_not_hold_is_told(void **state) {
    (void)state;
    struct canned *canned = canned_new(shapes[0], true, VALUE_FLOAT, NULL, 3);
    struct objective_sample sample = sample_of(canned);
    int64_t *triangle = new_triangle(&canned->shape);
    sample.sampling.floor = 0.125; /* weights up to 8 of up to 1/4 */
    assert_false(curve(canned, &sample, 1, triangle).exceeded);
    sample.derivative_exponent = 0;
    assert_true(curve(canned, &sample, 1, triangle).exceeded);
    sample.derivative_exponent = 1;
    canned->parameters[3] = NAN;
    assert_true(curve(canned, &sample, 1, triangle).exceeded);
    free(triangle);
    free(canned);
}

static void one_row_and_no_row_are_blocks(void **state) {
    (void)state;
    struct canned *canned = canned_new(shapes[0], true, VALUE_FLOAT, NULL, 3);
    struct objective_sample sample = sample_of(canned);
    int64_t *triangle = new_triangle(&canned->shape);
    canned->rows.count = 0;
    struct objective_hessian hessian = curve(canned, &sample, 1, triangle);
    assert_true(hessian.sampled == 0 && hessian.trace == 0 && !hessian.exceeded);
    assert_int_equal(triangle[0], 0);
    canned->rows.count = 1;
    hessian = curve(canned, &sample, 1, triangle);
    assert_int_equal(hessian.sampled, 1);
    assert_true(triangle[0] > 0);
    free(triangle);
    free(canned);
}

static void without_a_triangle_only_the_totals_are_found(void **state) {
    (void)state;
    struct canned *canned = canned_new(shapes[4], false, VALUE_FLOAT, NULL, 3);
    struct objective_sample sample = sample_of(canned);
    sample.sampling = (struct row_sampling){.rate = 0.02, .floor = 0.5, .sample_seed = 4};
    int64_t *triangle = new_triangle(&canned->shape);
    struct objective_hessian with = curve(canned, &sample, 1, triangle);
    struct objective_hessian without = curve(canned, &sample, 1, NULL);
    assert_true(with.trace == without.trace && with.trace_leverage == without.trace_leverage);
    assert_int_equal(with.sampled, without.sampled);
    assert_true(with.terms > 0 && without.terms == 0);
    free(triangle);
    free(canned);
}

/* A row of the list of forms; wire/kinds.def names it. */
extern const struct second_form second_expected;

static void expected_second_derivatives_do_not_depend_on_labels(void **state) {
    (void)state;
    unsigned losses = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        double sampled[2], expected[2];
        if (!objective_of(shapes[s].kind)->expected)
            continue;
        struct canned *canned = canned_new(shapes[s], false, VALUE_FLOAT, NULL, 3);
        struct objective_sample sample = sample_of(canned);
        for (int i = 0; i < 2; i++) {
            sampled[i] = curve(canned, &sample, 1, NULL).trace;
            sample.form = &second_expected;
            expected[i] = curve(canned, &sample, 1, NULL).trace;
            sample.form = &second_sampled;
            for (size_t row = 0; row < CANNED_ROWS; row++)
                canned->label[row] *= 3;
        }
        assert_true(expected[0] > 0 && fabs(expected[1] - expected[0]) <= 1e-9 * expected[0]);
        assert_true(fabs(sampled[1] - sampled[0]) > 0.1 * sampled[0]);
        losses++;
        free(canned);
    }
    assert_int_equal(losses, 2); /* gamma and tweedie */
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(curvature) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_triangle_of_all_rows_is_that_of_the_definitions),
        cmocka_unit_test(the_triangle_of_weighted_rows_is_that_of_the_definitions),
        cmocka_unit_test(columns_of_any_scale_keep_their_precision),
        cmocka_unit_test(all_ways_to_add_a_row_give_the_same_integers),
        cmocka_unit_test(blocks_add_up_to_the_same_integers_in_any_order),
        cmocka_unit_test(a_block_of_the_first_columns_has_their_part_of_the_triangle),
        cmocka_unit_test(listed_weights_have_their_part_of_the_triangle),
        cmocka_unit_test(the_leverage_of_a_row_is_that_by_listed_columns),
        cmocka_unit_test(a_list_may_change_between_evaluations),
        cmocka_unit_test(a_bound_that_does_not_hold_is_told),
        cmocka_unit_test(one_row_and_no_row_are_blocks),
        cmocka_unit_test(expected_second_derivatives_do_not_depend_on_labels),
        cmocka_unit_test(without_a_triangle_only_the_totals_are_found),
    };
    return cmocka_run_group_tests_name("curvature", tests, set_up, NULL);
}
