/* What a call of the coordinator's state machine leaves for its caller: records, to be carried out
 * in order, and then messages to send. */
#ifndef DML_COORDINATOR_DISPATCH_OUTPUT_H
#define DML_COORDINATOR_DISPATCH_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "store/store.h"
#include "wire/message.h"

/* What is to be stored, shown or kept, in order. */
enum record_kind {
    RECORD_ATTEMPT,      /* durable before anything else happens */
    RECORD_JOURNAL,      /* committed before messages are sent */
    RECORD_DURABLE_STEP, /* one transaction, durable before messages are sent */
    RECORD_ROLL_BACK,    /* steps and epochs after these are undone */
    RECORD_START,        /* start the worker of this link anew and connect to it */
    RECORD_LEFT,         /* the replica has left: its connection ends after what is sent */
    RECORD_BUSY,         /* it serves another run: connect to it again later; `note` has why */
    RECORD_STEP,
    RECORD_EPOCH, /* a pass of Downpour that is complete */
    RECORD_EVALUATION,
    RECORD_PORTION,
    RECORD_WORKER, /* a worker changed its state */
    RECORD_EVENT,
    RECORD_SLICE, /* part of a vector: valid until the step that made it returns to its caller */
};

/* The vectors that are read at the end, in this order. */
enum slice_vector {
    SLICE_MODEL,
    SLICE_VARIANCE, /* squares of the errors of estimates, if there are any, */
    SLICE_SAMPLING, /* with l2 those of the sandwich, */
    SLICE_ROBUST,   /* and those of robust ones */
    SLICE_ESTIMATE, /* the model again, restated without what follows from others, if any does */
    SLICE_PAIR,     /* of the curvature pairs that are kept */
    SLICE_GRADIENT, /* at the model, if there are limits: after it */
    SLICE_VECTORS,  /* how many */
};

struct record {
    enum record_kind kind;
    union {
        uint32_t attempt;
        struct {
            size_t offset, length; /* in output.blobs */
            bool begins;           /* all earlier entries are void */
        } journal;
        struct {
            uint64_t step;
            uint32_t attempt;
            size_t offset, length;   /* of the state, in output.blobs */
            const uint64_t *digests; /* [shards]; valid until the step returns */
            uint32_t shards;
        } durable;
        struct {
            bool to_start;       /* nothing is left of the run */
            uint64_t checkpoint; /* else the number of the one that it goes back to */
            uint64_t step;       /* the last accepted one there; 0 before any */
            uint64_t epochs;     /* of Downpour that are through there */
        } roll_back;
        struct {
            uint32_t link;
            bool met;      /* the process before it had been greeted */
            char why[256]; /* that process is gone, or did not come up */
        } start;
        uint32_t busy; /* link */
        uint32_t left; /* link */
        struct store_step step;
        struct store_epoch epoch;
        struct store_evaluation evaluation;
        struct {
            uint64_t evaluation; /* as in struct store_evaluation */
            struct flush_id flush;
            struct chunk_range range;
        } portion;
        struct {
            uint32_t link;
            const char *state;
        } worker;
        struct {
            const char *kind;
            char text[256];
        } event;
        struct {
            enum slice_vector of;
            uint32_t pair_vector; /* of pairs: s and y of each, oldest first, from 1 */
            uint64_t first, count;
            const double *values;
        } slice;
    };
    char note[256]; /* of a step: what store_step.note points to; of a busy worker: why */
};

struct output {
    struct outbox messages;
    struct record *records;
    uint32_t record_count, record_capacity;
    bool journals;      /* some record is for the journal */
    bool urgent;        /* some record cannot wait */
    struct bytes blobs; /* what records refer to */
};

void output_init(struct output *output);
void output_release(struct output *output);
void output_clear(struct output *output);

/* Whether the output may wait for that of other messages that are there already: then one commit
 * does for all their verdicts, and one FOLD. Records with data that are valid in this step only
 * cannot wait. */
bool output_may_wait(const struct output *output);

/* ---- for the machine alone ---- */

/* The record is zero but for its kind, and valid until the next one is added. */
struct record *output_add(struct output *output, enum record_kind kind);
/* An entry of the journal; `begins`: all earlier ones are void. */
void output_journal(struct output *output, const struct bytes *entry, bool begins);
void output_event(struct output *output, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void output_worker(struct output *output, uint32_t link, const char *state);

#endif
