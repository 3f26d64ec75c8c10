/* A replica: computes loss and gradient over the portions that the coordinator hands it, and
 * delivers them to the shards as flushes. doc/PROTOCOL.md says when.
 *
 * A state machine: it takes a message, an answer of its workers or a timer, appends what is to be
 * sent to an outbox, and queues everything else as actions. The caller carries them out in order,
 * before the next message. It opens no socket, reads no clock and starts no thread.
 *
 * Links are numbers that the caller gives out, never 0; the coordinator is whoever says HELLO. */
#ifndef DML_REPLICA_REPLICA_H
#define DML_REPLICA_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "replica/compute.h"
#include "replica/sum.h"
#include "wire/message.h"

/* Bytes of the file of a set. */
struct set_range {
    uint64_t offset, bytes;
};

/* In place of the number of a place of a copied set: all that is not rows, a part at a time; see
 * replica_head_lacks(). */
#define PLACE_HEAD UINT32_MAX

enum action_kind {
    ACTION_COPY_SET, /* make ready to keep a copy of `setup`'s set, in place of any other; then call
                        replica_head_lacks() */
    ACTION_OPEN_SET, /* open `setup`'s data set, or its copy, in place of any other; then call
                        replica_opened(), or replica_device_failed() */
    ACTION_KEEP,     /* `bytes` of the set, from number `at` of place `place` on, which follow those
                        before: put them aside. They stay until the next message */
    ACTION_LOOK,     /* at place `place`: if all its bytes were put aside, verify these and put them
                        into the copy, or drop them; else see whether the copy has it. Then call
                        replica_looked(), or for the head replica_head_lacks() */
    ACTION_CONNECT,  /* connect to shard `shard` at `address`; then call replica_connected(). An
                        earlier, unanswered connect for this shard is given up */
    ACTION_CLOSE,    /* close `link` */
    ACTION_COMPUTE,  /* `computation`; then call replica_computed() */
    ACTION_STOP,     /* stop the computation at its next chunk; it is answered all the same */
    ACTION_GATHER, /* the workers' sums into `into`, `sums` elements from `first` on; all others are
                      0. Then call replica_gathered() */
};

/* The data set and objective to work on. */
struct replica_setup {
    const char *set, *fingerprint; /* valid until the next REPLICA_SETUP */
    const char *objective; /* the name of the objective; valid until the next REPLICA_SETUP */
    bool copied;           /* the set is not seen here: it comes by messages */
    const char *scratch;   /* valid until the next REPLICA_SETUP; "": keep no copy of the set, or of
                              a set that comes by messages in the usual folder */
    const char *device;    /* as device/find.h reads it; valid until the next REPLICA_SETUP */
    uint32_t on_host;      /* number of this replica on its host: which device it takes */
    struct blob plugin;    /* plugin_source_encode() made it; empty: none. Valid until the next
                              REPLICA_SETUP */
    struct blob
        extra_bits; /* as `plugin`: a byte a base exponent, as in REPLICA_SETUP; empty: none */
    struct loss_parameters loss;
    struct layout layout;          /* of the parameters */
    uint8_t activation, precision; /* of a network */
    double unit;                   /* of a network's outputs */
    double l2;                     /* of a network with Kronecker factors, else 0 */
    enum precondition precondition;
    uint32_t block_columns;
    uint64_t rows; /* that vectors of rows have: those of training; 0: nobody asks for such */
    uint32_t strip_columns; /* the set is in strips of so many columns, and the numbers of chunks
                               are those of its tiles; 0: it is not */
    bool scaled;            /* the shards' vectors are scaled (base/layout.h) */
    uint32_t threads;       /* 0: as many as there are processors */
};

/* The sizes of sums of the evaluations that the set-up allows. */
struct sums_sizes replica_sums_sizes(const struct replica_setup *setup);

struct action {
    enum action_kind kind;
    struct replica_setup setup;
    uint32_t shard;
    const char *address; /* valid until the next SHARD_AT for the shard */
    uint32_t link;
    struct computation computation;
    uint32_t place;
    uint64_t at;
    const void *bytes;
    uint64_t byte_count;
    int64_t *into;
    uint64_t first, sums; /* of those that the workers have in the evaluation */
};

/* What WELCOME says of this process, and what it asks its I/O shell. The texts must outlive the
 * replica. */
struct replica_identity {
    uint32_t pid, threads;
    uint64_t proof;
    const char *host, *description;
    /* Whether it sees the coordinator's state folder, as host_sees_state(). NULL: it does. */
    bool (*shares)(void *context, const char *state, const char *holder);
    void *context;
};

/* Counts for the log. */
struct replica_counters {
    uint64_t portions, flushes, accepted, dropped;
    uint64_t set_bytes; /* of the set, that came by messages */
    uint64_t stale;     /* messages of another term, attempt, evaluation or incarnation: ignored */
};

struct replica; /* opaque */

struct replica *replica_new(const struct replica_identity *identity);
void replica_free(struct replica *replica);

/* Takes one message from link `from`. Bulk in `out` must be sent before the next call. */
void replica_step(struct replica *replica, uint32_t from, const struct message *message,
                  int64_t now_ns, struct outbox *out);

/* The other end has closed a link. */
void replica_gone(struct replica *replica, uint32_t link, struct outbox *out);

/* Takes the next action off the queue; false when there is none. */
bool replica_next_action(struct replica *replica, struct action *action);

/* Tells what computes on the set that is being opened: "cpu", or the name of a device. To be called
 * before replica_opened(), unless it is the CPU. */
void replica_computes_on(struct replica *replica, const char *device);

/* Before replica_opened(): what is computed of the set at hand is a linear model on the processor,
 * and its rows are sparse, with so many values in a chunk, in the mean; of a set in tiles `chunks`
 * are tiles. An evaluation over few chunks may then get a scaled point as it is, and shards on
 * other hosts are asked for what the chunks of the set use of the point. */
void replica_rows_are_sparse(struct replica *replica, uint64_t chunk_values, uint32_t chunks);

/* Before replica_opened(): rows of chunk i are [first[i], first[i + 1]) of a vector of rows;
 * copied. Shards on other hosts, and for a network all, are then asked for the numbers of a
 * portion's rows, in place of a whole vector of rows. */
void replica_rows_of_chunks(struct replica *replica, const uint64_t *first, uint32_t chunks);

/* ---- a set that comes by messages ----
 *
 * doc/PROTOCOL.md, "Rows by message". A place is what has a checksum of its own: a chunk, or of a
 * set in tiles first the heads of all chunks and then the tiles. */

/* Which bytes of the file the head of the copy lacks next, of those that are not rows; none: it is
 * complete. Those that were put aside before are in the copy, or were wrong and are named again. */
void replica_head_lacks(struct replica *replica, struct set_range range, int error,
                        const char *reason, struct outbox *out);

/* Before replica_opened() of a copied set: where its places are; copied. The first `heads` are the
 * heads of the chunks of a set in tiles; else 0. */
void replica_set_is_copied(struct replica *replica, const struct set_range *places, uint32_t count,
                           uint32_t heads);

/* Whether the copy has the place, with the set's checksum. */
void replica_looked(struct replica *replica, uint32_t place, bool here, int error,
                    const char *reason, int64_t now_ns, struct outbox *out);

/* The device failed, and with it the action that was under way: it is not answered. The replica
 * computes nothing before it is set up anew. `error` has its text in `reason`. */
void replica_device_failed(struct replica *replica, int error, const char *reason,
                           struct outbox *out);

/* What came of actions. `error` is 0 or an error code with its text in `reason`. */
void replica_opened(struct replica *replica, int error, const char *reason, int64_t now_ns,
                    struct outbox *out);
void replica_connected(struct replica *replica, uint32_t shard, uint32_t link, int error,
                       const char *reason, struct outbox *out);
void replica_computed(struct replica *replica, const struct computed *computed, int64_t now_ns,
                      struct outbox *out);

/* `listed`: not NULL: the elements that may be other than 0, in place of what the buffer has. They
 * stay for the call. */
void replica_gathered(struct replica *replica, const struct sum_lists *listed, int64_t now_ns,
                      struct outbox *out);

/* When to call replica_timer(); INT64_MAX: no timer is needed now. */
int64_t replica_deadline_ns(const struct replica *replica);
void replica_timer(struct replica *replica, int64_t now_ns, struct outbox *out);

/* What was computed, decided on and ignored so far. */
const struct replica_counters *replica_counters(const struct replica *replica);

#endif
