#include "tests/unit/memory_rows.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"

enum { OUTPUTS_MAX = 32 };

static size_t numbers(const struct memory_rows *rows) {
    return (size_t)rows->problem->rows * rows->problem->outputs;
}

static double **vector_at(struct memory_rows *rows, uint32_t i) {
    double **const others[] = {&rows->margins, &rows->derivatives, &rows->at,   &rows->labels,
                               &rows->weights, &rows->sums,        &rows->sizes};
    return i < WINDOW_MAX ? &rows->product[i] : others[i - WINDOW_MAX];
}

enum { VECTORS = WINDOW_MAX + 7 };

void memory_rows_init(struct memory_rows *rows, const struct rows_problem *problem) {
    *rows = (struct memory_rows){.problem = problem};
    assert(problem->outputs <= OUTPUTS_MAX);
    for (uint32_t i = 0; i < VECTORS; i++)
        *vector_at(rows, i) = memory_new(numbers(rows), sizeof(double));
    for (uint32_t i = 0; i < problem->rows; i++)
        rows->weights[(size_t)i * problem->outputs] = 1;
}

void memory_rows_release(struct memory_rows *rows) {
    for (uint32_t i = 0; i < VECTORS; i++)
        free(*vector_at(rows, i));
}

void memory_rows_copy(struct memory_rows *to, const struct memory_rows *from) {
    struct memory_rows source = *from;
    for (uint32_t i = 0; i < VECTORS; i++)
        memcpy(*vector_at(to, i), *vector_at(&source, i), numbers(from) * sizeof(double));
}

void memory_rows_lose(struct memory_rows *rows, bool margins, uint32_t window,
                      const uint64_t *slots) {
    for (uint32_t i = 0; i < VECTORS; i++) {
        bool held = margins && i == WINDOW_MAX;
        for (uint32_t k = 0; k < window; k++)
            held |= slots[k] == i;
        if (!held)
            memset(*vector_at(rows, i), 0xff, numbers(rows) * sizeof(double));
    }
    for (uint32_t i = 0; i < rows->problem->rows && !rows->problem->weights; i++)
        rows->weights[(size_t)i * rows->problem->outputs] = 1;
}

/* ---- losses of a row ---- */

/* The loss; with derivatives by its margins, and second ones (outputs×outputs), if they are asked
 * for. */
static double loss_of(const struct rows_problem *problem, const double *z, double y, double *first,
                      double *second) {
    uint32_t outputs = problem->outputs;
    double scratch[OUTPUTS_MAX], squares[OUTPUTS_MAX * OUTPUTS_MAX];
    first = first ? first : scratch;
    second = second ? second : squares;
    if (problem->loss == ROWS_LOGISTIC) {
        double chance = 1 / (1 + exp(y * z[0]));
        first[0] = -y * chance;
        second[0] = chance * (1 - chance);
        return y * z[0] > 0 ? log1p(exp(-y * z[0])) : log1p(exp(y * z[0])) - y * z[0];
    }
    if (problem->loss == ROWS_SQUARED || problem->loss == ROWS_CORNER) {
        bool squared = problem->loss == ROWS_SQUARED;
        double a = z[0] - y;
        first[0] = squared ? a : (a > 0) - (a < 0);
        second[0] = squared;
        return squared ? a * a / 2 : fabs(a);
    }
    double most = z[0], sum = 0;
    for (uint32_t k = 1; k < outputs; k++)
        most = fmax(most, z[k]);
    for (uint32_t k = 0; k < outputs; k++)
        sum += exp(z[k] - most);
    double loss = most + log(sum) - z[(uint32_t)y];
    for (uint32_t k = 0; k < outputs; k++)
        first[k] = exp(z[k] - most) / sum;
    for (uint32_t k = 0; k < outputs; k++)
        for (uint32_t l = 0; l < outputs; l++)
            second[k * outputs + l] = (k == l ? first[k] : 0) - first[k] * first[l];
    first[(uint32_t)y] -= 1;
    return loss;
}

static double weight_of(const struct rows_problem *problem, uint32_t row) {
    return problem->weights ? problem->weights[row] : 1;
}

double rows_weight_sum(const struct rows_problem *problem) {
    double sum = 0;
    for (uint32_t i = 0; i < problem->rows; i++)
        sum += weight_of(problem, i);
    return sum;
}

/* ---- evaluations ---- */

static void margins_of(const struct rows_problem *problem, const double *t, uint32_t row,
                       double *z) {
    for (uint32_t k = 0; k < problem->outputs; k++) {
        z[k] = 0;
        for (uint32_t e = problem->start[row]; e < problem->start[row + 1]; e++)
            z[k] += problem->value[e] * t[(size_t)k * problem->columns + problem->column[e]];
    }
}

double rows_loss_at(const struct rows_problem *problem, const double *t) {
    double sum = 0, z[OUTPUTS_MAX];
    for (uint32_t i = 0; i < problem->rows; i++) {
        margins_of(problem, t, i, z);
        sum += weight_of(problem, i) * loss_of(problem, z, problem->labels[i], NULL, NULL);
    }
    return sum;
}

/* Σ|x_j| + 1 ≤ 2^size. */
static int size_of(const struct rows_problem *problem, uint32_t row) {
    double sum = 1;
    for (uint32_t e = problem->start[row]; e < problem->start[row + 1]; e++)
        sum += fabs(problem->value[e]);
    int size;
    frexp(sum, &size);
    return size;
}

/* The row's margins as sums of tiles. Answers whether one is beyond what the bound allows. */
static bool round_margins(const struct memory_rows *rows, uint32_t row, double *z) {
    int unit = fixed_tile_exponent(size_of(rows->problem, row), rows->point);
    bool exceeded = false;
    for (uint32_t k = 0; k < rows->problem->outputs; k++) {
        z[k] = rint(ldexp(z[k], -unit));
        exceeded |= !(fabs(z[k]) <= 0x1p61);
    }
    return exceeded;
}

static void add_gradient(const struct rows_problem *problem, uint32_t row, const double *d,
                         double *sum) {
    double weight = weight_of(problem, row);
    for (uint32_t k = 0; k < problem->outputs; k++)
        for (uint32_t e = problem->start[row]; e < problem->start[row + 1]; e++)
            sum[(size_t)k * problem->columns + problem->column[e]] +=
                weight * d[k] * problem->value[e];
}

double memory_rows_evaluate(struct memory_rows *rows, uint32_t kind, int point, const double *t,
                            double *sum, bool *exceeded) {
    const struct rows_problem *problem = rows->problem;
    uint32_t outputs = problem->outputs;
    double total = 0, z[OUTPUTS_MAX], d[OUTPUTS_MAX];
    bool fused = kind == EVALUATION_GRADIENT, gradient = fused || kind == EVALUATION_TRANSPOSE;
    double scale = 1 / rows_weight_sum(problem);
    rows->point = point;
    *exceeded = false;
    if (gradient)
        memset(sum, 0, (size_t)problem->columns * outputs * sizeof *sum);
    for (uint32_t i = 0; i < problem->rows; i++) {
        double *numbers_of_row = rows->sums + (size_t)i * outputs;
        if (kind == EVALUATION_LABELS)
            numbers_of_row[0] = problem->labels[i];
        else if (kind == EVALUATION_WEIGHTS)
            numbers_of_row[0] = weight_of(problem, i);
        else if (kind == EVALUATION_SIZES)
            numbers_of_row[0] = size_of(problem, i);
        else if (kind == EVALUATION_PRODUCT)
            margins_of(problem, t, i, numbers_of_row);
        if (kind == EVALUATION_PRODUCT && problem->tiles)
            *exceeded |= round_margins(rows, i, numbers_of_row);
        if (fused) {
            margins_of(problem, t, i, z);
            total += weight_of(problem, i) * loss_of(problem, z, problem->labels[i], d, NULL);
        }
        if (gradient)
            add_gradient(problem, i, fused ? d : rows->derivatives + (size_t)i * outputs, sum);
    }
    for (size_t j = 0; j < (size_t)problem->columns * outputs && gradient; j++)
        sum[j] *= scale;
    return fused ? total : problem->rows;
}

/* ---- operations ---- */

static void take(struct memory_rows *rows, const struct operation *o) {
    double *const to[] = {[ROWS_LABELS] = rows->labels,
                          [ROWS_WEIGHTS] = rows->weights,
                          [ROWS_MARGINS] = rows->margins,
                          [ROWS_PRODUCT] = rows->product[o->slot],
                          [ROWS_SIZES] = rows->sizes};
    uint32_t outputs = rows->problem->outputs;
    bool margins = o->vector == ROWS_MARGINS || o->vector == ROWS_PRODUCT;
    for (size_t i = 0; i < numbers(rows) && margins && rows->problem->tiles; i++) {
        double size = rows->sizes[i / outputs * outputs];
        assert(!isnan(size));
        rows->sums[i] = ldexp(rows->sums[i], fixed_tile_exponent((int)size, rows->point));
    }
    memcpy(to[o->vector], rows->sums, numbers(rows) * sizeof(double));
    memset(rows->sums, 0xff, numbers(rows) * sizeof(double));
}

static void go_to(struct memory_rows *rows, const struct operation *o) {
    for (size_t i = 0; i < numbers(rows); i++) {
        double sum = rows->margins[i];
        for (uint32_t k = 0; k < o->count; k++)
            sum += o->u[k] * rows->product[o->slots[k]][i];
        rows->at[i] = sum;
    }
}

static bool sampled(uint64_t sample_seed, uint32_t row, double rate) {
    uint64_t hash = (sample_seed * 0x9e3779b97f4a7c15 + row) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 29) * 0x94d049bb133111eb;
    return (double)(hash >> 11) * 0x1p-53 < rate;
}

/* Adds a row's share of each scalar. */
static void measure_row(struct memory_rows *rows, const struct operation *o, uint32_t i,
                        double *scalars) {
    const struct rows_problem *problem = rows->problem;
    uint32_t outputs = problem->outputs;
    size_t at = (size_t)i * outputs;
    double weight = rows->weights[at], first[OUTPUTS_MAX], second[OUTPUTS_MAX * OUTPUTS_MAX];
    double loss = loss_of(problem, rows->at + at, rows->labels[at], first, second);
    if (o->code == OPERATION_ROWS_LOSS)
        scalars[0] += weight * loss;
    for (uint32_t k = 0; k < outputs && o->code == OPERATION_ROWS_DERIVATIVE; k++)
        scalars[0] = isfinite(first[k]) ? fmax(scalars[0], fabs(first[k])) : INFINITY;
    for (uint32_t a = 0; a < o->count && o->code == OPERATION_ROWS_SLOPES; a++)
        for (uint32_t k = 0; k < outputs; k++)
            scalars[a] += weight * first[k] * rows->product[o->slots[a]][at + k];
    bool all = o->code == OPERATION_ROWS_SECOND,
         curves = all || o->code == OPERATION_ROWS_HESSIAN_PRODUCT;
    if (!curves || !sampled(o->serial, i, o->alpha))
        return;
    for (uint32_t a = 0; a < o->count; a++)
        for (uint32_t b = 0; b <= (all ? a : 0); b++, scalars++)
            for (uint32_t k = 0; k < outputs; k++)
                for (uint32_t l = 0; l < outputs; l++)
                    *scalars += weight / o->alpha * rows->product[o->slots[a]][at + k] *
                                second[k * outputs + l] *
                                rows->product[all ? o->slots[b] : o->slot][at + l];
}

static void advance(struct memory_rows *rows) {
    const struct rows_problem *problem = rows->problem;
    memcpy(rows->margins, rows->at, numbers(rows) * sizeof(double));
    for (uint32_t i = 0; i < problem->rows; i++) {
        size_t at = (size_t)i * problem->outputs;
        loss_of(problem, rows->at + at, rows->labels[at], rows->derivatives + at, NULL);
    }
}

uint32_t memory_rows_run(struct memory_rows *rows, const struct operation *o, double *scalars) {
    uint32_t count = operation_scalars(o);
    if (o->code == OPERATION_ROWS_TAKE)
        take(rows, o);
    else if (o->code == OPERATION_ROWS_AT)
        go_to(rows, o);
    else if (o->code == OPERATION_ROWS_ADVANCE)
        advance(rows);
    memset(scalars, 0, count * sizeof *scalars);
    for (uint32_t i = 0; i < rows->problem->rows && count; i++)
        measure_row(rows, o, i, scalars);
    return count;
}
