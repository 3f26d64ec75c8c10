/* The bare arithmetic of one evaluation: loss and gradient over a whole data set, by threads that
 * do nothing else. bench.py compares evaluations of a run with it.
 *
 *     bench_pass SET OBJECTIVE THREADS PASSES
 *
 * prints the median and the least milliseconds of a pass, ns per stored value and thread, and the
 * least processor time of the slowest thread in milliseconds. The last one is what counts on a
 * machine that others use, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/set/set.h"
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
    double cpu_ms; /* the least of a pass */
};

static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

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
    struct job *job = context;
    for (uint32_t i = 0; i < job->passes; i++) {
        pthread_barrier_wait(job->start);
        double begun_ms = cpu_ms();
        objective_scratch_at(job->scratch, i + 1);
        pass(job);
        double took_ms = cpu_ms() - begun_ms;
        job->cpu_ms = i == 0 || took_ms < job->cpu_ms ? took_ms : job->cpu_ms;
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

/* Answers the processor time of the slowest thread. */
static double team_end(struct team *team) {
    double slowest_ms = 0;
    for (uint32_t i = 0; i < team->threads; i++) {
        struct job *job = &team->jobs[i];
        pthread_join(team->ids[i], NULL);
        slowest_ms = job->cpu_ms > slowest_ms ? job->cpu_ms : slowest_ms;
        memory_unmap(job->sum, team->parameters * sizeof *job->sum);
        objective_scratch_free(job->scratch);
    }
    free(team->jobs);
    free(team->ids);
    return slowest_ms;
}

/* Milliseconds of each pass, sorted. */
static double *measure(struct set *set, enum objective_kind kind, uint32_t threads, uint32_t passes,
                       double *least_cpu_ms) {
    const struct set_info *info = set_info(set);
    struct job common = {
        .set = set,
        .shape = shape_of(info, kind),
        .scale = {.exponent = info->uniform ? NULL : info->exponent,
                  .uniform = info->uniform_exponent,
                  .bounds = bounds_of_one(objective_of(kind)->adapts ? 20 : 0)},
        .passes = passes,
    };
    struct team team = {.threads = threads, .parameters = objective_parameters(&common.shape)};
    double *parameters = memory_map(team.parameters * sizeof *parameters);
    for (uint64_t i = 0; i < team.parameters; i++)
        parameters[i] = 1e-3; /* pages that nobody has written would all be one page in the cache */
    double *ms = memory_new(passes, sizeof *ms);
    common.parameters = parameters;
    team_start(&team, &common);
    for (uint32_t i = 0; i < passes; i++) {
        pthread_barrier_wait(&team.start);
        int64_t begun_ns = clock_monotonic_ns();
        pthread_barrier_wait(&team.stop);
        ms[i] = (double)(clock_monotonic_ns() - begun_ns) / 1e6;
    }
    *least_cpu_ms = team_end(&team);
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
    double least_cpu_ms;
    double *ms = measure(set, (enum objective_kind)objective_from_name(argv[2]), threads, passes,
                         &least_cpu_ms);
    printf("%.4f %.4f %.3f %.4f\n", ms[passes / 2], ms[0],
           ms[passes / 2] * 1e6 * threads / (double)set_info(set)->values, least_cpu_ms);
    free(ms);
    set_close(set);
    return 0;
}
