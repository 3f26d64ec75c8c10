#include "tests/unit/memory_shards.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/program.h"

static double *vector_new(uint32_t n) {
    return memory_new(n, sizeof(double));
}

void backend_init(struct backend *backend, uint32_t n) {
    backend->n = n;
    for (int i = 0; i < REGISTERS; i++)
        backend->vector[i] = vector_new(n);
    for (int i = 0; i < SLOTS_MAX; i++) {
        backend->s[i] = vector_new(n);
        backend->q[i] = vector_new(n);
    }
    for (int i = 0; i < WINDOW_MAX; i++)
        backend->window[i] = vector_new(n);
    backend->rows = NULL;
    backend->y = vector_new(n);
    backend->sum = vector_new(n);
    backend->hessian = vector_new(n * n);
    backend->factor = vector_new(n * n);
    backend->serial = 0;
    backend->block = 0;
}

void backend_release(struct backend *backend) {
    for (int i = 0; i < REGISTERS; i++)
        free(backend->vector[i]);
    for (int i = 0; i < SLOTS_MAX; i++) {
        free(backend->s[i]);
        free(backend->q[i]);
    }
    for (int i = 0; i < WINDOW_MAX; i++)
        free(backend->window[i]);
    free(backend->y);
    free(backend->sum);
    free(backend->hessian);
    free(backend->factor);
}

static double dot(const struct backend *backend, const double *a, const double *b) {
    long double sum = 0;
    for (uint32_t i = 0; i < backend->n; i++)
        sum += (long double)a[i] * b[i];
    return (double)sum;
}

/* Without the intercepts of rows, which l2 leaves out. */
static double dot_regularized(const struct backend *backend, const double *a, const double *b) {
    const struct rows_problem *problem = backend->rows ? backend->rows->problem : NULL;
    long double sum = 0;
    for (uint32_t i = 0; i < backend->n; i++)
        if (!problem || !problem->intercept || (i + 1) % problem->columns)
            sum += (long double)a[i] * b[i];
    return (double)sum;
}

static double max_abs(const struct backend *backend, const double *a) {
    double most = 0;
    for (uint32_t i = 0; i < backend->n; i++)
        most = isfinite(a[i]) ? fmax(most, fabs(a[i])) : INFINITY;
    return most;
}

/* B's element. */
static double b_of(const struct backend *backend, const struct operation *o, uint32_t i) {
    assert(!o->scaled || o->beta == 1);
    if (o->scaled)
        return backend->vector[REGISTER_A][i];
    return i == backend->n - 1 ? o->beta : 1;
}

static void run_direction(struct backend *backend, const struct operation *o) {
    double *out = backend->vector[o->a];
    for (uint32_t i = 0; i < backend->n; i++) {
        double sum = -o->alpha * b_of(backend, o, i) * backend->vector[o->b][i];
        for (uint32_t k = 0; k < o->count; k++)
            sum += -o->u[k] * backend->s[o->slots[k]][i] +
                   o->alpha * o->w[k] * backend->q[o->slots[k]][i];
        out[i] = sum;
    }
}

static uint32_t run_history_dots(struct backend *backend, const struct operation *o,
                                 double *scalars) {
    const double *a = backend->vector[o->a], *y = backend->y;
    for (uint32_t k = 0; k < o->count; k++) {
        *scalars++ = dot(backend, backend->s[o->slots[k]], a);
        *scalars++ = dot(backend, backend->q[o->slots[k]], a);
        *scalars++ = dot(backend, backend->s[o->slots[k]], y);
        *scalars++ = dot(backend, backend->q[o->slots[k]], y);
    }
    return 4 * o->count;
}

static void run_pair(struct backend *backend, const struct operation *o) {
    double *const *v = backend->vector;
    for (uint32_t i = 0; i < backend->n; i++) {
        backend->s[o->slot][i] = v[o->a][i] - v[o->b][i];
        backend->q[o->slot][i] = b_of(backend, o, i) * (v[o->c][i] - v[o->d][i]);
        backend->y[i] = v[o->e][i] - v[o->f][i];
    }
}

/* Keeps Hessian + λ; beyond a block the diagonal, with penalties of 1. Answers what FACTOR yields.
 */
static double run_factor(struct backend *backend, const struct operation *o) {
    uint32_t n = backend->n, block = backend->block ? backend->block : n;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            double *element = &backend->factor[(size_t)i * n + j];
            double beyond = i == n - 1 ? o->beta : o->beta + o->gamma;
            *element = i < block && j < block ? backend->hessian[(size_t)i * n + j] : 0;
            if (i == j)
                *element = i < block ? *element + o->alpha : beyond;
        }
    backend->serial = o->serial;
    return 0;
}

/* By Gauss's elimination, as the matrix is positive definite. */
static void run_precondition(struct backend *backend, const struct operation *o) {
    uint32_t n = backend->n;
    double *m = memory_new((size_t)n * n, sizeof *m), *x = backend->vector[o->a];
    assert(o->serial == backend->serial);
    memcpy(m, backend->factor, (size_t)n * n * sizeof *m);
    memcpy(x, backend->vector[o->b], n * sizeof *x);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            double ratio = m[(size_t)j * n + i] / m[(size_t)i * n + i];
            for (uint32_t k = i; k < n; k++)
                m[(size_t)j * n + k] -= ratio * m[(size_t)i * n + k];
            x[j] -= ratio * x[i];
        }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t k = i + 1; k < n; k++)
            x[i] -= m[(size_t)i * n + k] * x[k];
        x[i] /= m[(size_t)i * n + i];
    }
    free(m);
}

/* A step of Adagrad; the last element is free of l1. */
static void run_adagrad(struct backend *backend, const struct operation *o) {
    double *x = backend->vector[o->a], *sums = backend->vector[o->b];
    const double *g = backend->vector[o->c];
    for (uint32_t i = 0; i < backend->n; i++) {
        double l1 = i == backend->n - 1 ? 0 : o->l1;
        sums[i] += g[i] * g[i];
        double rate = o->alpha / (sqrt(sums[i]) + o->beta);
        double to = x[i] - rate * g[i];
        x[i] = l1 > 0 ? copysign(fmax(fabs(to) - rate * l1, 0), to) : to;
    }
}

static double sign(double a) {
    return (a > 0) - (a < 0);
}

static double pseudo(double x, double g, double l1) {
    return x != 0 ? g + l1 * sign(x) : sign(g) * fmax(fabs(g) - l1, 0);
}

static double side(double x, double q) {
    return x != 0 ? sign(x) : -sign(q);
}

/* Operations with l1 on vectors, whose last element is free of it. */
static void run_orthant(struct backend *backend, const struct operation *o) {
    double *a = backend->vector[o->a], *b = backend->vector[o->b], *c = backend->vector[o->c];
    for (uint32_t i = 0; i + 1 < backend->n; i++) {
        if (o->code == OPERATION_PSEUDO_GRADIENT)
            a[i] = pseudo(b[i], c[i], o->l1);
        else if (o->code == OPERATION_PROJECT && a[i] * side(b[i], c[i]) <= 0)
            a[i] = 0;
        else if (o->code == OPERATION_ALIGN && b[i] == 0 && a[i] * sign(c[i]) >= 0)
            a[i] = 0;
        else if (o->code == OPERATION_MASK && a[i] == 0 && b[i] == 0)
            backend->q[o->slot][i] = backend->y[i] = 0;
    }
    if (o->code == OPERATION_PSEUDO_GRADIENT)
        a[backend->n - 1] = c[backend->n - 1];
}

/* Those that yield scalars. */
static uint32_t measure_orthant(struct backend *backend, const struct operation *o,
                                double *scalars) {
    const double *a = backend->vector[o->a], *b = backend->vector[o->b];
    const double *c = backend->vector[o->c], *d = backend->vector[o->d];
    long double sums[3] = {0, 0, 0};
    for (uint32_t i = 0; i < backend->n; i++) {
        bool free = i == backend->n - 1;
        double s = a[i] - b[i], l1 = free ? 0 : o->l1;
        double excess = fmax(fabs(a[i] - o->alpha * b[i]) - o->l1, 0);
        if (o->code == OPERATION_DESCENT) {
            sums[0] += c[i] * s;
            sums[1] += (d[i] + l1 * side(b[i], c[i])) * s;
            sums[2] += s * s;
        } else if (!free) {
            sums[0] += o->code == OPERATION_NORM_1 ? fabs(a[i]) : excess * excess;
            sums[1] += a[i] != 0;
        }
    }
    uint32_t count = operation_scalars(o);
    for (uint32_t i = 0; i < count; i++)
        scalars[i] = (double)sums[i];
    return count;
}

static uint32_t run_with_l1(struct backend *backend, const struct operation *o, double *scalars) {
    if (operation_scalars(o))
        return measure_orthant(backend, o, scalars);
    run_orthant(backend, o);
    return 0;
}

static void run_add(struct backend *backend, const struct operation *o, const double *to) {
    for (uint32_t i = 0; i < backend->n; i++)
        backend->vector[o->a][i] = to[i] + o->alpha * backend->vector[o->c][i];
}

/* Columns have a square of 1, and no penalty of their own. */
static double one_sum(const struct backend *backend, const struct operation *o) {
    const double *a = backend->vector[o->a], *b = backend->vector[o->b];
    if (o->code == OPERATION_GAP)
        return dot(backend, a, a) / (o->alpha + o->beta);
    if (o->code == OPERATION_METRIC)
        return (dot(backend, a, a) - 2 * dot(backend, a, b) + dot(backend, b, b)) *
               (o->alpha + o->beta);
    if (o->code == OPERATION_DOT_REGULARIZED)
        return dot_regularized(backend, a, b);
    return o->code == OPERATION_MAX_ABS ? max_abs(backend, a) : dot(backend, a, b);
}

static void run_regularize(struct backend *backend, const struct operation *o) {
    const struct rows_problem *problem = backend->rows ? backend->rows->problem : NULL;
    for (uint32_t i = 0; i < backend->n; i++)
        if (!problem || !problem->intercept || (i + 1) % problem->columns)
            backend->vector[o->a][i] += o->alpha * backend->vector[o->b][i];
}

/* Directions are kept as floats. */
static uint32_t run_window(struct backend *backend, const struct operation *o, double *scalars) {
    double *a = backend->vector[o->a];
    for (uint32_t i = 0; i < backend->n && o->code == OPERATION_KEEP; i++)
        backend->window[o->slot][i] = a[i] = (float)a[i];
    for (uint32_t i = 0; i < backend->n && o->code == OPERATION_COMBINE; i++) {
        a[i] = backend->vector[o->b][i];
        for (uint32_t k = 0; k < o->count; k++)
            a[i] += o->u[k] * backend->window[o->slots[k]][i];
    }
    for (uint32_t k = 0; k < o->count && o->code == OPERATION_WINDOW_DOTS; k++)
        scalars[k] = dot_regularized(backend, a, backend->window[o->slots[k]]);
    return operation_scalars(o);
}

static uint32_t run_with_window(struct backend *backend, const struct operation *o,
                                double *scalars) {
    switch (o->code) {
    case OPERATION_KEEP:
    case OPERATION_COMBINE:
    case OPERATION_WINDOW_DOTS:
        return run_window(backend, o, scalars);
    case OPERATION_ROWS_TAKE:
    case OPERATION_ROWS_AT:
    case OPERATION_ROWS_LOSS:
    case OPERATION_ROWS_DERIVATIVE:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_SECOND:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
    case OPERATION_ROWS_ADVANCE:
        return memory_rows_run(backend->rows, o, scalars);
    default:
        break;
    }
    assert(false && "an operation that the optimizer does not issue");
    return 0;
}

/* Runs one operation; answers how many scalars it wrote. */
static uint32_t run_operation(struct backend *backend, const struct operation *o, double *scalars) {
    double **v = backend->vector, *held;
    size_t bytes = backend->n * sizeof(double);
    switch (o->code) {
    case OPERATION_SWAP:
        held = v[o->a];
        v[o->a] = v[o->b];
        v[o->b] = held;
        return 0;
    case OPERATION_ZERO:
        memset(v[o->a], 0, bytes);
        return 0;
    case OPERATION_ADD:
        run_add(backend, o, v[o->b]);
        return 0;
    case OPERATION_GRADIENT:
        memcpy(v[o->a], backend->sum, bytes);
        return 0;
    case OPERATION_REGULARIZE:
        run_regularize(backend, o);
        return 0;
    case OPERATION_PAIR:
        run_pair(backend, o);
        return 0;
    case OPERATION_DIRECTION:
        run_direction(backend, o);
        return 0;
    case OPERATION_DOT:
    case OPERATION_DOT_REGULARIZED:
    case OPERATION_GAP:
    case OPERATION_METRIC:
    case OPERATION_MAX_ABS:
        *scalars = one_sum(backend, o);
        return 1;
    case OPERATION_HISTORY_DOTS:
        return run_history_dots(backend, o, scalars);
    case OPERATION_FACTOR:
        *scalars = run_factor(backend, o);
        return 1;
    case OPERATION_HIDDEN:
        *scalars = 0;
        return 1;
    case OPERATION_PRECONDITION:
        run_precondition(backend, o);
        return 0;
    case OPERATION_ADAGRAD:
        run_adagrad(backend, o);
        return 0;
    case OPERATION_PSEUDO_GRADIENT:
    case OPERATION_PROJECT:
    case OPERATION_ALIGN:
    case OPERATION_MASK:
    case OPERATION_NORM_1:
    case OPERATION_DESCENT:
    case OPERATION_EXCESS:
        return run_with_l1(backend, o, scalars);
    default:
        return run_with_window(backend, o, scalars);
    }
}

void backend_run(struct backend *backend, const struct bytes *program, double *scalars) {
    struct cursor cursor = cursor_over(program->data, program->length);
    struct operation operation;
    while (program_next(&cursor, &operation))
        scalars += run_operation(backend, &operation, scalars);
    assert(!cursor.failed);
}

void backend_lose(struct backend *backend, const struct lbfgs *optimizer) {
    static const enum vector_register scratch[] = {
        REGISTER_T, REGISTER_H, REGISTER_D, REGISTER_PG, REGISTER_PH, REGISTER_QG, REGISTER_QH};
    struct optimizer_checkpoint held = {.best = false};
    lbfgs_row.checkpoint(optimizer, &held);
    for (unsigned i = 0; i < sizeof scratch / sizeof *scratch; i++)
        memset(backend->vector[scratch[i]], 0xff, backend->n * sizeof(double));
    if (!held.best)
        memset(backend->vector[REGISTER_BEST], 0xff, backend->n * sizeof(double));
    if (!held.sums)
        memset(backend->vector[REGISTER_A], 0xff, backend->n * sizeof(double));
    for (uint32_t i = 0; i < WINDOW_MAX; i++) {
        bool kept = false;
        for (uint32_t k = 0; k < held.window; k++)
            kept |= held.window_slots[k] == i;
        if (!kept)
            memset(backend->window[i], 0xff, backend->n * sizeof(double));
    }
    if (backend->rows)
        memory_rows_lose(backend->rows, held.margins, held.window, held.window_slots);
    if (!held.factor) {
        memset(backend->factor, 0xff, backend->n * backend->n * sizeof(double));
        backend->serial = 0;
    }
}

void backend_copy(struct backend *to, const struct backend *from) {
    size_t bytes = from->n * sizeof(double);
    for (int i = 0; i < REGISTERS; i++)
        memcpy(to->vector[i], from->vector[i], bytes);
    for (int i = 0; i < SLOTS_MAX; i++) {
        memcpy(to->s[i], from->s[i], bytes);
        memcpy(to->q[i], from->q[i], bytes);
    }
    for (int i = 0; i < WINDOW_MAX; i++)
        memcpy(to->window[i], from->window[i], bytes);
    memcpy(to->factor, from->factor, from->n * bytes);
    to->serial = from->serial;
    memory_rows_copy(to->rows, from->rows);
}
