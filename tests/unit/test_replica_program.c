/* The program dml-replica, over sockets and on real data: what it stages is the gradient, or the
 * curvature, of one plain loop, to the bit. The test plays the coordinator and the one shard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/set/set.h"
#include "numeric/exact.h"
#include "numeric/fixed.h"
#include "numeric/setup.h"
#include "objective/block.h"
#include "objective/second.h"
#include "objective/halves.h"
#include "objective/objective.h"
#include "objective/shape.h"
#include "tests/unit/layout_fixture.h"
#include "wire/evaluation.h"
#include "wire/host.h"
#include "wire/bulk.h"

enum {
    HESSIAN_FEATURES = SANITIZED ? 120 : 900
}; /* a triangle of a tenth of the sums tells as much */
enum { ROWS = 3000, FEATURES = 3000, TERM = 1 };

/* The other end of the replica: coordinator and shard. */
struct world {
    char folder[64];
    char *replica_address, *shard_address;
    struct set *set;
    struct objective_shape shape;
    enum evaluation_kind kind;
    struct host *host;
    uint32_t coordinator; /* link */
    struct segment *point;
    uint32_t handed_out; /* chunks */
    uint64_t threads;
    uint64_t rows; /* as the set-up says */
    char *failure; /* what the replica said of it */
    const char *device;
    int64_t *sum;       /* of the slices staged */
    struct exact total; /* the first: the loss, or trace times leverage */
    uint32_t counted;
    bool greeted, ended;
};

static uint64_t parameters(const struct world *world) {
    return objective_parameters(&world->shape);
}

static bool is_curvature(const struct world *world) {
    return world->kind == EVALUATION_CURVATURE;
}

/* Of the kinds that need vectors of rows. */
static bool has_rows(const struct world *world) {
    return world->kind != EVALUATION_GRADIENT && !is_curvature(world);
}

static uint64_t sums(const struct world *world) {
    const struct sums_sizes sizes = {.parameters = parameters(world),
                                     .order = parameters(world),
                                     .rows = set_info(world->set)->rows,
                                     .outputs = 1};
    const struct evaluation_parts parts = {{{world->kind, 0, 1}}, 1};
    return evaluation_sums_total(evaluation_sums(&parts), &sizes);
}

/* Of the point, or of the vector of rows in its place; labels and weights need neither. */
static uint64_t point_numbers(const struct world *world) {
    if (world->kind == EVALUATION_LABELS || world->kind == EVALUATION_WEIGHTS)
        return 0;
    return world->kind == EVALUATION_TRANSPOSE ? set_info(world->set)->rows : parameters(world);
}

static const struct row_sampling sampling = {.rate = 0.01, .floor = 0.125, .sample_seed = 77};
enum { EXPONENT = 1 }; /* second derivatives are at most 1/4, weights 8 */

static void answer(struct outbox *out, uint32_t link, struct message message) {
    message.term = TERM;
    outbox_add(out, link, &message);
}

/* ---- the coordinator ---- */

static void set_up(struct world *world, struct outbox *out) {
    answer(out, world->coordinator,
           (struct message){
               .type = MESSAGE_REPLICA_SETUP,
               .replica_setup = {.scratch = "",
                                 .machine.device = world->device,
                                 .attempt = 1,
                                 .set = set_path(world->set),
                                 .fingerprint = set_info(world->set)->fingerprint,
                                 .objective = objective_name(world->shape.kind),
                                 .loss = loss_blob(),
                                 .layout = layout_blob(world->shape.features, 1, 1),
                                 .shards = 1,
                                 .machine.threads = (uint32_t)world->threads,
                                 .flush_ms = 5,
                                 .hessian.precondition = is_curvature(world),
                                 .rows = world->rows,
                                 .hessian.block_columns = objective_columns(&world->shape)}});
    answer(out, world->coordinator,
           (struct message){
               .type = MESSAGE_SHARD_AT,
               .shard_at = {1, 0, 100, 0, parameters(world), world->shard_address, ""},
           });
}

/* Portions that grow, one of them SOLO: every way to a flush is taken but REST. */
static void hand_out(struct world *world, struct outbox *out) {
    uint32_t chunks = set_info(world->set)->chunks, left = chunks - world->handed_out;
    uint32_t count = world->handed_out + 1 < left ? world->handed_out + 1 : left;
    answer(out, world->coordinator,
           (struct message){.type = MESSAGE_PORTION,
                            .portion = {1, 1, world->handed_out, count,
                                        count == left            ? PORTION_LAST
                                        : world->handed_out == 1 ? PORTION_SOLO
                                                                 : 0}});
    world->handed_out += count;
}

static void accept_flush(struct world *world, const struct message_flushed *flushed,
                         struct outbox *out) {
    struct totals totals;
    assert_true(totals_decode(&totals, is_curvature(world) ? 4 : 1, flushed->totals.data,
                              flushed->totals.length));
    exact_merge(&world->total, &totals.sum[0]);
    for (uint32_t i = 0; i < flushed->portions.length; i++)
        world->counted += flushed->portions.items[i].count;
    answer(out, world->coordinator,
           (struct message){.type = MESSAGE_VERDICT, .verdict = {flushed->flush, 1}});
    if (world->counted == set_info(world->set)->chunks)
        answer(out, world->coordinator, (struct message){.type = MESSAGE_BYE});
}

static void play_coordinator(struct world *world, const struct message *message,
                             struct outbox *out) {
    const struct evaluation_part all = {world->kind, 0, set_info(world->set)->chunks};
    switch (message->type) {
    case MESSAGE_WELCOME:
        assert_true(message->welcome.proof == objective_proof());
        set_up(world, out);
        break;
    case MESSAGE_READY:
        assert_string_equal(message->ready.device, world->device);
        answer(out, world->coordinator,
               (struct message){.type = MESSAGE_EVALUATE,
                                .evaluate = {1,
                                             1,
                                             {1, {is_curvature(world) ? EXPONENT : 0}},
                                             {&all, 1},
                                             sampling.rate,
                                             sampling.floor,
                                             sampling.sample_seed,
                                             {0}}});
        hand_out(world, out);
        break;
    case MESSAGE_WANT:
        hand_out(world, out);
        break;
    case MESSAGE_FLUSHED:
        accept_flush(world, &message->flushed, out);
        break;
    case MESSAGE_FAILED:
        world->failure = memory_copy_string(message->failed.reason);
        answer(out, world->coordinator, (struct message){.type = MESSAGE_BYE});
        break;
    case MESSAGE_PONG: /* the replica is at long work here, under sanitizers */
        break;
    default:
        fail_msg("the coordinator got %s", message_name(message->type));
    }
}

/* ---- the shard ---- */

static void fold(struct world *world, const struct message *message) {
    const struct message_stage *stage = &message->stage;
    int64_t *sum = world->sum + stage->first;
    assert_true(stage->first + stage->entries <= sums(world));
    if (stage->encoding == STAGE_DENSE) {
        assert_int_equal(message->bulk.length, stage->entries * 8);
        fixed_merge(stage->entries, sum, message->bulk.data);
        return;
    }
    assert_int_equal(stage->encoding, STAGE_SPARSE);
    const uint32_t *offset = message->bulk.data;
    const int64_t *value = (const int64_t *)(offset + (stage->entries + 1) / 2 * 2);
    for (uint64_t i = 0; i < stage->entries; i++)
        fixed_merge(1, sum + offset[i], value + i);
}

static void play_shard(struct world *world, uint32_t from, const struct message *message,
                       struct outbox *out) {
    struct message_parameters point = {1, 1, 0, point_numbers(world), FETCH_GIVEN};
    switch (message->type) {
    case MESSAGE_GREET:
        assert_string_equal(message->greet.run, "run 1");
        answer(out, from, (struct message){.type = MESSAGE_GREETED, .greeted = {0, 100}});
        break;
    case MESSAGE_FETCH:
        assert_int_equal(message->fetch.count, point.count);
        answer(
            out, from,
            (struct message){.type = MESSAGE_PARAMETERS,
                             .parameters = point,
                             .bulk = {world->point->start, point.count * 8, world->point, NULL}});
        break;
    case MESSAGE_STAGE:
        fold(world, message);
        answer(out, from,
               (struct message){.type = MESSAGE_STAGED, .staged = {message->stage.flush, 0, 100}});
        break;
    default:
        fail_msg("the shard got %s", message_name(message->type));
    }
}

static void on_message(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                       struct outbox *out) {
    (void)now_ns;
    struct world *world = state;
    if (from == world->coordinator)
        play_coordinator(world, message, out);
    else
        play_shard(world, from, message, out);
}

static void on_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    (void)link, (void)now_ns, (void)out;
    struct world *world = state;
    if (!world->ended)
        host_end(world->host, 0);
    world->ended = true;
}

static void on_connected(void *state, uint32_t tag, uint32_t link, int code, struct outbox *out) {
    (void)tag, (void)out;
    struct world *world = state;
    assert_int_equal(code, 0);
    world->coordinator = link;
}

/* The coordinator speaks first. */
static void after(void *state, int64_t now_ns, struct outbox *out) {
    (void)now_ns;
    struct world *world = state;
    if (!world->coordinator || world->greeted)
        return;
    answer(out, world->coordinator,
           (struct message){.type = MESSAGE_HELLO,
                            .hello = {.protocol = PROTOCOL_VERSION,
                                      .run = "run 1",
                                      .role = ROLE_REPLICA,
                                      .incarnation = 40,
                                      .reconnect_seconds = 1}});
    world->greeted = true;
}

/* ---- the data ---- */

static void write_data(const char *path, uint64_t features) {
    struct random random;
    random_init(&random, 1);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < ROWS; i++) {
        fprintf(file, "%d", (int)random_below(&random, 2));
        for (uint64_t j = 1 + random_below(&random, features / 10); j <= features;
             j += 1 + random_below(&random, features / 10))
            fprintf(file, " %d:%.3g", (int)j, random_unit(&random) - 0.5);
        fputc('\n', file);
    }
    fclose(file);
}

static void make_set(struct world *world) {
    char *path = memory_format("%s/data.txt", world->folder);
    write_data(path, is_curvature(world) ? HESSIAN_FEATURES : FEATURES);
    struct pack *pack;
    bool made;
    struct source_options options = {0};
    assert_int_equal(pack_of_source(world->folder, path, &options, 1, &pack, &made), 0);
    assert_int_equal(set_of_packs(world->folder, &pack, 1,
                                  &(struct set_options){.labels = LABEL_BINARY, .threads = 1},
                                  &world->set, &made),
                     0);
    pack_close(pack);
    free(path);
    world->shape = (struct objective_shape){.kind = OBJECTIVE_LOGISTIC,
                                            .features = set_info(world->set)->features,
                                            .outputs = 1,
                                            .intercept = true};
}

static double chunk_curvature(const struct world *world, uint32_t number, const struct rows *rows,
                              struct objective_scratch *scratch, int64_t *triangle) {
    const struct objective_sample sample = {.form = &second_sampled,
                                            .exponent = set_info(world->set)->exponent,
                                            .examples = set_info(world->set)->rows,
                                            .columns = objective_columns(&world->shape),
                                            .derivative_exponent = EXPONENT,
                                            .sampling = sampling};
    struct objective_hessian hessian;
    objective_curvature(&world->shape, &sample, rows, number, world->point->start, triangle,
                        scratch, &hessian);
    assert_false(hessian.exceeded);
    return hessian.trace_leverage;
}

static double chunk_gradient(const struct world *world, const struct rows *rows,
                             struct objective_scratch *scratch, int64_t *sum) {
    const struct set_info *info = set_info(world->set);
    const struct objective_scale scale = {.exponent = info->uniform ? NULL : info->exponent,
                                          .uniform = info->uniform_exponent};
    const double *point = world->point->start;
    struct objective_result result;
    if (world->kind == EVALUATION_GRADIENT)
        objective_block(&world->shape, &scale, rows, point, sum, scratch, &result);
    else
        objective_transpose(&world->shape, &scale, rows, point + rows->first, sum, scratch,
                            &result);
    return world->kind == EVALUATION_GRADIENT ? result.loss : rows->count;
}

static double chunk_rows(const struct world *world, const struct rows *rows,
                         struct objective_scratch *scratch, int64_t *sum) {
    struct objective_result result;
    if (world->kind == EVALUATION_LABELS)
        objective_add_labels(&world->shape, rows, sum + rows->first);
    else if (world->kind == EVALUATION_WEIGHTS)
        objective_add_weights(&world->shape, rows, sum + rows->first);
    else
        objective_product(&world->shape, NULL, rows, world->point->start, sum + rows->first,
                          scratch, &result);
    return rows->count;
}

static double chunk_total(const struct world *world, uint32_t number, const struct rows *rows,
                          struct objective_scratch *scratch, int64_t *sum) {
    switch (world->kind) {
    case EVALUATION_CURVATURE:
        return chunk_curvature(world, number, rows, scratch, sum);
    case EVALUATION_GRADIENT:
    case EVALUATION_TRANSPOSE:
        return chunk_gradient(world, rows, scratch, sum);
    default:
        return chunk_rows(world, rows, scratch, sum);
    }
}

static void plain_loop(const struct world *world, int64_t *sum, struct exact *total) {
    struct objective_scratch *scratch = objective_scratch_new(&world->shape);
    exact_init(total);
    for (uint32_t i = 0; i < set_info(world->set)->chunks; i++) {
        struct rows rows;
        assert_int_equal(set_chunk(world->set, i, &rows), 0);
        exact_add(total, chunk_total(world, i, &rows, scratch, sum));
    }
    objective_scratch_free(scratch);
}

/* ---- the test ---- */

static void world_init(struct world *world, enum evaluation_kind kind) {
    *world = (struct world){.folder = "/tmp/dml-replica-XXXXXX", .kind = kind};
    assert_non_null(mkdtemp(world->folder));
    world->replica_address = memory_format("unix:%s/replica", world->folder);
    world->shard_address = memory_format("unix:%s/shard", world->folder);
    make_set(world);
    world->rows = has_rows(world) ? set_info(world->set)->rows : 0;
    world->point = segment_new(point_numbers(world) * 8);
    double *point = world->point->start;
    for (uint64_t i = 0; i < point_numbers(world); i++)
        point[i] = (double)(i % 17) / 8 - 1;
}

static void world_release(struct world *world) {
    segment_free(world->point);
    free(world->failure);
    set_close(world->set);
    free(world->replica_address);
    free(world->shard_address);
    char *command = memory_format("rm -r %s", world->folder);
    assert_int_equal(system(command), 0);
    free(command);
}

/* The replica listens before it returns. */
static pid_t start_replica(const struct world *world) {
    int lines[2];
    assert_int_equal(pipe(lines), 0);
    pid_t pid = fork();
    if (!pid) {
        dup2(lines[1], STDOUT_FILENO);
        close(lines[0]);
        close(lines[1]);
        execl("./dml-replica", "dml-replica", "--listen", world->replica_address, "--once",
              "--quiet", (char *)NULL);
        _exit(127);
    }
    close(lines[1]);
    char line[256] = "";
    FILE *stream = fdopen(lines[0], "r");
    assert_non_null(fgets(line, sizeof line, stream));
    assert_memory_equal(line, "listening unix:", 15);
    fclose(stream);
    return pid;
}

static void one_run(struct world *world, uint64_t threads) {
    world->threads = threads;
    world->handed_out = world->counted = 0;
    world->greeted = world->ended = false;
    exact_init(&world->total);
    world->sum = memory_map(sums(world) * 8);
    pid_t pid = start_replica(world);
    const struct host_options options = {.listen = world->shard_address, .log_level = LOG_WARNING};
    const struct host_role role = {.state = world,
                                   .message = on_message,
                                   .gone = on_gone,
                                   .connected = on_connected,
                                   .after = after};
    int code, status;
    world->host = host_new(&options, &role, &code);
    assert_non_null(world->host);
    world->coordinator = 0;
    host_connect(world->host, world->replica_address, 0);
    assert_int_equal(host_run(world->host), 0);
    host_free(world->host);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void assert_plain_loop(struct world *world, uint64_t threads, bool shuffled) {
    size_t bytes = sums(world) * 8;
    int64_t *expected = memory_map(bytes);
    struct exact total;
    plain_loop(world, expected, &total);
    setenv("DML_SHUFFLE", shuffled ? "7" : "0", 1);
    one_run(world, threads);
    assert_int_equal(world->counted, set_info(world->set)->chunks);
    assert_true(exact_value(&world->total) == exact_value(&total));
    assert_memory_equal(world->sum, expected, bytes);
    memory_unmap(world->sum, bytes);
    memory_unmap(expected, bytes);
}

static void what_the_program_stages_is_the_gradient_of_a_plain_loop(void **state) {
    (void)state;
    struct world world;
    world_init(&world, EVALUATION_GRADIENT);
    world.device = "cpu";
    for (uint64_t threads = 1; threads <= 3; threads++)
        assert_plain_loop(&world, threads, threads > 1);
    assert_plain_loop(&world, 3, false);
    world_release(&world);
}

static void what_the_program_stages_is_the_curvature_of_a_plain_loop(void **state) {
    (void)state;
    struct world world;
    world_init(&world, EVALUATION_CURVATURE);
    world.device = "cpu";
    for (uint64_t threads = 1; threads <= 3; threads += 2)
        assert_plain_loop(&world, threads, threads == 3);
    world_release(&world);
}

/* A device proves its kernels when it is opened, which takes seconds with a sanitizer. */
enum {
    DEVICE_KINDS = SANITIZED ? 0 : EVALUATION_TRANSPOSE - EVALUATION_LABELS + 1,
    DEVICE_ORDERS = SANITIZED ? 1 : 2
};

/* Each row once, whoever computed its chunk: also beside a device. */
static void what_the_program_stages_by_rows_is_that_of_a_plain_loop(void **state) {
    (void)state;
    for (int kind = EVALUATION_LABELS; kind <= EVALUATION_TRANSPOSE; kind++) {
        struct world world;
        world_init(&world, (enum evaluation_kind)kind);
        world.device = "cpu";
        assert_plain_loop(&world, 3, true);
        world.device = "emulated";
        if (kind > EVALUATION_TRANSPOSE - DEVICE_KINDS)
            assert_plain_loop(&world, 1, false);
        assert_null(world.failure);
        world_release(&world);
    }
}

static void another_number_of_rows_than_the_set_has_is_told(void **state) {
    (void)state;
    struct world world;
    world_init(&world, EVALUATION_PRODUCT);
    world.device = "cpu";
    world.rows++;
    one_run(&world, 1);
    assert_non_null(world.failure);
    assert_non_null(strstr(world.failure, "has 3000 rows, but the coordinator counts 3001"));
    memory_unmap(world.sum, sums(&world) * 8);
    world_release(&world);
}

static void a_device_stages_the_same_gradient(void **state) {
    (void)state;
    struct world world;
    world_init(&world, EVALUATION_GRADIENT);
    world.device = "emulated";
    for (int shuffled = 0; shuffled < DEVICE_ORDERS; shuffled++)
        assert_plain_loop(&world, 1, shuffled);
    world_release(&world);
}

SUITE(replica_program) {
    alarm(600); /* a test that hangs has failed; sanitizers are slow */
    numeric_setup();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_program_stages_is_the_gradient_of_a_plain_loop),
        cmocka_unit_test(what_the_program_stages_is_the_curvature_of_a_plain_loop),
        cmocka_unit_test(a_device_stages_the_same_gradient),
        cmocka_unit_test(what_the_program_stages_by_rows_is_that_of_a_plain_loop),
        cmocka_unit_test(another_number_of_rows_than_the_set_has_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
