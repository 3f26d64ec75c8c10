/* How well scores rank examples: the area under the ROC curve and average precision. Inside model/
 * only.
 *
 * Both follow from the order of all scores, so the scores are held: 16 bytes an example for one
 * output, else 8 bytes an output and 12 bytes more. RANKING_BYTES_MAX bounds that; beyond it there
 * are no such figures. Finding them takes up to 32 bytes an example more. */
#ifndef DML_MODEL_RANKING_H
#define DML_MODEL_RANKING_H

#include <stdbool.h>
#include <stdint.h>

#define RANKING_BYTES_MAX (UINT64_C(2) << 30)

struct ranking; /* opaque */

/* One output ranks class 1 against class 0; several rank each class against the rest. */
struct ranking *ranking_new(uint32_t outputs);
void ranking_free(struct ranking *ranking); /* harmless on NULL */

/* Adds an example with its score for each output. */
void ranking_add(struct ranking *ranking, const double *scores, uint32_t class, double weight);

/* The same for an example with any number of classes: 1 for each that it has, else 0. Of several
 * outputs, and then for all examples. */
void ranking_add_listed(struct ranking *ranking, const double *scores, const double *has,
                        double weight);

/* Whether scores were too many to be held. */
bool ranking_overflowed(const struct ranking *ranking);

/* Of the examples of one class against all others:
 *
 *   auc  the share of pairs (positive, negative), by their weights, in which the positive has the
 *        larger score; a tie counts half
 *   average_precision  Σ (R_i − R_{i−1})·P_i over the thresholds from the highest score down, with
 *        precision P and recall R; equal scores are one threshold
 *
 * NaN where there are no such pairs, or no positives. The same bits in whatever order the examples
 * were added. */
struct ranked {
    double auc, average_precision;
};

struct ranked ranking_of(const struct ranking *ranking, uint32_t class);

#endif
