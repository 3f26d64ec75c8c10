/* The threads that do a replica's arithmetic: one piece of work at a time, spread over all.
 *
 * Each thread has a gradient sum of its own, in fixed point, so what comes out does not depend on
 * which thread computed which chunk, nor when. All functions are for the one thread that owns the
 * pool; `done` is called from a worker when the work in hand has ended. */
#ifndef DML_REPLICA_WORKERS_H
#define DML_REPLICA_WORKERS_H

#include "objective/objective.h"
#include "replica/work.h"

struct workers_settings {
    unsigned threads;
    struct objective_shape shape;
    const int16_t *exponent; /* as in struct objective_scale; outlives the workers */
    int uniform;

    /* Hands out chunks, to any thread; 0, or an error code with its text recorded. */
    int (*chunk)(void *context, uint32_t number, struct rows *rows);
    void (*done)(void *context);
    void *context;

    /* Not 0: chunks are taken in a random order with this seed, with pauses, to show that the
     * result does not depend on either. */
    uint64_t shuffle;
    uint64_t pause_us; /* the longest of those pauses */
};

struct workers; /* opaque */

struct workers *workers_new(const struct workers_settings *settings);
void workers_free(struct workers *workers); /* stops and forgets the work in hand */

/* Starts a computation. There must be no work in hand. */
void workers_compute(struct workers *workers, const struct computation *computation);

/* Moves the sum over all threads into `into`, n elements, and leaves the threads' sums zero. Short
 * vectors are done at once: true. Else the work has started. */
bool workers_gather(struct workers *workers, int64_t *into);

/* The computation in hand ends at the next chunk of each thread. */
void workers_stop(struct workers *workers);

enum work { WORK_NONE, WORK_COMPUTE, WORK_GATHER };

/* What has ended since the last call, and for a computation its answer. */
enum work workers_take(struct workers *workers, struct computed *computed);

#endif
