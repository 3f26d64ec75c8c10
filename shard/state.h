/* The inside of a shard, shared by its files. */
#ifndef DML_SHARD_STATE_H
#define DML_SHARD_STATE_H

#include "shard/registers.h"
#include "shard/shard.h"
#include "shard/staging.h"

struct replica_link {
    uint32_t link;
    uint64_t incarnation;
    bool fetching;                /* asked for an evaluation that has not begun */
    uint32_t attempt, evaluation; /* which */
};

/* The last program, so that its repetition is answered from memory. */
struct last_program {
    uint64_t number, hash;
    struct bytes scalars;
};

struct shard {
    struct shard_self self;
    struct shard_counters counters;

    /* who: from HELLO and GREET */
    uint64_t epoch; /* the highest seen */
    char *run;      /* owned; NULL before the first HELLO */
    uint32_t index;
    uint64_t incarnation;
    uint32_t coordinator; /* its link; 0 for none */
    struct replica_link *replicas;
    size_t replica_count, replica_capacity;

    /* what: from SHARD_SETUP and EXPONENTS */
    uint32_t attempt;
    uint32_t outputs; /* 0: not set up */
    bool ready;
    struct registers registers;

    struct last_program last;

    /* the evaluation that the last BEGIN named */
    bool begun;
    bool trial_is_there; /* t is still the point of it */
    uint32_t evaluation;
    int derivative_exponent;
    struct staging staging;
};

/* Answers: the epoch is filled in. */
void shard_answer(const struct shard *shard, uint32_t to, struct message message,
                  struct outbox *out);
/* Tells that the shard cannot go on, with the recorded error, which it clears. */
void shard_fail(const struct shard *shard, int code, struct outbox *out);

struct replica_link *shard_replica(const struct shard *shard, uint32_t link);

/* Handlers, one a message. The dispatcher has made sure that the sender may say this. */
void on_hello(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_greet(struct shard *shard, uint32_t from, const struct message *message,
              struct outbox *out);
void on_shard_setup(struct shard *shard, uint32_t from, const struct message *message,
                    struct outbox *out);
void on_exponents(struct shard *shard, uint32_t from, const struct message *message,
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

/* Answers the questions for the trial point that came before the evaluation began. */
void answer_held_fetches(struct shard *shard, struct outbox *out);

#endif
