/* Parameters that are listed by their numbers, and values of such.
 *
 * A working set (optimizer/working.h) is a list of at most WORKING_SET_MAX parameters, by rising
 * numbers. Shards tell of each what a step over the set needs; lists travel in programs and their
 * results. */
#ifndef DML_WIRE_LISTED_H
#define DML_WIRE_LISTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"

/* One parameter j. What is not scaled has the mean 0, the scale 1 and the penalty 1. */
struct listed {
    uint64_t number;             /* in the whole vector */
    bool regularized;            /* else it is the bias: free of l1 and l2 */
    int32_t exponent;            /* base exponent of sums of second derivatives */
    double x, gradient;          /* there; with l2 */
    double mean, scale, penalty; /* of its column (base/layout.h), */
    double square;               /* and the mean square; 0: not known, or the bias */
    double lasso;                /* of l1; 0 of a bias */
    double low, high;            /* infinite: no bound */
    double excess; /* by which the gradient would move it from where l1 or a bound holds it;
                      infinite: nothing holds it */
};

#define LISTED_BYTES (8 + 1 + 4 + 10 * 8)
#define VALUE_BYTES 16

/* Element i of a list of either kind, as it travels. */
struct listed listed_at(const void *list, size_t i);
uint64_t value_number_at(const void *list, size_t i);
double value_at_number(const void *list, size_t i);

/* Appends an element, LISTED_BYTES or VALUE_BYTES of it, little-endian. */
void listed_put(struct bytes *list, const struct listed *listed);
void value_put(struct bytes *list, uint64_t number, double value);

/* Whether the numbers of a list rise, what is finite must be, and what is a flag is one. */
bool listed_rise(const void *list, size_t count);
bool values_rise(const void *list, size_t count);

/* Whether it is a parameter that may be listed: numbers that are finite, a scale above 0, a
 * penalty that is not below it, an exponent that is one. */
bool listed_is_valid(const struct listed *listed);

#endif
