/* The processor's backend: a pool of threads, each with its own sum in fixed point. */
#include "replica/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"

/* Elements of a sum that one thread merges at a time; fewer than this are merged at once. */
#define GATHER_ELEMENTS 65536
#define GATHER_BLOCK 1024

enum sum_state {
    SUM_ZERO,
    SUM_HELD, /* part of the gradient being accrued */
    SUM_VOID, /* left over from an accrual that is of no use */
};

struct worker {
    struct pool *pool;
    pthread_t thread;
    int64_t *sum; /* sums_most elements; those of the current layout are the first */
    enum sum_state state;
    struct objective_scratch *scratch;
    struct computed computed; /* its part */
};

struct pool {
    struct workers head;
    struct workers_settings settings;
    uint64_t parameters;
    uint64_t sums_most; /* of any evaluation */
    struct worker *workers;

    pthread_mutex_t mutex; /* guards `ended`, `to_start` and `closing` */
    pthread_cond_t posted;
    enum work ended;   /* workers_take() has not told it yet */
    unsigned to_start; /* starts of the current work that no thread has taken yet */
    bool closing;

    /* The current work. The owner sets it while no thread works; threads only read it. */
    enum work work;
    struct computation computation;
    uint64_t sums; /* elements of its layout */
    int64_t *into;
    uint32_t *order; /* of the chunks, or NULL */
    uint64_t pieces; /* chunks, or ranges of elements */
    atomic_uint_fast64_t next_piece;
    atomic_bool stop;
    atomic_uint running; /* threads that have not finished */
    uint64_t shuffles;
};

/* ---- a computation ---- */

/* What is void may be of another layout: all of it goes. */
static void set_sum_state(struct worker *worker) {
    if (!worker->pool->computation.sums)
        return;
    if (worker->state == SUM_VOID)
        memset(worker->sum, 0, worker->pool->sums_most * sizeof *worker->sum);
    worker->state = SUM_HELD;
}

static int compute_chunk(struct worker *worker, const struct kernel_place *place, uint32_t number) {
    struct pool *pool = worker->pool;
    struct rows rows;
    int code = pool->settings.chunk(pool->settings.context, number, &rows);
    if (code)
        return code;
    return kernel_run(place, &pool->computation.parts, number, &rows, &worker->computed);
}

static void compute_chunks(struct worker *worker, const struct kernel_place *place) {
    struct pool *pool = worker->pool;
    for (;;) {
        uint64_t piece = atomic_fetch_add(&pool->next_piece, 1);
        if (piece >= pool->pieces)
            return;
        if (atomic_load(&pool->stop)) {
            worker->computed.stopped = true;
            return;
        }
        uint32_t number = pool->order ? pool->order[piece] : (uint32_t)piece;
        number += pool->computation.first;
        if (pool->order)
            workers_pause(pool->settings.shuffle + number, pool->settings.pause_us);
        int code = compute_chunk(worker, place, number);
        if (code) {
            worker->computed.error = code;
            strncpy(worker->computed.reason, error_text(), sizeof worker->computed.reason - 1);
            error_clear();
            atomic_store(&pool->stop, true);
        }
    }
}

/* Starts are not bound to threads: a thread that is done early may take the start of one that has
 * not woken yet, and come here twice in one computation. Therefore results are added to what the
 * thread has, and never set. */
static void compute(struct worker *worker) {
    struct pool *pool = worker->pool;
    const struct computation *computation = &pool->computation;
    const struct objective_scale scale = {
        .change = computation->change,
        .exponent = pool->settings.exponent,
        .uniform = pool->settings.uniform,
        .bounds = computation->bounds,
    };
    const struct objective_sample sample = {
        .exponent = pool->settings.exponents,
        .examples = pool->settings.examples,
        .derivative_exponent = computation->bounds.exponent[0],
        .drawing = computation->drawing,
    };
    set_sum_state(worker);
    objective_scratch_at(worker->scratch, computation->point);
    compute_chunks(worker, &(struct kernel_place){.shape = &pool->settings.shape,
                                                  .scale = &scale,
                                                  .sample = &sample,
                                                  .parameters = computation->parameters,
                                                  .sums = computation->sums ? worker->sum : NULL,
                                                  .scratch = worker->scratch});
}

/* ---- gathering ---- */

/* Merges elements [first, first + count) of all threads' sums, and zeroes them. Several threads do
 * this at once, each for other elements. `state` must not change here: other threads still read it
 * for theirs (set_gathered() comes last). */
static void gather_block(struct pool *pool, uint64_t first, uint64_t count) {
    int64_t *into = pool->into + first;
    bool empty = true;
    for (unsigned i = 0; i < pool->settings.threads; i++) {
        struct worker *worker = &pool->workers[i];
        if (worker->state != SUM_HELD)
            continue;
        int64_t *sum = worker->sum + first;
        if (empty)
            memcpy(into, sum, count * sizeof *sum);
        else
            fixed_merge(count, into, sum);
        memset(sum, 0, count * sizeof *sum);
        empty = false;
    }
    if (empty)
        memset(into, 0, count * sizeof *into);
}

/* Block by block, so that what is merged and zeroed is still in the first cache. */
static void gather_range(struct pool *pool, uint64_t first, uint64_t end) {
    for (; first < end; first += GATHER_BLOCK)
        gather_block(pool, first, end - first < GATHER_BLOCK ? end - first : GATHER_BLOCK);
}

static void gather(struct pool *pool) {
    for (;;) {
        uint64_t piece = atomic_fetch_add(&pool->next_piece, 1);
        if (piece >= pool->pieces)
            return;
        uint64_t first = piece * GATHER_ELEMENTS, left = pool->sums - first;
        gather_range(pool, first, first + (left < GATHER_ELEMENTS ? left : GATHER_ELEMENTS));
    }
}

static void set_gathered(struct pool *pool) {
    for (unsigned i = 0; i < pool->settings.threads; i++)
        if (pool->workers[i].state == SUM_HELD)
            pool->workers[i].state = SUM_ZERO;
}

/* ---- the threads ---- */

static bool wait_for_work(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    while (!pool->to_start && !pool->closing)
        pthread_cond_wait(&pool->posted, &pool->mutex);
    bool working = !pool->closing;
    if (working)
        pool->to_start--;
    pthread_mutex_unlock(&pool->mutex);
    return working;
}

/* The last thread to count `running` down sees everything that the others wrote before they did
 * (release and acquire), and passes it on to the owner through the mutex. `done` comes last: the
 * owner that it wakes must find `ended`. */
static void end_work(struct pool *pool) {
    if (atomic_fetch_sub(&pool->running, 1) != 1)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->ended = pool->work;
    pthread_mutex_unlock(&pool->mutex);
    pool->settings.done(pool->settings.context);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    while (wait_for_work(pool)) {
        if (pool->work == WORK_COMPUTE)
            compute(worker);
        else
            gather(pool);
        end_work(pool);
    }
    return NULL;
}

/* Starts work on as many threads as there are pieces for. Everything is set before the mutex is
 * taken, so a thread that finds `to_start` under the mutex sees the rest too. `running` counts
 * starts and not threads that woke: the work cannot end while a start is left. */
static void post(struct pool *pool, enum work kind, uint64_t pieces) {
    unsigned threads = pool->settings.threads;
    unsigned wanted = pieces < threads ? (unsigned)pieces : threads;
    wanted = wanted ? wanted : 1;
    pool->work = kind;
    pool->pieces = pieces;
    atomic_store(&pool->next_piece, 0);
    atomic_store(&pool->stop, false);
    atomic_store(&pool->running, wanted);
    pthread_mutex_lock(&pool->mutex);
    pool->to_start = wanted;
    if (wanted == 1)
        pthread_cond_signal(&pool->posted);
    else
        pthread_cond_broadcast(&pool->posted);
    pthread_mutex_unlock(&pool->mutex);
}

/* ---- for the owner ---- */

static struct pool *pool_of(struct workers *workers) {
    return (struct pool *)workers;
}

static void start_computing(struct workers *workers, const struct computation *computation) {
    struct pool *pool = pool_of(workers);
    pool->computation = *computation;
    pool->sums = evaluation_sums_total(evaluation_sums(&computation->parts), pool->parameters);
    for (unsigned i = 0; i < pool->settings.threads; i++) {
        computed_init(&pool->workers[i].computed, &computation->parts);
        if (computation->clear && pool->workers[i].state == SUM_HELD)
            pool->workers[i].state = SUM_VOID;
    }
    free(pool->order);
    pool->order =
        pool->settings.shuffle
            ? workers_shuffled(pool->settings.shuffle + pool->shuffles++, computation->count)
            : NULL;
    post(pool, WORK_COMPUTE, computation->count);
}

static bool start_gathering(struct workers *workers, int64_t *into) {
    struct pool *pool = pool_of(workers);
    uint64_t sums = pool->sums;
    pool->into = into;
    if (sums < GATHER_ELEMENTS) {
        gather_range(pool, 0, sums);
        set_gathered(pool);
        return true;
    }
    post(pool, WORK_GATHER, (sums + GATHER_ELEMENTS - 1) / GATHER_ELEMENTS);
    return false;
}

static void stop(struct workers *workers) {
    atomic_store(&pool_of(workers)->stop, true);
}

static enum work take(struct workers *workers, struct computed *computed) {
    struct pool *pool = pool_of(workers);
    pthread_mutex_lock(&pool->mutex);
    enum work ended = pool->ended;
    pool->ended = WORK_NONE;
    pthread_mutex_unlock(&pool->mutex);
    if (ended == WORK_NONE)
        return ended;
    computed_init(computed, &pool->computation.parts);
    for (unsigned i = 0; i < pool->settings.threads && ended == WORK_COMPUTE; i++)
        computed_add(computed, &pool->workers[i].computed);
    if (ended == WORK_GATHER)
        set_gathered(pool);
    return ended;
}

static void end(struct workers *workers) {
    struct pool *pool = pool_of(workers);
    stop(workers);
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->posted);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->settings.threads; i++) {
        struct worker *worker = &pool->workers[i];
        pthread_join(worker->thread, NULL);
        objective_scratch_free(worker->scratch);
        memory_unmap(worker->sum, pool->sums_most * sizeof *worker->sum);
    }
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->posted);
    free(pool->order);
    free(pool->workers);
    free(pool);
}

static const struct workers_backend threads = {
    .free = end, .compute = start_computing, .gather = start_gathering, .stop = stop, .take = take};

static void start_thread(struct pool *pool, struct worker *worker) {
    worker->pool = pool;
    worker->sum = memory_map(pool->sums_most * sizeof *worker->sum);
    worker->scratch = objective_scratch_new(&pool->settings.shape);
    int code = pthread_create(&worker->thread, NULL, work, worker);
    if (code) {
        fprintf(stderr, "dml-replica: a thread could not be started: %s\n", strerror(code));
        exit(-ERROR_UNAVAILABLE);
    }
}

int workers_threads_new(const struct workers_settings *settings, struct workers **workers) {
    struct pool *pool = memory_new(1, sizeof *pool);
    pool->head.backend = &threads;
    pool->settings = *settings;
    pool->parameters = objective_parameters(&settings->shape);
    pool->sums_most = evaluation_sums_most(settings->precondition, pool->parameters);
    pool->workers = memory_new(settings->threads, sizeof *pool->workers);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->posted, NULL);
    for (unsigned i = 0; i < settings->threads; i++)
        start_thread(pool, &pool->workers[i]);
    *workers = &pool->head;
    return 0;
}

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
