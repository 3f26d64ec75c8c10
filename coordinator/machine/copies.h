/* The coordinator's copies of checkpoints of shards whose hosts do not see its state folder.
 *
 * Such a shard writes a checkpoint on its own disk and names in CHECKPOINTED the files that only it
 * has. They are read from it, piece by piece, and written into the state folder; only then is the
 * machine given the CHECKPOINTED. So a durable step has all its files in the state folder,
 * whichever hosts are lost. A shard that was started on another host reads from these copies what
 * its own disk lacks. doc/PROTOCOL.md, "Hosts apart".
 *
 * A state machine beside the coordinator's: it takes messages of shards, adds messages to an
 * outbox, and queues what is to be done on disk as actions, which any thread may carry out, in
 * order. */
#ifndef DML_COORDINATOR_MACHINE_COPIES_H
#define DML_COORDINATOR_MACHINE_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/step_files.h"
#include "wire/message.h"

struct copies; /* opaque */

enum copies_action_kind {
    COPIES_PUT,  /* write a piece that came; publish the file with its last one */
    COPIES_READ, /* read a piece for the shard */
    COPIES_KEEP, /* remove files that are not needed; a failure is only logged */
};

struct copies_action {
    enum copies_action_kind kind;
    uint32_t shard;
    uint32_t attempt;
    uint64_t serial;         /* PUT: of the checkpoint that it belongs to */
    char *folder;            /* owned, as what follows is */
    struct file_piece piece; /* PUT, READ */
    uint64_t bytes;          /* READ: how many at most */
    uint64_t number;         /* PUT: of the writer */
    uint64_t *steps;         /* KEEP: [count] that are needed */
    size_t count;
    uint64_t before; /* KEEP: later steps stay as well */
    int code;        /* what came of it: 0, or an error */
    char reason[512];
};

/* Copies for shards [0, shards) go to FOLDER/0, FOLDER/1, …; messages are sent in this term. */
struct copies *copies_new(const char *folder, uint64_t term, uint32_t shards);
void copies_free(struct copies *copies); /* and the actions that were not taken */

/* Takes a message of a worker. Returns what the machine is to be given: this message, another one
 * that waited, valid until the next call, or NULL. */
const struct message *copies_take(struct copies *copies, uint32_t worker,
                                  const struct message *message, struct outbox *out);

/* The shard is gone, and what was asked of it. */
void copies_lost(struct copies *copies, uint32_t worker);

/* Takes the next action off the queue; false when there is none. */
bool copies_next_action(struct copies *copies, struct copies_action *action);

/* Does it. From any thread. */
void copies_carry_out(const struct disk *disk, struct copies_action *action);

/* Takes a carried-out action back. Returns a message as copies_take() does. */
const struct message *copies_done(struct copies *copies, struct copies_action *action,
                                  struct outbox *out);

/* Frees what an action has. */
void copies_action_release(struct copies_action *action);

#endif
