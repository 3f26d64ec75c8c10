/* One line on a terminal that says how far the run is; nothing if there is no terminal. Log lines
 * erase it, also those of workers that write to the same terminal; then it is drawn again. */
#ifndef DML_COORDINATOR_RUN_PROGRESS_H
#define DML_COORDINATOR_RUN_PROGRESS_H

#include <stdbool.h>

#include "coordinator/machine/coordinator.h"

/* Shows the line if standard error is a terminal and `wanted`. */
void progress_open(bool wanted);

/* Draws it anew, with evaluations a second and the seconds left (coordinator/status/eta.h); NaN:
 * not known. */
void progress_run(const struct coordinator_view *view, double rate, double seconds_left);

/* A stage without figures: "reading the data". */
void progress_stage(const char *text);

/* Erases the line, until it is opened again. Async-signal-safe. */
void progress_close(void);

#endif
