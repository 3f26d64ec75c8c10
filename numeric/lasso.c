#include "numeric/lasso.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "numeric/box.h"
#include "numeric/dense.h"
#include "numeric/vector.h"

#define ROUNDS_MAX 60
#define SWEEPS 12
#define CUTS_MAX 40
#define WORK_MAX 4e8      /* products of all rounds: below a second */
#define FACTOR_PRICE 0.25 /* of a product of the factor of a face */
#define PIVOT_LEAST 1e-13 /* of the largest element of the diagonal */

/* v, and r = g + H(v − x) there. */
struct place {
    double *v, *r;
    double value; /* Q(v) */
};

struct solving {
    const struct lasso *of;
    struct place at, cut, clipped;
    size_t *face; /* the v_j that are free to move, and how many */
    size_t count;
    double *triangle, *step, *pivots; /* of the face */
    double work;
};

static double shrunk(double a, double by) {
    return a > by ? a - by : a < -by ? a + by : 0;
}

static bool is_fixed(const struct lasso *o, size_t j) {
    return !(o->h[j * o->n + j] > 0);
}

static struct box_limit limit_of(const struct lasso *o, size_t j) {
    return (struct box_limit){o->l1[j], o->low ? o->low[j] : -INFINITY,
                              o->high ? o->high[j] : INFINITY};
}

static double within(const struct lasso *o, size_t j, double v) {
    struct box_limit limit = limit_of(o, j);
    return fmin(fmax(v, limit.low), limit.high);
}

/* The largest component of the pseudo-gradient. */
static double pseudo_gradient_max(const struct lasso *o, const struct place *at) {
    double most = 0;
    for (size_t j = 0; j < o->n; j++) {
        struct box_limit limit = limit_of(o, j);
        if (!is_fixed(o, j))
            most = fmax(most, fabs(box_pseudo(&limit, at->v[j], at->r[j])));
    }
    return most;
}

/* r and Q at v. */
static void measure(const struct lasso *o, struct place *at) {
    size_t n = o->n;
    memcpy(at->r, o->g, n * sizeof *at->r);
    for (size_t j = 0; j < n; j++) {
        double d = at->v[j] - o->x[j];
        if (d != 0)
            vector_add(n, at->r, at->r, d, o->h + j * n);
        if (j % 64 == 0)
            heartbeat();
    }
    at->value = 0;
    for (size_t j = 0; j < n; j++)
        at->value += (at->v[j] - o->x[j]) * (o->g[j] + at->r[j]) / 2 + o->l1[j] * fabs(at->v[j]);
}

static void sweep(const struct lasso *o, struct place *at) {
    size_t n = o->n;
    for (size_t j = 0; j < n; j++) {
        const double *row = o->h + j * n;
        if (is_fixed(o, j))
            continue;
        double v = within(o, j, shrunk(row[j] * at->v[j] - at->r[j], o->l1[j]) / row[j]);
        double change = v - at->v[j];
        at->v[j] = v;
        if (change != 0)
            vector_add(n, at->r, at->r, change, row);
        if (j % 64 == 0)
            heartbeat();
    }
}

/* ---- on the face ---- */

static double sign_of(double v) {
    return v > 0 ? 1 : v < 0 ? -1 : 0;
}

static void find_face(struct solving *s) {
    const struct lasso *o = s->of;
    s->count = 0;
    for (size_t j = 0; j < o->n; j++) {
        struct box_limit limit = limit_of(o, j);
        if (!is_fixed(o, j) && !box_is_held(&limit, s->at.v[j]))
            s->face[s->count++] = j;
    }
}

/* Whether another solution is not too dear; then it counts. A step that is cut short is a step. */
static bool may_solve(struct solving *s) {
    double n = (double)s->count, price = FACTOR_PRICE * n * n * n / 6;
    if (!s->count || s->work + price > WORK_MAX)
        return false;
    s->work += price;
    return true;
}

/* The step to the minimum over the face, if no sign changed and there were no bounds; none if a
 * pivot is no number. */
static void solve_face(struct solving *s) {
    const struct lasso *o = s->of;
    size_t count = s->count;
    memset(s->triangle, 0, triangle_row(count) * sizeof *s->triangle);
    for (size_t a = 0; a < count; a++) {
        size_t j = s->face[a];
        double *row = s->triangle + triangle_row(a);
        for (size_t b = 0; b <= a; b++)
            row[b] = o->h[j * o->n + s->face[b]];
        s->step[a] = -(s->at.r[j] + o->l1[j] * sign_of(s->at.v[j]));
    }
    heartbeat();
    if (cholesky_ranked(count, s->triangle, s->pivots))
        cholesky_solve(count, s->triangle, s->step);
    else
        memset(s->step, 0, count * sizeof *s->step);
    heartbeat();
}

/* Where a step of the face ends that stops at 0 and at bounds. */
static double end_of(const struct solving *s, size_t a) {
    size_t j = s->face[a];
    double v = s->at.v[j], end = v + s->step[a];
    bool crosses = s->of->l1[j] > 0 && end * sign_of(v) < 0;
    return within(s->of, j, crosses ? 0 : end);
}

/* Where the first v_j must stop on the way, as a share of it, 1 at most; `first` is which. */
static double share_to_border(const struct solving *s, size_t *first) {
    double share = 1;
    for (size_t a = 0; a < s->count; a++) {
        double v = s->at.v[s->face[a]], end = end_of(s, a);
        if (end != v + s->step[a] && (end - v) / s->step[a] < share) {
            share = (end - v) / s->step[a];
            *first = a;
        }
    }
    return share;
}

/* The two points: cut where the first v_j must stop, and with all there that must. */
static void make_points(struct solving *s, double share, size_t first) {
    const struct lasso *o = s->of;
    memcpy(s->cut.v, s->at.v, o->n * sizeof *s->cut.v);
    memcpy(s->clipped.v, s->at.v, o->n * sizeof *s->clipped.v);
    for (size_t a = 0; a < s->count; a++) {
        size_t j = s->face[a];
        double end = end_of(s, a);
        s->cut.v[j] = share < 1 && a == first ? end : within(o, j, s->at.v[j] + share * s->step[a]);
        s->clipped.v[j] = end;
    }
    measure(o, &s->cut);
    if (share < 1)
        measure(o, &s->clipped);
}

static void go_to(struct place *at, struct place *to) {
    struct place old = *at;
    *at = *to;
    *to = old;
}

/* True if it came to the minimum over the face, or can come no lower. */
static bool step_on_face(struct solving *s) {
    size_t first = 0;
    solve_face(s);
    double share = share_to_border(s, &first);
    make_points(s, share, first);
    struct place *best = share < 1 && s->clipped.value <= s->cut.value ? &s->clipped : &s->cut;
    if (!(best->value <= s->at.value))
        return true;
    go_to(&s->at, best);
    find_face(s);
    return share >= 1;
}

/* ---- the whole ---- */

static bool all_finite(const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

static void solve(struct solving *s, double tolerance) {
    const struct lasso *o = s->of;
    double end = tolerance * pseudo_gradient_max(o, &s->at);
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        if (pseudo_gradient_max(o, &s->at) <= end || s->work > WORK_MAX)
            return;
        s->work += (SWEEPS + 1.0) * (double)o->n * (double)o->n;
        for (unsigned i = 0; i < SWEEPS; i++)
            sweep(o, &s->at);
        measure(o, &s->at);
        find_face(s);
        for (unsigned cuts = 0; cuts < CUTS_MAX && may_solve(s) && !step_on_face(s); cuts++) {
        }
    }
}

void lasso_solve(const struct lasso *lasso, double tolerance, double *v) {
    size_t n = lasso->n;
    assert(tolerance > 0 && tolerance < 1);
    if (!n)
        return;
    double *memory = memory_new(8 * n, sizeof *memory), largest = 0;
    struct solving s = {.of = lasso,
                        .at = {memory, memory + n, 0},
                        .cut = {memory + 2 * n, memory + 3 * n, 0},
                        .clipped = {memory + 4 * n, memory + 5 * n, 0},
                        .step = memory + 6 * n,
                        .pivots = memory + 7 * n,
                        .triangle = memory_new_aligned(triangle_row(n), sizeof *s.triangle),
                        .face = memory_new(n, sizeof *s.face)};
    for (size_t j = 0; j < n; j++)
        largest = fmax(largest, lasso->h[j * n + j]);
    for (size_t j = 0; j < n; j++)
        s.pivots[j] = PIVOT_LEAST * largest;
    memcpy(s.at.v, lasso->x, n * sizeof *s.at.v);
    bool finite = all_finite(lasso->h, n * n) && all_finite(lasso->g, n) &&
                  all_finite(lasso->x, n) && all_finite(lasso->l1, n);
    if (finite) {
        measure(lasso, &s.at);
        solve(&s, tolerance);
    }
    for (size_t j = 0; j < n; j++)
        v[j] = finite ? s.at.v[j] : NAN;
    free(s.triangle);
    free(s.face);
    free(memory);
}
