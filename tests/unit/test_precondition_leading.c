/* A shard with a leading block: programs that make and apply it, on ranges with the block and
 * without, and checkpoints that bring back both the block and the diagonal. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_factor.h"

#include <math.h>

#include "shard/factor.h"

/* A model of three features and an intercept, of which two are in the block; and the second range
 * of a model so wide that it has none of the block. Both ranges end with a weight and the
 * intercept. */
struct range {
    uint64_t features, first, count;
};
static const struct range whole = {N - 1, 0, N};
static const struct range second = {BLOCK_ELEMENTS + N - 1, BLOCK_ELEMENTS, N};

enum { BLOCK_COLUMNS = 2, SUMS = 6 };

/* Sums over 10 rows: H is {{4, 1}, {1, 3}} by the two weights, 0.5 by each and the bias, and 5 by
 * the bias. */
static const int64_t sums[SUMS] = {40, 10, 30, 5, 5, 50};
static const struct column_scaling columns[N - 1] = {
    {1, 2, 1, 0, 0}, {2, 0.5, 3, 0, 0}, {-1, 4, 2, 0, 0}};
static const struct operation leading = {
    .code = OPERATION_FACTOR, .alpha = 0.5, .beta = 2, .gamma = 0.25, .serial = 1};

/* (x − mean)·scale makes {{32, 9.5}, {9.5, 5.25}} of H, and l2 adds alpha·penalty. */
static const double scaled[2][2] = {{32.5, 9.5}, {9.5, 6.75}};

static void send_columns(struct bench *bench, const struct range *range, uint32_t attempt) {
    const struct message exponents_here = {
        .type = MESSAGE_EXPONENTS,
        .exponents = {.attempt = attempt, .first = range->first, .count = N},
        .bulk = {.data = exponents, .length = sizeof exponents}};
    const struct message columns_here = {
        .type = MESSAGE_COORDINATES,
        .coordinates = {.attempt = attempt, .first = range->first, .count = N - 1},
        .bulk = {.data = columns, .length = sizeof columns}};
    order(bench, exponents_here);
    order(bench, columns_here);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static struct message setup_of(const struct range *range, uint32_t attempt, const char *folder) {
    const struct layout layout = layout_linear(range->features, 1, true);
    struct message message = setup(0, range->first, range->count);
    message.shard_setup.attempt = attempt;
    message.shard_setup.layout = blob_of_layout(&layout);
    message.shard_setup.hessian.precondition = PRECONDITION_LEADING;
    message.shard_setup.hessian.block_columns = BLOCK_COLUMNS;
    message.shard_setup.scaling.coordinates = 1;
    message.shard_setup.scaling.block_bias_exponent = 31;
    message.shard_setup.folder = folder;
    return message;
}

static void start_with(struct saved *saved, const struct range *range) {
    *saved = (struct saved){0};
    random_init(&saved->random, 1);
    folder_new(saved);
    bench_init(&saved->bench, setup_of(range, 1, saved->folder));
    carry_out(&saved->bench, &files_disk);
    send_columns(&saved->bench, range, 1);
}

static void begin_attempt(struct saved *saved, const struct range *range, uint32_t attempt) {
    order(&saved->bench, setup_of(range, attempt, saved->folder));
    send_columns(&saved->bench, range, attempt);
    saved->bench.number = 0;
}

static void refresh_with(struct bench *bench, const struct range *range, uint32_t evaluation,
                         const struct operation *factor) {
    run_one(bench, begin_triangle(evaluation));
    tell(bench, REPLICA_LINK, stage(flush(evaluation, 1), sums, range->first ? 0 : SUMS));
    assert_answer(bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(bench, COORDINATOR_LINK, fold(flush(evaluation, 1)));
    run_one(bench, *factor);
    assert_true(yielded(bench) == 0);
}

static const double probe[N] = {1, -2, 3, 4};

/* P·probe, by a program of the attempt of the shard. */
static void apply(struct bench *bench, const struct range *range, uint64_t serial, double *found) {
    struct operation operation = precondition(REGISTER_PH, REGISTER_D, serial);
    struct bytes program;
    put(bench, REGISTER_D, probe);
    bytes_init(&program);
    program_add(&program, &operation);
    struct message message = program_message(++bench->number, &program);
    message.program.attempt = bench->shard->attempt;
    tell(bench, COORDINATOR_LINK, message);
    bytes_release(&program);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    memcpy(found, read_register(bench, REGISTER_PH, range->first, N), N * sizeof *found);
}

static void the_block_is_solved_and_the_rest_divided(void **state) {
    (void)state;
    struct saved saved;
    double found[N];
    start_with(&saved, &whole);
    refresh_with(&saved.bench, &whole, 1, &leading);
    apply(&saved.bench, &whole, 1, found);
    for (size_t r = 0; r < 2; r++)
        assert_true(fabs(scaled[r][0] * found[0] + scaled[r][1] * found[1] +
                         FACTOR_CURVATURE_LEAST * 2 * found[r] - probe[r]) < 1e-7);
    assert_true(found[2] == probe[2] / (2 + 0.25 * 2) && found[3] == probe[3] / 2);
    saved_release(&saved);
}

static void a_range_beyond_the_block_is_divided(void **state) {
    (void)state;
    struct saved saved;
    double found[N];
    start_with(&saved, &second);
    refresh_with(&saved.bench, &second, 1, &leading);
    apply(&saved.bench, &second, 1, found);
    for (size_t j = 0; j < N - 1; j++)
        assert_true(found[j] == probe[j] / (2 + 0.25 * columns[j].penalty));
    assert_true(found[N - 1] == probe[N - 1] / 2);
    saved_release(&saved);
}

static void sums_of_another_block_are_refused(void **state) {
    (void)state;
    struct saved saved;
    start_with(&saved, &whole);
    run_one(&saved.bench, begin_triangle(1));
    for (size_t count = 0; count < TRIANGLE; count++) {
        tell(&saved.bench, REPLICA_LINK, stage(flush(1, (uint32_t)count + 1), triangle, count));
        assert_answer(&saved.bench, 0, REPLICA_LINK,
                      count == SUMS ? MESSAGE_STAGED : MESSAGE_REFUSED);
    }
    saved_release(&saved);
}

/* Of every shard, also one that has only the diagonal. */
static void going_back_brings_the_block_and_the_diagonal_of_the_step(void **state) {
    (void)state;
    const struct range *ranges[] = {&whole, &second};
    for (size_t i = 0; i < 2; i++) {
        struct saved saved;
        struct operation next = leading;
        double first[N], later[N], again[N];
        next.beta = 3;
        next.gamma = -0.5;
        next.serial = 2;
        start_with(&saved, ranges[i]);
        refresh_with(&saved.bench, ranges[i], 1, &leading);
        apply(&saved.bench, ranges[i], 1, first);
        order(&saved.bench, (struct message){.type = MESSAGE_CHECKPOINT,
                                             .checkpoint = {.attempt = 1, .step = 3, .factor = 1}});
        finish_writing(&saved.bench, &files_disk);
        uint64_t digest = assert_checkpointed(&saved.bench);
        refresh_with(&saved.bench, ranges[i], 2, &next);
        apply(&saved.bench, ranges[i], 2, later);
        assert_memory_not_equal(first + 2, later + 2, 2 * sizeof *first);
        begin_attempt(&saved, ranges[i], 2);
        assert_int_equal(restore(&saved, 2, 3, digest).status, 0);
        apply(&saved.bench, ranges[i], 1, again);
        assert_memory_equal(first, again, sizeof first);
        saved_release(&saved);
    }
}

SUITE(precondition_leading) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_block_is_solved_and_the_rest_divided),
        cmocka_unit_test(a_range_beyond_the_block_is_divided),
        cmocka_unit_test(sums_of_another_block_are_refused),
        cmocka_unit_test(going_back_brings_the_block_and_the_diagonal_of_the_step),
    };
    return cmocka_run_group_tests_name("precondition_leading", tests, NULL, NULL);
}
