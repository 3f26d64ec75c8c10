/* How samples are written in Prometheus' text format 0.0.4. */
#ifndef DML_COORDINATOR_STATUS_METRICS_WRITE_H
#define DML_COORDINATOR_STATUS_METRICS_WRITE_H

#include <stdio.h>

#include "coordinator/status/figures.h"

/* The HELP and TYPE of a metric, before its samples. */
void metrics_describe(FILE *out, const char *name, enum metric_type type, const char *help);

/* A value, and the end of the line. */
void metrics_write_value(FILE *out, double value);

/* The value of a label, quoted. */
void metrics_write_quoted(FILE *out, const char *text);

/* A sample with one label. */
void metrics_write_labelled(FILE *out, const char *name, const char *label, const char *text,
                            double value);

#endif
