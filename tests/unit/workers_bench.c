#include "tests/unit/workers_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tests/unit/made_up_objective.h"

static double labels[CHUNKS];
static const double one[1] = {1};

static int chunk(void *context, uint32_t number, struct rows *rows) {
    struct bench *bench = context;
    if (number >= CHUNKS)
        return error_set(ERROR_DATA, "chunk %u is damaged", number);
    if (bench->gated) {
        sem_post(&bench->waiting);
        sem_wait(&bench->gate);
    }
    *rows = (struct rows){
        .count = 1, .values = number, .label = &labels[number], .first = bench->shift + number};
    return 0;
}

static void done(void *context) {
    struct bench *bench = context;
    sem_post(&bench->done);
}

static struct workers_settings settings_of(struct bench *bench, unsigned threads,
                                           uint32_t parameters) {
    return (struct workers_settings){.threads = threads,
                                     .device = threads == DEVICE ? (struct device *)bench : NULL,
                                     .shape = {.features = parameters, .outputs = OUTPUTS},
                                     .sizes = {.parameters = parameters,
                                               .order = parameters == SHORT ? SHORT : 0,
                                               .rows = CHUNKS,
                                               .outputs = OUTPUTS},
                                     .block_columns = parameters,
                                     .chunk = chunk,
                                     .done = done,
                                     .context = bench,
                                     .pause_us = 200};
}

int open_workers(struct bench *bench, unsigned threads, uint32_t parameters, uint64_t shuffle) {
    struct workers_settings settings = settings_of(bench, threads, parameters);
    settings.shuffle = shuffle;
    return workers_new(&settings, &bench->workers);
}

static void begin(struct bench *bench) {
    for (int i = 0; i < CHUNKS; i++)
        labels[i] = i;
    sem_init(&bench->done, 0, 0);
    sem_init(&bench->gate, 0, 0);
    sem_init(&bench->waiting, 0, 0);
    bench->gated = false;
    bench->shift = 0;
    made_up_failure = NULL;
}

void bench_init(struct bench *bench, unsigned threads, uint32_t parameters, uint64_t shuffle) {
    begin(bench);
    assert_int_equal(open_workers(bench, threads, parameters, shuffle), 0);
}

void bench_init_strips(struct bench *bench, unsigned threads) {
    begin(bench);
    struct workers_settings settings = settings_of(bench, threads, SHORT);
    settings.strip_columns = STRIP;
    settings.sizes.strip = STRIP;
    settings.upper = true;
    assert_int_equal(workers_new(&settings, &bench->workers), 0);
}

void bench_release(struct bench *bench) {
    workers_free(bench->workers);
    sem_destroy(&bench->done);
    sem_destroy(&bench->gate);
    sem_destroy(&bench->waiting);
}

struct computation computation(uint32_t first, uint32_t count) {
    return (struct computation){.first = first,
                                .count = count,
                                .parts = {{{EVALUATION_GRADIENT, 0, CHUNKS}}, 1},
                                .point = 1,
                                .parameters = one,
                                .bounds = bounds_of_one(10),
                                .sums = true};
}

void run(struct bench *bench, struct computation computation, struct computed *computed) {
    workers_compute(bench->workers, &computation);
    sem_wait(&bench->done);
    assert_int_equal(workers_take(bench->workers, computed), WORK_COMPUTE);
}

void gather(struct bench *bench, uint64_t sums, int64_t *into) {
    if (workers_gather(bench->workers, 0, sums, into))
        return;
    struct computed computed;
    sem_wait(&bench->done);
    assert_int_equal(workers_take(bench->workers, &computed), WORK_GATHER);
}

void plain_loop(uint32_t parameters, uint32_t first, uint32_t count, int64_t *sum,
                struct exact *loss) {
    const struct objective_shape shape = {.features = parameters};
    const struct objective_scale scale = {.bounds = bounds_of_one(10)};
    exact_init(loss);
    memset(sum, 0, parameters * sizeof *sum);
    for (uint32_t i = first; i < first + count; i++) {
        double label = i;
        struct rows rows = {.count = 1, .label = &label};
        struct objective_result result;
        objective_block(&shape, &scale, &rows, one, sum, NULL, &result);
        exact_add(loss, result.loss);
    }
}

int64_t *new_sum(uint32_t parameters) {
    int64_t *sum = memory_new(parameters, sizeof *sum);
    memset(sum, 0x5a, parameters * sizeof *sum); /* buffers come with anything in them */
    return sum;
}

bool bench_on[2] = {false, true};

unsigned threads_or_device(void **state, unsigned threads) {
    return *(const bool *)*state ? DEVICE : threads;
}
