/* The bare arithmetic of one evaluation: loss and gradient over a whole data set, by threads that
 * do nothing else and talk to nobody. What a run's evaluation is measured against.
 *
 *     bench_pass SET OBJECTIVE THREADS PASSES
 *
 * prints the median and the least milliseconds of a pass, and ns per stored value and thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/set.h"
#include "numeric/setup.h"
#include "objective/objective.h"

struct job {
    struct set *set;
    struct objective_shape shape;
    struct objective_scale scale;
    const double *parameters;
    uint32_t first, end; /* chunks */
    int64_t *sum;
    struct objective_scratch *scratch;
    pthread_barrier_t *start, *stop;
    uint32_t passes;
};

static void pass(const struct job *job) {
    for (uint32_t i = job->first; i < job->end; i++) {
        struct rows rows;
        struct objective_result result;
        if (set_chunk(job->set, i, &rows)) {
            fprintf(stderr, "%s\n", error_text());
            exit(1);
        }
        objective_block(&job->shape, &job->scale, &rows, job->parameters, job->sum, job->scratch,
                        &result);
    }
}

static void *work(void *context) {
    const struct job *job = context;
    for (uint32_t i = 0; i < job->passes; i++) {
        pthread_barrier_wait(job->start);
        pass(job);
        pthread_barrier_wait(job->stop);
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct objective_shape shape_of(const struct set_info *info, enum objective_kind kind) {
    return (struct objective_shape){.kind = kind,
                                    .features = info->features,
                                    .outputs = objective_outputs(objective_of(kind), info->classes),
                                    .intercept = true};
}

/* Milliseconds of each pass, sorted. */
static double *measure(struct set *set, enum objective_kind kind, uint32_t threads,
                       uint32_t passes) {
    const struct set_info *info = set_info(set);
    struct objective_shape shape = shape_of(info, kind);
    uint64_t n = objective_parameters(&shape);
    double *parameters = memory_map(n * sizeof(double));
    struct job *jobs = memory_new(threads, sizeof *jobs);
    pthread_t *ids = memory_new(threads, sizeof *ids);
    pthread_barrier_t start, stop;
    pthread_barrier_init(&start, NULL, threads + 1);
    pthread_barrier_init(&stop, NULL, threads + 1);
    for (uint32_t i = 0; i < threads; i++) {
        jobs[i] = (struct job){
            .set = set,
            .shape = shape,
            .scale = {.exponent = info->uniform ? NULL : info->exponent,
                      .uniform = info->uniform_exponent,
                      .derivative_exponent = objective_of(kind)->first_bound ? 20 : 0},
            .parameters = parameters,
            .first = (uint32_t)((uint64_t)info->chunks * i / threads),
            .end = (uint32_t)((uint64_t)info->chunks * (i + 1) / threads),
            .sum = memory_map(n * sizeof(int64_t)),
            .scratch = objective_scratch_new(&shape),
            .start = &start,
            .stop = &stop,
            .passes = passes,
        };
        pthread_create(&ids[i], NULL, work, &jobs[i]);
    }
    double *ms = memory_new(passes, sizeof *ms);
    for (uint32_t i = 0; i < passes; i++) {
        pthread_barrier_wait(&start);
        int64_t begun_ns = clock_monotonic_ns();
        pthread_barrier_wait(&stop);
        ms[i] = (double)(clock_monotonic_ns() - begun_ns) / 1e6;
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        memory_unmap(jobs[i].sum, n * sizeof(int64_t));
        objective_scratch_free(jobs[i].scratch);
    }
    memory_unmap(parameters, n * sizeof(double));
    free(jobs);
    free(ids);
    qsort(ms, passes, sizeof *ms, by_value);
    return ms;
}

int main(int argc, char **argv) {
    struct set *set;
    if (argc != 5 || objective_from_name(argv[2]) < 0) {
        fprintf(stderr, "usage: bench_pass SET OBJECTIVE THREADS PASSES\n");
        return 64;
    }
    numeric_setup();
    if (set_open(argv[1], &set)) {
        fprintf(stderr, "bench_pass: %s\n", error_text());
        return 65;
    }
    uint32_t threads = (uint32_t)atoi(argv[3]), passes = (uint32_t)atoi(argv[4]);
    if (threads < 1 || passes < 1)
        return 64;
    double *ms = measure(set, (enum objective_kind)objective_from_name(argv[2]), threads, passes);
    printf("%.4f %.4f %.3f\n", ms[passes / 2], ms[0],
           ms[passes / 2] * 1e6 * threads / (double)set_info(set)->values);
    free(ms);
    set_close(set);
    return 0;
}
