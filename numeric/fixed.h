/* Gradient sums in fixed point: each contribution is rounded once to a multiple of a quantum and
 * added into an int64_t, so a sum is exact and the same in any order.
 *
 * Column j has a base exponent e_j, known from the data alone; an evaluation has a derivative
 * exponent b with |derivative| ≤ 2^b for every example. A contribution c = derivative·value counts
 * as rint(c·2^(e_j − b)), and |Σ| stays below 2⁶²: with A_j = Σ|value| over column j and n_j its
 * number of values, 2^e_j is the largest power of two with A_j·2^e_j + n_j/2 < 2⁶². */
#ifndef DML_NUMERIC_FIXED_H
#define DML_NUMERIC_FIXED_H

#include <stdint.h>

/* Exponents are clamped to this range, so that 2^(e − b) is always a normal double. */
#define FIXED_EXPONENT_MIN (-900)
#define FIXED_EXPONENT_MAX 900

/* The base exponent of a column with `absolute_sum` = Σ|value|, computed in double in any fixed
 * order (room is left for its rounding), over `count` values. A column of zeros gives the
 * exponent of one value 1. */
int fixed_exponent(double absolute_sum, uint64_t count);

/* Least b with magnitude ≤ 2^b, clamped to the range above; magnitude is finite and ≥ 0. */
int fixed_derivative_exponent(double magnitude);

/* One exponent for all columns, if that loses no column more than the precision promised: with the
 * least of e[0…columns) every column's rounding stays within 2⁻⁴⁴ of its Σ|value|. Writes it and
 * answers 1, else 0. `absolute_sum` and `count` as above, per column. */
int fixed_uniform(uint64_t columns, const int16_t *e, const double *absolute_sum,
                  const uint64_t *count, int *uniform);

#endif
