/* The threads of a replica's workers, and what they run: chunks on the processor, where each thread
 * has its own sum in fixed point; or a device, which one thread drives, since a device's calls are
 * for one thread at a time and wait for it. */
#include "replica/workers.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "objective/on_device.h"
#include "replica/sum.h"

/* Elements of a sum that one thread merges at a time; fewer than this are merged at once. */
#define GATHER_ELEMENTS 65536

struct worker {
    struct workers *workers;
    pthread_t thread;
    struct computed computed; /* its part */

    /* of the processor */
    struct sum sum; /* but of vectors of rows */
    struct objective_scratch *scratch;
};

/* What a thread does for the work that was posted. */
struct workers_backend {
    void (*compute)(struct worker *worker);
    void (*gather)(struct worker *worker);
};

struct workers {
    const struct workers_backend *backend;
    struct workers_settings settings;
    struct worker *worker;
    unsigned count; /* of them: one drives a device */

    /* Vectors of rows: one for all threads, as every chunk has elements of its own. */
    struct sum rows;

    pthread_mutex_t mutex; /* guards `ended`, `to_start` and `closing` */
    pthread_cond_t posted;
    enum work ended;   /* what workers_take() will answer next */
    unsigned to_start; /* how many threads more are to join the current work */
    bool closing;

    /* The current work. The owner sets it while no thread works; threads only read it. */
    enum work work;
    struct computation computation;
    enum sums_layout layout;
    struct sum **spread; /* what they are the sum of, unless they are on the device; owned */
    unsigned spread_count;
    uint64_t sums; /* elements of its layout */
    bool on_host;  /* they are in this process's memory, and not in that of the device */
    int64_t *into;
    uint32_t *order; /* of the chunks, or NULL; owned */
    uint64_t shuffles;
    uint64_t pieces; /* chunks, or ranges of elements */
    atomic_uint_fast64_t next_piece;
    atomic_bool stop;
    atomic_uint running; /* threads that have not finished */

    /* Of a device, for the thread that drives it. */
    struct objective_device *on;
    uint64_t point;  /* the number of the point that the device has; 0: none */
    bool not_device; /* the error is of a chunk, and not of the device */
    struct objective_device_result *results;
    uint32_t result_capacity;
};

static void note_error(struct computed *computed, int code) {
    computed->error = code;
    snprintf(computed->reason, sizeof computed->reason, "%s", error_text());
    error_clear();
}

/* ---- for tests ---- */

/* The numbers below `count` in an order that follows from the seed; free the result. */
static uint32_t *shuffled(uint64_t seed, uint32_t count) {
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

static void pause_some(uint64_t seed, uint64_t most_us) {
    struct random random;
    random_init(&random, seed);
    long pause_us = (long)random_below(&random, most_us + 1);
    struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

/* ---- the processor: a computation ---- */

static void set_sum_state(struct worker *worker) {
    if (worker->workers->computation.sums && worker->workers->layout != SUMS_ROWS)
        sum_hold(&worker->sum);
}

static int compute_chunk(struct worker *worker, const struct kernel_place *place, uint32_t number) {
    struct workers *workers = worker->workers;
    struct rows rows;
    int code = workers->settings.chunk(workers->settings.context, number, &rows);
    if (code)
        return code;
    return kernel_run(place, &workers->computation.parts, number, &rows, &worker->computed);
}

static void compute_chunks(struct worker *worker, const struct kernel_place *place) {
    struct workers *workers = worker->workers;
    for (;;) {
        uint64_t piece = atomic_fetch_add(&workers->next_piece, 1);
        if (piece >= workers->pieces)
            return;
        if (atomic_load(&workers->stop)) {
            worker->computed.stopped = true;
            return;
        }
        uint32_t number = workers->order ? workers->order[piece] : (uint32_t)piece;
        number += workers->computation.first;
        if (workers->order)
            pause_some(workers->settings.shuffle + number, workers->settings.pause_us);
        int code = compute_chunk(worker, place, number);
        if (code) {
            note_error(&worker->computed, code);
            atomic_store(&workers->stop, true);
        }
    }
}

/* What a thread uses for the current computation; `kernel` refers to the others. */
struct kernel_use {
    struct kernel_place kernel;
    struct objective_scale scale;
    struct objective_sample sample;
};

static void kernel_use_init(struct kernel_use *use, struct worker *worker) {
    struct workers *workers = worker->workers;
    const struct computation *computation = &workers->computation;
    int64_t *sums = workers->layout == SUMS_ROWS ? workers->rows.element : worker->sum.element;
    use->scale = (struct objective_scale){
        .change = computation->change,
        .exponent = workers->settings.exponent,
        .uniform = workers->settings.uniform,
        .bounds = computation->bounds,
    };
    use->sample = (struct objective_sample){
        .exponent = workers->settings.exponents,
        .examples = workers->settings.examples,
        .columns = workers->settings.block_columns,
        .derivative_exponent = computation->bounds.exponent[0],
        .sampling = computation->sampling,
    };
    use->kernel = (struct kernel_place){.shape = &workers->settings.shape,
                                        .scale = &use->scale,
                                        .sample = &use->sample,
                                        .parameters = computation->parameters,
                                        .sizes = &workers->settings.sizes,
                                        .sums = computation->sums ? sums : NULL,
                                        .scratch = worker->scratch};
    set_sum_state(worker);
    objective_scratch_at(worker->scratch, computation->point);
}

/* A thread that is done early may take the place of one that has not woken yet, and come here twice
 * in one computation. Therefore results are added to what the thread has, and never set. */
static void compute(struct worker *worker) {
    struct kernel_use use;
    kernel_use_init(&use, worker);
    compute_chunks(worker, &use.kernel);
}

/* ---- the processor: gathering ---- */

static void gather_range(struct workers *workers, uint64_t first, uint64_t end) {
    assert(first <= end && end <= workers->sums);
    sums_gather(workers->spread, workers->spread_count, first, end, workers->into);
}

static void gather(struct worker *worker) {
    struct workers *workers = worker->workers;
    for (;;) {
        uint64_t piece = atomic_fetch_add(&workers->next_piece, 1);
        if (piece >= workers->pieces)
            return;
        uint64_t first = piece * GATHER_ELEMENTS, left = workers->sums - first;
        gather_range(workers, first, first + (left < GATHER_ELEMENTS ? left : GATHER_ELEMENTS));
    }
}

static const struct workers_backend on_processor = {compute, gather};

/* ---- a device ---- */

static int device_chunk(void *context, uint32_t number, struct rows *rows) {
    struct workers *workers = context;
    int code = workers->settings.chunk(workers->settings.context, number, rows);
    workers->not_device |= code != 0;
    return code;
}

static enum objective_device_kind kind_of(uint32_t kind) {
    switch ((enum evaluation_kind)kind) {
    case EVALUATION_LOSS:
        return OBJECTIVE_DEVICE_LOSS;
    case EVALUATION_CURVATURE:
        return OBJECTIVE_DEVICE_CURVATURE;
    case EVALUATION_GRADIENT:
    case EVALUATION_LABELS:
    case EVALUATION_WEIGHTS:
    case EVALUATION_PRODUCT:
    case EVALUATION_TRANSPOSE:
        break;
    }
    return OBJECTIVE_DEVICE_GRADIENT;
}

/* Computes chunks [first, first + count) on the processor, beside the device. */
static int compute_on_host(struct workers *workers, uint32_t first, uint32_t count) {
    struct worker *worker = workers->worker;
    struct kernel_use use;
    int code = 0;
    kernel_use_init(&use, worker);
    for (uint32_t i = 0; i < count && !code && !worker->computed.stopped; i++) {
        worker->computed.stopped = atomic_load(&workers->stop);
        if (!worker->computed.stopped)
            code = compute_chunk(worker, &use.kernel, first + i);
    }
    workers->not_device |= code != 0;
    return code;
}

/* Computes chunks [first, first + count), all of one part. */
static int compute_on_device(struct workers *workers, uint32_t part, uint32_t first,
                             uint32_t count) {
    const struct computation *computation = &workers->computation;
    struct computed *computed = &workers->worker->computed;
    enum objective_device_kind kind = kind_of(computation->parts.items[part].kind);
    const struct objective_device_work work = {
        .kind = kind,
        .first = first,
        .count = count,
        .sums = computation->sums && !computed->exceeded && kind != OBJECTIVE_DEVICE_LOSS,
        .bounds = computation->bounds,
        .sampling = computation->sampling,
        .stop = &workers->stop,
    };
    assert(count && part < computation->parts.count);
    if (count > workers->result_capacity) {
        workers->results = memory_resize(workers->results, count, sizeof *workers->results);
        workers->result_capacity = count;
    }
    bool stopped = false;
    int code = objective_device_compute(workers->on, &work, workers->results, &stopped);
    computed->stopped |= stopped;
    for (uint32_t i = 0; i < count && !code && !stopped; i++)
        computed_add_chunk(computed, &computation->parts, part,
                           &(struct chunk_result){.result = workers->results[i].result,
                                                  .hessian = workers->results[i].hessian,
                                                  .values = workers->results[i].values});
    return code;
}

/* Computes the chunks of [first, end) that are of the first one's part; *next is the one after. */
static int compute_leading_part(struct workers *workers, uint32_t first, uint32_t end,
                                uint32_t *next) {
    const struct evaluation_parts *parts = &workers->computation.parts;
    uint32_t part = evaluation_part_at(parts, first);
    workers->worker->computed.stopped |= atomic_load(&workers->stop);
    if (workers->worker->computed.stopped)
        return 0;
    if (part == parts->count) {
        workers->not_device = true;
        return kernel_no_part(first);
    }
    uint32_t part_end = parts->items[part].first + parts->items[part].count;
    *next = part_end < end ? part_end : end;
    if (kind_is_of_processor(parts->items[part].kind))
        return compute_on_host(workers, first, *next - first);
    return compute_on_device(workers, part, first, *next - first);
}

/* In a shuffled order, one by one. */
static int compute_shuffled(struct workers *workers) {
    const struct computation *computation = &workers->computation;
    int code = 0;
    for (uint32_t i = 0; i < computation->count && !code && !workers->worker->computed.stopped;
         i++) {
        uint32_t number = computation->first + workers->order[i], next;
        pause_some(workers->settings.shuffle + number, workers->settings.pause_us);
        code = compute_leading_part(workers, number, number + 1, &next);
    }
    return code;
}

static int compute_in_order(struct workers *workers) {
    const struct computation *computation = &workers->computation;
    uint32_t next = computation->first, end = next + computation->count;
    int code = 0;
    while (next < end && !code && !workers->worker->computed.stopped)
        code = compute_leading_part(workers, next, end, &next);
    return code;
}

/* The device gets the point of what it computes a part of. */
static int set_device_point(struct workers *workers) {
    const struct computation *computation = &workers->computation;
    bool asked = false;
    for (uint32_t i = 0; i < computation->parts.count; i++)
        asked |= !kind_is_of_processor(computation->parts.items[i].kind);
    if (!asked || workers->point == computation->point)
        return 0;
    workers->point = computation->point;
    return objective_device_point(workers->on, computation->parameters);
}

static int device_compute(struct workers *workers) {
    int code = workers->computation.clear ? objective_device_discard(workers->on) : 0;
    if (!code)
        code = set_device_point(workers);
    if (code)
        return code;
    return workers->order ? compute_shuffled(workers) : compute_in_order(workers);
}

/* The first error stays the answer to all later work: the device's state is not known after it. */
static void note_device_error(struct worker *worker, int code) {
    if (!code)
        return;
    worker->computed.device_failed = !worker->workers->not_device;
    note_error(&worker->computed, code);
}

static void drive_computation(struct worker *worker) {
    if (!worker->computed.error)
        note_device_error(worker, device_compute(worker->workers));
}

static void drive_gathering(struct worker *worker) {
    struct workers *workers = worker->workers;
    if (workers->on_host)
        gather(worker);
    else if (!worker->computed.error)
        note_device_error(worker,
                          objective_device_gather(workers->on, workers->into, workers->sums));
}

static const struct workers_backend on_device = {drive_computation, drive_gathering};

/* ---- the threads ---- */

static bool wait_for_work(struct workers *workers) {
    pthread_mutex_lock(&workers->mutex);
    while (!workers->to_start && !workers->closing)
        pthread_cond_wait(&workers->posted, &workers->mutex);
    bool working = !workers->closing;
    if (working)
        workers->to_start--;
    pthread_mutex_unlock(&workers->mutex);
    return working;
}

/* The last thread to count `running` down sees everything that the others wrote before they did
 * (release and acquire), and passes it on to the owner through the mutex. `done` comes last: the
 * owner that it wakes must find `ended`. */
static void end_work(struct workers *workers) {
    if (atomic_fetch_sub(&workers->running, 1) != 1)
        return;
    pthread_mutex_lock(&workers->mutex);
    assert(workers->ended == WORK_NONE && !workers->to_start);
    workers->ended = workers->work;
    pthread_mutex_unlock(&workers->mutex);
    workers->settings.done(workers->settings.context);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct workers *workers = worker->workers;
    while (wait_for_work(workers)) {
        if (workers->work == WORK_COMPUTE)
            workers->backend->compute(worker);
        else
            workers->backend->gather(worker);
        end_work(workers);
    }
    return NULL;
}

/* Starts work on as many threads as there are pieces for. Everything is set before the mutex is
 * taken, so a thread that finds `to_start` under the mutex sees the rest too. `running` counts
 * starts and not threads that woke: the work cannot end while a start is left. */
static void post(struct workers *workers, enum work kind, uint64_t pieces) {
    unsigned wanted = pieces < workers->count ? (unsigned)pieces : workers->count;
    wanted = wanted ? wanted : 1;
    assert(!atomic_load(&workers->running)); /* one piece of work at a time */
    workers->work = kind;
    workers->pieces = pieces;
    atomic_store(&workers->next_piece, 0);
    atomic_store(&workers->stop, false);
    atomic_store(&workers->running, wanted);
    pthread_mutex_lock(&workers->mutex);
    workers->to_start = wanted;
    if (wanted == 1)
        pthread_cond_signal(&workers->posted);
    else
        pthread_cond_broadcast(&workers->posted);
    pthread_mutex_unlock(&workers->mutex);
}

/* ---- for the owner ---- */

static void set_layout(struct workers *workers) {
    const struct evaluation_parts *parts = &workers->computation.parts;
    workers->layout = evaluation_sums(parts);
    workers->sums = evaluation_sums_total(workers->layout, &workers->settings.sizes);
    workers->on_host = !workers->on || workers->layout == SUMS_ROWS || parts_take_rows(parts);
    workers->spread_count = workers->layout == SUMS_ROWS ? 1 : workers->count;
    for (unsigned i = 0; i < workers->spread_count; i++)
        workers->spread[i] =
            workers->layout == SUMS_ROWS ? &workers->rows : &workers->worker[i].sum;
    assert(!workers->on_host || workers->sums <= workers->spread[0]->most);
}

void workers_compute(struct workers *workers, const struct computation *computation) {
    const struct workers_settings *settings = &workers->settings;
    workers->computation = *computation;
    set_layout(workers);
    for (unsigned i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->worker[i];
        if (!workers->on || !worker->computed.error)
            computed_init(&worker->computed, &computation->parts);
        if (computation->clear)
            sum_void(&worker->sum);
    }
    if (computation->clear)
        sum_void(&workers->rows);
    if (computation->sums && workers->layout == SUMS_ROWS)
        sum_hold(&workers->rows);
    free(workers->order);
    workers->order = settings->shuffle
                         ? shuffled(settings->shuffle + workers->shuffles++, computation->count)
                         : NULL;
    post(workers, WORK_COMPUTE, computation->count);
}

bool workers_gather(struct workers *workers, int64_t *into) {
    uint64_t sums = workers->sums;
    assert(into);
    workers->into = into;
    if (workers->on_host && sums < GATHER_ELEMENTS) {
        gather_range(workers, 0, sums);
        sums_gathered(workers->spread, workers->spread_count);
        return true;
    }
    post(workers, WORK_GATHER, (sums + GATHER_ELEMENTS - 1) / GATHER_ELEMENTS);
    return false;
}

void workers_stop(struct workers *workers) {
    atomic_store(&workers->stop, true);
}

enum work workers_take(struct workers *workers, struct computed *computed) {
    pthread_mutex_lock(&workers->mutex);
    enum work ended = workers->ended;
    workers->ended = WORK_NONE;
    pthread_mutex_unlock(&workers->mutex);
    if (ended == WORK_NONE)
        return ended;
    computed_init(computed, &workers->computation.parts);
    for (unsigned i = 0; i < workers->count; i++)
        computed_add(computed, &workers->worker[i].computed);
    if (ended == WORK_GATHER)
        sums_gathered(workers->spread, workers->spread_count);
    return ended;
}

/* ---- making and freeing ---- */

static void workers_release(struct workers *workers) {
    for (unsigned i = 0; i < workers->count; i++) {
        objective_scratch_free(workers->worker[i].scratch);
        sum_release(&workers->worker[i].sum);
    }
    sum_release(&workers->rows);
    objective_device_free(workers->on);
    pthread_mutex_destroy(&workers->mutex);
    pthread_cond_destroy(&workers->posted);
    free(workers->results);
    free(workers->order);
    free(workers->spread);
    free(workers->worker);
    free(workers);
}

void workers_free(struct workers *workers) {
    if (!workers)
        return;
    workers_stop(workers);
    pthread_mutex_lock(&workers->mutex);
    workers->closing = true;
    pthread_cond_broadcast(&workers->posted);
    pthread_mutex_unlock(&workers->mutex);
    for (unsigned i = 0; i < workers->count; i++)
        pthread_join(workers->worker[i].thread, NULL);
    workers_release(workers);
}

/* What a thread computes with on the processor. */
static void give_memory(struct worker *worker) {
    struct sums_sizes own = worker->workers->settings.sizes;
    own.rows = 0;
    sum_init(&worker->sum, evaluation_sums_most(&own));
    worker->scratch = objective_scratch_new(&worker->workers->settings.shape);
}

static void start_threads(struct workers *workers) {
    for (unsigned i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->worker[i];
        give_memory(worker);
        int code = pthread_create(&worker->thread, NULL, work, worker);
        if (code) {
            fprintf(stderr, "dml-replica: a thread could not be started: %s\n", strerror(code));
            exit(-ERROR_UNAVAILABLE);
        }
    }
}

static int start_device(struct workers *workers) {
    const struct workers_settings *settings = &workers->settings;
    int code = objective_device_new(settings->device,
                                    &(struct objective_device_settings){
                                        .shape = settings->shape,
                                        .curvature = settings->sizes.order > 0,
                                        .block_columns = settings->block_columns,
                                        .exponent = settings->exponent,
                                        .uniform = settings->uniform,
                                        .exponents = settings->exponents,
                                        .examples = settings->examples,
                                        .chunk = device_chunk,
                                        .context = workers,
                                    },
                                    &workers->on);
    if (code)
        return code;
    if (settings->sizes.rows)
        give_memory(workers->worker);
    int failure = pthread_create(&workers->worker->thread, NULL, work, workers->worker);
    if (failure)
        return error_set(ERROR_UNAVAILABLE, "a thread could not be started: %s", strerror(failure));
    return 0;
}

int workers_new(const struct workers_settings *settings, struct workers **into) {
    struct workers *workers = memory_new(1, sizeof *workers);
    int code = 0;
    workers->settings = *settings;
    workers->backend = settings->device ? &on_device : &on_processor;
    if (settings->sizes.rows)
        sum_init(&workers->rows, evaluation_sums_total(SUMS_ROWS, &settings->sizes));
    workers->count = settings->device ? 1 : settings->threads;
    workers->worker = memory_new(workers->count, sizeof *workers->worker);
    workers->spread = memory_new(workers->count, sizeof *workers->spread);
    for (unsigned i = 0; i < workers->count; i++)
        workers->worker[i].workers = workers;
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->posted, NULL);
    if (settings->device)
        code = start_device(workers);
    else
        start_threads(workers);
    if (code)
        workers_release(workers);
    *into = code ? NULL : workers;
    return code;
}
