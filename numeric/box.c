#include "numeric/box.h"

#include <assert.h>
#include <math.h>

#include "numeric/steps.h"

#define ROUNDING 0x1p-50

struct box_limit box_limit_at(const struct box *box, size_t j) {
    return (struct box_limit){box->l1 * box->lasso[j], box->low[j], box->high[j]};
}

bool box_is_at_bound(const struct box_limit *limit, double x) {
    return x <= limit->low || x >= limit->high;
}

bool box_is_held(const struct box_limit *limit, double x) {
    return (x == 0 && limit->l1 > 0) || box_is_at_bound(limit, x);
}

double box_pseudo(const struct box_limit *limit, double x, double g) {
    double right = x >= 0 ? g + limit->l1 : g - limit->l1;
    double left = x > 0 ? g + limit->l1 : g - limit->l1;
    if (isnan(g))
        return g;
    if (right < 0 && x < limit->high)
        return right;
    return left > 0 && x > limit->low ? left : 0;
}

double box_clip(const struct box_limit *limit, double x, double t) {
    double near = ROUNDING * fabs(x);
    if (t <= limit->low ||
        (isfinite(limit->low) && t - limit->low <= near + ROUNDING * fabs(limit->low)))
        return limit->low;
    if (t >= limit->high ||
        (isfinite(limit->high) && limit->high - t <= near + ROUNDING * fabs(limit->high)))
        return limit->high;
    return t;
}

void box_pseudo_gradient(const struct box *box, size_t n, double *q, const double *x,
                         const double *g) {
    if (!box->lasso) {
        orthant_pseudo_gradient(n, q, x, g, box->l1);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        q[j] = box_pseudo(&limit, x[j], g[j]);
    }
}

/* The sign of the orthant of x; 0 where there is none to keep to. */
static double orthant_of(double x, double q) {
    return x != 0 ? x : -q;
}

void box_project(const struct box *box, size_t n, double *t, const double *x, const double *q) {
    if (!box->lasso) {
        orthant_project(n, t, x, q);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        double sign = orthant_of(x[j], q[j]);
        bool stays = (sign > 0 && t[j] > 0) || (sign < 0 && t[j] < 0);
        if (limit.l1 > 0 && !stays && !isnan(t[j]))
            t[j] = 0;
        t[j] = box_clip(&limit, x[j], t[j]);
    }
}

void box_clip_all(const struct box *box, size_t n, double *t, const double *x) {
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        t[j] = box_clip(&limit, x[j], t[j]);
    }
}

void box_align(const struct box *box, size_t n, double *d, const double *x, const double *q) {
    if (!box->lasso) {
        orthant_align(n, d, x, q);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        bool falls = (d[j] > 0 && q[j] < 0) || (d[j] < 0 && q[j] > 0);
        if (box_is_held(&limit, x[j]) && !falls)
            d[j] = 0;
    }
}

void box_mask(const struct box *box, enum history_type type, size_t n, void *stored, double *y,
              const double *x, const double *t) {
    if (!box->lasso) {
        orthant_mask(type, n, stored, y, x, t);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        if (x[j] != t[j] || !box_is_held(&limit, x[j]))
            continue;
        y[j] = 0;
        if (type == HISTORY_FLOAT)
            ((float *)stored)[j] = 0;
        else
            ((double *)stored)[j] = 0;
    }
}

double box_norm(const struct box *box, size_t n, const double *a) {
    double sum = 0;
    if (!box->lasso)
        return orthant_norm(n, a);
    for (size_t j = 0; j < n; j++)
        sum += box->lasso[j] * fabs(a[j]);
    return sum;
}

void box_count(const struct box *box, size_t n, const double *a, double counts[2]) {
    counts[0] = counts[1] = 0;
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        counts[0] += box_is_held(&limit, a[j]) ? 0 : 1;
        counts[1] += box_is_at_bound(&limit, a[j]) ? 1 : 0;
    }
}

void box_descent(const struct box *box, size_t n, const double *t, const double *x, const double *q,
                 const double *h, double sums[3]) {
    if (!box->lasso) {
        orthant_descent(n, t, x, q, h, box->l1, sums);
        return;
    }
    sums[0] = sums[1] = sums[2] = 0;
    for (size_t j = 0; j < n; j++) {
        struct box_limit limit = box_limit_at(box, j);
        double s = t[j] - x[j], sign = orthant_of(x[j], q[j]);
        sums[0] += q[j] * s;
        sums[1] += (h[j] + (sign > 0 ? limit.l1 : sign < 0 ? -limit.l1 : 0)) * s;
        sums[2] += s * s;
    }
}
