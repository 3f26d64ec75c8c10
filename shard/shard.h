/* A shard: owns one range of every vector, runs the coordinator's programs on it, and takes in
 * what replicas add to the gradient.
 *
 * A state machine: it opens no socket, reads no clock and no file, and starts no thread. It is
 * handed one message at a time, appends its answers to an outbox, and queues what is to be done on
 * disk as actions. Links are numbers that the I/O shell gives to connections; HELLO and GREET tell
 * the shard which peer is at the other end. */
#ifndef DML_SHARD_SHARD_H
#define DML_SHARD_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint.h"
#include "base/disk.h"
#include "base/step_files.h"
#include "wire/message.h"

struct shard; /* opaque */

/* What a shard computes on. */
struct shard_place {
    const struct shard_backend *backend; /* shard/registers.h */
    struct device *device;               /* or NULL: the CPU; must outlive the shard */
    const char *name;                    /* of the device, for READY */
    bool optional;                       /* if it cannot be used, the CPU is */
};

/* What the process says about itself in WELCOME, and what it asks its I/O shell. Texts are not
 * copied. */
struct shard_self {
    uint32_t pid;
    const char *host;
    const char *local; /* secret of the socket for others of its host (wire/address.h), or "" */
    const char *description; /* numeric_description() */
    uint64_t proof;          /* of numeric_proof_vectors() and rows_proof() */
    /* Finds what a set-up asks to compute on. 0, or an error with its text. NULL: the CPU. */
    int (*place)(void *context, const struct message_shard_setup *setup, struct shard_place *place);
    /* Whether it sees the coordinator's state folder, as host_sees_state(). NULL: it does. */
    bool (*shares)(void *context, const char *state, const char *holder);
    /* The folder of its own, below which it keeps files if it does not. Free *path. */
    int (*own_folder)(void *context, char **path);
    void *context;
};

/* Messages that were ignored, by reason. */
struct shard_counters {
    uint64_t old_term;       /* of an older coordinator */
    uint64_t stale;          /* of another attempt or evaluation */
    uint64_t stranger;       /* from a link that may not say this */
    uint64_t stages_refused; /* malformed slices */
};

enum shard_action_kind {
    SHARD_WRITE, /* checkpoint_write(job), in the background; answer shard_written() */
    SHARD_LOAD,  /* checkpoint_load(); answer shard_loaded() */
    SHARD_KEEP,  /* remove older files except these; a failure is only logged */
    SHARD_LOOK,  /* checkpoint_lacks(), after removing all files if `anew`; answer shard_looked() */
    SHARD_READ,  /* step_file_read(); answer shard_read() */
    SHARD_PUT,   /* step_file_put(); answer shard_put() */
    SHARD_FENCE, /* write the term into the folder; answer shard_fenced() */
};

/* The pointers belong to the shard. They are valid until the action is answered; for KEEP, LOOK
 * and PUT until the next call of the shard. */
struct shard_action {
    enum shard_action_kind kind;
    const char *folder;
    struct checkpoint_job *job;        /* WRITE */
    struct checkpoint_header expected; /* LOAD, LOOK: which checkpoint, */
    uint64_t digest;
    struct registers *registers; /* the registers it goes to, */
    struct checkpoint *loaded;   /* and where its header and pairs go */
    const uint64_t *steps;       /* KEEP: [count] steps whose files are needed */
    size_t count;
    uint64_t before; /* KEEP: later steps stay as well */
    uint64_t term;   /* FENCE */
    bool anew;       /* LOOK */
    struct file_piece piece;
    uint64_t bytes;  /* READ: how many at most */
    uint64_t number; /* PUT: of the writer */
};

struct shard *shard_new(const struct shard_self *self);
void shard_free(struct shard *shard); /* not while a WRITE runs */

/* Takes one message from link `from`. Bulk in `out` points into the shard's registers and must be
 * sent before the next call. */
void shard_step(struct shard *shard, uint32_t from, const struct message *message, int64_t now_ns,
                struct outbox *out);

/* Takes the next action off the queue; false when there is none. Carry out all of them, in order,
 * before the next message; only WRITE may take longer. */
bool shard_next_action(struct shard *shard, struct shard_action *action);

/* Carries out an action on a disk and calls its answer. */
void shard_carry_out(struct shard *shard, const struct disk *disk,
                     const struct shard_action *action, struct outbox *out);

/* Answers to actions: 0, or an error code with its text. Messages that waited for the answer are
 * handled now. */
void shard_written(struct shard *shard, int code, const char *reason, struct outbox *out);
void shard_loaded(struct shard *shard, int code, const char *reason, struct outbox *out);
void shard_fenced(struct shard *shard, int code, const char *reason, struct outbox *out);
/* `lacking`: the step of a file that is not there or not as it should be; NULL: all are there. */
void shard_looked(struct shard *shard, int code, const char *reason, const uint64_t *lacking,
                  struct outbox *out);
/* Takes the piece's data over. */
void shard_read(struct shard *shard, const struct file_piece *piece, int code, const char *reason,
                struct outbox *out);
void shard_put(struct shard *shard, int code, const char *reason, uint64_t bytes,
               struct outbox *out);

/* The job of a WRITE has read the registers (checkpoint_job.taken): messages that waited only for
 * that are handled now. */
void shard_taken(struct shard *shard, struct outbox *out);

/* The run is over, or nobody came to go on with it: removes the files that only this host has, as
 * the coordinator has copies of all that count. Not while a WRITE runs. */
void shard_clear(const struct shard *shard, const struct disk *disk);

/* The link is gone. The slices that it staged stay: the coordinator may still accept them. */
void shard_peer_gone(struct shard *shard, uint32_t link);

const struct shard_counters *shard_counters(const struct shard *shard);

#endif
