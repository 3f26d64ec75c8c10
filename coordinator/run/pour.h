/* What the coordinator's machine is to know of Downpour. */
#ifndef DML_COORDINATOR_RUN_POUR_H
#define DML_COORDINATOR_RUN_POUR_H

#include "optimizer/downpour.h"
#include "coordinator/run/training.h"

/* Of a run whose start is known. They refer to the job. A run that starts from a model has no
 * Downpour before L-BFGS: its first steps, as long as if nothing was known, would lead away from
 * what the model has learned. Its sums are H0 of L-BFGS where F may not be
 * convex; elsewhere they cost steps (doc/ARCHITECTURE.md). */
struct downpour_settings pour_settings(const struct training *run);

#endif
