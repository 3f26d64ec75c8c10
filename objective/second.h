/* Second derivatives of a model over one block of examples, of rows that are sampled. */
#ifndef DML_OBJECTIVE_SECOND_H
#define DML_OBJECTIVE_SECOND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows.h"
#include "objective/block.h"
#include "objective/objective.h"
#include "objective/shape.h"

/* The mean over the outputs of the second derivative of a row's loss by its own margin, where all
 * margins are 0; of a loss that has them whatever its label is. */
double objective_second_at_zero(const struct objective_shape *shape);

/* How second derivatives sample rows: by `sampling` row i of chunk c counts if u(sample_seed, c, i)
 * < chance, with the weight 1/chance, so that the weighted sum is on average that over all rows:
 *
 *   chance = min(1, floor + rate · trace · leverage)
 *
 * where u is even in [0, 1) and depends on nothing else, trace is that of the row's second
 * derivatives, and leverage is examples·w·Σ_j |x_j|·2^(e_j − 62) over its stored values and the
 * intercept, w its own weight: about its share in the sums w·|x| of its columns, times `examples`.
 * Where weights of one output are listed, values in other columns do not count.
 * A row of weight 0 is not sampled. */
struct objective_scratch;
struct row_batch;

/* What S is. The rows are second_NAME of objective/curvature.c; wire/kinds.def says which of them a
 * kind of evaluation has. */
struct second_form {
    /* Writes the diagonal of S of each row of a batch, rows×K, to `diagonal`, or, where the outputs
     * share their weights and act on each other, the sums of its rows. The scratch has derivatives
     * in `margins`, and in `work` what the losses left there. */
    void (*diagonal)(const struct objective_shape *shape, const struct row_batch *batch,
                     const struct objective_scratch *scratch, double *diagonal);

    /* Row k of S of one example of several outputs with weights of their own, K numbers. */
    void (*row)(const struct objective *objective, size_t outputs, double label,
                const double *derivatives, size_t k, double *row);

    /* A row of data counts with its own weight once more, and `largest` is found, which the bound
     * follows from. */
    bool scores;
};
extern const struct second_form second_sampled; /* those of the loss */

struct objective_sample {
    const struct second_form *form; /* which S */
    const int16_t *exponent; /* base exponents as the layout numbers them, one a feature and then
                                that of the bias, also where the gradient has a uniform one */
    uint64_t examples;       /* over which they were chosen */
    uint32_t columns;        /* of the block: the first so many features */
    bool shared; /* outputs with weights of their own have one matrix, of a second derivative that
                    is the same for all rows: objective_second_at_zero() */
    const struct weight_list *list; /* these weights are the block instead, at most `columns` of
                                       them, and all biases; NULL: the first */
    int derivative_exponent;        /* b: no second derivative is beyond floor·2^b */
    struct row_sampling sampling;
};

struct objective_hessian {
    double trace_leverage; /* Σ trace·leverage over all rows of the block */
    double trace;          /* Σ w·trace over all rows */
    uint64_t sampled;      /* rows that were sampled */
    uint64_t terms;        /* added to the triangle */
    double largest;        /* of `scores`: w·S_kk over all rows; what b must hold */
    bool exceeded;         /* b is too small, or a second derivative not finite: the triangle may
                              hold a part of this block, and must be discarded */
};

/* Adds the second derivatives by the parameters of the block, summed over the sampled rows of chunk
 * `number`, to the lower triangle of the n×n matrix: n(n + 1)/2 int64_t, element (r, c) with r ≥ c
 * at r(r + 1)/2 + c. Its parameters are those of a model of the first `columns` features, intercept
 * included: they alone count as values of a row, but in its leverage. A row adds, for parameters r
 * of column j and output k, and c of l and k',
 *
 *   rint(w · weight · S_kk' · x_j · x_l · 2^(e_j + e_l − 62 − b))
 *
 * whose sum is below 2⁶², as Σ √w·|x_j|·2^e_j is. Each term is rounded, so that no order matters.
 * One matrix that outputs share is that of a model of one output, and S is the same number for all
 * rows. Where the softmax is concerned that is Böhning's bound of the second derivatives but for a
 * factor ("Multinomial logistic regression algorithm", 1992), and does not depend on the point.
 * With triangle == NULL only the totals are found. */
void objective_curvature(const struct objective_shape *shape, const struct objective_sample *sample,
                         const struct rows *rows, uint32_t number, const double *parameters,
                         int64_t *triangle, struct objective_scratch *scratch,
                         struct objective_hessian *hessian);

#endif
