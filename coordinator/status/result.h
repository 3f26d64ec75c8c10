/* The result of a run: one JSON object, or a short table. dml-coordinator(1) lists the members. */
#ifndef DML_COORDINATOR_STATUS_RESULT_H
#define DML_COORDINATOR_STATUS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/machine/coordinator.h"
#include "coordinator/job/job.h"

struct result_seconds {
    double total, pack, train;
};

/* How often something was started again, since the run first began. */
struct result_restarts {
    uint64_t coordinator, shard, replica;
};

/* The result without the model and without its figures on other data. Loss and gradient are those
 * at the optimizer's answer; `steps` counts all accepted steps. A new reference. */
json_t *result_json(const struct coordinator *coordinator, const char *job, int64_t run,
                    const struct result_seconds *seconds, const struct result_restarts *restarts);

/* Adds the model that the run started from: its hash, and its run if that is not 0. */
void result_add_start(json_t *result, const char *sha256, int64_t run);

/* What the rows weigh, and where that comes from: {sum, files, classes}; null if all weigh 1. A new
 * reference. */
json_t *result_weights_json(const struct set_info *data, const struct job *job);

/* l1, l2, and with l1 what it comes to at a point of the view, else null: nonzero, the number of
 * weights that are not 0 (intercepts are not counted), and gap_bound, how far the loss is above its
 * minimum at most, where that is known. */
json_t *result_penalty_json(const struct coordinator_view *view,
                            const struct optimizer_point *point);

/* The tensors of the parameters, if their norms are measured, else an empty list: [{name, rows,
 * columns, norm, gradient_norm}]. The norms, |x_t| and |∂F_t|, are null before the first
 * evaluation. A new reference. */
json_t *result_tensors_json(const struct coordinator *coordinator,
                            const struct tensor_norms *norms);

/* The hidden layers of a network: {layers, activation, precision}; null for linear models. A new
 * reference. */
json_t *result_network_json(const struct network *network);

/* The preconditioner: kind ("none", "block", "diagonal"), whether it is in force, refreshes,
 * evaluations of the curvature, passes (what they cost, in passes for a gradient, by the
 * optimizer's measure), and rows that the last one drew. */
json_t *result_preconditioner_json(const struct coordinator *coordinator,
                                   const struct coordinator_view *view);

/* How often each safeguard fired, without those that did not: {text: count}. A new reference. */
json_t *result_safeguards_json(const struct coordinator_view *view);

/* Adds the model's folder and hash. */
void result_add_model(json_t *result, const char *folder, const char *sha256);

/* Prints the result on standard output: as JSON, or as a table. With `cron` it prints no table. */
void result_show(const json_t *result, bool json, bool cron);

/* The table of a path of values, for people. */

/* Prints a line for each value of "path" in a result; nothing if there is none. */
void path_table_print(const json_t *result);

#endif
