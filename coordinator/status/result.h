/* The result of a run: one JSON object, or a short table for people. dml-coordinator(1) lists the
 * members. */
#ifndef DML_COORDINATOR_STATUS_RESULT_H
#define DML_COORDINATOR_STATUS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "coordinator/status/figures.h"

/* The figures of the table without the model and without its figures on other data. Loss and
 * gradient are those of `answer`, the model; `steps` counts all accepted steps. A new reference. */
json_t *result_json(const struct coordinator *coordinator, const struct job *job, int64_t run,
                    const struct optimizer_point *answer, const struct result_seconds *seconds,
                    const struct result_restarts *restarts);

/* Adds the model that the run started from: its hash, and its run if that is not 0. */
void result_add_start(json_t *result, const char *sha256, int64_t run);

/* Adds the model's folder and hash. */
void result_add_model(json_t *result, const char *folder, const char *sha256);

/* Prints the result on standard output: as JSON, or as a table. With `cron` it prints no table. */
void result_show(const json_t *result, bool json, bool cron);

/* Prints the table of a path of values, a line a value; a * marks the live one; nothing if
 * there is none. `by` is the figure that decides. */
void path_show(const json_t *path, const char *by, FILE *out);

/* Prints which value of a sweep was chosen, and by what, in a line; nothing if `chosen` is no
 * object. */
void chosen_show(const json_t *chosen, const char *before, FILE *out);

/* The next of the figures that are shown where there is little room, the most wanted first, from
 * *at, which is 0 at first; NULL after the last. `figures` are those of score_figures_json(). */
const char *figures_in_line(const json_t *figures, unsigned *at);

/* One line, without its end, of the member `downpour` of a status or a result. Free it. */
char *epochs_line(const json_t *downpour);

#endif
