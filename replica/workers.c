#include "replica/workers.h"

#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "replica/workers_parts.h"

int workers_new(const struct workers_settings *settings, struct workers **workers) {
    *workers = NULL;
    return settings->device ? workers_device_new(settings, workers)
                            : workers_threads_new(settings, workers);
}

void workers_free(struct workers *workers) {
    if (workers)
        workers->backend->free(workers);
}

void workers_compute(struct workers *workers, const struct computation *computation) {
    workers->backend->compute(workers, computation);
}

bool workers_gather(struct workers *workers, int64_t *into) {
    return workers->backend->gather(workers, into);
}

void workers_stop(struct workers *workers) {
    workers->backend->stop(workers);
}

enum work workers_take(struct workers *workers, struct computed *computed) {
    return workers->backend->take(workers, computed);
}

/* ---- for tests ---- */

uint32_t *workers_shuffled(uint64_t seed, uint32_t count) {
    struct random random;
    random_init(&random, seed);
    uint32_t *order = memory_new(count, sizeof *order);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = (uint32_t)random_below(&random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

void workers_pause(uint64_t seed, uint64_t most_us) {
    struct random random;
    random_init(&random, seed);
    long pause_us = (long)random_below(&random, most_us + 1);
    struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}
