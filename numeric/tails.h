/* Tails of distributions and their quantiles, for tests and intervals: right to about 1e-12
 * relatively, down to the least normal double, below which they are 0. */
#ifndef DML_NUMERIC_TAILS_H
#define DML_NUMERIC_TAILS_H

/* P(|Z| ≥ |z|) of a standard normal Z. NaN stays NaN, as everywhere here. */
double tail_normal(double z);

/* P(|T| ≥ |t|) of Student's t with `freedom` > 0 degrees of freedom, which need not be whole;
 * infinity: as tail_normal(). NaN for other `freedom`. */
double tail_student(double t, double freedom);

/* The t ≥ 0 with tail_student(t, freedom) = p, 0 < p ≤ 1; NaN for other p. */
double quantile_student(double p, double freedom);

#endif
