/* Binds the coordinator's copies of checkpoints (coordinator/machine/copies.h) to the disk: one
 * thread carries their actions out, since a sync may take seconds. All functions are called from
 * the thread of the event loop, and so is `passed`. */
#ifndef DML_COORDINATOR_RUN_COPIER_H
#define DML_COORDINATOR_RUN_COPIER_H

#include "wire/message.h"

struct event_base;
struct copier; /* opaque */

struct copier_callbacks {
    /* What the machine is to be given now, or NULL; `out` has messages to send in any case. */
    void (*passed)(void *context, uint32_t worker, const struct message *message);
    void *context;
};

/* Copies go to FOLDER/0, … . The thread is started when there is something to do. */
struct copier *copier_new(struct event_base *base, const char *folder, uint64_t term,
                          uint32_t shards, struct outbox *out,
                          const struct copier_callbacks *callbacks);

/* Waits until what is under way has ended. Harmless on NULL. */
void copier_free(struct copier *copier);

/* A message of a worker, and a worker that is lost: as copies_take() and copies_lost(). */
const struct message *copier_take(struct copier *copier, uint32_t worker,
                                  const struct message *message);
void copier_lost(struct copier *copier, uint32_t worker);

#endif
