/* Products of vectors with the second derivatives of a linear model over the training rows of a
 * set, and sums over rows that errors of estimates need. Nothing here has a number for each pair of
 * parameters.
 *
 * Vectors have the run's elements, in the units of the data. Threads take groups of chunks; how
 * many groups there are, and in which order their sums are added, follows from the set alone, and
 * so do all bits. */
#ifndef DML_MODEL_HESSIAN_H
#define DML_MODEL_HESSIAN_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"
#include "model/model.h"

struct hessian; /* opaque */

/* What is known of H = Σ w·ℓ''·xxᵀ, or its expectation, at the parameters, and of the gradient
 * there; arrays are owned, and have as many elements as there are parameters. */
struct hessian_sums {
    double *gradient; /* Σ w·g·x */
    double *diagonal; /* of H */
    double *beside;   /* of a weight, the element of its row where the bias of its output is; of
                         biases 0, and where outputs share their weights or have no bias */
};

/* Reads the training rows once, and keeps a few numbers a row. The layout, as summary_fit() has it,
 * the set and the parameters must outlive it. On ERROR_DATA *made is NULL. Sums are released by
 * hessian_sums_release(), in any case. */
int hessian_new(struct set *set, const struct model_layout *layout, const double *parameters,
                unsigned threads, struct hessian **made, struct hessian_sums *sums);
void hessian_free(struct hessian *hessian); /* harmless on NULL */
void hessian_sums_release(struct hessian_sums *sums);

/* out = H·v, another vector. ERROR_DATA. */
int hessian_multiply(struct hessian *hessian, const double *v, double *out);

/* What a step along v does to rows whose margins it changes by MOVED_LEAST or more. */
#define MOVED_LEAST 0.5

struct moved_sums {
    double *toward; /* Σ w·±x over those rows, by elements, + where the margin of the output rises;
                       owned */
    double change;  /* Σ w·Σ_k |m_k|, m the margins of v without offsets */
    double square;  /* Σ w·Σ_k m_k² */
    double second;  /* Σ w·mᵀSm, S the second derivatives of the row by its margins */
    double typical; /* of all rows: the mean element of the diagonal of S */
};

/* ERROR_DATA. The sums are released by the next, in any case. */
int hessian_moves(struct hessian *hessian, const double *v, struct moved_sums *sums);
void moved_sums_release(struct moved_sums *sums);

/* How many numbers a row is given in the next. */
struct score_sums {
    double independent; /* Σ (w·Σ_k g_k·m_k)², m the margins of v without offsets */
    double clustered; /* Σ (Σ w·Σ_k g_k·m_k)², the inner sum over the rows of a cluster; 0 without
                         clusters */
    uint64_t clusters, single_rows;
};

/* vᵀMv with M = Σ (w·g)²·xxᵀ over rows, and over clusters. ERROR_DATA. */
int hessian_scores(struct hessian *hessian, const double *v, struct score_sums *sums);

#endif
