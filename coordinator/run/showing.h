/* What a run shows while it goes on: over the control socket and by the status server. */
#ifndef DML_COORDINATOR_RUN_SHOWING_H
#define DML_COORDINATOR_RUN_SHOWING_H

#include "coordinator/run/training.h"

/* Takes the status server's address if the job has one; before the long work, so that an address
 * that is taken is found at once. Does nothing if it has it. ERROR_UNAVAILABLE. */
int showing_listen(struct training *training);

/* Answers from now on, whenever the loop of training->base runs. */
int showing_begin(struct training *training);

/* What showing_listen() and showing_begin() have begun. */
void showing_end(struct training *training);

#endif
