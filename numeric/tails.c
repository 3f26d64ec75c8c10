#include "numeric/tails.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Continued fractions end when a term changes no digit. The number of terms grows with the root of
 * the degrees of freedom. */
#define TERMS_MAX 1000000
#define TERM_CHANGE 4e-16
#define TINY 1e-300

double tail_normal(double z) {
    return erfc(fabs(z) * M_SQRT1_2);
}

/* What Stirling's formula leaves out of log Γ(a): 1/12a − 1/360a³ + …, for a ≥ 16. */
static double stirling_rest(double a) {
    static const double term[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360, 1.0 / 156};
    double sum = 0, square = 1 / (a * a);
    for (int i = (int)(sizeof term / sizeof term[0]); i-- > 0;)
        sum = sum * square + term[i];
    return sum / a;
}

#define STIRLING_LEAST 16

/* Γ(a + ½)/Γ(a), without the difference of two large logarithms. */
static double gamma_ratio(double a) {
    double factor = 1;
    for (; a < STIRLING_LEAST; a++)
        factor *= a / (a + 0.5);
    double log_ratio = (a * log1p(0.5 / a) - 0.5) + stirling_rest(a + 0.5) - stirling_rest(a);
    return factor * sqrt(a) * exp(log_ratio);
}

/* A continued fraction by the modified method of Lentz (Thompson and Barnett, "Coulomb and Bessel
 * functions of complex arguments and order", 1986). */
struct fraction {
    double c, d;
    double value; /* so far */
};

static double not_zero(double x) {
    return fabs(x) < TINY ? TINY : x;
}

/* Takes the next term a/(b + …) in; true if it changed no digit. */
static bool fraction_step(struct fraction *f, double a, double b) {
    f->d = 1 / not_zero(b + a * f->d);
    f->c = not_zero(b + a / f->c);
    f->value *= f->d * f->c;
    return fabs(f->d * f->c - 1) < TERM_CHANGE;
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22). `x` ≤ (a + 1)/(a + b + 2).
 */
static double beta_fraction(double a, double b, double x) {
    double d = 1 / not_zero(1 - (a + b) * x / (a + 1));
    struct fraction f = {.c = 1, .d = d, .value = d};
    for (int m = 1; m < TERMS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        fraction_step(&f, even, 1);
        if (fraction_step(&f, odd, 1))
            break;
    }
    return f.value;
}

/* For many degrees of freedom, where the fraction loses digits. With m = ν − ½ and u² = m·log(1 +
 * t²/ν) the density is e^{−u²/2}·(y/sinh y)^½ du but for its constant, y = u²/2m. y is small
 * wherever the tail is not 0, so (y/sinh y)^½ = 1 − y²/12 + y⁴/160 − 61y⁶/120960 + …, and what
 * remains are moments of the normal distribution above u. */
#define FREEDOM_MANY 1e4

static double student_many(double t, double freedom) {
    double m = freedom - 0.5, scaled = t / sqrt(freedom);
    double u = sqrt(m) * sqrt(log1p(scaled * scaled)), square = u * u;
    double density = exp(-square / 2);
    if (density == 0)
        return 0;
    double moment[7] = {sqrt(M_PI / 2) * erfc(u * M_SQRT1_2)}; /* of u^0, u^2, … */
    double power = u;
    for (int i = 1; i < 7; i++, power *= square)
        moment[i] = power * density + (2 * i - 1) * moment[i - 1];
    double over = 0.25 / m / m;
    double sum = moment[0] - over * (moment[2] / 12 -
                                     over * (moment[4] / 160 - over * moment[6] * 61 / 120960));
    return 2 * sum * gamma_ratio(freedom / 2) / sqrt(M_PI * m);
}

/* I_x(ν/2, ½) with x = ν/(ν + t²). Where x is near 1 that is 1 − I_{1−x}(½, ν/2), whose fraction
 * converges there. Both have the factor x^{ν/2}·(1 − x)^½/B(½, ν/2). */
double tail_student(double t, double freedom) {
    if (isnan(t) || !(freedom > 0))
        return NAN;
    t = fabs(t);
    if (isinf(freedom))
        return tail_normal(t);
    if (isinf(t))
        return 0;
    if (freedom > FREEDOM_MANY)
        return student_many(t, freedom);
    double a = freedom / 2, scaled = t / sqrt(freedom); /* t²/ν = scaled² */
    bool far = scaled > 1e100;                          /* its square overflows */
    double log_x = far ? -2 * log(scaled) : -log1p(scaled * scaled);
    double x = far ? 1 / scaled / scaled : 1 / (1 + scaled * scaled);
    double root = far ? 1 : scaled / sqrt(1 + scaled * scaled); /* (1 − x)^½ */
    double factor = exp(a * log_x) * root * gamma_ratio(a) / sqrt(M_PI);
    if (x <= (a + 1) / (a + 2.5))
        return factor / a * beta_fraction(a, 0.5, x);
    return 1 - 2 * factor * beta_fraction(0.5, a, root * root);
}

/* The root of log tail(q) = log p: bisection between bounds that are widened until they hold it.
 * That takes 60 to 120 tails, and a table needs few quantiles. */
double quantile_student(double p, double freedom) {
    if (!(p > 0 && p <= 1) || !(freedom > 0))
        return NAN;
    double low = 0, high = 1;
    while (tail_student(high, freedom) > p) {
        low = high;
        high *= 2;
        if (high > DBL_MAX / 4)
            return INFINITY;
    }
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            return middle;
        if (tail_student(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
}
