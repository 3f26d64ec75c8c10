/* Ctrl-C and SIGTERM outside of training, whose loop takes them (cluster.h): while data is packed,
 * a model scored or on_publish run, they end the process at once, with a message and the status of
 * a run that was told to stop. What is on the disk holds at every instant, so the same command goes
 * on from there. */
#ifndef DML_COORDINATOR_RUN_INTERRUPTION_H
#define DML_COORDINATOR_RUN_INTERRUPTION_H

#include <sys/types.h>

/* From now on; a signal that whoever started the process has it ignore stays ignored. */
void interruption_open(void);

/* A command that the process waits for is ended by the same signal. 0: there is none any more. */
void interruption_pass_to(pid_t child);

#endif
