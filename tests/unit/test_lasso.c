/* The minimum of a small quadratic with l1. */
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
#include "numeric/box.h"
#include "numeric/lasso.h"

/* H = AᵀA/rows + ridge, of columns with a part in common, of which some are equal. */
struct problem {
    struct lasso lasso;
    double *h, *g, *x, *l1, *v, *low, *high;
};

static void problem_init(struct problem *p, size_t n, size_t rows, double common, double ridge,
                         uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    *p = (struct problem){.h = memory_new(n * n, sizeof(double)),
                          .g = memory_new(n, sizeof(double)),
                          .x = memory_new(n, sizeof(double)),
                          .l1 = memory_new(n, sizeof(double)),
                          .v = memory_new(n, sizeof(double)),
                          .low = memory_new(n, sizeof(double)),
                          .high = memory_new(n, sizeof(double))};
    double *row = memory_new(n, sizeof *row);
    for (size_t i = 0; i < rows; i++) {
        double shared = random_unit(&random) - 0.5;
        for (size_t j = 0; j < n; j++)
            row[j] = common * shared + random_unit(&random) - 0.5;
        if (n > 3)
            row[n / 2] = row[1];
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                p->h[a * n + b] += row[a] * row[b] / (double)rows;
    }
    for (size_t j = 0; j < n; j++) {
        p->h[j * n + j] += ridge;
        p->g[j] = random_unit(&random) - 0.5;
        p->x[j] = random_below(&random, 3) ? 0 : random_unit(&random) - 0.5;
        p->l1[j] = j + 1 == n ? 0 : 0.2 * random_unit(&random);
    }
    free(row);
    p->lasso = (struct lasso){n, p->h, p->g, p->x, p->l1, NULL, NULL};
}

static void problem_release(struct problem *p) {
    free(p->h);
    free(p->g);
    free(p->x);
    free(p->l1);
    free(p->v);
    free(p->low);
    free(p->high);
}

static double gradient_at(const struct problem *p, size_t j) {
    double sum = p->g[j];
    for (size_t i = 0; i < p->lasso.n; i++)
        sum += p->h[j * p->lasso.n + i] * (p->v[i] - p->x[i]);
    return sum;
}

/* The conditions of the minimum: they are sufficient, as Q is convex. */
static void assert_minimum(const struct problem *p, double tolerance) {
    for (size_t j = 0; j < p->lasso.n; j++) {
        double own = gradient_at(p, j), v = p->v[j];
        double beyond = v != 0 ? fabs(own + copysign(p->l1[j], v)) : fabs(own) - p->l1[j];
        assert_true(beyond <= tolerance);
    }
}

static void the_minimum_of_random_quadratics_is_found(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct problem p;
        problem_init(&p, 1 + seed % 40, 60, (double)(seed % 5), 1e-6, seed);
        lasso_solve(&p.lasso, 1e-10, p.v);
        assert_minimum(&p, 1e-9);
        problem_release(&p);
    }
}

/* Sweeps alone leave a gradient of 0.5: columns have much in common, and are more than rows. */
static void a_large_face_is_solved(void **state) {
    (void)state;
    struct problem p;
    size_t columns = SANITIZED ? 190 : 950, rows = SANITIZED ? 60 : 300;
    problem_init(&p, columns, rows, 2, 1e-2, 1);
    for (size_t j = 0; j < columns; j++)
        p.l1[j] *= 0.01;
    lasso_solve(&p.lasso, 1e-3, p.v);
    assert_minimum(&p, 1e-2);
    problem_release(&p);
}

static void fewer_rows_than_columns_do_no_harm(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct problem p;
        problem_init(&p, 30, 12, 2, 0, seed);
        for (size_t j = 0; j < 30; j++) {
            p.g[j] *= 0.1;
            p.l1[j] = 0.06; /* a slope along which H is 0 would have no minimum */
        }
        lasso_solve(&p.lasso, 1e-8, p.v);
        assert_minimum(&p, 1e-8);
        problem_release(&p);
    }
}

/* Bounds of all kinds, around x: some on one side, some without room, some that 0 is beyond. */
static void add_bounds(struct problem *p, uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    for (size_t j = 0; j < p->lasso.n; j++) {
        double low = 0.3 * random_unit(&random), high = 0.3 * random_unit(&random);
        p->low[j] = random_below(&random, 3) ? p->x[j] - low : -INFINITY;
        p->high[j] = random_below(&random, 3) ? p->x[j] + high : INFINITY;
        if (random_below(&random, 4) == 0)
            p->low[j] = p->x[j];
        if (random_below(&random, 8) == 0)
            p->low[j] = p->high[j] = p->x[j];
    }
    p->lasso.low = p->low;
    p->lasso.high = p->high;
}

static void the_minimum_within_bounds_is_found(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct problem p;
        problem_init(&p, 1 + seed % 40, 60, (double)(seed % 5), 1e-6, seed);
        add_bounds(&p, seed);
        if (seed % 2)
            memset(p.l1, 0, p.lasso.n * sizeof *p.l1);
        lasso_solve(&p.lasso, 1e-10, p.v);
        for (size_t j = 0; j < p.lasso.n; j++) {
            struct box_limit limit = {p.l1[j], p.low[j], p.high[j]};
            assert_true(p.v[j] >= p.low[j] && p.v[j] <= p.high[j]);
            assert_true(fabs(box_pseudo(&limit, p.v[j], gradient_at(&p, j))) <= 1e-9);
        }
        problem_release(&p);
    }
}

static void what_has_no_curvature_stays_and_what_is_not_finite_gives_nan(void **state) {
    (void)state;
    struct problem p;
    problem_init(&p, 5, 20, 1, 0, 3);
    for (size_t i = 0; i < 5; i++)
        p.h[2 * 5 + i] = p.h[i * 5 + 2] = 0;
    p.x[2] = 0.25;
    lasso_solve(&p.lasso, 1e-6, p.v);
    assert_true(p.v[2] == 0.25 && isfinite(p.v[0]));
    p.h[7] = INFINITY;
    lasso_solve(&p.lasso, 1e-6, p.v);
    for (size_t j = 0; j < 5; j++)
        assert_true(isnan(p.v[j]));
    lasso_solve(&(struct lasso){0}, 1e-6, p.v);
    problem_release(&p);
}

SUITE(lasso) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_minimum_of_random_quadratics_is_found),
        cmocka_unit_test(the_minimum_within_bounds_is_found),
        cmocka_unit_test(a_large_face_is_solved),
        cmocka_unit_test(fewer_rows_than_columns_do_no_harm),
        cmocka_unit_test(what_has_no_curvature_stays_and_what_is_not_finite_gives_nan),
    };
    return cmocka_run_group_tests_name("lasso", tests, NULL, NULL);
}
