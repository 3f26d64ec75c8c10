/* The processor as a device. Queues are lists of tasks, and nothing is done before it is waited
 * for: so what relies on another queue without device_order() finds nothing there. If the seed is
 * even, copies are done at once instead: then what another queue should have read first is lost. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/random.h"
#include "device/backend.h"
#include "device/kernel.h"

#define ROOM_BYTES (UINT64_C(4) << 30)
#define ALIGNMENT 256
#define FRESH 0xa5 /* fills new memory: no number that a kernel could take for its own */

static_assert(ALIGNMENT >= sizeof(size_t), "the size of a memory lies before it");

/* ---- kernels ---- */

/* How threads of a kernel share the processor. */
enum emulated_sides {
    SIDES_ONE,     /* one after the other */
    SIDES_BLOCKS,  /* half of the blocks beside the other half, in two threads of the processor */
    SIDES_THREADS, /* half of the threads of each phase of a block beside the other half */
};

/* All numbers below n, once each: i·step + first modulo n, with no common divisor of step and n. */
struct order {
    uint64_t n, step, first;
};

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct order order_of(uint64_t n, uint64_t seed) {
    struct order order = {n, 1, 0};
    if (!seed || n < 2)
        return order;
    struct random random;
    random_init(&random, seed);
    order.first = random_below(&random, n);
    do
        order.step = 1 + random_below(&random, n - 1);
    while (greatest_common_divisor(n, order.step) != 1);
    return order;
}

static uint32_t order_at(const struct order *order, uint64_t i) {
    assert(i < order->n && order->n <= UINT32_MAX);
    return (uint32_t)((order->first + i * order->step) % order->n);
}

/* One thread of the processor: side `own` of `sides`, which share blocks or the threads of one. */
struct emulated_thread {
    const struct kernel *kernel;
    uint32_t blocks;
    const void *arguments;
    uint64_t seed;
    uint32_t own, sides;
    pthread_barrier_t *barrier; /* of those that share a block; NULL: nobody does */
    unsigned char *shared;      /* of the block */
};

static void meet(const struct emulated_thread *side) {
    if (side->barrier)
        pthread_barrier_wait(side->barrier);
}

static void run_block(const struct emulated_thread *side, uint32_t block, uint64_t seed) {
    const struct kernel *kernel = side->kernel;
    struct place place = {block, side->blocks, 0, kernel->threads};
    uint32_t phases = kernel->phases(side->arguments), step = side->barrier ? side->sides : 1;
    if (!side->barrier || side->own == 0)
        memset(side->shared, FRESH, kernel->shared);
    meet(side);
    for (uint32_t phase = 0; phase < phases; phase++) {
        struct order order = order_of(kernel->threads, seed ? seed + phase : 0);
        for (uint32_t i = side->barrier ? side->own : 0; i < kernel->threads; i += step) {
            place.thread = order_at(&order, i);
            kernel->run(&place, side->arguments, side->shared, phase);
        }
        meet(side);
    }
}

static void *run_side(void *context) {
    const struct emulated_thread *side = context;
    struct order order = order_of(side->blocks, side->seed);
    uint32_t step = side->barrier ? 1 : side->sides;
    for (uint32_t i = side->barrier ? 0 : side->own; i < side->blocks; i += step)
        run_block(side, order_at(&order, i), side->seed ? side->seed + 2 * (uint64_t)i : 0);
    return NULL;
}

/* Without a second thread everything is done by one. */
static void run_sides(struct emulated_thread sides[2]) {
    pthread_t other;
    if (thread_start(&other, run_side, &sides[1])) {
        sides[0].sides = 1;
        sides[0].barrier = NULL;
        run_side(&sides[0]);
        return;
    }
    run_side(&sides[0]);
    pthread_join(other, NULL);
}

/* `seed` decides the order of blocks, and of the threads of a phase; 0: rising. */
static void run_kernel(const struct kernel *kernel, uint32_t blocks, const void *arguments,
                       uint64_t seed, enum emulated_sides kind) {
    assert(blocks && kernel->threads && kernel->shared <= KERNEL_SHARED_MAX);
    pthread_barrier_t barrier;
    unsigned char *shared = memory_new(2, KERNEL_SHARED_MAX);
    struct emulated_thread sides[2] = {{kernel, blocks, arguments, seed, 0, 1, NULL, shared}};
    if (kind == SIDES_ONE) {
        run_side(&sides[0]);
    } else {
        pthread_barrier_init(&barrier, NULL, 2);
        sides[0].sides = 2;
        sides[0].barrier = kind == SIDES_THREADS ? &barrier : NULL;
        sides[1] = sides[0];
        sides[1].own = 1;
        sides[1].shared = kind == SIDES_THREADS ? shared : shared + KERNEL_SHARED_MAX;
        run_sides(sides);
        pthread_barrier_destroy(&barrier);
    }
    free(shared);
}

/* ---- queues ---- */

enum task_kind { TASK_PUT, TASK_FILL, TASK_COPY, TASK_LAUNCH, TASK_AWAIT };

struct task {
    enum task_kind kind;
    void *to;
    const void *from;
    void *owned; /* bytes that are put, or arguments */
    size_t bytes;
    int byte;
    const struct kernel *kernel;
    uint32_t blocks;
    enum device_queue queue; /* AWAIT: of this queue, tasks up to number `until` */
    uint64_t until;
};

struct queue {
    struct task *tasks; /* those from `first` on are not done */
    size_t first, count, capacity;
    uint64_t done; /* how many are */
};

struct emulated {
    struct queue queues[DEVICE_QUEUES];
    uint64_t used;
    uint64_t seed; /* decides the order of blocks and threads; 0: rising */
    uint64_t launches;
    bool races; /* threads run beside each other */
    bool hangs;
    uint64_t patience_ms;
};

/* The number of tasks that were ever put into a queue. */
static uint64_t end_of(const struct emulated *device, enum device_queue number) {
    const struct queue *queue = &device->queues[number];
    return queue->done + queue->count - queue->first;
}

static void run_queue(struct emulated *device, enum device_queue number, uint64_t until);

static void run_task(struct emulated *device, struct task *task) {
    switch (task->kind) {
    case TASK_PUT:
        memcpy(task->to, task->owned, task->bytes);
        break;
    case TASK_FILL:
        memset(task->to, task->byte, task->bytes);
        break;
    case TASK_COPY:
        memmove(task->to, task->from, task->bytes);
        break;
    case TASK_LAUNCH: {
        uint64_t launch = device->launches++;
        uint64_t seed = device->seed ? random_mix(device->seed + launch) | 1 : 0;
        enum emulated_sides sides = !device->races ? SIDES_ONE
                                    : launch % 2   ? SIDES_BLOCKS
                                                   : SIDES_THREADS;
        run_kernel(task->kernel, task->blocks, task->owned, seed, sides);
    } break;
    case TASK_AWAIT:
        run_queue(device, task->queue, task->until);
        break;
    }
    free(task->owned);
}

/* Does the tasks of a queue up to number `until`. An AWAIT waits for tasks that were there before
 * it, so no two queues wait for each other. */
static void run_queue(struct emulated *device, enum device_queue number, uint64_t until) {
    struct queue *queue = &device->queues[number];
    assert(until <= end_of(device, number));
    while (queue->done < until) {
        struct task task = queue->tasks[queue->first++];
        queue->done++;
        if (queue->first == queue->count)
            queue->first = queue->count = 0;
        run_task(device, &task);
    }
}

static void run_all(struct emulated *device) {
    for (int number = 0; number < DEVICE_QUEUES; number++)
        run_queue(device, (enum device_queue)number, end_of(device, (enum device_queue)number));
}

static int add_task(struct emulated *device, enum device_queue number, const struct task *task) {
    struct queue *queue = &device->queues[number];
    MEMORY_ROOM(queue->tasks, queue->count, queue->capacity);
    queue->tasks[queue->count++] = *task;
    if (number == QUEUE_COPY && device->seed && device->seed % 2 == 0)
        run_queue(device, number, end_of(device, number));
    return 0;
}

static void *copy_of(const void *from, size_t bytes) {
    void *copy = memory_new(bytes, 1);
    memcpy(copy, from, bytes);
    return copy;
}

/* ---- as device/backend.h says ---- */

static unsigned count(const char **why) {
    *why = NULL;
    return 1;
}

static void describe(unsigned number, char name[DEVICE_NAME_BYTES], uint64_t *bytes) {
    (void)number;
    snprintf(name, DEVICE_NAME_BYTES, "emulated");
    *bytes = ROOM_BYTES;
}

static int open_device(unsigned number, uint64_t patience_ms, void **state, char *why) {
    (void)number, (void)why;
    struct emulated *device = memory_new(1, sizeof *device);
    device->patience_ms = patience_ms;
    device->races = getenv("DML_DEVICE_RACES") != NULL;
    *state = device;
    return 0;
}

static void close_device(void *state) {
    struct emulated *device = state;
    run_all(device);
    for (int number = 0; number < DEVICE_QUEUES; number++)
        free(device->queues[number].tasks);
    free(device);
}

static uint64_t room(void *state) {
    const struct emulated *device = state;
    return device->used < ROOM_BYTES ? ROOM_BYTES - device->used : 0;
}

/* Its size lies before the memory, in as many bytes as memory is aligned to. */
static int allocate(void *state, size_t bytes, void **memory, char *why) {
    struct emulated *device = state;
    (void)why;
    if (bytes > room(device))
        return BACKEND_FULL;
    size_t whole = ALIGNMENT + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *start = aligned_alloc(ALIGNMENT, whole);
    if (!start)
        return BACKEND_FULL;
    memcpy(start, &bytes, sizeof bytes);
    memset(start + ALIGNMENT, FRESH, bytes);
    device->used += bytes;
    *memory = start + ALIGNMENT;
    return 0;
}

static void release(void *state, void *memory) {
    struct emulated *device = state;
    char *start = (char *)memory - ALIGNMENT;
    size_t bytes;
    run_all(device);
    memcpy(&bytes, start, sizeof bytes);
    assert(bytes && bytes <= device->used);
    device->used -= bytes;
    free(start);
}

static int put(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why) {
    (void)why;
    const struct task task = {
        .kind = TASK_PUT, .to = to, .owned = copy_of(from, bytes), .bytes = bytes};
    return add_task(state, queue, &task);
}

static int wait_for(void *state, enum device_queue queue, char *why) {
    struct emulated *device = state;
    struct patience patience;
    device->hangs |= failpoint_hit(FAILPOINT_device_hang);
    if (!device->hangs) {
        run_queue(device, queue, end_of(device, queue));
        return 0;
    }
    patience_begin(&patience, device->patience_ms);
    while (patience_lasts(&patience))
        continue;
    patience_over(device->patience_ms, why);
    return BACKEND_LOST;
}

static int get(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
               char *why) {
    int failure = wait_for(state, queue, why);
    if (!failure)
        memcpy(to, from, bytes);
    return failure;
}

static int fill(void *state, enum device_queue queue, void *to, int byte, size_t bytes, char *why) {
    (void)why;
    const struct task task = {.kind = TASK_FILL, .to = to, .byte = byte, .bytes = bytes};
    return add_task(state, queue, &task);
}

static int copy(void *state, enum device_queue queue, void *to, const void *from, size_t bytes,
                char *why) {
    (void)why;
    const struct task task = {.kind = TASK_COPY, .to = to, .from = from, .bytes = bytes};
    return add_task(state, queue, &task);
}

static int launch(void *state, enum device_queue queue, const struct kernel *kernel,
                  uint32_t blocks, const void *arguments, char *why) {
    (void)why;
    const struct task task = {.kind = TASK_LAUNCH,
                              .kernel = kernel,
                              .blocks = blocks,
                              .owned = copy_of(arguments, kernel->arguments)};
    return add_task(state, queue, &task);
}

static int emulated_order(void *state, enum device_queue before, enum device_queue after,
                          char *why) {
    (void)why;
    const struct task task = {.kind = TASK_AWAIT, .queue = before, .until = end_of(state, before)};
    return add_task(state, after, &task);
}

static void be_patient(void *state, uint64_t most_ms) {
    ((struct emulated *)state)->patience_ms = most_ms;
}

static void shuffle(void *state, uint64_t seed) {
    ((struct emulated *)state)->seed = seed;
}

const struct device_backend device_emulated = {
    .count = count,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .room = room,
    .allocate = allocate,
    .release = release,
    .put = put,
    .get = get,
    .fill = fill,
    .copy = copy,
    .launch = launch,
    .order = emulated_order,
    .wait = wait_for,
    .be_patient = be_patient,
    .shuffle = shuffle,
};
