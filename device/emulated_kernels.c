#include "device/emulated_kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"

/* All numbers below n, once each: i·step + first modulo n, with no common divisor of step and n. */
struct order {
    uint64_t n, step, first;
};

static uint64_t divisor(uint64_t a, uint64_t b) {
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
    while (divisor(n, order.step) != 1);
    return order;
}

static uint32_t order_at(const struct order *order, uint64_t i) {
    return (uint32_t)((order->first + i * order->step) % order->n);
}

/* One thread of the processor: side `own` of `sides`, which share blocks or the threads of one. */
struct side {
    const struct kernel *kernel;
    uint32_t blocks;
    const void *arguments;
    uint64_t seed;
    uint32_t own, sides;
    pthread_barrier_t *barrier; /* of those that share a block; NULL: nobody does */
    unsigned char *shared;      /* of the block */
};

static void meet(const struct side *side) {
    if (side->barrier)
        pthread_barrier_wait(side->barrier);
}

static void run_block(const struct side *side, uint32_t block, uint64_t seed) {
    const struct kernel *kernel = side->kernel;
    struct place place = {block, side->blocks, 0, kernel->threads};
    uint32_t phases = kernel->phases(side->arguments), step = side->barrier ? side->sides : 1;
    if (!side->barrier || side->own == 0)
        memset(side->shared, EMULATED_FRESH, kernel->shared);
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
    const struct side *side = context;
    struct order order = order_of(side->blocks, side->seed);
    uint32_t step = side->barrier ? 1 : side->sides;
    for (uint32_t i = side->barrier ? 0 : side->own; i < side->blocks; i += step)
        run_block(side, order_at(&order, i), side->seed ? side->seed + 2 * (uint64_t)i : 0);
    return NULL;
}

/* Without a second thread everything is done by one. */
static void run_sides(struct side sides[2]) {
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

void emulated_run(const struct kernel *kernel, uint32_t blocks, const void *arguments,
                  uint64_t seed, enum emulated_sides kind) {
    pthread_barrier_t barrier;
    unsigned char *shared = memory_new(2, KERNEL_SHARED_MAX);
    struct side sides[2] = {{kernel, blocks, arguments, seed, 0, 1, NULL, shared}};
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
