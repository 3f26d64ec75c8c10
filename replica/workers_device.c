/* The backend of a device: one thread drives it, since a device's calls are for one thread at a
 * time and wait for it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "objective/on_device.h"
#include "replica/workers.h"

struct driver {
    struct workers head;
    struct workers_settings settings;
    struct objective_device *on;
    uint64_t parameters;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t posted;
    enum work posted_work; /* that the thread has not taken yet */
    enum work ended;       /* that workers_take() has not told yet */
    bool closing;

    /* The current work. The owner sets it while the thread waits. */
    struct computation computation;
    int64_t *into;
    uint32_t *order; /* of the chunks, or NULL; owned */
    uint64_t shuffles;
    atomic_bool stop;

    /* Of the thread, and of the owner while it waits. */
    struct computed computed;
    uint64_t point;  /* the number of the point that the device has; 0: none */
    bool not_device; /* the error is of a chunk, and not of the device */
    struct objective_device_result *results;
    uint32_t result_capacity;
};

/* ---- a computation ---- */

static int chunk(void *context, uint32_t number, struct rows *rows) {
    struct driver *driver = context;
    int code = driver->settings.chunk(driver->settings.context, number, rows);
    driver->not_device |= code != 0;
    return code;
}

static enum objective_device_kind kind_of(uint32_t kind) {
    switch ((enum evaluation_kind)kind) {
    case EVALUATION_LOSS:
        return OBJECTIVE_DEVICE_LOSS;
    case EVALUATION_CURVATURE:
        return OBJECTIVE_DEVICE_CURVATURE;
    case EVALUATION_GRADIENT:
        break;
    }
    return OBJECTIVE_DEVICE_GRADIENT;
}

/* Chunks [first, first + count), all of one part. */
static int compute_run(struct driver *driver, uint32_t part, uint32_t first, uint32_t count) {
    const struct computation *computation = &driver->computation;
    struct computed *computed = &driver->computed;
    enum objective_device_kind kind = kind_of(computation->parts.items[part].kind);
    const struct objective_device_work work = {
        .kind = kind,
        .first = first,
        .count = count,
        .sums = computation->sums && !computed->exceeded && kind != OBJECTIVE_DEVICE_LOSS,
        .bounds = computation->bounds,
        .drawing = computation->drawing,
        .stop = &driver->stop,
    };
    if (count > driver->result_capacity) {
        driver->results = memory_resize(driver->results, count, sizeof *driver->results);
        driver->result_capacity = count;
    }
    bool stopped = false;
    int code = objective_device_compute(driver->on, &work, driver->results, &stopped);
    computed->stopped |= stopped;
    for (uint32_t i = 0; i < count && !code && !stopped; i++)
        computed_add_chunk(computed, &computation->parts, part, &driver->results[i].result,
                           &driver->results[i].curved, driver->results[i].values);
    return code;
}

/* As many chunks from `first` on, before `end`, as are of one part. */
static int compute_some(struct driver *driver, uint32_t first, uint32_t end, uint32_t *next) {
    const struct evaluation_parts *parts = &driver->computation.parts;
    uint32_t part = evaluation_part_at(parts, first);
    driver->computed.stopped |= atomic_load(&driver->stop);
    if (driver->computed.stopped)
        return 0;
    if (part == parts->count) {
        driver->not_device = true;
        return kernel_no_part(first);
    }
    uint32_t part_end = parts->items[part].first + parts->items[part].count;
    *next = part_end < end ? part_end : end;
    return compute_run(driver, part, first, *next - first);
}

/* In a shuffled order, one by one. */
static int compute_shuffled(struct driver *driver) {
    const struct computation *computation = &driver->computation;
    int code = 0;
    for (uint32_t i = 0; i < computation->count && !code && !driver->computed.stopped; i++) {
        uint32_t number = computation->first + driver->order[i], next;
        workers_pause(driver->settings.shuffle + number, driver->settings.pause_us);
        code = compute_some(driver, number, number + 1, &next);
    }
    return code;
}

static int compute_in_order(struct driver *driver) {
    const struct computation *computation = &driver->computation;
    uint32_t next = computation->first, end = next + computation->count;
    int code = 0;
    while (next < end && !code && !driver->computed.stopped)
        code = compute_some(driver, next, end, &next);
    return code;
}

static int compute(struct driver *driver) {
    const struct computation *computation = &driver->computation;
    int code = computation->clear ? objective_device_discard(driver->on) : 0;
    if (!code && driver->point != computation->point)
        code = objective_device_point(driver->on, computation->parameters);
    driver->point = computation->point;
    if (code)
        return code;
    return driver->order ? compute_shuffled(driver) : compute_in_order(driver);
}

static int gather(struct driver *driver) {
    const struct evaluation_parts *parts = &driver->computation.parts;
    uint64_t sums = evaluation_sums_total(evaluation_sums(parts), driver->parameters);
    return objective_device_gather(driver->on, driver->into, sums);
}

/* ---- the thread ---- */

/* After an error nothing more can be done with `on`: it stays the answer to everything. */
static void note_error(struct driver *driver, int code) {
    struct computed *computed = &driver->computed;
    computed->error = code;
    computed->device_failed = !driver->not_device;
    snprintf(computed->reason, sizeof computed->reason, "%s", error_text());
    error_clear();
}

static enum work wait_for_work(struct driver *driver) {
    pthread_mutex_lock(&driver->mutex);
    while (driver->posted_work == WORK_NONE && !driver->closing)
        pthread_cond_wait(&driver->posted, &driver->mutex);
    enum work work = driver->closing ? WORK_NONE : driver->posted_work;
    driver->posted_work = WORK_NONE;
    pthread_mutex_unlock(&driver->mutex);
    return work;
}

/* `done` comes last: the owner that it wakes must find `ended`. */
static void end_work(struct driver *driver, enum work work) {
    pthread_mutex_lock(&driver->mutex);
    driver->ended = work;
    pthread_mutex_unlock(&driver->mutex);
    driver->settings.done(driver->settings.context);
}

static void *drive(void *argument) {
    struct driver *driver = argument;
    enum work work;
    while ((work = wait_for_work(driver)) != WORK_NONE) {
        if (!driver->computed.error) {
            int code = work == WORK_COMPUTE ? compute(driver) : gather(driver);
            if (code)
                note_error(driver, code);
        }
        end_work(driver, work);
    }
    return NULL;
}

/* ---- for the owner ---- */

static struct driver *driver_of(struct workers *workers) {
    return (struct driver *)workers;
}

static void post(struct driver *driver, enum work work) {
    pthread_mutex_lock(&driver->mutex);
    driver->posted_work = work;
    pthread_cond_signal(&driver->posted);
    pthread_mutex_unlock(&driver->mutex);
}

static void start_computing(struct workers *workers, const struct computation *computation) {
    struct driver *driver = driver_of(workers);
    driver->computation = *computation;
    if (!driver->computed.error)
        computed_init(&driver->computed, &computation->parts);
    free(driver->order);
    driver->order =
        driver->settings.shuffle
            ? workers_shuffled(driver->settings.shuffle + driver->shuffles++, computation->count)
            : NULL;
    atomic_store(&driver->stop, false);
    post(driver, WORK_COMPUTE);
}

static bool start_gathering(struct workers *workers, int64_t *into) {
    driver_of(workers)->into = into;
    post(driver_of(workers), WORK_GATHER);
    return false;
}

static void stop(struct workers *workers) {
    atomic_store(&driver_of(workers)->stop, true);
}

static enum work take(struct workers *workers, struct computed *computed) {
    struct driver *driver = driver_of(workers);
    pthread_mutex_lock(&driver->mutex);
    enum work ended = driver->ended;
    driver->ended = WORK_NONE;
    pthread_mutex_unlock(&driver->mutex);
    if (ended != WORK_NONE)
        *computed = driver->computed;
    return ended;
}

static void release(struct driver *driver) {
    objective_device_free(driver->on);
    pthread_mutex_destroy(&driver->mutex);
    pthread_cond_destroy(&driver->posted);
    free(driver->results);
    free(driver->order);
    free(driver);
}

static void end(struct workers *workers) {
    struct driver *driver = driver_of(workers);
    stop(workers);
    pthread_mutex_lock(&driver->mutex);
    driver->closing = true;
    pthread_cond_signal(&driver->posted);
    pthread_mutex_unlock(&driver->mutex);
    pthread_join(driver->thread, NULL);
    release(driver);
}

static const struct workers_backend device = {
    .free = end, .compute = start_computing, .gather = start_gathering, .stop = stop, .take = take};

static int prepare(struct driver *driver) {
    const struct workers_settings *settings = &driver->settings;
    int code = objective_device_new(settings->device,
                                    &(struct objective_device_settings){
                                        .shape = settings->shape,
                                        .curvature = settings->precondition != PRECONDITION_NONE,
                                        .exponent = settings->exponent,
                                        .uniform = settings->uniform,
                                        .exponents = settings->exponents,
                                        .examples = settings->examples,
                                        .chunk = chunk,
                                        .context = driver,
                                    },
                                    &driver->on);
    if (code)
        return code;
    int failure = pthread_create(&driver->thread, NULL, drive, driver);
    if (failure)
        return error_set(ERROR_UNAVAILABLE, "a thread could not be started: %s", strerror(failure));
    return 0;
}

int workers_device_new(const struct workers_settings *settings, struct workers **workers) {
    struct driver *driver = memory_new(1, sizeof *driver);
    driver->head.backend = &device;
    driver->settings = *settings;
    driver->parameters = objective_parameters(&settings->shape);
    pthread_mutex_init(&driver->mutex, NULL);
    pthread_cond_init(&driver->posted, NULL);
    int code = prepare(driver);
    if (code)
        release(driver);
    else
        *workers = &driver->head;
    return code;
}
