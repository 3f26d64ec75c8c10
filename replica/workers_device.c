/* The thread that drives a device: a device's calls are for one thread at a time and wait for it.
 * What no device computes it computes itself. */
#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/memory.h"
#include "replica/workers_parts.h"

static int device_chunk(void *context, uint32_t number, struct rows *rows) {
    struct workers *workers = context;
    int code = workers->settings.chunk(workers->settings.context, number, rows);
    workers->not_device |= code != 0;
    return code;
}

/* Computes chunks [first, first + count) on the processor, beside the device. */
static int compute_on_host(struct workers *workers, uint32_t first, uint32_t count) {
    struct worker *worker = workers->worker;
    struct kernel_use use;
    int code = worker_begin(worker, &use);
    for (uint32_t i = 0; i < count && !code && !worker->computed.stopped; i++) {
        worker->computed.stopped = atomic_load(&workers->stop);
        if (!worker->computed.stopped)
            code = worker_compute_chunk(worker, &use.kernel, first + i);
    }
    workers->not_device |= code != 0;
    return code;
}

/* Vectors of rows are in this process's memory, whatever computes. *row: the number of the first.
 */
static int give_rows(struct workers *workers, struct objective_device_work *work, uint64_t *row) {
    const struct computation *computation = &workers->computation;
    const struct sums_sizes *sizes = &workers->settings.sizes;
    struct rows first, last;
    uint64_t at, end;
    if (work->kind != OBJECTIVE_DEVICE_PRODUCT && work->kind != OBJECTIVE_DEVICE_TRANSPOSE)
        return 0;
    int code = device_chunk(workers, work->first, &first);
    if (!code)
        code = device_chunk(workers, work->first + work->count - 1, &last);
    if (!code)
        code = kernel_find_rows(sizes, work->first, &first, &at);
    if (!code)
        code = kernel_find_rows(sizes, work->first + work->count - 1, &last, &end);
    workers->not_device |= code != 0;
    if (code)
        return code;
    *row = first.first;
    work->margins = workers->rows.element + at;
    if (work->kind == OBJECTIVE_DEVICE_TRANSPOSE)
        work->derivatives = computation->parameters + (at - computation->first_number);
    return 0;
}

/* Computes chunks [first, first + count), all of one part. */
static int compute_on_device(struct workers *workers, uint32_t part, uint32_t first,
                             uint32_t count) {
    const struct computation *computation = &workers->computation;
    struct computed *computed = &workers->worker->computed;
    enum objective_device_kind kind = kind_on_device(computation->parts.items[part].kind);
    const bool has_sums = kind != OBJECTIVE_DEVICE_LOSS && kind != OBJECTIVE_DEVICE_PRODUCT;
    struct objective_device_work work = {
        .kind = kind,
        .first = first,
        .count = count,
        .sums = computation->sums && !computed->exceeded && has_sums,
        .bounds = computation->bounds,
        .sampling = computation->sampling,
        .stop = &workers->stop,
    };
    assert(count && count <= workers->result_capacity && part < computation->parts.count);
    bool stopped = false;
    uint64_t row = 0;
    int code = give_rows(workers, &work, &row);
    if (!code)
        code = objective_device_compute(workers->on, &work, workers->results, &stopped);
    computed->stopped |= stopped;
    for (uint32_t i = 0; i < count && !code && !stopped; row += workers->results[i++].rows)
        computed_add_chunk(computed, &computation->parts, part,
                           &(struct chunk_result){.result = workers->results[i].result,
                                                  .hessian = workers->results[i].hessian,
                                                  .values = workers->results[i].values,
                                                  .first = row,
                                                  .rows = workers->results[i].rows});
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
    bool on_host = kind_on_device(parts->items[part].kind) == OBJECTIVE_DEVICE_NONE;
    if (on_host && workers->layout != SUMS_ROWS) { /* there is memory for sums of rows alone */
        workers->not_device = true;
        return error_set(ERROR_INTERNAL, "a replica with a device has no sums of kind %" PRIu32,
                         parts->items[part].kind);
    }
    if (on_host)
        return compute_on_host(workers, first, *next - first);
    return compute_on_device(workers, part, first, *next - first);
}

/* A vector of rows is no point for it, and kinds of rows alone have none. In a shuffled order
 * chunks are computed one by one. */
static int device_compute(struct workers *workers) {
    const struct computation *computation = &workers->computation;
    const struct computed *computed = &workers->worker->computed;
    uint32_t next = computation->first, end = next + computation->count;
    int code = computation->clear ? objective_device_discard(workers->on) : 0;
    if (computation->count > workers->result_capacity) {
        workers->results =
            memory_resize(workers->results, computation->count, sizeof *workers->results);
        workers->result_capacity = computation->count;
    }
    if (!code && !parts_take_rows(&computation->parts) &&
        !parts_take_no_point(&computation->parts) && workers->point != computation->point) {
        workers->point = computation->point;
        code = objective_device_point(workers->on, computation->parameters);
    }
    for (uint32_t i = 0; workers->order && i < computation->count && !code && !computed->stopped;
         i++) {
        uint32_t number = computation->first + workers->order[i];
        workers_pause(workers, number);
        code = compute_leading_part(workers, number, number + 1, &next);
    }
    while (!workers->order && next < end && !code && !computed->stopped)
        code = compute_leading_part(workers, next, end, &next);
    return code;
}

/* The first error stays the answer to all later work: the device's state is not known after it. */
static void note_device_error(struct worker *worker, int code) {
    if (!code)
        return;
    worker->computed.device_failed = !worker->workers->not_device;
    worker_note_error(&worker->computed, code);
}

static void drive_computation(struct worker *worker) {
    if (!worker->computed.error)
        note_device_error(worker, device_compute(worker->workers));
}

static void drive_gathering(struct worker *worker) {
    struct workers *workers = worker->workers;
    if (workers->on_host)
        workers_on_processor.gather(worker);
    else if (!worker->computed.error)
        note_device_error(worker, objective_device_gather(workers->on, workers->into,
                                                          workers->end - workers->first));
}

const struct workers_backend workers_on_device = {drive_computation, drive_gathering};

int workers_open_device(struct workers *workers) {
    const struct workers_settings *settings = &workers->settings;
    return objective_device_new(settings->device,
                                &(struct objective_device_settings){
                                    .shape = settings->shape,
                                    .curvature = settings->sizes.order > 0,
                                    .block_columns = settings->block_columns,
                                    .shared = settings->shared,
                                    .exponent = settings->exponent,
                                    .uniform = settings->uniform,
                                    .exponents = settings->exponents,
                                    .examples = settings->examples,
                                    .chunk = device_chunk,
                                    .context = workers,
                                },
                                &workers->on);
}
