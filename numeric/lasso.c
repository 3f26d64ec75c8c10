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
#define SWEEPS_MAX 24
#define CUTS_MAX 40
#define WORK_MAX 4e8      /* products of all rounds: below a second */
#define FACTOR_COST 0.25  /* of a product of the factor of a face */
#define PIVOT_LEAST 1e-13 /* of the largest element of the diagonal */

/* v, and r = g + H(v − x) there. */
struct place {
    double *v, *r;
    double value; /* Q(v) */
};

/* A v_j by how far it is from 0. */
struct ranked {
    double size;
    size_t j;
};

struct solving {
    const struct lasso *of;
    struct place at, cut, clipped;
    size_t *face;    /* the v_j that are free to move, */
    size_t count;    /* how many, */
    size_t factored; /* and of how many, the first ones, the triangle has the factor */
    bool *taken;     /* n of them; false between calls */
    struct ranked *ranked;
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

static bool is_at_border(const struct lasso *o, size_t j, double v) {
    return v == 0 || (o->low && v == o->low[j]) || (o->high && v == o->high[j]);
}

/* Whether one of them came to 0 or to a bound, or left it. */
static bool sweep(const struct lasso *o, struct place *at) {
    size_t n = o->n;
    bool moved = false;
    for (size_t j = 0; j < n; j++) {
        const double *row = o->h + j * n;
        if (is_fixed(o, j))
            continue;
        double v = within(o, j, shrunk(row[j] * at->v[j] - at->r[j], o->l1[j]) / row[j]);
        double change = v - at->v[j];
        moved |= is_at_border(o, j, v) != is_at_border(o, j, at->v[j]);
        at->v[j] = v;
        if (change != 0)
            vector_add(n, at->r, at->r, change, row);
        if (j % 64 == 0)
            heartbeat();
    }
    return moved;
}

/* ---- on the face ---- */

static double sign_of(double v) {
    return v > 0 ? 1 : v < 0 ? -1 : 0;
}

static bool is_free(const struct solving *s, size_t j) {
    struct box_limit limit = limit_of(s->of, j);
    return !is_fixed(s->of, j) && !box_is_held(&limit, s->at.v[j]);
}

static int by_falling_size(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->j < b->j ? -1 : a->j > b->j;
}

/* Those of the former face keep their order, others follow. */
static void find_face(struct solving *s) {
    size_t before = s->count, kept = 0;
    for (size_t a = 0; a < before; a++) {
        size_t j = s->face[a];
        if (!is_free(s, j))
            continue;
        if (kept < a && s->factored > kept)
            s->factored = kept;
        s->taken[j] = true;
        s->face[kept++] = j;
    }
    s->factored = s->factored < kept ? s->factored : kept;
    s->count = kept;
    for (size_t j = 0; j < s->of->n; j++) {
        if (!s->taken[j] && is_free(s, j))
            s->face[s->count++] = j;
        s->taken[j] = false;
    }
    /* A factor's rows before the first v_j that leaves the face stay as they are. Small ones leave
     * first. */
    for (size_t a = kept; a < s->count; a++)
        s->ranked[a] = (struct ranked){fabs(s->at.v[s->face[a]]) *
                                           sqrt(s->of->h[s->face[a] * s->of->n + s->face[a]]),
                                       s->face[a]};
    qsort(s->ranked + kept, s->count - kept, sizeof *s->ranked, by_falling_size);
    for (size_t a = kept; a < s->count; a++)
        s->face[a] = s->ranked[a].j;
}

/* Whether another solution is not too dear; then it counts. A step that is cut short is a step. */
static bool may_solve(struct solving *s) {
    double n = (double)s->count, had = (double)s->factored;
    double cost = 3 * n * (double)s->of->n + FACTOR_COST * (n * n * n - had * had * had) / 6;
    if (!s->count || s->work + cost > WORK_MAX)
        return false;
    s->work += cost;
    return true;
}

/* The step to the minimum over the face, if no sign changed and there were no bounds; none if a
 * pivot is no number. */
static void solve_face(struct solving *s) {
    const struct lasso *o = s->of;
    size_t count = s->count;
    /* Rows of H over the face that have no factor yet. */
    size_t begin = triangle_row(s->factored), end = triangle_row(s->count);
    memset(s->triangle + begin, 0, (end - begin) * sizeof *s->triangle);
    for (size_t a = s->factored; a < s->count; a++) {
        const double *from = o->h + s->face[a] * o->n;
        double *row = s->triangle + triangle_row(a);
        for (size_t b = 0; b <= a; b++)
            row[b] = from[s->face[b]];
    }
    for (size_t a = 0; a < count; a++) {
        size_t j = s->face[a];
        s->step[a] = -(s->at.r[j] + o->l1[j] * sign_of(s->at.v[j]));
    }
    heartbeat();
    bool found = cholesky_ranked_from(s->factored, count, s->triangle, s->pivots);
    s->factored = found ? count : 0;
    if (found)
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

/* True if it came to the minimum over the face, or can come no lower. */
static bool step_on_face(struct solving *s) {
    size_t first = 0;
    solve_face(s);
    /* Where the first v_j must stop on the way, as a share of it, 1 at most; `first` is which. */
    double share = 1;
    for (size_t a = 0; a < s->count; a++) {
        double v = s->at.v[s->face[a]], end = end_of(s, a);
        if (end != v + s->step[a] && (end - v) / s->step[a] < share) {
            share = (end - v) / s->step[a];
            first = a;
        }
    }
    make_points(s, share, first);
    struct place *best = share < 1 && s->clipped.value <= s->cut.value ? &s->clipped : &s->cut;
    if (!(best->value <= s->at.value))
        return true;
    struct place old = s->at;
    s->at = *best;
    *best = old;
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
        bool moved = true;
        for (unsigned i = 0; i < SWEEPS_MAX && moved; i++) {
            s->work += (double)o->n * (double)o->n;
            moved = sweep(o, &s->at);
        }
        s->work += (double)o->n * (double)o->n;
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
                        .face = memory_new(n, sizeof *s.face),
                        .taken = memory_new(n, sizeof *s.taken),
                        .ranked = memory_new(n, sizeof *s.ranked)};
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
    free(s.taken);
    free(s.ranked);
    free(memory);
}
