/* sim: runs seeds of the simulated world and says which fail, and shows that it finds every mutant.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "numeric/setup.h"
#include "tests/sim/schedule.h"
#include "tests/cluster/trace.h"

#define PATIENCE_NS (3600 * NS_PER_S) /* virtual, after the last fault: a disk may take minutes */

enum say { SAY_NOTHING, SAY_FAILURE, SAY_ALL };

static struct job job;      /* of the last seed */
static uint64_t job_number; /* which it is, + 1 */

/* The only shard made every step once: so each chunk was learnt from once an epoch. */
static void check_learnt(struct cluster *cluster) {
    const uint32_t *learnt = cluster->ledger.learnt;
    uint32_t epochs = 0;
    while (epochs < JOB_EPOCHS_MAX && cluster->outcome.epoch[epochs + 1].seen)
        epochs++;
    for (uint32_t i = 0; i < set_training_chunks(&job.data); i++)
        if (learnt[i] != epochs && cluster->outcome.reason != REASON_NOT_FINITE)
            world_fail(&cluster->world, "chunk %u was learnt from %u times in %u epochs", i,
                       learnt[i], epochs);
}

/* One shard, one replica, nothing goes wrong. */
static bool find_expected(void) {
    struct cluster_shape shape = {.shards = 1,
                                  .replicas = 1,
                                  .flush_ms = 10,
                                  .reconnect_seconds = 30,
                                  .checkpoint_ns = 3600 * NS_PER_S,
                                  .launched = true,
                                  .shared_memory = true,
                                  .delay_ns = NS_PER_MS / 10,
                                  .chunk_ns = NS_PER_MS,
                                  .slow = UINT32_MAX};
    struct cluster cluster;
    cluster_init(&cluster, &job, &shape, 1, false);
    cluster_run(&cluster, PATIENCE_NS);
    check_learnt(&cluster);
    bool good = !cluster.world.failure[0];
    if (!good)
        printf("# without a fault: %s\n", cluster.world.failure);
    job.expected = cluster.outcome;
    cluster.outcome.model = NULL;
    cluster.outcome.errors = NULL;
    cluster_release(&cluster);
    return good;
}

/* A broken invariant ends the process; then this says where. */
static uint64_t seed_now;

static void print_seed(int signal) {
    char text[64];
    int length = snprintf(text, sizeof text, "# seed %" PRIu64 " broke an invariant\n", seed_now);
    (void)!write(STDERR_FILENO, text, (size_t)length);
    (void)signal;
}

static bool take_job(uint64_t seed) {
    seed_now = seed;
    uint64_t number = seed / SEEDS_A_JOB;
    if (job_number == number + 1)
        return true;
    if (job_number)
        job_release(&job);
    job_init(&job, number);
    job_number = number + 1;
    return find_expected();
}

/* ---- the verdict on a run ---- */

static bool is_same(double a, double b) {
    return !memcmp(&a, &b, sizeof a);
}

static void compare_steps(struct world *world, const struct outcome *a, const struct outcome *b) {
    for (uint32_t i = 0; i <= JOB_STEPS_MAX; i++) {
        const struct job_step *x = &a->step[i], *y = &b->step[i];
        if (x->seen != y->seen || !is_same(x->loss, y->loss) ||
            !is_same(x->gradient_max, y->gradient_max) ||
            !is_same(x->holdout_loss, y->holdout_loss) ||
            !is_same(x->holdout_accuracy, y->holdout_accuracy))
            world_fail(world, "step %u came to loss %.17g, not to %.17g", i, x->loss, y->loss);
    }
}

static void compare_epochs(struct world *world, const struct outcome *a, const struct outcome *b) {
    for (uint32_t i = 1; i <= JOB_EPOCHS_MAX; i++) {
        const struct job_epoch *x = &a->epoch[i], *y = &b->epoch[i];
        if (x->seen != y->seen || x->minibatches != y->minibatches || x->rows != y->rows ||
            !is_same(x->loss, y->loss) || !is_same(x->holdout_loss, y->holdout_loss) ||
            !is_same(x->holdout_accuracy, y->holdout_accuracy))
            world_fail(world, "epoch %u came to loss %.17g, not to %.17g", i, x->loss, y->loss);
    }
    if (a->minibatches != b->minibatches)
        world_fail(world, "there were %" PRIu64 " minibatches, not %" PRIu64, a->minibatches,
                   b->minibatches);
}

static void compare(struct cluster *cluster) {
    struct world *world = &cluster->world;
    const struct outcome *a = &cluster->outcome, *b = &job.expected;
    compare_epochs(world, a, b);
    compare_steps(world, a, b);
    if (a->reason != b->reason || a->steps != b->steps)
        world_fail(world,
                   "the run ended with \"%s\" after step %" PRIu64
                   ", not with \"%s\" after step %" PRIu64,
                   reason_text(a->reason), a->steps, reason_text(b->reason), b->steps);
    if (memcmp(&a->answer, &b->answer, sizeof a->answer))
        world_fail(world, "the model is of step %" PRIu64 ", not of step %" PRIu64, a->answer.step,
                   b->answer.step);
    if (memcmp(a->model, b->model, job.parameters * sizeof *a->model))
        world_fail(world, "the model differs from the fault-free one");
    if (memcmp(a->errors, b->errors, 3 * job.parameters * sizeof *a->errors))
        world_fail(world, "the errors of estimates differ from the fault-free ones");
    if (!cluster->ledger.used)
        world_fail(world, "no evaluation was seen to be used");
}

static char last_failure[512];
static struct tally total;

static void add_tally(const struct tally *tally) {
#define X(name, text) total.name += tally->name;
    TALLY_TABLE(X)
#undef X
}

static void print_tally(void) {
#define X(name, text) printf("#   %8" PRIu64 " %s\n", total.name, text);
    TALLY_TABLE(X)
#undef X
}

/* Passes over all chunks, and the messages between them. A step in the span of directions, or in
 * tiles, has several of both. */
static int64_t usual_time(const struct cluster_shape *shape) {
    bool common = job.optimizer.directions > 0 || job.tiles;
    uint64_t steps = common ? job.expected.evaluations : job.expected.steps;
    int64_t passes = (int64_t)(steps + job.downpour.epochs + 2);
    int64_t rounds = (int64_t)(steps + job.expected.minibatches + 2);
    uint32_t chunks = job.tiles ? set_tiles(&job.data) : job.data.chunks;
    return shape->chunk_ns * chunks * passes / shape->replicas + shape->delay_ns * 12 * rounds;
}

/* True if all is well; else says what is not. */
static bool run_seed(uint64_t seed, enum say say) {
    bool trace = say == SAY_ALL;
    if (!take_job(seed))
        return false;
    struct cluster_shape shape = schedule_shape(seed);
    struct cluster cluster;
    cluster_init(&cluster, &job, &shape, seed, trace);
    int64_t usual_ns = usual_time(&shape);
    int64_t last_ns = schedule_faults(&cluster, usual_ns);
    /* A step may take many evaluations. */
    int64_t trials = 1 + (int64_t)(job.expected.evaluations / (job.expected.steps + 2));
    trace_log(trace);
    cluster_run(&cluster, last_ns + 20 * trials * usual_ns + PATIENCE_NS);
    if (!cluster.world.failure[0] && !cluster.refused)
        compare(&cluster);
    trace_log(false);
    bool good = !cluster.world.failure[0];
    snprintf(last_failure, sizeof last_failure, "%s", cluster.world.failure);
    if (!good && say != SAY_NOTHING)
        printf("# seed %" PRIu64 ": %s\n#   replay with: tests/sim/sim --trace %" PRIu64 "\n", seed,
               cluster.world.failure, seed);
    cluster_release(&cluster);
    cluster.tally.common_runs = job.optimizer.directions > 0;
    cluster.tally.working_runs = job.optimizer.preconditioner.form == PRECONDITION_LISTED;
    cluster.tally.tiled_runs = job.tiles != NULL;
    cluster.tally.trial_runs = job.tiles && !job.optimizer.directions;
    cluster.tally.network_runs = job.tiles && job.shape.network.layers;
    add_tally(&cluster.tally);
    return good;
}

/* ---- mutants ---- */

enum mutant mutant_now;

struct mutant_row {
    const char *name, *text;
};

static const struct mutant_row mutants[MUTANTS_END] = {
#define X(name, text) [MUTANT_##name] = {#name, text},
    MUTANT_TABLE(X)
#undef X
};

static enum mutant mutant_from_name(const char *name) {
    for (int i = 1; i < MUTANTS_END; i++)
        if (!strcmp(mutants[i].name, name))
            return (enum mutant)i;
    fprintf(stderr, "sim: there is no mutant %s\n", name);
    exit(64);
}

/* Whether the job comes to the place of the mutant at all. */
static bool may_show(enum mutant mutant) {
    bool of_downpour = mutant >= MUTANT_ADAGRAD_TWICE && mutant <= MUTANT_HOLDOUT_SKIPPED;
    bool of_tiles = mutant >= MUTANT_SIZES_NOT_FETCHED;
    bool of_trials = mutant >= MUTANT_TRIAL_LOSS_FORGOTTEN;
    bool of_networks = mutant >= MUTANT_DERIVATIVES_NOT_TAKEN;
    bool of_directions = mutant >= MUTANT_MARGINS_NOT_RESTORED && !of_tiles;
    return (job.downpour.epochs || !of_downpour) && (job.tiles || !of_tiles) &&
           (job.optimizer.directions || !of_directions) &&
           (!job.optimizer.directions || !of_trials) && (job.shape.network.layers || !of_networks);
}

/* Whether a seed of the range finds the mutant out. Says which, and by what. */
static bool find_out(enum mutant mutant, uint64_t first, uint64_t last) {
    for (uint64_t seed = first; seed <= last; seed++) {
        mutant_now = MUTANT_NONE;
        if (!take_job(seed))
            return false;
        mutant_now = mutant;
        if (may_show(mutant) && !run_seed(seed, SAY_NOTHING)) {
            printf("#   by seed %" PRIu64 ": %s\n", seed, last_failure);
            return true;
        }
    }
    return false;
}

/* An assertion that a mutant trips finds it out, too; one that fails without a mutant does not. */
static void end_at_invariant(int signal) {
    print_seed(signal);
    _exit(mutant_now == MUTANT_NONE);
}

/* In a process of its own, which a broken invariant may end. */
static bool is_found_out(enum mutant mutant, uint64_t first, uint64_t last) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        dup2(STDOUT_FILENO, STDERR_FILENO); /* for the text of an assertion */
        signal(SIGABRT, end_at_invariant);
        _exit(!find_out(mutant, first, last));
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* All mutants, or one of them. */
static uint64_t run_mutants(enum mutant only, uint64_t first, uint64_t last) {
    uint64_t missed = 0;
    printf("1..%d\n", MUTANTS_END - 1);
    for (int i = 1; i < MUTANTS_END; i++) {
        if (only && only != (enum mutant)i)
            continue;
        bool found = is_found_out((enum mutant)i, first, last);
        missed += !found;
        printf("%s %d - found out: %s\n", found ? "ok" : "not ok", i, mutants[i].text);
    }
    return missed;
}

/* ---- seeds ---- */

static uint64_t run_range(uint64_t first, uint64_t last) {
    uint64_t failed = 0;
    for (uint64_t seed = first; seed <= last; seed++)
        failed += !run_seed(seed, SAY_FAILURE);
    return failed;
}

/* Seeds of a file, a line each, # before comments. */
static uint64_t run_file(const char *path, uint64_t *count) {
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t failed = 0, seed;
    if (!file) {
        fprintf(stderr, "sim: cannot open %s\n", path);
        exit(66);
    }
    for (*count = 0; fgets(line, sizeof line, file);) {
        if (sscanf(line, "%" SCNu64, &seed) != 1)
            continue;
        failed += !run_seed(seed, SAY_FAILURE);
        ++*count;
    }
    fclose(file);
    return failed;
}

static void read_range(const char *text, uint64_t *first, uint64_t *last) {
    if (sscanf(text, "%" SCNu64 "-%" SCNu64, first, last) == 2 && *first <= *last)
        return;
    fprintf(stderr, "sim: a range of seeds is FIRST-LAST\n");
    exit(64);
}

static const char usage[] = "Usage: sim [--mutant NAME] [--trace] SEED...\n"
                            "       sim [--mutant NAME] --seeds FIRST-LAST\n"
                            "       sim --file FILE\n"
                            "       sim [--mutant NAME] --mutants FIRST-LAST\n";

int main(int argc, char **argv) {
    signal(SIGABRT, print_seed);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    uint64_t failed = 0, count = 0, first, last;
    enum say say = SAY_FAILURE;
    numeric_setup();
    if (argc < 2) {
        fputs(usage, stderr);
        return 64;
    }
    int64_t start_ns = clock_monotonic_ns();
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--trace")) {
            say = SAY_ALL;
        } else if (!strcmp(argv[i], "--mutant")) {
            mutant_now = mutant_from_name(value);
            i++;
        } else if (!strcmp(argv[i], "--mutants")) {
            read_range(value, &first, &last);
            return run_mutants(mutant_now, first, last) != 0;
        } else if (!strcmp(argv[i], "--file")) {
            failed += run_file(value, &count);
            i++;
        } else if (!strcmp(argv[i], "--seeds")) {
            read_range(value, &first, &last);
            failed += run_range(first, last);
            count += last - first + 1;
            i++;
        } else {
            failed += !run_seed(strtoull(argv[i], NULL, 10), say);
            count++;
        }
    }
    double seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    printf("# %" PRIu64 " seeds, %" PRIu64 " failed, %.1f a second\n", count, failed,
           (double)count / seconds);
    print_tally();
    return failed != 0;
}
