/* Inside replica/workers.c and replica/workers_device.c only: the workers, and what both share. */
#ifndef DML_REPLICA_WORKERS_PARTS_H
#define DML_REPLICA_WORKERS_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "objective/on_device.h"
#include "replica/needs.h"
#include "replica/sum.h"
#include "replica/workers.h"

/* Which models are computed: the whole, or those of the strips, and what lies above them. */
enum strip_shape { STRIP_ANY, STRIP_LAST, STRIP_UPPER, STRIP_SHAPES };

struct worker {
    struct workers *workers;
    pthread_t thread;
    struct computed computed; /* its part */

    /* of the processor */
    struct sum sum;                                  /* but of vectors of rows */
    struct objective_scratch *scratch[STRIP_SHAPES]; /* of each shape */
};

/* What a thread does for the work that was posted. */
struct workers_backend {
    void (*compute)(struct worker *worker);
    void (*gather)(struct worker *worker);
};

struct workers {
    const struct workers_backend *backend;
    struct workers_settings settings;
    uint32_t strips;                            /* 1: the model is whole */
    struct objective_shape shape[STRIP_SHAPES]; /* STRIP_LAST: of several strips; */
    bool has_upper;                             /* STRIP_UPPER: of a network in strips */
    struct worker *worker;
    unsigned count; /* of them: one drives a device */

    /* Vectors of rows: one for all threads, as every chunk has elements of its own. */
    struct sum rows;

    pthread_mutex_t mutex; /* guards `ended`, `to_start` and `closing` */
    pthread_cond_t posted;
    enum work ended;   /* what workers_take() will return next */
    unsigned to_start; /* how many threads more are to join the current work */
    bool closing;

    /* The current work. The owner sets it while no thread works; threads only read it. */
    enum work work;
    struct computation computation;
    enum sums_layout layout;
    struct sum **spread; /* what they are the sum of, unless they are on the device; owned */
    unsigned spread_count;
    uint64_t sums;       /* elements that it has */
    bool on_host;        /* they are in this process's memory, and not in that of the device */
    uint64_t first, end; /* of them, that are gathered */
    int64_t *into;
    bool are_listed;        /* they were, when they were gathered last: */
    struct sum_lists lists; /* workers_listed(); room for one of each thread, owned */
    uint32_t *order;        /* of the chunks, or NULL; owned */
    uint64_t shuffles;
    uint64_t pieces; /* chunks, or ranges of elements */
    atomic_uint_fast64_t next_piece;
    atomic_bool stop;
    atomic_uint running; /* threads that have not finished */

    /* What the thread that drives a device has. */
    struct objective_device *on;
    uint64_t point;  /* the number of the point that the device has; 0: none */
    bool not_device; /* the error is of a chunk, and not of the device */
    struct objective_device_result *results;
    uint32_t result_capacity;
};
/* Threads of the processor; and the one that drives a device. */
extern const struct workers_backend workers_on_processor, workers_on_device;

/* Brings shape and exponents to the device of the settings. As workers_new(). */
int workers_open_device(struct workers *workers);

/* Records the error whose text was recorded last. */
void worker_note_error(struct computed *computed, int code);

/* What a thread uses for the current computation on the processor; `kernel` refers to the others.
 */
struct kernel_use {
    struct kernel_place kernel;
    struct objective_scale scale;
    struct objective_sample sample;
};
int worker_begin(struct worker *worker, struct kernel_use *use);

/* Computes one chunk in the memory that worker_begin() made: asks for none itself. */
int worker_compute_chunk(struct worker *worker, const struct kernel_place *place, uint32_t number);

/* Waits a moment before a chunk, if chunks are shuffled. */
void workers_pause(const struct workers *workers, uint32_t number);

#endif
