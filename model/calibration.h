/* Calibration: probabilities that agree with how often rows are positive, as a function of the
 * margin, found on held-out rows. Inside model/ only, but for the methods' names. */
#ifndef DML_MODEL_CALIBRATION_H
#define DML_MODEL_CALIBRATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum calibration_method {
    CALIBRATION_NONE,
    CALIBRATION_PLATT,
    CALIBRATION_ISOTONIC,
    CALIBRATION_TEMPERATURE, /* of all outputs together: no struct calibration */
};

/* In the order of the enum, NULL-terminated: of job files and models. */
extern const char *const calibration_names[];

/* The calibration of one output. Platt (Probabilistic outputs for support vector machines, 1999):
 * the logistic function of slope·margin + offset. Isotonic: linear between knots, whose margins
 * rise and whose probabilities do not fall, and constant beyond the first and the last. */
struct calibration {
    enum calibration_method method;
    double slope, offset;
    uint32_t knots;
    double *margin, *probability; /* `knots` each, owned; every probability is inside of (0, 1) */
};

void calibration_release(struct calibration *calibration);

struct ranked_score;

/* Finds the calibration that fits the rows best, by their margins and weights, in any order. Both
 * classes must occur.
 *
 * Platt minimises the log loss with the targets (P + 1)/(P + 2) for positives and 1/(N + 2) for
 * negatives, which weigh P and N in all. Isotonic minimises the squared error among all functions
 * that do not fall; rows of one margin are pooled. No probability is closer to 0 or 1 than
 * 1/(rows + 2): a certainty that so many rows cannot show would make the log loss infinite. Sorts
 * the scores. */
struct calibration calibration_fit(enum calibration_method method, struct ranked_score *scores,
                                   uint64_t count);

/* The number by which all margins of a softmax are divided so that the log loss of the rows is the
 * least (Guo and others, On calibration of modern neural networks, 2017); 0 if there is none, as
 * where the classes are not more frequent where their margins are larger. `shift` is added to the
 * margins of each output first, or is NULL. No order of rows changes a bit. */
struct ranking;
double calibration_temperature(const struct ranking *margins, const double *shift);

/* The probability that an isotonic calibration gives to a margin. */
double calibration_probability(const struct calibration *calibration, double margin);

/* {slope, offset} or {margins, probabilities}; a new reference. */
json_t *calibration_json(const struct calibration *calibration);

/* Reads the same; false if it is no calibration. */
bool calibration_read(const json_t *object, enum calibration_method method,
                      struct calibration *calibration);

#endif
