/* L-BFGS for logistic regression as a short program of one's own would do it, on cuSPARSE and
 * cuBLAS: what bench/cuda.py compares dml on a GPU with.
 *
 *     plain_lbfgs SET L2 TARGET
 *
 * trains on a set that dml has packed (sparse rows, two classes) until the objective is at most
 * TARGET, and prints the evaluations, the objective and the seconds since the data were in the
 * GPU's memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "bench/plain_gpu.h"
#include "data/set/set.h"

enum { PAIRS = 10, EVALUATIONS_MOST = 5000, TRIALS_MOST = 40 };

static void must(int code) {
    if (code) {
        fprintf(stderr, "plain_lbfgs: %s\n", error_text());
        exit(1);
    }
}

/* ---- data ---- */

struct matrix {
    int rows, columns, values;
    int *start, *column;
    double *value;
};

static struct matrix new_matrix(int rows, int columns, int values) {
    return (struct matrix){.rows = rows,
                           .columns = columns,
                           .values = values,
                           .start = memory_new((size_t)rows + 1, sizeof(int)),
                           .column = memory_new((size_t)values, sizeof(int)),
                           .value = memory_new((size_t)values, sizeof(double))};
}

static struct plain_matrix view(const struct matrix *matrix) {
    return (struct plain_matrix){matrix->rows,  matrix->columns, matrix->values,
                                 matrix->start, matrix->column,  matrix->value};
}

static void append(struct matrix *matrix, int *at, uint32_t column, double value) {
    matrix->column[*at] = (int)column;
    matrix->value[(*at)++] = value;
}

/* With a column of ones, the intercept, as the last. */
static struct matrix read_rows(struct set *set, double **label) {
    const struct set_info *info = set_info(set);
    uint64_t values = info->values + info->rows;
    if (info->dense || info->labels != LABEL_BINARY || values > INT32_MAX) {
        fprintf(stderr, "plain_lbfgs: takes sparse rows of two classes, up to 2^31 values\n");
        exit(1);
    }
    struct matrix matrix = new_matrix((int)info->rows, (int)info->features + 1, (int)values);
    int row = 0, at = 0;
    *label = memory_new(info->rows, sizeof **label);
    for (uint32_t chunk = 0; chunk < set_training_chunks(info); chunk++) {
        struct rows rows;
        must(set_chunk(set, chunk, &rows));
        for (uint32_t i = 0; i < rows.count; i++) {
            for (uint32_t k = rows.start[i]; k < rows.start[i + 1]; k++)
                append(&matrix, &at, rows.feature[k], value_at(rows.type, rows.value, k));
            append(&matrix, &at, (uint32_t)info->features, 1);
            (*label)[row] = rows.label[i];
            matrix.start[++row] = at;
        }
    }
    return matrix;
}

static struct matrix transposed(const struct matrix *from) {
    struct matrix to = new_matrix(from->columns, from->rows, from->values);
    int *next = memory_new((size_t)from->columns + 1, sizeof *next);
    for (int k = 0; k < from->values; k++)
        to.start[from->column[k] + 1]++;
    for (int j = 0; j < from->columns; j++)
        next[j] = to.start[j + 1] += to.start[j];
    for (int i = from->rows; i-- > 0;)
        for (int k = from->start[i + 1]; k-- > from->start[i];) {
            int at = --next[from->column[k]];
            to.column[at] = i;
            to.value[at] = from->value[k];
        }
    free(next);
    return to;
}

/* ---- L-BFGS (Nocedal and Wright, algorithm 7.4), bisection for the weak Wolfe conditions ---- */

struct history {
    double *s[PAIRS], *y[PAIRS], rho[PAIRS];
    int count, next;
};

static void direction(const struct history *history, const double *gradient, double *d) {
    double alpha[PAIRS];
    plain_copy(d, gradient);
    for (int i = 0; i < history->count; i++) {
        int k = (history->next - 1 - i + 2 * PAIRS) % PAIRS;
        alpha[k] = history->rho[k] * plain_dot(history->s[k], d);
        plain_add(d, -alpha[k], history->y[k]);
    }
    if (history->count) {
        int last = (history->next - 1 + PAIRS) % PAIRS;
        const double *y = history->y[last];
        plain_scale(d, 1 / (history->rho[last] * plain_dot(y, y)));
    }
    for (int i = history->count; i-- > 0;) {
        int k = (history->next - 1 - i + 2 * PAIRS) % PAIRS;
        plain_add(d, alpha[k] - history->rho[k] * plain_dot(history->y[k], d), history->s[k]);
    }
    plain_scale(d, -1);
}

struct point {
    double *x, *gradient, f;
};

static void evaluate(struct point *point) {
    point->f = plain_evaluate(point->x, point->gradient);
}

/* The number of evaluations. */
static int search(const struct point *at, const double *d, double step, struct point *next) {
    double low = 0, high = INFINITY, slope = plain_dot(at->gradient, d);
    int trial = 0;
    do {
        plain_copy(next->x, at->x);
        plain_add(next->x, step, d);
        evaluate(next);
        if (next->f > at->f + 1e-4 * step * slope)
            high = step;
        else if (plain_dot(next->gradient, d) < 0.9 * slope)
            low = step;
        else
            return trial + 1;
        step = isinf(high) ? 2 * low : (low + high) / 2;
    } while (++trial < TRIALS_MOST);
    return trial;
}

static void keep_pair(struct history *history, const struct point *at, const struct point *next) {
    int k = history->next;
    plain_copy(history->s[k], next->x);
    plain_add(history->s[k], -1, at->x);
    plain_copy(history->y[k], next->gradient);
    plain_add(history->y[k], -1, at->gradient);
    double curvature = plain_dot(history->s[k], history->y[k]);
    if (curvature <= 0)
        return;
    history->rho[k] = 1 / curvature;
    history->next = (k + 1) % PAIRS;
    history->count += history->count < PAIRS;
}

static int minimise(double target, double *f) {
    struct history history = {.count = 0};
    struct point at = {plain_vector(), plain_vector(), 0};
    struct point next = {plain_vector(), plain_vector(), 0};
    double *d = plain_vector();
    for (int i = 0; i < PAIRS; i++) {
        history.s[i] = plain_vector();
        history.y[i] = plain_vector();
    }
    int evaluations = 1;
    evaluate(&at);
    while (at.f > target && evaluations < EVALUATIONS_MOST) {
        direction(&history, at.gradient, d);
        double first = 1 / sqrt(plain_dot(at.gradient, at.gradient));
        evaluations += search(&at, d, history.count ? 1 : first, &next);
        keep_pair(&history, &at, &next);
        struct point before = at;
        at = next;
        next = before;
    }
    *f = at.f;
    return evaluations;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: plain_lbfgs SET L2 TARGET\n");
        return 64;
    }
    struct set *set;
    double *label, f;
    must(set_open(argv[1], &set));
    struct matrix rows = read_rows(set, &label), columns = transposed(&rows);
    const struct plain_matrix by_rows = view(&rows), by_columns = view(&columns);
    plain_open(&by_rows, &by_columns, label, rows.columns - 1, atof(argv[2]));
    int64_t begun_ns = clock_monotonic_ns();
    int evaluations = minimise(atof(argv[3]), &f);
    double seconds = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
    printf("%d evaluations, objective %.12g, %.3f seconds\n", evaluations, f, seconds);
    set_close(set);
    return f <= atof(argv[3]) ? 0 : 1;
}
