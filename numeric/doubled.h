/* Numbers of twice the precision of a double: the unevaluated sum of two doubles, of which the
 * lower one is at most half a unit in the last place of the higher one. About 104 bits, in the
 * range of doubles (Dekker, "A floating-point technique for extending the available precision",
 * 1971; Hida, Li and Bailey, "Algorithms for quad-double precision floating point arithmetic",
 * 2001). All machines round alike. */
#ifndef DML_NUMERIC_DOUBLED_H
#define DML_NUMERIC_DOUBLED_H

#include <math.h>

struct doubled {
    double high, low;
};

static inline struct doubled doubled_of(double a) {
    return (struct doubled){a, 0};
}

static inline double doubled_value(struct doubled a) {
    return a.high + a.low;
}

/* |a| ≥ |b|, or a = 0. */
static inline struct doubled doubled_ordered(double a, double b) {
    double sum = a + b;
    return (struct doubled){sum, b - (sum - a)};
}

/* a + b without rounding. */
static inline struct doubled doubled_sum(double a, double b) {
    double sum = a + b, of_b = sum - a;
    return (struct doubled){sum, (a - (sum - of_b)) + (b - of_b)};
}

/* a·b without rounding. */
static inline struct doubled doubled_product(double a, double b) {
    double product = a * b;
    return (struct doubled){product, fma(a, b, -product)};
}

static inline struct doubled doubled_add(struct doubled a, struct doubled b) {
    struct doubled high = doubled_sum(a.high, b.high), low = doubled_sum(a.low, b.low);
    high = doubled_ordered(high.high, high.low + low.high);
    return doubled_ordered(high.high, high.low + low.low);
}

static inline struct doubled doubled_negative(struct doubled a) {
    return (struct doubled){-a.high, -a.low};
}

static inline struct doubled doubled_times(struct doubled a, struct doubled b) {
    struct doubled product = doubled_product(a.high, b.high);
    return doubled_ordered(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/* sum + a·b */
static inline struct doubled doubled_plus(struct doubled sum, struct doubled a, struct doubled b) {
    return doubled_add(sum, doubled_times(a, b));
}

/* sum − a·b */
static inline struct doubled doubled_minus(struct doubled sum, struct doubled a, struct doubled b) {
    return doubled_add(sum, doubled_times(doubled_negative(a), b));
}

/* b is not 0. */
static inline struct doubled doubled_quotient(struct doubled a, struct doubled b) {
    double first = a.high / b.high;
    struct doubled rest = doubled_minus(a, doubled_of(first), b);
    double second = rest.high / b.high;
    rest = doubled_minus(rest, doubled_of(second), b);
    return doubled_add(doubled_ordered(first, second), doubled_of(rest.high / b.high));
}

/* a ≥ 0. */
static inline struct doubled doubled_root(struct doubled a) {
    double first = sqrt(a.high);
    if (!(first > 0))
        return doubled_of(first);
    struct doubled rest = doubled_add(a, doubled_negative(doubled_product(first, first)));
    return doubled_ordered(first, rest.high / (2 * first));
}

#endif
