/* Exact sums of the weights of rows. Inside model/ only. */
#ifndef DML_MODEL_WEIGHT_SUM_H
#define DML_MODEL_WEIGHT_SUM_H

#include <stdint.h>

struct exact;

/* An exact sum of weights. Rows mostly weigh 1; then it is a count and takes no more memory. */
struct weight_sum {
    uint64_t ones;      /* weights of exactly 1 */
    struct exact *rest; /* the sum of the others; NULL: there were none */
};

void weight_sum_add(struct weight_sum *sum, double weight);
void weight_sum_merge(struct weight_sum *sum, const struct weight_sum *other);
double weight_sum_value(const struct weight_sum *sum); /* the double nearest to the sum */

/* The double nearest to the sum; *low is what it leaves out of the sum, as a second double. */
double weight_sum_split(const struct weight_sum *sum, double *low);

void weight_sum_release(struct weight_sum *sum);

#endif
