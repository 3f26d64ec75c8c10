/* The bare arithmetic of one evaluation: loss and gradient over a whole data set, by threads that
 * do nothing else. bench.py compares evaluations of a run with it.
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

/* The threads of a measurement. They and the main thread meet before and after each pass. */
struct team {
    uint32_t threads;
    struct job *jobs;
    pthread_t *ids;
    uint64_t parameters;
    pthread_barrier_t start, stop;
};

static void team_start(struct team *team, const struct job *common) {
    uint32_t chunks = set_info(common->set)->chunks;
    pthread_barrier_init(&team->start, NULL, team->threads + 1);
    pthread_barrier_init(&team->stop, NULL, team->threads + 1);
    team->jobs = memory_new(team->threads, sizeof *team->jobs);
    team->ids = memory_new(team->threads, sizeof *team->ids);
    for (uint32_t i = 0; i < team->threads; i++) {
        struct job *job = &team->jobs[i];
        *job = *common;
        job->first = (uint32_t)((uint64_t)chunks * i / team->threads);
        job->end = (uint32_t)((uint64_t)chunks * (i + 1) / team->threads);
        job->sum = memory_map(team->parameters * sizeof *job->sum);
        job->scratch = objective_scratch_new(&job->shape);
        job->start = &team->start;
        job->stop = &team->stop;
        pthread_create(&team->ids[i], NULL, work, job);
    }
}

static void team_end(struct team *team) {
    for (uint32_t i = 0; i < team->threads; i++) {
        struct job *job = &team->jobs[i];
        pthread_join(team->ids[i], NULL);
        memory_unmap(job->sum, team->parameters * sizeof *job->sum);
        objective_scratch_free(job->scratch);
    }
    free(team->jobs);
    free(team->ids);
}

/* Milliseconds of each pass, sorted. */
static double *measure(struct set *set, enum objective_kind kind, uint32_t threads,
                       uint32_t passes) {
    const struct set_info *info = set_info(set);
    struct job common = {
        .set = set,
        .shape = shape_of(info, kind),
        .scale = {.exponent = info->uniform ? NULL : info->exponent,
                  .uniform = info->uniform_exponent,
                  .derivative_exponent = objective_of(kind)->first_bound ? 20 : 0},
        .passes = passes,
    };
    struct team team = {.threads = threads, .parameters = objective_parameters(&common.shape)};
    double *parameters = memory_map(team.parameters * sizeof *parameters);
    double *ms = memory_new(passes, sizeof *ms);
    common.parameters = parameters;
    team_start(&team, &common);
    for (uint32_t i = 0; i < passes; i++) {
        pthread_barrier_wait(&team.start);
        int64_t begun_ns = clock_monotonic_ns();
        pthread_barrier_wait(&team.stop);
        ms[i] = (double)(clock_monotonic_ns() - begun_ns) / 1e6;
    }
    team_end(&team);
    memory_unmap(parameters, team.parameters * sizeof *parameters);
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
