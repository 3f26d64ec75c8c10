#include "numeric/orthant.h"

#include <math.h>
#include <stdbool.h>

#include "numeric/clones.h"

/* −1, 0 or 1; 0 for what is not a number. */
LANES_INLINE double sign(double a) {
    return (double)(a > 0) - (double)(a < 0);
}

/* ξ of one element. */
LANES_INLINE double side(double x, double q) {
    return x == 0 ? -sign(q) : sign(x);
}

LANES_INLINE double pseudo(double x, double g, double l1) {
    double beyond = fabs(g) - l1;
    double at_zero = beyond <= 0 ? 0 : copysign(beyond, g);
    return x == 0 ? at_zero : g + copysign(l1, x);
}

VECTOR_CLONES
void orthant_pseudo_gradient(size_t n, double *q, const double *x, const double *g, double l1) {
    for (size_t i = 0; i < n; i++)
        q[i] = pseudo(x[i], g[i], l1);
}

VECTOR_CLONES
void orthant_project(size_t n, double *t, const double *x, const double *q) {
    for (size_t i = 0; i < n; i++)
        t[i] = t[i] * side(x[i], q[i]) > 0 ? t[i] : 0;
}

VECTOR_CLONES
void orthant_align(size_t n, double *d, const double *x, const double *q) {
    for (size_t i = 0; i < n; i++)
        d[i] = x[i] != 0 || d[i] * sign(q[i]) < 0 ? d[i] : 0;
}

VECTOR_CLONES
static void mask_float(size_t n, float *stored, double *y, const double *x, const double *t) {
    for (size_t i = 0; i < n; i++) {
        bool moves = x[i] != 0 || t[i] != 0;
        stored[i] = moves ? stored[i] : 0;
        y[i] = moves ? y[i] : 0;
    }
}

VECTOR_CLONES
static void mask_double(size_t n, double *stored, double *y, const double *x, const double *t) {
    for (size_t i = 0; i < n; i++) {
        bool moves = x[i] != 0 || t[i] != 0;
        stored[i] = moves ? stored[i] : 0;
        y[i] = moves ? y[i] : 0;
    }
}

void orthant_mask(enum history_type type, size_t n, void *stored, double *y, const double *x,
                  const double *t) {
    if (type == HISTORY_FLOAT)
        mask_float(n, stored, y, x, t);
    else
        mask_double(n, stored, y, x, t);
}

VECTOR_CLONES
double orthant_norm(size_t n, const double *a) {
    lanes sums = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sums[k] += fabs(a[i + k]);
    double sum = lanes_sum(&sums);
    for (; i < n; i++)
        sum += fabs(a[i]);
    return sum;
}

VECTOR_CLONES
size_t orthant_nonzeros(size_t n, const double *a) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += a[i] != 0;
    return count;
}

/* Adds what one element gives to a lane of each sum. */
LANES_INLINE void add_descent(double *lin, double *end, double *square, double t, double x,
                              double q, double h, double l1) {
    double s = t - x;
    *lin += q * s;
    *end += (h + l1 * side(x, q)) * s;
    *square += s * s;
}

VECTOR_CLONES
void orthant_descent(size_t n, const double *t, const double *x, const double *q, const double *h,
                     double l1, double sums[3]) {
    double parts[3][LANES] = {{0}};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            add_descent(&parts[0][k], &parts[1][k], &parts[2][k], t[i + k], x[i + k], q[i + k],
                        h[i + k], l1);
    for (size_t k = 0; k < 3; k++) {
        lanes part;
        lanes_load(&part, parts[k]);
        sums[k] = lanes_sum(&part);
    }
    for (; i < n; i++)
        add_descent(&sums[0], &sums[1], &sums[2], t[i], x[i], q[i], h[i], l1);
}

LANES_INLINE double excess(double a, double lambda, double b, double l1) {
    double beyond = fabs(a - lambda * b) - l1;
    return beyond <= 0 ? 0 : beyond * beyond;
}

VECTOR_CLONES
double orthant_excess(size_t n, const double *a, double lambda, const double *b, double l1) {
    double parts[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            parts[k] += excess(a[i + k], lambda, b[i + k], l1);
    lanes part;
    lanes_load(&part, parts);
    double sum = lanes_sum(&part);
    for (; i < n; i++)
        sum += excess(a[i], lambda, b[i], l1);
    return sum;
}
