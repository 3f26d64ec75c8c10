/* What a command shows while it goes on: over the control socket and by the status server. */
#ifndef DML_COORDINATOR_RUN_SHOWING_H
#define DML_COORDINATOR_RUN_SHOWING_H

#include "coordinator/run/training.h"

/* Takes the control socket and, if the job has one, the status server's address; answers from now
 * on, whenever the loop turns. ERROR_UNAVAILABLE. */
int showing_begin(struct training *training);

/* What showing_begin() has begun. Harmless if it has not. */
void showing_end(struct training *training);

#endif
