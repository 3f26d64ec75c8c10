/* What a command answers while it runs: over the control socket and by the status server. */
#ifndef DML_COORDINATOR_RUN_SHOWING_H
#define DML_COORDINATOR_RUN_SHOWING_H

#include "coordinator/run/training.h"

/* Takes the control socket and, if the job has one, the status server's address; answers from now
 * on, whenever the loop turns. ERROR_UNAVAILABLE. */
int showing_begin(struct training *training);

/* Tells a page that watches how the run ended: waits until it has asked once more, 1.5 s at most.
 * If none has asked of late it does not wait. The result is complete, and nothing is left to do. */
void showing_last(struct training *training);

/* Ends what showing_begin() began. Harmless if that was not called. */
void showing_end(struct training *training);

#endif
