/* What is made of a model's margins: probabilities, and the classes that are predicted. It is kept
 * in model.json, beside the weights, which stay as they were trained. Inside model/ only, but for
 * response_fit() and what it takes and makes.
 *
 * A margin is shifted, if classes had weights in training, so that probabilities are those of the
 * data as it is. Then the logistic function, the softmax or a calibration makes a probability of
 * it. A class is predicted if its probability is at least the threshold. Without a threshold the
 * margin decides as it was trained, before any shift: so the weights of classes go on saying what a
 * wrong answer costs. */
#ifndef DML_MODEL_RESPONSE_H
#define DML_MODEL_RESPONSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/calibration.h"
#include "model/model.h"
#include "model/threshold.h"

struct response {
    uint32_t outputs;
    double *shift;                   /* added to the margins; NULL: nothing */
    enum calibration_method method;  /* of the next: */
    struct calibration *calibration; /* of each output, whose own method may be none; or NULL */
    double temperature;              /* that all margins are divided by, once shifted; 0: none */
    double *threshold;               /* of each output, a probability; NULL: none */
    char *rule;                      /* what found the thresholds, as `threshold` in a job */
};

struct response *response_new(uint32_t outputs);
void response_free(struct response *response); /* harmless on NULL */

/* Whether nothing is made of margins but what the objective makes of them. */
bool response_is_plain(const struct response *response);

/* Whether models of this objective, of two classes or of lists, can be calibrated and have
 * thresholds: each output has a probability of its own. */
bool response_has_thresholds(const struct objective *objective);

/* Whether they can have a temperature: the probabilities are the softmax of the margins. */
bool response_has_temperature(const struct objective *objective);

/* Whether probabilities are calibrated in one way or the other. */
bool response_is_calibrated(const struct response *response);

/* Whether class weights make of the objective's probabilities those of other classes' shares, in a
 * way that a shift of the margins undoes. */
bool response_has_prior(const struct objective *objective);

/* Sets the shift that undoes these weights of classes in training. Nothing if a weight is 0: then
 * nothing is known of that class. */
void response_set_prior(struct response *response, const struct objective *objective,
                        const double *class_weight, uint32_t classes);

/* ---- examples: `margins` are those of the model's outputs. `objective` is the layout's, which may
 * have no response ---- */

/* The prediction: objective_predictions() numbers. */
void response_predict(const struct objective *objective, const struct model_layout *layout,
                      const double *margins, double *prediction);

/* Whether the margin, or the number that is predicted from it, is not finite: the values of the row
 * are too large. */
bool response_out_of_reach(const struct objective *objective, double margin);

/* That of one output alone, of two classes or of lists; the margin, if there are no probabilities.
 */
double response_probability(const struct objective *objective, const struct model_layout *layout,
                            uint32_t k, double margin);

/* The probabilities of both of two classes. The first has all its digits where it is small. */
void response_both(const struct objective *objective, const struct model_layout *layout,
                   double margin, double chances[2]);

/* The predicted class, whose example has this prediction. Not of lists. */
uint32_t response_class(const struct objective *objective, const struct model_layout *layout,
                        const double *margins, const double *prediction);

/* If labels are lists: whether class k is predicted. */
bool response_has_class(const struct model_layout *layout, uint32_t k, double margin,
                        double probability);

/* The margins with the shift, but no calibration: they themselves, or in `room` (outputs). */
const double *response_shifted(const struct model_layout *layout, const double *margins,
                               double *room);

/* Where there is a calibration: minus the logarithm of the label's probability. `room` is for
 * `outputs` numbers. */
double response_log_loss(const struct model_layout *layout, const double *margins, uint32_t class,
                         double *room);

/* The threshold of an output, or NaN. Of a response that has none, with another shift or
 * calibration: the probability where its margin is 0. */
double response_threshold(const struct objective *objective, const struct model_layout *layout,
                          uint32_t k);

/* ---- model.json ---- */

/* Adds the members `prior_correction`, `calibration` and `threshold`, as far as there are such. */
void response_describe(const struct response *response, json_t *all);

/* Describes a response for people and for a run's result: without the knots of an isotonic
 * calibration. */
void response_summarise(const struct response *response, json_t *all);

/* Reads them from model.json; *response is NULL if there are none. ERROR_DATA names `path`. */
int response_read(const json_t *details, const char *path, const struct model_layout *layout,
                  struct response **response);

/* ---- finding it on held-out rows ---- */

struct response_wanted {
    struct threshold_rule threshold;
    const char *rule; /* its text */
    enum calibration_method calibration;
    bool classes_weighted; /* in training */
};

/* Whether rows are needed to find it. */
bool response_is_found(const struct response_wanted *wanted);

struct ranking;

/* Drops the thresholds, so that others can be found. */
void response_drop_thresholds(struct response *response);

/* Finds calibrations and thresholds, and adds them; a response that is calibrated already, of which
 * no calibration is wanted, gets thresholds alone. `margins` ranks the rows by their margins; NULL
 * unless response_is_found(). Warns of what cannot be found: a class of which there is no row, or a
 * precision that no threshold has, or anything on scores that are not held. A run that took hours
 * does not fail for that. */
void response_fit(const struct response_wanted *wanted, const struct model_layout *layout,
                  const struct ranking *margins, struct response *response);

#endif
