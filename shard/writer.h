/* One thread that writes checkpoints, so that the shard goes on meanwhile. One job at a time. */
#ifndef DML_SHARD_WRITER_H
#define DML_SHARD_WRITER_H

#include <stdbool.h>

#include "shard/checkpoint.h"

struct writer; /* opaque */

/* `done` is called by the thread when a job has ended. Neither is copied: both outlive it. */
struct writer *writer_new(const struct disk *disk, void (*done)(void *context), void *context);

/* Ends the job in hand first. */
void writer_free(struct writer *writer);

/* Starts a job, which stays the caller's; the one before must have been taken. */
void writer_start(struct writer *writer, struct checkpoint_job *job);

/* Whether a job has ended since the last call; then *code is 0 or an error, whose text is recorded
 * for the calling thread. */
bool writer_take(struct writer *writer, int *code);

#endif
