/* Threads on a bench, for made-up chunks of one row each and the made-up objective. Every function
 * asserts what it expects. */
#ifndef DML_TESTS_UNIT_WORKERS_BENCH_H
#define DML_TESTS_UNIT_WORKERS_BENCH_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "replica/workers.h"

enum {
    CHUNKS = 50,
    LONG = 200000,
    SHORT = 777,
    OUTPUTS = 3,
    STRIP = 300,
    NUMBERS = CHUNKS * OUTPUTS
};

/* In place of a number of threads. */
enum { DEVICE = 0, THREADS_MOST = 3 };

struct bench {
    struct workers *workers;
    sem_t done;
    sem_t gate; /* chunks wait here if `gated` */
    sem_t waiting;
    bool gated;
    uint64_t shift; /* of the numbers of rows */
};

/* Answers what workers_new() does. The device is never touched: see
 * tests/unit/made_up_objective.h. */
int open_workers(struct bench *bench, unsigned threads, uint32_t parameters, uint64_t shuffle);

/* On so many threads, or on a device. */
void bench_init(struct bench *bench, unsigned threads, uint32_t parameters, uint64_t shuffle);
/* On threads, of a model in strips with layers above them. */
void bench_init_strips(struct bench *bench, unsigned threads);
void bench_release(struct bench *bench);

/* The gradient of these chunks at the point 1. */
struct computation computation(uint32_t first, uint32_t count);
void run(struct bench *bench, struct computation computation, struct computed *computed);
void gather(struct bench *bench, uint64_t sums, int64_t *into);

/* What one plain loop over the chunks gives. */
void plain_loop(uint32_t parameters, uint32_t first, uint32_t count, int64_t *sum,
                struct exact *loss);

/* Free it. */
int64_t *new_sum(uint32_t parameters);

/* Tests run with `state` pointing to a flag: whether on the device. */
extern bool bench_on[2];
#define ON_BOTH(test)                                                                              \
    {"processor: " #test, test, NULL, NULL, &bench_on[0]}, {                                       \
        "device: " #test, test, NULL, NULL, &bench_on[1]                                           \
    }
unsigned threads_or_device(void **state, unsigned threads);

#endif
