#include "model/weight_sum.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/exact.h"

static struct exact *rest_of(struct weight_sum *sum) {
    if (!sum->rest) {
        sum->rest = memory_new(1, sizeof *sum->rest);
        exact_init(sum->rest);
    }
    return sum->rest;
}

void weight_sum_add(struct weight_sum *sum, double weight) {
    if (weight == 1)
        sum->ones++;
    else
        exact_add(rest_of(sum), weight);
}

void weight_sum_merge(struct weight_sum *sum, const struct weight_sum *other) {
    sum->ones += other->ones;
    if (other->rest)
        exact_merge(rest_of(sum), other->rest);
}

double weight_sum_value(const struct weight_sum *sum) {
    double low;
    return weight_sum_split(sum, &low);
}

double weight_sum_split(const struct weight_sum *sum, double *low) {
    *low = 0;
    if (!sum->rest)
        return (double)sum->ones;
    struct exact all = *sum->rest;
    exact_add(&all, (double)sum->ones);
    double high = exact_value(&all);
    exact_add(&all, -high);
    *low = exact_value(&all);
    return high;
}

void weight_sum_release(struct weight_sum *sum) {
    free(sum->rest);
    *sum = (struct weight_sum){0};
}
