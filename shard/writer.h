/* One thread that writes checkpoints, so that the shard goes on meanwhile. One job at a time. */
#ifndef DML_SHARD_WRITER_H
#define DML_SHARD_WRITER_H

#include <stdbool.h>

#include "shard/checkpoint.h"

struct writer; /* opaque */

/* The thread calls `done` when a job has ended, and once before, when the job does not read the
 * registers any more. `disk` and `context` must outlive the writer. */
struct writer *writer_new(const struct disk *disk, void (*done)(void *context), void *context);

/* Waits until the current job has ended. Harmless on NULL. */
void writer_free(struct writer *writer);

/* Starts a job. The caller owns it and must keep it until writer_take() answers true, which it must
 * have done for the job before. */
void writer_start(struct writer *writer, struct checkpoint_job *job);

/* Whether a job has ended since the last call; then *code is 0 or an error, whose text is recorded
 * for the calling thread. */
bool writer_take(struct writer *writer, int *code);

#endif
