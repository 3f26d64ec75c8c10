/* What is recorded in state folders, for Prometheus: the models that are live, and what became of
 * the others. */
#ifndef DML_COORDINATOR_STATUS_PAST_METRICS_H
#define DML_COORDINATOR_STATUS_PAST_METRICS_H

#include <jansson.h>
#include <stddef.h>

/* A state folder: its path, and its report_runs(), NULL if it could not be read. */
struct past_folder {
    const char *path;
    const json_t *runs;
};

/* The metrics of dml-status(7), as text in the format 0.0.4, each with the label `state`. Times are
 * seconds since 1970: an age is a difference that Prometheus takes. What is not known has no
 * sample. Free it. */
char *past_metrics_text(const struct past_folder *folders, size_t count, size_t *length);

#endif
