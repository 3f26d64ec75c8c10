/* The threads that compute for a replica: one piece of work at a time, on the processor or on a
 * device.
 *
 * On the processor the chunks of a computation are spread over threads, each of which has its own
 * gradient sum in fixed point; a device has one (objective/on_device.h). Integer sums do not depend
 * on their order, so the result does not depend on who computed which chunk, or when. All functions
 * are for the one thread that owns the workers; they call `done` when the current work has ended.
 */
#ifndef DML_REPLICA_WORKERS_H
#define DML_REPLICA_WORKERS_H

#include "device/device.h"
#include "objective/shape.h"
#include "replica/replica.h"
#include "replica/sum.h"
#include "wire/evaluation.h"

struct workers_settings {
    struct device *device; /* to compute on; outlives the workers. NULL: the processor */
    unsigned threads;      /* of the processor */
    struct objective_shape shape;
    const int16_t *exponent; /* as in struct objective_scale; outlives the workers */
    int uniform;
    const int16_t *exponents;  /* as in struct objective_sample, as is `examples`; outlive them, */
    const int16_t *extra_bits; /* as do those for the errors of estimates */
    uint64_t examples;
    uint32_t strip_columns;  /* of tiles, which the processor alone computes; 0: there are none */
    bool upper;              /* of a network in tiles: layers lie above the strips */
    uint64_t column_weights; /* of linear models: a gradient has so many elements a column of the
                                data, which only rows with values there add to, and then those that
                                all rows do; 0: it is not so */
    struct sums_sizes sizes; /* of a triangle only with a preconditioner */
    uint32_t block_columns;  /* of the block, if there is one; */
    bool shared;             /* outputs share its matrix */

    struct rows_most most; /* of its chunks or tiles */

    /* Gives the rows of a chunk, or of a tile; called by any thread. They stay where they are until
     * the workers are freed. 0, or an error code with its text recorded. */
    int (*chunk)(void *context, uint32_t number, struct rows *rows);
    void (*done)(void *context);
    void *context;

    /* Not 0: for tests. Chunks are computed in a random order with this seed, with pauses between,
     * to show that the result depends on neither. */
    uint64_t shuffle;
    uint64_t pause_us; /* the longest of those pauses */
};

struct workers; /* opaque */

/* ERROR_UNAVAILABLE if the device fails: *workers is NULL. The processor does not fail. */
int workers_new(const struct workers_settings *settings, struct workers **workers);
void workers_free(struct workers *workers); /* stops the current work and discards it */

/* Starts a computation. No other work may be going on. */
void workers_compute(struct workers *workers, const struct computation *computation);

/* Moves elements [first, first + count) of the sum of the last computation over all threads into
 * `into`, and zeroes the threads' sums, in which all others must be 0. Of tiles the elements are
 * those of the strip. True: done at once, as there are few. False: the work
 * has started, and `done` will be called. */
bool workers_gather(struct workers *workers, uint64_t first, uint64_t count, int64_t *into);

/* After gathering: NULL; or, in place of `into`, to which nothing was written, those elements that
 * may be other than 0. */
const struct sum_lists *workers_listed(const struct workers *workers);

/* Ends the current computation at the next chunk of each thread, or group of chunks of a device. */
void workers_stop(struct workers *workers);

enum work { WORK_NONE, WORK_COMPUTE, WORK_GATHER };

/* The work that has ended since the last call. For a computation *computed is what came out; for
 * gathering it has errors alone. */
enum work workers_take(struct workers *workers, struct computed *computed);

#endif
