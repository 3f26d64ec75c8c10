/* How well scores rank examples: the area under the ROC curve and average precision. Inside model/
 * only.
 *
 * Both follow from the order of all scores, so the scores are held: 16 bytes an example for one
 * output, else 8 bytes an output and 12 bytes more. RANKING_BYTES_MAX bounds that; beyond it there
 * are no such figures. Finding them takes up to 32 bytes an example more.
 *
 * Beyond it scores of one output are put into bins, and so are those that were held. Bins have
 * fixed edges, 256 from each power of two to the next, so that neither the order of examples nor
 * the limit changes a bit. An example counts with the lower edge of its bin: what is said of
 * examples down to an edge is as exact as without bins. */
#ifndef DML_MODEL_RANKING_H
#define DML_MODEL_RANKING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/weight_sum.h"

#define RANKING_BYTES_MAX (UINT64_C(2) << 30)

struct ranking; /* opaque */

/* One output ranks class 1 against class 0; several rank each class against the rest. The limit is
 * RANKING_BYTES_MAX but in tests. */
struct ranking *ranking_new(uint32_t outputs, uint64_t bytes_max);
void ranking_free(struct ranking *ranking); /* harmless on NULL */

/* Adds an example with its score for each output. */
void ranking_add(struct ranking *ranking, const double *scores, uint32_t class, double weight);

/* Adds an example with any number of classes, whose `has` is 1 for each that it has, else 0. For
 * rankings of several outputs, and then for all examples. */
void ranking_add_listed(struct ranking *ranking, const double *scores, const double *has,
                        double weight);

/* A score with the weight of its example: above 0 in the class that is looked at, else below. */
struct ranked_score {
    double score, weight;
};

/* The scores of one class against all others, in no order; `count` of them, free() them. Of bins up
 * to two scores each, as if all examples of one had been one example. Not of several outputs that
 * overflowed. */
struct ranked_score *ranking_scores(const struct ranking *ranking, uint32_t class, uint64_t *count);

/* Example number `i` of several outputs that was added with a class; false after the last. */
struct ranking_row {
    uint32_t outputs, class;
    const double *scores; /* `outputs` */
    double weight;
};
bool ranking_row(const struct ranking *ranking, uint64_t i, struct ranking_row *row);

/* From the highest score down, those of one score by their weights: so equal examples have one
 * order, whatever order they came in. */
void ranking_sort(struct ranked_score *scores, uint64_t count);

/* Walks over sorted scores from the highest down, a point each distinct score: */
struct ranking_point {
    double threshold;            /* the score: examples with at least that are predicted */
    double positives, predicted; /* the weights of the positives among them, and of all of them */
};

/* `scores` and `count` are given, the rest is zeroed at first. Release it. */
struct ranking_walk {
    const struct ranked_score *scores;
    uint64_t count;
    uint64_t next;
    struct weight_sum positives, predicted;
};

bool ranking_walk_next(struct ranking_walk *walk, struct ranking_point *point); /* false: the end */
void ranking_walk_release(struct ranking_walk *walk);

/* The last point: all positives, and all examples. Zeroes if there are none. */
struct ranking_point ranking_all(const struct ranked_score *scores, uint64_t count);

/* Whether scores were too many to be held, and whether they are in bins. */
bool ranking_overflowed(const struct ranking *ranking);
bool ranking_is_binned(const struct ranking *ranking);

/* How the examples of one class rank against all others:
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
