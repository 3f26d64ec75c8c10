/* Steps of Downpour over the touched elements alone, beside the same over all of them. One shard
 * gets its slices sparse, the other dense; a dense slice may touch everything. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

#include "base/memory.h"
#include "base/random.h"
#include "shard/state.h"

/* A linear model. Most columns are not centred, as in a text. */
enum {
    COLUMNS = 3000,
    CENTRED = 40,
    EACH = 30, /* values of a slice */
    SLICES = 3,
    STEPS = 60,
    OUTPUTS_MAX = 3,
    ALL_MAX = (COLUMNS + 1) * OUTPUTS_MAX,
};

struct kind {
    uint32_t outputs;
    bool scaled, uniform;
    bool tail;   /* the range is the second half of the vector, else the first */
    bool layers; /* a network, whose tensors have a bound each */
};

struct pair {
    struct bench sparse, dense;
    struct kind kind;
    uint64_t all, first, count;
    struct random random;
    uint32_t evaluation;
};

static const uint8_t compared[] = {REGISTER_X, REGISTER_A, REGISTER_G, REGISTER_T};

/* ---- two shards ---- */

static void send_columns(struct bench *bench, const struct pair *pair) {
    static struct column_scaling columns[COLUMNS];
    uint64_t outputs = pair->kind.outputs, from = pair->first / outputs;
    uint64_t end = (pair->first + pair->count + outputs - 1) / outputs;
    uint64_t count = (end < COLUMNS ? end : COLUMNS) - from;
    for (unsigned j = 0; j < COLUMNS; j++)
        columns[j] = (struct column_scaling){j % (COLUMNS / CENTRED) == 5 ? 0.25 : 0, 0.125 + j % 7,
                                             0.5 + j % 3, 1, 0};
    tell(bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_COORDINATES,
                          .coordinates = {.attempt = 1, .first = from, .count = count},
                          .bulk = {.data = columns + from, .length = count * sizeof *columns}});
}

static void send_exponents(struct bench *bench) {
    static int16_t exponents[ALL_MAX];
    for (unsigned i = 0; i < ALL_MAX; i++)
        exponents[i] = (int16_t)(18 + i % 5);
    tell(bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_EXPONENTS,
                          .exponents = {.attempt = 1, .first = 0, .count = ALL_MAX},
                          .bulk = {.data = exponents, .length = sizeof exponents}});
}

/* As many elements as the linear one has. */
static struct layout layout_of(const struct kind *kind) {
    const struct layout_tensor tensors[] = {
        {.name = "W1", .rows = COLUMNS - 10, .columns = kind->outputs, .regularized = true},
        {.name = "b1", .rows = 1, .columns = kind->outputs},
        {.name = "W2", .rows = kind->outputs, .columns = 9, .regularized = true},
        {.name = "b2", .rows = 1, .columns = kind->outputs},
    };
    struct layout layout = {0};
    if (!kind->layers)
        return layout_linear(COLUMNS, kind->outputs, true);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        assert_true(layout_add(&layout, &tensors[i]));
    assert_int_equal(layout_parameters(&layout), (COLUMNS + 1) * kind->outputs);
    return layout;
}

static void set_up(struct bench *bench, const struct pair *pair) {
    struct layout layout = layout_of(&pair->kind);
    struct message message = setup(pair->all, pair->first, pair->count);
    message.shard_setup.layout = blob_of_layout(&layout);
    message.shard_setup.scaling.coordinates = pair->kind.scaled;
    message.shard_setup.uniform = pair->kind.uniform;
    message.shard_setup.scaling.bias_exponent = 20;
    message.shard_setup.adagrad = 1;
    message.shard_setup.keeps_best = 1;
    bench_init(bench, message);
    if (!pair->kind.uniform)
        send_exponents(bench);
    if (pair->kind.scaled)
        send_columns(bench, pair);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static void pair_init(struct pair *pair, struct kind kind) {
    uint64_t all = (COLUMNS + 1) * kind.outputs;
    uint64_t first = kind.tail ? all / 2 : 0;
    *pair = (struct pair){.kind = kind, .all = all, .first = first};
    pair->count = kind.tail ? all - first : all / 2;
    random_init(&pair->random, 4 + kind.outputs);
    set_up(&pair->sparse, pair);
    set_up(&pair->dense, pair);
}

static void pair_release(struct pair *pair) {
    bench_release(&pair->sparse);
    bench_release(&pair->dense);
}

static void run_both(struct pair *pair, const struct operation *operations, size_t count) {
    run_operations(&pair->sparse, operations, count);
    assert_answer(&pair->sparse, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    run_operations(&pair->dense, operations, count);
    assert_answer(&pair->dense, 0, COORDINATOR_LINK, MESSAGE_RESULT);
}

static void assert_same(struct pair *pair) {
    double *noted = memory_new(pair->count, sizeof *noted);
    for (size_t i = 0; i < sizeof compared; i++) {
        size_t bytes = pair->count * sizeof *noted;
        memcpy(noted, read_register(&pair->sparse, compared[i], pair->first, pair->count), bytes);
        assert_memory_equal(
            noted, read_register(&pair->dense, compared[i], pair->first, pair->count), bytes);
    }
    free(noted);
}

/* Whether the last step went over the touched elements alone. */
static bool was_sparse(const struct pair *pair) {
    return pair->sparse.shard->registers.gradient_touched.some;
}

/* ---- minibatches ---- */

static struct operation beginning(struct pair *pair) {
    pair->evaluation++;
    const struct layout layout = layout_of(&pair->kind);
    return (struct operation){
        .code = OPERATION_BEGIN,
        .evaluation = pair->evaluation,
        .sums = SUMS_PARAMETERS,
        .bounds = {.count = layout_bounds(&layout), .exponent = {2, 3, 5, 1}}};
}

static void begin_next(struct pair *pair) {
    const struct operation operation = beginning(pair);
    run_both(pair, &operation, 1);
}

/* One flush: sparse to one, dense to the other, or dense to both. */
static void give(struct pair *pair, uint32_t sequence, bool all) {
    static int64_t slice[ALL_MAX], biases[OUTPUTS_MAX];
    struct {
        uint32_t offsets[EACH];
        int64_t values[EACH];
    } entries;
    struct flush_id id = flush(pair->evaluation, sequence);
    memset(slice, 0, sizeof slice);
    for (size_t i = 0; i < EACH; i++) {
        entries.offsets[i] = (uint32_t)random_below(&pair->random, (uint32_t)pair->count);
        entries.values[i] = (int64_t)random_below(&pair->random, 1 << 24) - (1 << 23);
        slice[entries.offsets[i]] += entries.values[i];
    }
    for (size_t k = 0; k < OUTPUTS_MAX; k++)
        biases[k] = (int64_t)random_below(&pair->random, 1 << 24) - (1 << 23);
    struct message dense = stage(id, slice, pair->count);
    if (pair->kind.scaled)
        dense.stage.biases = (struct u64_list){(const void *)biases, pair->kind.outputs};
    struct message sparse = dense;
    sparse.stage.encoding = STAGE_SPARSE;
    sparse.stage.entries = EACH;
    sparse.bulk = (struct bulk){.data = &entries, .length = sizeof entries};
    tell(&pair->sparse, REPLICA_LINK, all ? dense : sparse);
    assert_answer(&pair->sparse, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&pair->dense, REPLICA_LINK, dense);
    tell(&pair->sparse, COORDINATOR_LINK, fold(id));
    tell(&pair->dense, COORDINATOR_LINK, fold(id));
}

enum { STEP = 3 }; /* operations */

static void make_step(struct operation *operations, double l1) {
    const struct operation step[STEP] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_G, .alpha = 10},
        {.code = OPERATION_ADAGRAD,
         .a = REGISTER_X,
         .b = REGISTER_A,
         .c = REGISTER_G,
         .alpha = 0.125,
         .beta = 0.01,
         .l1 = l1},
        {.code = OPERATION_ADD, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_X}};
    memcpy(operations, step, sizeof step);
}

static void step(struct pair *pair, double l1) {
    struct operation operations[STEP];
    make_step(operations, l1);
    run_both(pair, operations, STEP);
}

/* The same, and the next evaluation begins. */
static void step_on(struct pair *pair) {
    struct operation operations[STEP + 1];
    make_step(operations, 0);
    operations[STEP] = beginning(pair);
    run_both(pair, operations, STEP + 1);
}

static void minibatch(struct pair *pair, uint32_t slices, bool all) {
    begin_next(pair);
    for (uint32_t i = 0; i < slices; i++)
        give(pair, i + 1, all && i == slices / 2);
    step(pair, 0);
}

static void in_kinds(void (*check)(struct pair *pair)) {
    for (unsigned i = 0; i < 24; i++) {
        struct pair pair;
        pair_init(&pair, (struct kind){.outputs = i & 1 ? OUTPUTS_MAX : 1,
                                       .uniform = i & 2,
                                       .tail = i & 4,
                                       .scaled = i / 8 == 1,
                                       .layers = i / 8 == 2});
        check(&pair);
        pair_release(&pair);
    }
}

/* On a device all steps go over everything. */
static void assert_sparse(const struct pair *pair, bool expected) {
    if (!bench_place()->device)
        assert_int_equal(was_sparse(pair), expected);
}

static void check_random_slices(struct pair *pair) {
    for (unsigned i = 0; i < STEPS; i++) {
        uint32_t slices = (uint32_t)random_below(&pair->random, SLICES + 1);
        bool all = slices && random_below(&pair->random, 6) == 0;
        minibatch(pair, slices, all);
        assert_sparse(pair, i && !all); /* before the first one t was not x */
        assert_same(pair);
    }
}

static void sparse_slices_give_the_steps_of_dense_ones(void **state) {
    (void)state;
    in_kinds(check_random_slices);
}

/* As a run makes them. Nothing but t is looked at in between; the last evaluation begins again, and
 * its sums are void without a step. */
static void check_run(struct pair *pair) {
    minibatch(pair, 1, false);
    begin_next(pair);
    for (unsigned i = 0; i < 9; i++) {
        for (uint32_t k = 0; k < i % 3; k++)
            give(pair, k + 1, i == 5);
        step_on(pair);
        assert_sparse(pair, i != 5);
    }
    give(pair, 1, false);
    begin_next(pair);
    give(pair, 1, false);
    step_on(pair);
    assert_same(pair);
}

static void steps_that_nobody_looks_at_in_between_are_the_same(void **state) {
    (void)state;
    in_kinds(check_run);
}

/* ---- what leaves more to do ---- */

static void check_l1(struct pair *pair) {
    for (unsigned i = 0; i < 8; i++) {
        begin_next(pair);
        give(pair, 1, false);
        step(pair, i % 2 ? 0.001 : 0);
        assert_sparse(pair, i && i % 2 == 0);
        assert_same(pair);
    }
}

static void with_l1_a_step_goes_over_all(void **state) {
    (void)state;
    in_kinds(check_l1);
}

/* Programs between minibatches that change x, t or g: t is x no more, or all of g is to be cleared.
 */
static void check_changes(struct pair *pair) {
    static const struct operation changes[] = {
        {.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_BEST},
        {.code = OPERATION_ADD, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_A, .alpha = 0.5},
        {.code = OPERATION_ADD, .a = REGISTER_X, .b = REGISTER_X, .c = REGISTER_A, .alpha = 0.5},
        {.code = OPERATION_SWAP, .a = REGISTER_T, .b = REGISTER_D},
    };
    const struct operation fills = {
        .code = OPERATION_ADD, .a = REGISTER_G, .b = REGISTER_A, .c = REGISTER_A, .alpha = 1};
    for (unsigned i = 0; i < 4; i++) {
        minibatch(pair, 1, false);
        minibatch(pair, 1, false);
        assert_sparse(pair, true);
        run_both(pair, &changes[i], 1);
        minibatch(pair, 2, false);
        assert_sparse(pair, false);
        assert_same(pair);
        run_both(pair, &fills, 1);
        minibatch(pair, 2, false);
        assert_sparse(pair, true);
        assert_same(pair);
    }
}

static void what_changes_x_or_t_makes_the_next_step_go_over_all(void **state) {
    (void)state;
    in_kinds(check_changes);
}

/* An evaluation that is made again leaves sums that no step has read. */
static void check_again(struct pair *pair) {
    minibatch(pair, 1, false);
    for (unsigned i = 0; i < 6; i++) {
        begin_next(pair);
        give(pair, 1, i % 3 == 2);
        minibatch(pair, 1, false);
        assert_sparse(pair, true);
        assert_same(pair);
    }
}

static void sums_of_an_evaluation_without_a_step_are_cleared(void **state) {
    (void)state;
    in_kinds(check_again);
}

static void check_set_up(struct pair *pair) {
    for (unsigned i = 0; i < 3; i++)
        minibatch(pair, 1, false);
    pair_release(pair);
    pair_init(pair, pair->kind);
    minibatch(pair, 1, false);
    assert_sparse(pair, false);
    assert_same(pair);
}

static void the_first_step_after_a_set_up_goes_over_all(void **state) {
    (void)state;
    in_kinds(check_set_up);
}

SUITE(sparse_step) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_slices_give_the_steps_of_dense_ones),
        cmocka_unit_test(steps_that_nobody_looks_at_in_between_are_the_same),
        cmocka_unit_test(with_l1_a_step_goes_over_all),
        cmocka_unit_test(what_changes_x_or_t_makes_the_next_step_go_over_all),
        cmocka_unit_test(sums_of_an_evaluation_without_a_step_are_cleared),
        cmocka_unit_test(the_first_step_after_a_set_up_goes_over_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
