/* What the targets of a set are like: the least, the mean, and quantiles of a sample. */
#include <stdlib.h>

#include "base/memory.h"
#include "data/merge.h"

/* A full sample drops every other target, and takes half as many from then on. */
#define SAMPLE_MAX 65536

static void take(struct targets *targets, double target) {
    if (!targets->sample) {
        targets->sample = memory_new(SAMPLE_MAX, sizeof *targets->sample);
        targets->stride = 1;
    }
    if (targets->seen++ % targets->stride)
        return;
    if (targets->sampled == SAMPLE_MAX) {
        targets->sampled /= 2;
        targets->stride *= 2;
        for (uint32_t i = 0; i < targets->sampled; i++)
            targets->sample[i] = targets->sample[2 * (size_t)i];
    }
    targets->sample[targets->sampled++] = target;
}

/* The weights are so scaled that they do not overflow; of huge targets the sum may. */
void targets_add(struct targets *targets, double target, double weight) {
    if (!targets->sampled || target < targets->least)
        targets->least = target;
    targets->sum += weight * target;
    targets->weights += weight;
    take(targets, target);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void targets_finish(struct targets *targets, struct label_summary *summary) {
    *summary = (struct label_summary){0};
    if (!targets->sampled)
        return;
    qsort(targets->sample, targets->sampled, sizeof *targets->sample, compare);
    summary->least = targets->least;
    summary->mean = targets->sum / targets->weights;
    for (uint64_t k = 0; k < LABEL_QUANTILES; k++)
        summary->quantile[k] = targets->sample[(targets->sampled - 1) * k / (LABEL_QUANTILES - 1)];
}

void targets_release(struct targets *targets) {
    free(targets->sample);
    *targets = (struct targets){0};
}
