/* Jobs with `objective = network`: hidden layers between the features and the margins of a loss. */
#ifndef DML_COORDINATOR_JOB_NETWORK_H
#define DML_COORDINATOR_JOB_NETWORK_H

#include "coordinator/job/job.h"

/* The hidden layers, as struct objective_shape has them; none for a job that trains no network. */
struct network job_network(const struct job *job);

/* Its units as text: "100 - 50". Free it. */
char *job_layers_text(const struct network *network);

/* Of a job that has been read: makes the loss of its network the job's objective, and gives the
 * keys that it does not set the defaults of networks. Harmless for other jobs. */
void job_complete_network(struct job *job);

/* Checks what does not go together with a network: ERROR_CONFIG. */
int job_check_network(const struct job *job);

#endif
