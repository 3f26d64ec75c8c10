#include "shard/listed.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "numeric/box.h"
#include "numeric/fixed.h"
#include "numeric/lasso.h"
#include "shard/pass_plan.h"
#include "shard/registers.h"

#define ELEMENTS_A_BEAT ((size_t)1 << 20)

/* The quadratic is solved to this share of its pseudo-gradient: the sums of a sample of rows are
 * not worth more. */
#define SOLVE_TOLERANCE 1e-3

/* Added to the diagonal, relative to it: columns may repeat each other. */
#define DIAGONAL_ADDED 1e-10

/* ---- LIST ---- */

/* An element that the gradient can move from where it is held, and by how much it exceeds that. */
struct violator {
    double excess;
    size_t element;
};

struct listing {
    const struct registers *registers;
    const struct operation *operation;
    size_t *support;
    size_t support_count;  /* all of them; at most WORKING_SET_MAX are noted */
    struct violator *heap; /* the least excess first; at most `limit` */
    size_t heap_count, violators;
};

/* Whether a comes after b: it has less excess, or as much and a higher number. */
static bool is_less(struct violator a, struct violator b) {
    return a.excess < b.excess || (a.excess == b.excess && a.element > b.element);
}

static void sift_down(struct violator *heap, size_t count, size_t at) {
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < count && is_less(heap[child + 1], heap[child]))
            child++;
        if (child >= count || !is_less(heap[child], heap[at]))
            return;
        struct violator moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static void sift_up(struct violator *heap, size_t at) {
    while (at && is_less(heap[at], heap[(at - 1) / 2])) {
        struct violator moved = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

static double lasso_of(const struct registers *registers, size_t element, bool regularized) {
    const struct scaling *scaling = &registers->scaling;
    if (!regularized)
        return 0;
    if (registers->limits.used)
        return registers->limits.lasso[element];
    return scaling->used ? scaling->root[element] : 1;
}

static struct box_limit limit_of(const struct listing *l, size_t element, bool regularized) {
    const struct limits *limits = &l->registers->limits;
    return (struct box_limit){l->operation->l1 * lasso_of(l->registers, element, regularized),
                              limits->used ? limits->low[element] : -INFINITY,
                              limits->used ? limits->high[element] : INFINITY};
}

/* By how much the gradient exceeds what holds the element; infinite if nothing does. */
static double excess_of(const struct listing *l, size_t element, bool regularized) {
    struct box_limit limit = limit_of(l, element, regularized);
    double x = l->registers->vector[l->operation->a].elements[element];
    double gradient = l->registers->vector[l->operation->b].elements[element];
    return box_is_held(&limit, x) ? fabs(box_pseudo(&limit, x, gradient)) : INFINITY;
}

static void note_element(struct listing *l, size_t element, bool regularized) {
    double excess = excess_of(l, element, regularized);
    if (isinf(excess)) {
        if (l->support_count < WORKING_SET_MAX)
            l->support[l->support_count] = element;
        l->support_count++;
        return;
    }
    if (!(excess > 0))
        return;
    const struct violator violator = {excess, element};
    l->violators++;
    if (l->heap_count < l->operation->limit) {
        l->heap[l->heap_count++] = violator;
        sift_up(l->heap, l->heap_count - 1);
    } else if (l->heap_count && is_less(l->heap[0], violator)) {
        l->heap[0] = violator;
        sift_down(l->heap, l->heap_count, 0);
    }
}

static void note_spans(struct listing *l, const struct layout_span *spans, uint32_t count,
                       bool regularized) {
    for (uint32_t i = 0; i < count; i++)
        for (size_t j = 0; j < spans[i].count; j++) {
            note_element(l, (size_t)spans[i].first + j, regularized);
            if (j % ELEMENTS_A_BEAT == 0)
                heartbeat();
        }
}

static void put_element(const struct listing *l, size_t element, bool regularized,
                        struct bytes *out) {
    const struct registers *registers = l->registers;
    const struct scaling *scaling = &registers->scaling;
    const struct box_limit limit = limit_of(l, element, regularized);
    listed_put(out, &(struct listed){
                        .number = registers->first + element,
                        .regularized = regularized,
                        .exponent = registers->exponents[element],
                        .x = registers->vector[l->operation->a].elements[element],
                        .gradient = registers->vector[l->operation->b].elements[element],
                        .mean = scaling->used ? scaling->mean[element] : 0,
                        .scale = scaling->used ? scaling->scale[element] : 1,
                        .penalty = scaling->used ? scaling->penalty[element] : 1,
                        .square = regularized && scaling->square ? scaling->square[element] : 0,
                        .lasso = lasso_of(registers, element, regularized),
                        .low = limit.low,
                        .high = limit.high,
                        .excess = excess_of(l, element, regularized)});
}

static bool is_regularized(const struct registers *registers, size_t element) {
    for (uint32_t i = 0; i < registers->regularized_count; i++)
        if (element - registers->regularized[i].first < registers->regularized[i].count)
            return true;
    return false;
}

static void put_all(const struct listing *l, struct bytes *out) {
    bool few = l->support_count <= WORKING_SET_MAX;
    size_t support = few ? l->support_count : 0, violators = few ? l->heap_count : 0;
    bytes_put_u32(out, (uint32_t)(support + violators));
    for (size_t i = 0; i < support; i++)
        put_element(l, l->support[i], is_regularized(l->registers, l->support[i]), out);
    for (size_t i = 0; i < violators; i++)
        put_element(l, l->heap[i].element, true, out);
}

static int list_elements(struct registers *registers, const struct operation *operation,
                         struct yield *yields, struct bytes *out) {
    int code = registers_pull(registers, operation->a, 0, registers->count);
    if (!code)
        code = registers_pull(registers, operation->b, 0, registers->count);
    if (code)
        return code;
    struct listing l = {.registers = registers,
                        .operation = operation,
                        .support = memory_new(WORKING_SET_MAX, sizeof *l.support),
                        .heap = memory_new(operation->limit + 1, sizeof *l.heap)};
    note_spans(&l, registers->regularized, registers->regularized_count, true);
    note_spans(&l, registers->biases, registers->biases_count, false);
    put_all(&l, out);
    exact_add(&yields[0].sum, (double)l.support_count);
    exact_add(&yields[1].sum, (double)l.violators);
    free(l.support);
    free(l.heap);
    return 0;
}

/* ---- SOLVE ---- */

/* The quadratic of a step, and where it lies. */
struct quadratic {
    size_t n;
    struct listed *listed;
    double *h, *g, *x, *l1, *low, *high, *v; /* of struct lasso */
};

static void quadratic_init(struct quadratic *q, const struct operation *operation) {
    size_t n = operation->listed;
    *q = (struct quadratic){.n = n,
                            .listed = memory_new(n, sizeof *q->listed),
                            .h = memory_new(n * n, sizeof *q->h),
                            .g = memory_new(6 * n, sizeof *q->g)};
    q->x = q->g + n;
    q->l1 = q->g + 2 * n;
    q->low = q->g + 3 * n;
    q->high = q->g + 4 * n;
    q->v = q->g + 5 * n;
    for (size_t i = 0; i < n; i++) {
        const struct listed listed = listed_at(operation->list, i);
        q->listed[i] = listed;
        q->g[i] = listed.gradient;
        q->x[i] = listed.x;
        q->l1[i] = listed.regularized ? operation->l1 * listed.lasso : 0;
        q->low[i] = listed.low;
        q->high[i] = listed.high;
    }
}

static void quadratic_release(struct quadratic *q) {
    free(q->listed);
    free(q->h);
    free(q->g);
}

/* Powers of two so close to 1 that no product of two of them and a sum leaves the range of numbers.
 */
#define EXPONENT_CLOSE 300

/* Rows and columns that stay in the nearest cache while they are mirrored. */
#define TILE 32

/* The upper triangle, as the lower one. */
static void mirror(struct quadratic *q) {
    size_t n = q->n;
    for (size_t first = 0; first < n; first += TILE) {
        for (size_t r = first; r < n; r++)
            for (size_t c = first; c < r && c < first + TILE; c++)
                q->h[c * n + r] = q->h[r * n + c];
        heartbeat();
    }
}

/* Second derivatives by weights: exponents undone. Of columns in usual units two factors do. */
static void read_sums(struct quadratic *q, const struct registers *registers, int bound) {
    double *power = memory_new(q->n, sizeof *power);
    bool close = true;
    for (size_t r = 0; r < q->n; r++) {
        close &= abs(31 - q->listed[r].exponent) < EXPONENT_CLOSE;
        power[r] = ldexp(1, 31 - q->listed[r].exponent);
    }
    double own = ldexp(1, bound) / registers->weight_sum;
    close &= abs(bound) < EXPONENT_CLOSE && isnormal(own);
    for (size_t r = 0; r < q->n; r++) {
        const int64_t *sums = registers->sum + r * (r + 1) / 2;
        for (size_t c = 0; c <= r; c++) {
            int exponent = 62 + bound - q->listed[r].exponent - q->listed[c].exponent;
            double sum = (double)sums[c];
            q->h[r * q->n + c] = close ? sum * power[r] * power[c] * own
                                       : ldexp(sum, exponent) / registers->weight_sum;
        }
        if (r % 64 == 0)
            heartbeat();
    }
    mirror(q);
    free(power);
}

/* Biases are the last parameters. */
static size_t weights_of(const struct quadratic *q) {
    size_t weights = q->n;
    while (weights && !q->listed[weights - 1].regularized)
        weights--;
    return weights;
}

/* The biases that are added to the margins of weight i: that of its output, or all where outputs
 * share weights. */
static struct layout_span biases_of(const struct quadratic *q, const struct layout *layout,
                                    size_t i) {
    size_t weights = weights_of(q), biases = q->n - weights;
    uint64_t outputs = layout->tensor[0].columns, output = q->listed[i].number % outputs;
    assert(!biases || outputs == 1 || biases == outputs);
    return outputs == 1 ? (struct layout_span){weights, biases}
                        : (struct layout_span){weights + output, biases ? 1 : 0};
}

/* By scaled parameters, along one side of the matrix: that by z is s·(that by w − m·that by its
 * biases). From one parameter to the next it is `step` elements along this side, and `across` along
 * the other. */
static void scale_side(struct quadratic *q, const struct layout *layout, size_t step,
                       size_t across) {
    size_t weights = weights_of(q);
    for (size_t i = 0; i < weights; i++) {
        struct layout_span own = biases_of(q, layout, i);
        for (size_t at = 0; at < q->n * across; at += across) {
            double bias = 0;
            for (size_t b = own.first; b < own.first + own.count; b++)
                bias += q->h[b * step + at];
            double *h = &q->h[i * step + at];
            *h = q->listed[i].scale * (*h - q->listed[i].mean * bias);
        }
        heartbeat();
    }
}

static bool is_scaled(const struct quadratic *q) {
    for (size_t i = 0; i < q->n; i++)
        if (q->listed[i].scale != 1 || q->listed[i].mean != 0)
            return true;
    return false;
}

bool listed_biases_fit(const struct operation *operation, const struct layout *layout) {
    uint64_t outputs = layout->tensor[0].columns, biases = 0;
    for (size_t i = operation->listed; i-- && !listed_at(operation->list, i).regularized;)
        biases++;
    return !biases || outputs == 1 || biases == outputs;
}

/* The rows, and then the columns. */
static void scale(struct quadratic *q, const struct layout *layout) {
    if (!is_scaled(q))
        return;
    scale_side(q, layout, q->n, 1);
    scale_side(q, layout, 1, q->n);
}

/* l2, and the damping. */
static void raise_diagonal(struct quadratic *q, double lambda, double damping) {
    for (size_t i = 0; i < q->n; i++) {
        double *own = &q->h[i * q->n + i];
        double ridge = q->listed[i].regularized ? lambda * q->listed[i].penalty : 0;
        *own += *own * DIAGONAL_ADDED + damping * q->listed[i].square + ridge;
    }
}

/* The triangle is on the shard that begins the vector: others yield 0. */
static int solve_step(struct registers *registers, const struct operation *operation,
                      const struct bounds *bounds, struct yield *yields) {
    size_t sums = registers_sums(registers, SUMS_TRIANGLE);
    struct quadratic q;
    if (!sums || !operation->listed)
        return 0;
    assert((size_t)operation->listed * (operation->listed + 1) / 2 <= sums);
    int code = registers->backend->pull_sum ? registers->backend->pull_sum(registers, sums) : 0;
    if (code)
        return code;
    quadratic_init(&q, operation);
    read_sums(&q, registers, bounds->exponent[0]);
    scale(&q, &registers->layout);
    raise_diagonal(&q, operation->alpha, operation->beta);
    lasso_solve(&(struct lasso){q.n, q.h, q.g, q.x, q.l1, q.low, q.high}, SOLVE_TOLERANCE, q.v);
    for (size_t i = 0; i < q.n; i++)
        exact_add(&yields[i].sum, q.v[i] - q.x[i]);
    quadratic_release(&q);
    return 0;
}

/* ---- SCATTER ---- */

static int scatter(struct registers *registers, const struct operation *operation) {
    double *a = registers->vector[operation->a].elements;
    heartbeat_clear(a, registers->count * sizeof *a);
    for (size_t i = 0; i < operation->listed; i++) {
        uint64_t element = value_number_at(operation->list, i) - registers->first;
        if (element < registers->count)
            a[element] = value_at_number(operation->list, i);
    }
    return registers_push(registers, operation->a, 0, registers->count);
}

int listed_run(const struct operation_list *list, struct registers *registers,
               const struct bounds *bounds, struct yield *yields, struct bytes *listed) {
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        const struct operation *operation = &list->items[i];
        if (operation->code == OPERATION_LIST)
            code = list_elements(registers, operation, yields, listed);
        else if (operation->code == OPERATION_SOLVE)
            code = solve_step(registers, operation, bounds, yields);
        else if (operation->code == OPERATION_SCATTER)
            code = scatter(registers, operation);
        yields += operation_scalars(operation);
    }
    return code;
}
