/* Objectives: loss and gradient of a model over blocks of examples.
 *
 * The parameters of a model with F features and K outputs are one vector of n doubles, laid out as
 * objective_layout() says: weight[j·K + k] belongs to feature j and output k, bias[k] to output k.
 * K = 1 for logistic and squared loss, the number of classes for softmax.
 *
 *   logistic   loss log(1 + e^−m), m = ±margin            derivative in [−1, 1]
 *   squared    loss ½(margin − target)²                    derivative unbounded
 *   softmax    loss log Σ e^margin_k − margin_label        derivatives in [−1, 1]
 *
 * Losses are sums over examples here; the mean is taken where the gradient is finished. L2 is not
 * part of an objective.
 *
 * Every number that comes out is a function of the block alone: a block is computed by one thread
 * in a fixed order. Sums over blocks are exact (see numeric/exact.h, numeric/fixed.h). */
#ifndef DML_OBJECTIVE_OBJECTIVE_H
#define DML_OBJECTIVE_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/rows.h"

enum objective_kind { OBJECTIVE_LOGISTIC, OBJECTIVE_SQUARED, OBJECTIVE_SOFTMAX };

/* "logistic", "squared", "softmax"; from a name: −1 if there is none such. */
const char *objective_name(enum objective_kind kind);
int objective_from_name(const char *name);

/* True if |derivative| ≤ 1 always; else the bound is found pass by pass. */
bool objective_is_bounded(enum objective_kind kind);

struct objective_shape {
    enum objective_kind kind;
    uint32_t features; /* F */
    uint32_t outputs;  /* K */
    bool intercept;
};

/* What the parameters are; no tensors if they are beyond the limits. */
struct layout objective_layout(const struct objective_shape *shape);
uint64_t objective_parameters(const struct objective_shape *shape); /* n */

/* How the gradient is put into fixed point in one evaluation. */
struct objective_scale {
    const int16_t *exponent; /* base exponents as the layout numbers them: of each feature, and
                                of the bias behind them; or NULL: `uniform` for all */
    int uniform;
    int derivative_exponent; /* b: |derivative| ≤ 2^b */
};

struct objective_result {
    double loss;           /* Σ loss over the block; not finite if the point is out of reach */
    double derivative_max; /* largest |derivative| over the block; +infinity if one is NaN */
    bool exceeded;         /* derivative_max > 2^b: `sum` was left untouched by this block or holds
                              a part of it, and must be thrown away */
};

/* Scratch memory of one thread. */
struct objective_scratch; /* opaque */
struct objective_scratch *objective_scratch_new(const struct objective_shape *shape);
void objective_scratch_free(struct objective_scratch *scratch);

/* Loss and gradient of one block at `parameters` (n doubles). The gradient is added to `sum`
 * (n int64_t, 64-byte aligned); with sum == NULL, or once a derivative exceeds the bound, only the
 * loss and the largest derivative are computed. */
void objective_block(const struct objective_shape *shape, const struct objective_scale *scale,
                     const struct rows *rows, const double *parameters, int64_t *sum,
                     struct objective_scratch *scratch, struct objective_result *result);

/* A hash of canned gradients of every kind: what replicas of one run must agree on. */
uint64_t objective_proof(void);

#endif
