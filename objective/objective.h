/* Objectives: loss and gradient of a model over blocks of examples.
 *
 * The parameters of a model with F features and K outputs are one vector of n doubles, laid out as
 * objective_layout() says: weight[j·K + k] belongs to feature j and output k, bias[k] to output k.
 * K is the number of classes if the objective has an output for each, else 1.
 *
 * Losses are sums over examples here; the mean is taken where the gradient is finished. L2 is not
 * part of an objective. Which objectives there are is listed in objective/objectives.def; what
 * depends on the kind is in the objective's row, `struct objective`, and nobody switches on it.
 *
 * Every number that comes out is a function of the block alone: a block is computed by one thread
 * in a fixed order. Sums over blocks are exact (see numeric/exact.h, numeric/fixed.h). */
#ifndef DML_OBJECTIVE_OBJECTIVE_H
#define DML_OBJECTIVE_OBJECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/rows.h"

enum objective_kind {
#define OBJECTIVE(NAME, name) OBJECTIVE_##NAME,
#include "objective/objectives.def"
    OBJECTIVES /* how many */
};

/* Figures that scoring reports besides the mean loss, as flags. */
enum objective_figure {
    FIGURE_ACCURACY = 1, /* classes */
    FIGURE_AUC = 2,      /* two classes */
    FIGURE_RMSE = 4,     /* targets: of the margin from them */
    FIGURE_LOG_LOSS = 8, /* the loss is minus the logarithm of the probability of the label */
};

/* A loss, as a function of the K margins of an example and its label (see label_kind). */
struct objective {
    const char *name; /* in job files, models and messages */
    enum label_kind labels;
    bool output_a_class; /* K is the number of classes, else 1 */
    bool convex;         /* so that the minimum does not depend on the start */
    unsigned figures;    /* objective_figure */

    /* The largest |derivative| that the first evaluation assumes, mostly at the point 0, given the
     * largest |label|; later ones assume what they found, and one that exceeds it is redone. NULL:
     * |derivative| ≤ 1 always. */
    double (*first_bound)(double label_max_abs);

    /* Takes rows×K margins, row-major, and writes the loss of each row and, in place of the
     * margins, the derivatives of the loss by them. Where a margin is not finite, neither is the
     * loss. `work` has room for rows×K doubles. */
    void (*losses)(size_t rows, size_t outputs, const double *label, double *margins, double *loss,
                   double *work);

    /* The loss of one example for scoring, accurate also where it is tiny. */
    double (*loss)(size_t outputs, const double *margins, double label);

    /* Turns the margins of one example into what a prediction says, in place (the link); and the
     * member that it is in JSON, a list if K > 1. NULL: the margins themselves. */
    void (*predict)(size_t outputs, double *margins);
    const char *prediction;

    /* solver_type of LIBLINEAR's model file that predicts as this does: with one weight a feature,
     * and with one for each of more than two classes. NULL: there is none. */
    const char *liblinear, *liblinear_classes;
};

const struct objective *objective_of(enum objective_kind kind);
uint32_t objective_outputs(const struct objective *objective, uint32_t classes);
const char *objective_name(enum objective_kind kind);

/* The objective of that name: its kind, or −1; its row, or NULL. */
int objective_from_name(const char *name);
const struct objective *objective_find(const char *name);

/* The first of the largest of the margins: the class that K > 1 of them mean. */
size_t objective_best(size_t outputs, const double *margins);

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
