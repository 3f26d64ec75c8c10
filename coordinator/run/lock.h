/* One coordinator a state folder: an flock on STATE/lock, which holds the pid of who has it. */
#ifndef DML_COORDINATOR_RUN_LOCK_H
#define DML_COORDINATOR_RUN_LOCK_H

/* Takes the lock; closing the descriptor, or the end of the process, lets go of it. Commands that
 * read the store hold it for moments, so it is tried for a short while. ERROR_AGAIN: "already
 * running, pid N". */
int state_lock(const char *state, int *descriptor);

/* The pid in STATE/lock, 0 if there is none; whether it still runs is for the flock to say. */
int state_lock_pid(const char *state);

#endif
