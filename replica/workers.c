/* The threads of a replica's workers, and what they run: chunks on the processor, where each thread
 * has its own sum in fixed point; or a device, which one thread drives, since a device's calls are
 * for one thread at a time and wait for it. */
#include "replica/workers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "objective/halves.h"
#include "replica/workers_parts.h"

/* Elements of a sum that one thread merges at a time; fewer than this are merged at once. */
#define GATHER_ELEMENTS 65536

void worker_note_error(struct computed *computed, int code) {
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

void workers_pause(const struct workers *workers, uint32_t number) {
    struct random random;
    if (!workers->order)
        return;
    random_init(&random, workers->settings.shuffle + number);
    long pause_us = (long)random_below(&random, workers->settings.pause_us + 1);
    struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

/* ---- the processor: a computation ---- */

int worker_compute_chunk(struct worker *worker, const struct kernel_place *place, uint32_t number) {
    struct workers *workers = worker->workers;
    struct rows rows;
    int code = workers->settings.chunk(workers->settings.context,
                                       number - workers->computation.tiles_below, &rows);
    if (code)
        return code;
    memory_forbid(); /* worker_begin() has made all of it */
    if (workers->computation.columns)
        needs_note(&rows, workers->computation.columns);
    if (worker->sum.state == SUM_HELD && !workers->computation.scan_only)
        sum_note(&worker->sum, &rows);
    if (!workers->computation.scan_only)
        code = kernel_run(place, &workers->computation.parts, number, &rows, &worker->computed);
    memory_allow();
    return code;
}

/* Which of the shapes the strip of the current computation has. */
static enum strip_shape strip_shape(const struct workers *workers) {
    bool last = workers->strips > 1 && workers->computation.strip + 1 == workers->strips;
    if (workers->computation.upper)
        return STRIP_UPPER;
    return last ? STRIP_LAST : STRIP_ANY;
}

/* Base exponents of the strip: those of its columns, and after the last that of the bias, or those
 * of the upper layers. */
static const int16_t *strip_exponents(const struct workers *workers) {
    const struct workers_settings *settings = &workers->settings;
    size_t first = workers->computation.upper
                       ? settings->shape.features
                       : (size_t)workers->computation.strip * settings->strip_columns;
    return settings->exponent ? settings->exponent + first : NULL;
}

int worker_begin(struct worker *worker, struct kernel_use *use) {
    struct workers *workers = worker->workers;
    const struct computation *computation = &workers->computation;
    int64_t *sums = workers->layout == SUMS_ROWS ? workers->rows.element : worker->sum.element;
    enum strip_shape shape = strip_shape(workers);
    use->scale = (struct objective_scale){
        .change = computation->change.kronecker ? &computation->change : NULL,
        .exponent = strip_exponents(workers),
        .uniform = workers->settings.uniform,
        .bounds = computation->bounds,
    };
    const struct kind_row *kind = kind_row(computation->parts.items[0].kind);
    use->sample = (struct objective_sample){
        .form = kind_form(computation->parts.items[0].kind),
        .exponent = kind->extra_bits ? workers->settings.extra_bits : workers->settings.exponents,
        .examples = workers->settings.examples,
        .columns = workers->settings.block_columns,
        .shared = workers->settings.shared,
        .list = kind->listed ? &computation->weights : NULL,
        .derivative_exponent = computation->bounds.exponent[0],
        .sampling = computation->sampling,
    };
    use->kernel = (struct kernel_place){.shape = &workers->shape[shape],
                                        .scale = &use->scale,
                                        .sample = &use->sample,
                                        .parameters = computation->parameters,
                                        .first_number = computation->first_number,
                                        .upper = computation->upper,
                                        .sizes = &workers->settings.sizes,
                                        .sums = computation->sums ? sums : NULL,
                                        .scratch = worker->scratch[shape]};
    if (computation->sums && workers->layout != SUMS_ROWS)
        sum_hold(&worker->sum);
    objective_scratch_scaled(worker->scratch[shape], computation->scaled);
    /* The strips of a point have one number. */
    objective_scratch_at(worker->scratch[shape], workers->strips > 1 ? 0 : computation->point);
    const struct objective_need need = {
        .rows = workers->settings.most,
        .sample = use->sample.form ? &use->sample : NULL,
        .change = use->scale.change,
        .gradient = true,
    };
    if (parts_take_no_point(&computation->parts))
        return 0; /* labels and the like need no memory */
    return objective_prepare(&workers->shape[shape], &need, worker->scratch[shape]);
}

/* Whether threads look at the columns of sums by parameters. */
static bool columns_tell(const struct workers *workers) {
    return workers->strips == 1 && workers->settings.column_weights;
}

/* Whether they look at those of what they hold. */
static bool threads_look(const struct workers *workers) {
    return !workers->on && workers->layout == SUMS_PARAMETERS && columns_tell(workers);
}

static void list_sum(const struct workers *workers, struct sum *sum) {
    if (!threads_look(workers))
        return;
    assert(workers->sums == workers->settings.sizes.parameters);
    memory_forbid();
    sum_list(sum);
    memory_allow();
}

/* Takes the next chunk of the computation; false if there is none, or it is to stop. */
static bool take_chunk(struct worker *worker, uint32_t *number) {
    struct workers *workers = worker->workers;
    uint64_t piece = atomic_fetch_add(&workers->next_piece, 1);
    if (piece >= workers->pieces)
        return false;
    worker->computed.stopped |= atomic_load(&workers->stop);
    *number = workers->order ? workers->order[piece] : (uint32_t)piece;
    *number += workers->computation.first;
    return !worker->computed.stopped;
}

/* A thread that is done early may take the place of one that has not woken yet, and come here twice
 * in one computation. Therefore results are added to what the thread has, and never set. */
static void compute(struct worker *worker) {
    struct workers *workers = worker->workers;
    struct kernel_use use = {0};
    bool ready = workers->computation.scan_only;
    uint32_t number;
    while (take_chunk(worker, &number)) {
        workers_pause(workers, number);
        int code = ready ? 0 : worker_begin(worker, &use);
        ready = true;
        if (!code)
            code = worker_compute_chunk(worker, &use.kernel, number);
        if (code) {
            worker_note_error(&worker->computed, code);
            atomic_store(&workers->stop, true);
        }
    }
    if (workers->computation.flushed)
        list_sum(workers, &worker->sum);
}

/* ---- the processor: gathering ---- */

static void gather_range(struct workers *workers, uint64_t first, uint64_t end) {
    assert(workers->first <= first && first <= end && end <= workers->end);
    sums_gather(workers->spread, workers->spread_count, first, end,
                workers->into + (first - workers->first));
}

static void gather(struct worker *worker) {
    struct workers *workers = worker->workers;
    for (;;) {
        uint64_t piece = atomic_fetch_add(&workers->next_piece, 1);
        if (piece >= workers->pieces)
            return;
        uint64_t first = workers->first + piece * GATHER_ELEMENTS, left = workers->end - first;
        gather_range(workers, first, first + (left < GATHER_ELEMENTS ? left : GATHER_ELEMENTS));
    }
}

const struct workers_backend workers_on_processor = {compute, gather};

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
    if (workers->strips > 1 && workers->layout == SUMS_PARAMETERS)
        workers->sums = objective_parameters(&workers->shape[strip_shape(workers)]);
    if (kind_row(parts->items[0].kind)->listed)
        workers->sums =
            evaluation_listed_sums(&workers->settings.sizes, workers->settings.block_columns,
                                   workers->computation.weights.count);
    workers->on_host = !workers->on || workers->layout == SUMS_ROWS;
    workers->spread_count = workers->layout == SUMS_ROWS ? 1 : workers->count;
    for (unsigned i = 0; i < workers->spread_count; i++)
        workers->spread[i] =
            workers->layout == SUMS_ROWS ? &workers->rows : &workers->worker[i].sum;
    assert(!workers->on_host || workers->sums <= workers->spread[0]->most);
}

void workers_compute(struct workers *workers, const struct computation *computation) {
    const struct workers_settings *settings = &workers->settings;
    workers->computation = *computation;
    assert(computation->strip < workers->strips + workers->has_upper);
    assert(!computation->upper || workers->has_upper);
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

/* Nothing is held any more. Of a network's rows there may be more numbers than fit into memory, and
 * others come next. */
static void end_gathering(struct workers *workers) {
    sums_gathered(workers->spread, workers->spread_count);
    if (workers->has_upper && workers->layout == SUMS_ROWS)
        memory_give_back(workers->rows.element + workers->first,
                         (workers->end - workers->first) * sizeof(int64_t));
}

/* Whether all that the threads hold is in lists, and few elements are. */
static bool make_lists(struct workers *workers) {
    struct sum_lists *lists = &workers->lists;
    uint64_t listed = 0;
    lists->count = 0;
    if (!threads_look(workers))
        return false;
    for (unsigned i = 0; i < workers->spread_count; i++) {
        struct sum *sum = workers->spread[i];
        list_sum(workers, sum);
        if (sum->state == SUM_HELD && !sum->listed)
            return false;
        if (sum->listed)
            lists->items[lists->count++] = &sum->list;
        listed += sum->listed ? sum->list.count : 0;
    }
    return listed < workers->sums / SUM_FEW;
}

bool workers_gather(struct workers *workers, uint64_t first, uint64_t count, int64_t *into) {
    assert(into && first <= workers->sums && count <= workers->sums - first);
    assert(workers->on_host || count == workers->sums);
    workers->first = first;
    workers->end = first + count;
    workers->into = into;
    workers->are_listed = make_lists(workers);
    if (workers->are_listed) {
        assert(!first && count == workers->sums);
        end_gathering(workers);
        return true;
    }
    for (unsigned i = 0; i < workers->spread_count; i++)
        sum_unlist(workers->spread[i]);
    if (workers->on_host && count < GATHER_ELEMENTS) {
        gather_range(workers, first, first + count);
        end_gathering(workers);
        return true;
    }
    post(workers, WORK_GATHER, (count + GATHER_ELEMENTS - 1) / GATHER_ELEMENTS);
    return false;
}

const struct sum_lists *workers_listed(const struct workers *workers) {
    return workers->are_listed ? &workers->lists : NULL;
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
        end_gathering(workers);
    return ended;
}

/* ---- making and freeing ---- */

static void workers_release(struct workers *workers) {
    for (unsigned i = 0; i < workers->count; i++) {
        for (int shape = 0; shape < STRIP_SHAPES; shape++)
            objective_scratch_free(workers->worker[i].scratch[shape]);
        sum_release(&workers->worker[i].sum);
    }
    sum_release(&workers->rows);
    objective_device_free(workers->on);
    pthread_mutex_destroy(&workers->mutex);
    pthread_cond_destroy(&workers->posted);
    free(workers->results);
    free(workers->order);
    free(workers->spread);
    free(workers->lists.items);
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
    const struct workers *workers = worker->workers;
    struct sums_sizes own = workers->settings.sizes;
    own.rows = 0;
    sum_init(&worker->sum, evaluation_sums_most(&own));
    if (columns_tell(workers))
        sum_look(&worker->sum, workers->settings.shape.features, workers->settings.column_weights,
                 own.parameters);
    worker->scratch[STRIP_ANY] = objective_scratch_new(&workers->shape[STRIP_ANY]);
    if (workers->strips > 1)
        worker->scratch[STRIP_LAST] = objective_scratch_new(&workers->shape[STRIP_LAST]);
    if (workers->has_upper)
        worker->scratch[STRIP_UPPER] = objective_scratch_new(&workers->shape[STRIP_UPPER]);
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
    int code = workers_open_device(workers);
    if (code)
        return code;
    if (workers->settings.sizes.rows)
        workers->worker->scratch[STRIP_ANY] = objective_scratch_new(&workers->settings.shape);
    int failure = pthread_create(&workers->worker->thread, NULL, work, workers->worker);
    if (failure)
        return error_set(ERROR_UNAVAILABLE, "a thread could not be started: %s", strerror(failure));
    return 0;
}

static void set_shapes(struct workers *workers) {
    const struct workers_settings *settings = &workers->settings;
    uint32_t width = settings->strip_columns;
    uint64_t features = settings->shape.features;
    assert(!width || (!settings->device && settings->sizes.strip));
    workers->strips = width ? (uint32_t)strips_of(features, width) : 1;
    workers->shape[STRIP_ANY] = objective_strip(&settings->shape, width, 0);
    workers->shape[STRIP_LAST] = objective_strip(&settings->shape, width, workers->strips - 1);
    workers->has_upper = workers->strips > 1 && settings->upper;
    if (workers->has_upper)
        workers->shape[STRIP_UPPER] = objective_upper(&settings->shape);
}

int workers_new(const struct workers_settings *settings, struct workers **into) {
    struct workers *workers = memory_new(1, sizeof *workers);
    int code = 0;
    workers->settings = *settings;
    set_shapes(workers);
    workers->backend = settings->device ? &workers_on_device : &workers_on_processor;
    if (settings->sizes.rows)
        sum_init(&workers->rows, evaluation_sums_total(SUMS_ROWS, &settings->sizes));
    workers->count = settings->device ? 1 : settings->threads;
    workers->worker = memory_new(workers->count, sizeof *workers->worker);
    workers->spread = memory_new(workers->count, sizeof *workers->spread);
    workers->lists.items = memory_new(workers->count, sizeof *workers->lists.items);
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
