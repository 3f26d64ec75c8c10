/* The inside of a shard, shared by its files. */
#ifndef DML_SHARD_STATE_H
#define DML_SHARD_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint.h"
#include "shard/registers.h"
#include "shard/shard.h"
#include "wire/bulk.h"
#include "wire/evaluation.h"
#include "wire/message.h"
#include "wire/wanted.h"

/* A slice of a flush that waits for FOLD or DROP. */
struct staged {
    struct flush_id id;
    enum stage_encoding encoding;
    uint64_t first;   /* as struct slice has them */
    uint64_t entries; /* as struct slice has them */
    struct kept_bulk bulk;
    int64_t *biases; /* sums of the biases beside it, or NULL; owned */
};

/* The slices that wait, and the flushes whose slices were added to the sum. */
struct staging {
    struct staged *staged; /* owned */
    size_t staged_count, staged_capacity;
    struct flush_index places; /* into `staged` */
    struct flush_id *folded;   /* of the evaluation at hand; owned */
    size_t folded_count, folded_capacity;
    struct flush_index index; /* into `folded` */
    uint64_t folded_hash;     /* sum of flush_id_hash() over them */
};

/* Forgets everything, for a new evaluation. */
void staging_clear(struct staging *staging);
void staging_release(struct staging *staging);

struct replica_link {
    uint32_t link;
    uint64_t incarnation;
    bool fetching; /* FETCH came for an evaluation that has not begun: */
    struct message_fetch fetch;
    struct kept_bulk wanted; /* the bits that came last */
    struct wanted_key key;   /* of these; zeros: none came */
};

/* The last program, so that its repetition is answered from memory. */
struct last_program {
    uint64_t number, hash;
    struct bytes scalars;
};

/* A message of the coordinator that waits for something on disk. */
struct waiting_message {
    enum message_type type;
    uint64_t term;
    struct bytes body;
    struct kept_bulk bulk;
};

struct waiting {
    struct waiting_message *messages; /* in the order they came; owned */
    size_t count, capacity;
};

#define APART_FILES_MAX (SLOTS_MAX + WINDOW_MAX + 1)

/* How the files of a shard go to the coordinator and come back, if its host does not see the state
 * folder (shard/apart.c). */
struct apart {
    bool used;        /* the folder is on this host alone */
    uint64_t durable; /* the newest step that the coordinator has all files of; 0: none is known */
    bool anew;        /* all files were removed since RESTORE, as they could not be loaded */
    bool brought;     /* some file was brought since then, the last one is that of `step` */
    bool bringing;    /* it is on its way */
    uint64_t step, length, asked, got; /* bytes of the file */
};

/* The checkpoints of the shard: those on disk, and the one that is being written or loaded. */
struct saving {
    char *folder;         /* owned; NULL: no checkpoints */
    uint64_t fenced;      /* the term that the folder holds; 0: not known */
    bool welcoming;       /* WELCOME is sent once the folder holds the term */
    uint32_t former;      /* the link of the coordinator before; 0: none */
    uint64_t former_term; /* and its term */
    unsigned unanswered;  /* FENCE, LOAD and LOOK actions without an answer yet, and a file
                             on its way */
    struct shard_action actions[7]; /* queued; one of a kind at most */
    size_t action_count;

    struct checkpoint *kept; /* what this process wrote or loaded, by rising step; owned */
    size_t kept_count, kept_capacity;
    uint64_t restoring;         /* the step that LOAD is about, */
    struct shard_action load;   /* how it is asked for, */
    struct checkpoint loading;  /* and its header and pairs */
    struct checkpoint_job *job; /* being written, or NULL; owned */
    uint32_t asked_by;          /* the link that asked for it */
    uint64_t *steps;            /* of the last KEEP; owned */
    struct apart apart;
};

struct shard {
    struct shard_self self;
    struct shard_counters counters;

    /* identity and peers: from HELLO and GREET */
    uint64_t term; /* the highest seen */
    char *run;     /* owned; NULL before the first HELLO */
    uint32_t index;
    uint64_t incarnation;
    bool shares;                   /* this host has the state folder */
    uint64_t since;                /* the term in which it became this incarnation */
    uint32_t coordinator;          /* its link; 0 for none */
    struct replica_link *replicas; /* by rising link */
    size_t replica_count, replica_capacity;

    /* the range: from SHARD_SETUP, EXPONENTS and START */
    uint32_t attempt;
    bool set_up;
    bool ready;
    const char *place;  /* the name of the device, or "cpu" */
    bool device_failed; /* nothing is done any more before the next set-up */
    struct registers registers;

    struct last_program last;

    /* the evaluation that the last BEGIN named */
    bool begun;
    bool gives_rows;     /* it gives out D, not t */
    bool trial_is_there; /* what it gives out is still what it was */
    uint32_t evaluation;
    enum sums_layout sums; /* what the slices of its flushes are added to */
    struct bounds bounds;
    struct staging staging;

    struct saving saving;
    struct waiting waiting;
};

/* Sends a message with the shard's term. */
void shard_answer(const struct shard *shard, uint32_t to, struct message message,
                  struct outbox *out);
/* Sends FAILED to the coordinator, with the recorded error as the reason, and clears that. */
void shard_fail(struct shard *shard, int code, struct outbox *out);

/* NULL: no replica was greeted there. Valid until the next one is added, or goes. */
struct replica_link *shard_replica(const struct shard *shard, uint32_t link);
struct replica_link *shard_add_replica(struct shard *shard, uint32_t link);

/* Handlers, one a message. The dispatcher has made sure that the sender may say this. */
void on_hello(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_greet(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_shard_setup(struct shard *shard, uint32_t from, const struct message *message,
                    struct outbox *out);
void on_exponents(struct shard *shard, uint32_t from, const struct message *message,
                  struct outbox *out);
void on_limits(struct shard *shard, uint32_t from, const struct message *message,
               struct outbox *out);
void on_coordinates(struct shard *shard, uint32_t from, const struct message *message,
                    struct outbox *out);
void on_squares(struct shard *shard, uint32_t from, const struct message *message,
                struct outbox *out);
void on_start(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_program(struct shard *shard, uint32_t from, const struct message *message,
                struct outbox *out);
void on_fetch(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_stage(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_fold(struct shard *shard, uint32_t from, const struct message *message, struct outbox *out);
void on_drop(struct shard *shard, uint32_t from, const struct message *message, struct outbox *out);
void on_read(struct shard *shard, uint32_t from, const struct message *message, struct outbox *out);

void on_checkpoint(struct shard *shard, uint32_t from, const struct message *message,
                   struct outbox *out);
void on_restore(struct shard *shard, uint32_t from, const struct message *message,
                struct outbox *out);
void on_read_file(struct shard *shard, uint32_t from, const struct message *message,
                  struct outbox *out);
void on_file_bytes(struct shard *shard, uint32_t from, const struct message *message,
                   struct outbox *out);
void on_retain(struct shard *shard, uint32_t from, const struct message *message,
               struct outbox *out);

/* Handles the messages that need not wait any more, in order. */
void handle_waiting(struct shard *shard, struct outbox *out);
/* Drops the waiting messages: their coordinator is gone or replaced. */
void forget_waiting(struct shard *shard);

/* Queues the action that makes the folder hold the term; false if there is nothing to do. */
bool fence_folder(struct shard *shard);
/* A new attempt, whose checkpoints go to this folder; "": there are none. `apart`: it is on this
 * host alone. */
void saving_begin(struct saving *saving, const char *folder, bool apart);
void saving_act(struct saving *saving, struct shard_action action); /* queues an action */
/* Asks to load what RESTORE named, and whether the files of that are there; `anew`: after removing
 * all files. */
void saving_load(struct saving *saving);
void saving_look(struct saving *saving, bool anew);
void send_restored(const struct shard *shard, uint64_t step, int code, const char *reason,
                   struct outbox *out);

/* The folder of a shard whose host does not see the state folder. Free *path. */
int apart_folder(const struct shard *shard, char **path);
/* The steps of the files that the coordinator is to read before this checkpoint is durable. */
uint32_t apart_files(const struct shard *shard, const struct checkpoint *checkpoint,
                     uint64_t steps[APART_FILES_MAX]);
/* The coordinator that was to send a file is gone or replaced. */
void apart_give_up(struct saving *saving);
/* Says which files are needed, after a KEEP. */
void shard_kept(struct shard *shard, const struct shard_action *action, struct outbox *out);
void saving_release(struct saving *saving);

/* Sends WELCOME and HOLDING, once the folder holds the term. */
void welcome_coordinator(struct shard *shard, struct outbox *out);
/* Sends REFUSED. `term` is that of the refused message: a coordinator ignores other terms. */
void send_refused(uint64_t term, uint32_t to, const char *reason, struct outbox *out);
void send_if_ready(struct shard *shard, struct outbox *out);

/* Answers each FETCH that came before its evaluation began. */
void answer_held_fetches(struct shard *shard, struct outbox *out);

#endif
