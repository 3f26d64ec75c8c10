#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/matrix.h"

static const enum matrix_processor processors[] = {MATRIX_ANY, MATRIX_AVX2, MATRIX_AVX512};

enum form { PLAIN, BY_TRANSPOSED, ADD_TRANSPOSED, FORMS };

/* How large the numbers are. */
enum kind { USUAL, EXTREME, DENORMAL, STRANGE, KINDS };

struct shape {
    size_t m, n, k;
    size_t lda, ldb, ldc;
};

/* Shapes around every way of cutting: tiles, panels and blocks that are full, and that leave one
 * over. */
static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 17, 24, 25, 33, 48, 49, 97};
static const size_t large[] = {100, 191, 193, 200, 201, 245, 401, 500};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static double strange(struct random *random) {
    const double some[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -1e300, 0x1p-1074, 1, 3};
    return some[random_below(random, LENGTH(some))];
}

static double number(enum kind kind, bool narrow, struct random *random) {
    const double unit = random_unit(random) - 0.5;
    const int range = narrow ? 126 : 1000;
    switch (kind) {
    case EXTREME:
        return ldexp(unit, (int)random_below(random, (uint64_t)(2 * range)) - range);
    case DENORMAL:
        return ldexp(unit, (int)random_below(random, 40) - (narrow ? 84 : 547));
    case STRANGE:
        return random_below(random, 20) ? unit : strange(random);
    default:
        return unit * (double)(1 + random_below(random, 1000));
    }
}

/* An array of both types, with room behind that no product may touch. */
struct array {
    size_t count;
    double *wide;
    float *narrow;
};

static struct array array_new(size_t count, enum kind kind, struct random *random) {
    struct array made = {count, memory_new(count, sizeof(double)),
                         memory_new(count, sizeof(float))};
    for (size_t i = 0; i < count; i++) {
        made.wide[i] = number(kind, false, random);
        made.narrow[i] = (float)number(kind, true, random);
    }
    return made;
}

static struct array array_copy(const struct array *of) {
    struct array made = {of->count, memory_new(of->count, sizeof(double)),
                         memory_new(of->count, sizeof(float))};
    memcpy(made.wide, of->wide, of->count * sizeof(double));
    memcpy(made.narrow, of->narrow, of->count * sizeof(float));
    return made;
}

static void array_free(struct array *array) {
    free(array->wide);
    free(array->narrow);
}

/* The contract, written out. */
static void expect(enum form form, const struct shape *s, const struct array *a,
                   const struct array *b, struct array *c) {
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++) {
            const size_t at = i * s->ldc + j;
            double wide = form == ADD_TRANSPOSED ? c->wide[at] : 0;
            float narrow = form == ADD_TRANSPOSED ? c->narrow[at] : 0;
            for (size_t p = 0; p < s->k; p++) {
                const size_t left = form == ADD_TRANSPOSED ? p * s->lda + i : i * s->lda + p;
                const size_t right = form == BY_TRANSPOSED ? j * s->ldb + p : p * s->ldb + j;
                wide = fma(a->wide[left], b->wide[right], wide);
                narrow = fmaf(a->narrow[left], b->narrow[right], narrow);
            }
            c->wide[at] = wide;
            c->narrow[at] = narrow;
        }
}

static void multiply(struct matrix_scratch *scratch, enum form form, const struct shape *s,
                     const struct array *a, const struct array *b, struct array *c) {
    switch (form) {
    case PLAIN:
        matrix_product(scratch, s->m, s->n, s->k, a->wide, s->lda, b->wide, s->ldb, c->wide,
                       s->ldc);
        matrix_product_float(scratch, s->m, s->n, s->k, a->narrow, s->lda, b->narrow, s->ldb,
                             c->narrow, s->ldc);
        return;
    case BY_TRANSPOSED:
        matrix_by_transposed(scratch, s->m, s->n, s->k, a->wide, s->lda, b->wide, s->ldb, c->wide,
                             s->ldc);
        matrix_by_transposed_float(scratch, s->m, s->n, s->k, a->narrow, s->lda, b->narrow, s->ldb,
                                   c->narrow, s->ldc);
        return;
    default:
        matrix_add_transposed(scratch, s->m, s->n, s->k, a->wide, s->lda, b->wide, s->ldb, c->wide,
                              s->ldc);
        matrix_add_transposed_float(scratch, s->m, s->n, s->k, a->narrow, s->lda, b->narrow, s->ldb,
                                    c->narrow, s->ldc);
    }
}

/* All of c, with what lies between its rows. */
static void check_same(const struct array *c, const struct array *expected) {
    for (size_t i = 0; i < c->count; i++) {
        assert_true((isnan(c->wide[i]) && isnan(expected->wide[i])) ||
                    memcmp(&c->wide[i], &expected->wide[i], sizeof(double)) == 0);
        assert_true((isnan(c->narrow[i]) && isnan(expected->narrow[i])) ||
                    memcmp(&c->narrow[i], &expected->narrow[i], sizeof(float)) == 0);
    }
}

static void check(struct matrix_scratch *scratch, enum form form, enum kind kind,
                  const struct shape *s, struct random *random) {
    struct array a = array_new((form == ADD_TRANSPOSED ? s->k : s->m) * s->lda, kind, random);
    struct array b = array_new((form == BY_TRANSPOSED ? s->n : s->k) * s->ldb, kind, random);
    struct array before = array_new(s->m * s->ldc, kind, random);
    struct array expected = array_copy(&before);
    expect(form, s, &a, &b, &expected);
    for (size_t i = 0; i < LENGTH(processors); i++) {
        if (!matrix_choose(processors[i]))
            continue;
        struct array c = array_copy(&before);
        multiply(scratch, form, s, &a, &b, &c);
        check_same(&c, &expected);
        array_free(&c);
    }
    array_free(&a);
    array_free(&b);
    array_free(&before);
    array_free(&expected);
}

/* Rows that lie apart, or not. */
static struct shape shape_of(enum form form, size_t m, size_t n, size_t k, struct random *random) {
    const size_t apart = random_below(random, 3) == 0 ? random_below(random, 9) : 0;
    return (struct shape){m,
                          n,
                          k,
                          (form == ADD_TRANSPOSED ? m : k) + apart,
                          (form == BY_TRANSPOSED ? k : n) + apart,
                          n + apart};
}

/* As many shapes show the sanitizers nothing that a few do not: more of the same blocks. */
enum {
    EACH_SIZE = SANITIZED ? 5 : 1,
    LARGE_SHAPES = SANITIZED ? 3 : 40,
    ROWS_OF_HUNDREDS = SANITIZED ? 5 : 67
};

static void check_shapes(enum form form) {
    struct matrix_scratch *scratch = matrix_scratch_new();
    struct random random;
    random_init(&random, 1 + (uint64_t)form);
    for (size_t m = 0; m < LENGTH(sizes); m++)
        for (size_t n = m % EACH_SIZE; n < LENGTH(sizes); n += EACH_SIZE) {
            const size_t k = sizes[random_below(&random, LENGTH(sizes))];
            struct shape shape = shape_of(form, sizes[m], sizes[n], k, &random);
            check(scratch, form, (enum kind)random_below(&random, KINDS), &shape, &random);
        }
    for (int i = 0; i < LARGE_SHAPES; i++) {
        size_t size[3]; /* one of them is large */
        for (size_t s = 0; s < LENGTH(size); s++)
            size[s] = sizes[random_below(&random, LENGTH(sizes))];
        size[i % 3] = large[random_below(&random, LENGTH(large))];
        struct shape shape = shape_of(form, size[0], size[1], size[2], &random);
        check(scratch, form, (enum kind)(i % KINDS), &shape, &random);
    }
    matrix_scratch_free(scratch);
}

static void a_product_is_the_loop_with_fma_on_every_processor(void **state) {
    (void)state;
    check_shapes(PLAIN);
}

static void a_product_by_a_transposed_matrix_is_the_loop_with_fma(void **state) {
    (void)state;
    check_shapes(BY_TRANSPOSED);
}

static void a_transposed_product_goes_on_from_what_it_adds_to(void **state) {
    (void)state;
    check_shapes(ADD_TRANSPOSED);
}

static void products_of_hundreds_in_every_direction_cross_all_blocks(void **state) {
    (void)state;
    struct matrix_scratch *scratch = matrix_scratch_new();
    struct random random;
    random_init(&random, 9);
    for (int form = 0; form < FORMS; form++) {
        struct shape shape = shape_of((enum form)form, ROWS_OF_HUNDREDS, 1301, 403, &random);
        check(scratch, (enum form)form, USUAL, &shape, &random);
    }
    matrix_scratch_free(scratch);
}

static void rows_can_be_cut_into_chunks_that_add_up(void **state) {
    (void)state;
    enum { K = 37, M = 9, N = 14, FIRST = 20 };
    struct matrix_scratch *scratch = matrix_scratch_new();
    struct random random;
    random_init(&random, 10);
    struct array a = array_new(K * M, USUAL, &random), b = array_new(K * N, USUAL, &random);
    struct array whole = array_new(M * N, USUAL, &random), parts = array_copy(&whole);
    matrix_add_transposed(scratch, M, N, K, a.wide, M, b.wide, N, whole.wide, N);
    matrix_add_transposed(scratch, M, N, FIRST, a.wide, M, b.wide, N, parts.wide, N);
    matrix_add_transposed(scratch, M, N, K - FIRST, a.wide + FIRST * M, M, b.wide + FIRST * N, N,
                          parts.wide, N);
    check_same(&parts, &whole);
    array_free(&a);
    array_free(&b);
    array_free(&whole);
    array_free(&parts);
    matrix_scratch_free(scratch);
}

/* Rows of which most values are 0: as they are, and only the others. */
struct sparse {
    struct matrix_sparse rows;
    uint32_t start[60], column[60 * 40];
    double wide[60 * 40], full_wide[60 * 40];
    float narrow[60 * 40], full_narrow[60 * 40];
};

static void draw_sparse(struct sparse *made, size_t rows, size_t columns, struct random *random) {
    memset(made, 0, sizeof *made);
    made->rows = (struct matrix_sparse){rows, made->start, made->column};
    for (size_t i = 0; i < rows; i++) {
        uint32_t v = made->start[i];
        for (size_t j = 0; j < columns; j++)
            if (random_below(random, 4) == 0) {
                made->column[v] = (uint32_t)j;
                made->wide[v] = number(EXTREME, false, random) * 0x1p-300;
                made->narrow[v] = (float)number(USUAL, true, random);
                made->full_wide[i * columns + j] = made->wide[v];
                made->full_narrow[i * columns + j] = made->narrow[v++];
            }
        made->start[i + 1] = v;
    }
}

/* Both products by `made`, as the dense ones find them. */
static void check_sparse(struct matrix_scratch *scratch, const struct sparse *made, size_t columns,
                         size_t n, struct random *random) {
    const size_t rows = made->rows.rows, lda = columns;
    struct array b = array_new(columns * n, USUAL, random), d = array_new(rows * n, USUAL, random);
    struct array c = array_new(rows * n, USUAL, random), dense = array_copy(&c);
    struct array g = array_new(columns * n, USUAL, random), dense_g = array_copy(&g);
    matrix_product(scratch, rows, n, columns, made->full_wide, lda, b.wide, n, dense.wide, n);
    matrix_product_float(scratch, rows, n, columns, made->full_narrow, lda, b.narrow, n,
                         dense.narrow, n);
    matrix_add_transposed(scratch, columns, n, rows, made->full_wide, lda, d.wide, n, dense_g.wide,
                          n);
    matrix_add_transposed_float(scratch, columns, n, rows, made->full_narrow, lda, d.narrow, n,
                                dense_g.narrow, n);
    matrix_sparse_product(&made->rows, made->wide, n, b.wide, n, c.wide, n);
    matrix_sparse_product_float(&made->rows, made->narrow, n, b.narrow, n, c.narrow, n);
    matrix_sparse_add_transposed(&made->rows, made->wide, n, d.wide, n, g.wide, n);
    matrix_sparse_add_transposed_float(&made->rows, made->narrow, n, d.narrow, n, g.narrow, n);
    check_same(&c, &dense);
    check_same(&g, &dense_g);
    struct array *all[] = {&b, &d, &c, &dense, &g, &dense_g};
    for (size_t i = 0; i < LENGTH(all); i++)
        array_free(all[i]);
}

static void rows_with_few_values_give_the_bits_of_those_written_out(void **state) {
    (void)state;
    const size_t widths[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 48, 60, 100, 197, 210};
    static struct sparse made;
    struct matrix_scratch *scratch = matrix_scratch_new();
    struct random random;
    random_init(&random, 11);
    for (size_t p = 0; p < LENGTH(processors); p++)
        for (size_t w = 0; w < LENGTH(widths) && matrix_choose(processors[p]); w++) {
            const size_t columns = 1 + random_below(&random, 40);
            draw_sparse(&made, random_below(&random, 59), columns, &random);
            check_sparse(scratch, &made, columns, widths[w], &random);
        }
    matrix_scratch_free(scratch);
}

SUITE(matrix) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_the_loop_with_fma_on_every_processor),
        cmocka_unit_test(a_product_by_a_transposed_matrix_is_the_loop_with_fma),
        cmocka_unit_test(a_transposed_product_goes_on_from_what_it_adds_to),
        cmocka_unit_test(products_of_hundreds_in_every_direction_cross_all_blocks),
        cmocka_unit_test(rows_can_be_cut_into_chunks_that_add_up),
        cmocka_unit_test(rows_with_few_values_give_the_bits_of_those_written_out),
    };
    return cmocka_run_group_tests_name("matrix", tests, NULL, NULL);
}
