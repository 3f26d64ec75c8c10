/* The workers of a run: which are started on this machine and when, and which are adopted. */
#ifndef DML_COORDINATOR_RUN_WORKERS_H
#define DML_COORDINATOR_RUN_WORKERS_H

#include "coordinator/run/training.h"

/* Reads STATE/key into `run->tls`, and makes it first if it is missing. Fine if that was done
 * before. Errors as of key_ensure(). */
int workers_key(struct training *run);

/* Starts the workers that any run of the job will have, before its data is read: they begin
 * meanwhile. Starts none on hosts, where they would wait in vain, and none if workers of an earlier
 * coordinator may still wait for the next one. training_release() ends them if there comes no run.
 * ERROR_CONFIG, ERROR_UNAVAILABLE, ERROR_CREATE. */
int workers_prepare(struct training *run);

/* Starts the workers for which the job gives no addresses, as far as they do not run, and lists the
 * address of each worker; gets the key if one of these may need it. Those that rest from another
 * member of the sweep serve this one. Errors as of launch_start() and workers_key(). */
int workers_start(struct training *run);

/* Ends them: waits up to `grace_ms` until those exit that were told to, and turns the loop
 * meanwhile. Forgets what is known of hosts. */
void workers_release(struct training *run, int grace_ms);

#endif
