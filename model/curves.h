/* Curves of two classes: what each threshold comes to, and whether probabilities are what they say.
 * Inside model/ only. */
#ifndef DML_MODEL_CURVES_H
#define DML_MODEL_CURVES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/ranking.h"

/* ---- reliability: examples by tenths of their probability ---- */

struct reliability; /* opaque */

struct reliability *reliability_new(void);
void reliability_free(struct reliability *reliability); /* harmless on NULL */
void reliability_add(struct reliability *reliability, double probability, bool positive,
                     double weight);

/* The expected calibration error (Naeini and others, Obtaining well calibrated probabilities using
 * Bayesian binning, 2015): the mean distance, by weights, of the mean probability in a tenth and
 * the share of positives there. Tenths are equally wide, from k/10 on and below (k + 1)/10, the
 * last up to 1. NaN without examples. No order changes a bit. */
double reliability_error(const struct reliability *reliability);

/* [{from, to, examples, probability, frequency}] of the tenths that have examples; a new
 * reference. */
json_t *reliability_json(const struct reliability *reliability);

/* ---- thresholds ---- */

/* At most so many points are listed. */
#define CURVES_POINTS_MAX 202

/* What scores come to, which it sorts; positives and negatives must occur:
 *
 *   thresholds  [{threshold, precision, recall, f1, share}]: for each tenth of the recall the
 *               highest threshold that reaches it; share is that of all examples at or above it
 *   gains       [{share, recall, lift}]: of the tenth, two tenths, ... with the highest scores,
 * which share of the positives they have, and how many times as many as any others; between two
 * thresholds in proportion points      {threshold, recall, precision, false_positive_rate, share},
 * lists of one length: the curve, from the highest threshold down, without points that are less
 * than a hundredth of the positives and of the negatives from the one before
 *
 * A new reference. */
json_t *curves_json(struct ranked_score *scores, uint64_t count);

#endif
