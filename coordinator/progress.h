/* One line on a terminal that says how far the run is; nothing where there is no terminal. */
#ifndef DML_COORDINATOR_PROGRESS_H
#define DML_COORDINATOR_PROGRESS_H

#include <stdbool.h>

#include "coordinator/coordinator.h"

/* Shows the line if standard error is a terminal and `wanted`. Log lines take it away first. */
void progress_open(bool wanted);

/* Draws it anew. `seconds` since the run began; at most `seconds_max`. */
void progress_run(const struct coordinator *coordinator, double seconds);

/* A stage without figures: "reading the data". */
void progress_stage(const char *text);

/* Takes it away for good. */
void progress_close(void);

#endif
