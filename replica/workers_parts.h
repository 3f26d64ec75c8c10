/* For the backends of workers alone: replica/workers_threads.c and replica/workers_device.c. */
#ifndef DML_REPLICA_WORKERS_PARTS_H
#define DML_REPLICA_WORKERS_PARTS_H

#include "replica/workers.h"

/* What the functions of replica/workers.h do; `workers` is what new() made. */
struct workers_backend {
    void (*free)(struct workers *workers);
    void (*compute)(struct workers *workers, const struct computation *computation);
    bool (*gather)(struct workers *workers, int64_t *into);
    void (*stop)(struct workers *workers);
    enum work (*take)(struct workers *workers, struct computed *computed);
};

/* What each backend's own struct begins with. */
struct workers {
    const struct workers_backend *backend;
};

int workers_threads_new(const struct workers_settings *settings, struct workers **workers);
int workers_device_new(const struct workers_settings *settings, struct workers **workers);

/* For tests, as `shuffle` and `pause_us` of the settings say: the numbers below `count` in an order
 * that follows from the seed, in an array to be released with free(); and a pause. */
uint32_t *workers_shuffled(uint64_t seed, uint32_t count);
void workers_pause(uint64_t seed, uint64_t most_us);

#endif
