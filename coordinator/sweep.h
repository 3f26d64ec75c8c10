/* What a process that was killed left half-written. */
#ifndef DML_COORDINATOR_SWEEP_H
#define DML_COORDINATOR_SWEEP_H

/* Removes files and folders named NAME.tmp.PID from STATE/packs and STATE/models. The caller holds
 * the state's lock, so nobody is writing them. What cannot be removed stays. */
void state_sweep(const char *state);

#endif
