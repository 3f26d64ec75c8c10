#include "numeric/adagrad.h"

#include <math.h>

#include "numeric/adagrad_element.h"
#include "numeric/clones.h"

LANES_INLINE void roots(half_lanes *out, const half_lanes *of) {
    for (int k = 0; k < HALF; k++)
        (*out)[k] = sqrt((*of)[k]);
}

#define NAME(function) function
#define STEP LANES_INLINE
#define NUMBERS half_lanes
#define WORDS half_words
#define ROOT roots
#include "numeric/adagrad_steps.def"

VECTOR_CLONES
void adagrad_step(size_t n, double *x, double *sums, const double *g, double rate) {
    half_lanes of_x, of_sums, of_g;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_x, x + i, sizeof of_x);
        memcpy(&of_sums, sums + i, sizeof of_sums);
        memcpy(&of_g, g + i, sizeof of_g);
        step(&of_x, &of_sums, &of_g, rate);
        memcpy(x + i, &of_x, sizeof of_x);
        memcpy(sums + i, &of_sums, sizeof of_sums);
    }
    for (; i < n; i++)
        adagrad_element_step(&x[i], &sums[i], &g[i], rate);
}

VECTOR_CLONES
void adagrad_shrink(size_t n, double *x, const double *sums, const double *l1, double rate) {
    half_lanes of_x, of_sums, of_l1;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_x, x + i, sizeof of_x);
        memcpy(&of_sums, sums + i, sizeof of_sums);
        memcpy(&of_l1, l1 + i, sizeof of_l1);
        shrink(&of_x, &of_sums, &of_l1, rate);
        memcpy(x + i, &of_x, sizeof of_x);
    }
    for (; i < n; i++)
        adagrad_element_shrink(&x[i], &sums[i], &l1[i], rate);
}

VECTOR_CLONES
void adagrad_diagonal(size_t n, double *sums, double alpha, double beta) {
    half_lanes of_sums;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_sums, sums + i, sizeof of_sums);
        diagonal(&of_sums, alpha, beta);
        memcpy(sums + i, &of_sums, sizeof of_sums);
    }
    for (; i < n; i++)
        adagrad_element_diagonal(&sums[i], alpha, beta);
}
