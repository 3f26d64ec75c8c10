/* What a run of a job will be, as far as that is known before it begins: the shape of its model,
 * the memory and the devices of its workers; and whether a plug-in's gradient is right. */
#ifndef DML_COORDINATOR_RUN_PREVIEW_H
#define DML_COORDINATOR_RUN_PREVIEW_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/job/sizing.h"

/* The shape of a model of this data, but for what a plug-in says. ERROR_CONFIG if a scaling that
 * the job asks for do not suit it. */
int shape_of_data(const struct job *job, const struct set_info *info,
                  struct objective_shape *shape);

/* What memory a run on this data would need if its workers were here; 0 of a plug-in, whose library
 * is not asked. Errors of shape_of_data(), sizing_precondition() and sizing_of(). */
int need_of_data(const struct job *job, const struct set_info *info, struct memory_need *need);

/* Whether the job can have the device that it names: ERROR_CONFIG for work that no device does,
 * ERROR_UNAVAILABLE for a GPU that this machine lacks, if workers are started here. */
int devices_check(const struct job *job);

/* Prints what is where, and why, as lines that begin with "# ". For a job that has passed
 * devices_check(). */
void devices_print(const struct job *job, FILE *out);

/* `check --gradient`: whether a plug-in's gradient is that of its loss, on rows of the job's data.
 * Packs the data as a run does, and compares. What was found is an object, a new reference; the
 * texts of `found` are for people. ERROR_USAGE if the job has no plug-in, ERROR_AGAIN if a run has
 * the state folder, ERROR_PLUGIN if the gradient is wrong. */
int gradient_check(const struct job *job, json_t **found);

#endif
