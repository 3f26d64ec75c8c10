/* Downpour in the coordinator's machine: what it sends, and how it goes on and ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "numeric/exact.h"
#include "tests/unit/coordinator_bench.h"
#include "wire/program.h"

#define BLOCK 64
#define EPOCHS 2
#define MINIBATCHES (EPOCHS * CHUNKS) /* of a chunk each */

static const double rates[] = {0.5};
static const uint32_t multiples[] = {1};

static int set_up(void **state) {
    bench_set_up(state);
    struct fixture *f = *state;
    f->data.rows = CHUNKS * BLOCK;
    f->data.block_rows = BLOCK;
    f->data.weight_sum = CHUNKS * BLOCK;
    f->settings.downpour = (struct downpour_settings){.epochs = EPOCHS,
                                                      .batch = BLOCK,
                                                      .seed = 1,
                                                      .rates = rates,
                                                      .rate_count = 1,
                                                      .multiples = multiples,
                                                      .multiple_count = 1,
                                                      .scales = true};
    f->settings.shape.kind = OBJECTIVE_SQUARED; /* whose bounds adapt */
    bench_begin(f, &f->settings);
    return 0;
}

static struct downpour_view view_of(const struct fixture *f) {
    return coordinator_view(f->coordinator).downpour;
}

/* ---- what was sent ---- */

/* The operations of the program that went out, as a text: "CHECK GRADIENT …" by first letters. */
static const char *operations_of(const struct fixture *f, struct operation *of, int wanted) {
    static char text[32];
    struct blob program = bench_sent(f, SHARD_0, MESSAGE_PROGRAM).program.operations;
    struct cursor cursor = cursor_over(program.data, program.length);
    struct operation operation;
    size_t length = 0;
    while (program_next(&cursor, &operation)) {
        static const struct {
            enum operation_code code;
            char letter;
        } letters[] = {
            {OPERATION_CHECK, 'C'},    {OPERATION_GRADIENT, 'G'}, {OPERATION_ADAGRAD, 'S'},
            {OPERATION_ADD, 'A'},      {OPERATION_BEGIN, 'B'},    {OPERATION_MAX_ABS, 'M'},
            {OPERATION_DIAGONAL, 'D'}, {OPERATION_ZERO, 'Z'},     {OPERATION_SWAP, 'X'}};
        char letter = '?';
        for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
            if (letters[i].code == operation.code)
                letter = letters[i].letter;
        if ((int)operation.code == wanted)
            *of = operation;
        assert_true(length + 1 < sizeof text);
        text[length++] = letter;
    }
    text[length] = '\0';
    return text;
}

/* A minibatch of one chunk is told to the replica alone that is given it. */
static struct message evaluate_sent(const struct fixture *f) {
    bool first = bench_count_sent(f, REPLICA_0, MESSAGE_EVALUATE);
    return bench_sent(f, first ? REPLICA_0 : REPLICA_1, MESSAGE_EVALUATE);
}

static struct evaluation_part part_sent(const struct fixture *f) {
    struct message message = evaluate_sent(f);
    assert_int_equal(message.evaluate.parts.length, 1);
    return message.evaluate.parts.items[0];
}

/* ---- evaluations ---- */

/* A flush of all chunks that were sent, with these totals. */
static void evaluate(struct fixture *f, const double *sums, uint32_t count) {
    struct evaluation_part part = part_sent(f);
    struct chunk_range range = {.first = part.first, .count = part.count};
    uint64_t incarnations[2] = {coordinator_worker(f->coordinator, SHARD_0).incarnation,
                                coordinator_worker(f->coordinator, SHARD_1).incarnation};
    struct totals totals;
    struct bytes encoded;
    totals_init(&totals, count);
    for (uint32_t i = 0; i < count; i++)
        exact_add(&totals.sum[i], sums[i]);
    bytes_init(&encoded);
    totals_encode(&totals, &encoded);
    struct message message = {.type = MESSAGE_FLUSHED};
    message.flushed = (struct message_flushed){
        .flush = bench_flush_id(f, REPLICA_0, 0),
        .portions = {.items = &range, .length = 1},
        .totals = {.data = encoded.data, .length = (uint32_t)encoded.length},
        .maxima = f->maxima,
        .exceeded = f->exceeded,
        .incarnations = {.items = incarnations, .length = 2},
        .busy_ns = f->busy_ns};
    assert_int_equal(bench_feed(f, REPLICA_0, message), 0);
    bytes_release(&encoded);
}

static void minibatch(struct fixture *f) {
    evaluate(f, (double[]){BLOCK}, 1);
}

static void all_minibatches(struct fixture *f) {
    bench_start(f);
    for (unsigned i = 0; i < MINIBATCHES; i++)
        minibatch(f);
}

/* ---- tests ---- */

static void a_step_goes_out_with_the_minibatch_after_it(void **state) {
    struct fixture *f = *state;
    struct operation step;
    bench_start(f);
    assert_string_equal(operations_of(f, NULL, -1), "AB");
    struct evaluation_part first = part_sent(f);
    assert_true(first.kind == EVALUATION_GRADIENT && first.count == 1);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.chunks, 1);
    assert_int_equal(bench_chunks(f, CHUNK_RUNNING), 1);
    minibatch(f);
    assert_string_equal(operations_of(f, &step, OPERATION_ADAGRAD), "CGSAB");
    assert_true(step.a == REGISTER_X && step.b == REGISTER_A && step.c == REGISTER_G);
    assert_true(step.alpha == 0.5);
    operations_of(f, &step, OPERATION_GRADIENT);
    assert_true(step.alpha == BLOCK);
    assert_int_not_equal(part_sent(f).first, first.first);
    assert_int_equal(view_of(f).done, 1);
    assert_true(view_of(f).loss == 1);
    assert_int_equal(coordinator_view(f->coordinator).evaluations, 0); /* of all data */
}

static void a_minibatch_beyond_its_bound_is_evaluated_again_without_a_step(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    struct evaluation_part first = part_sent(f);
    int bound = evaluate_sent(f).evaluate.bounds.exponent[0];
    f->exceeded = true;
    f->maxima = maxima_of_one(ldexp(1.5, bound));
    minibatch(f);
    assert_string_equal(operations_of(f, NULL, -1), "CB");
    assert_int_equal(part_sent(f).first, first.first);
    assert_int_equal(evaluate_sent(f).evaluate.bounds.exponent[0], bound + 1);
    assert_true(view_of(f).redone == 1 && view_of(f).done == 0);
    f->exceeded = false;
    minibatch(f);
    assert_string_equal(operations_of(f, NULL, -1), "CGSAB");
    assert_int_equal(view_of(f).done, 1);
}

/* Ten bits above what the last one had. */
static void the_bounds_of_a_minibatch_follow_from_the_one_before(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    f->maxima = maxima_of_one(3);
    minibatch(f);
    assert_int_equal(evaluate_sent(f).evaluate.bounds.exponent[0], 12);
}

static void a_loss_that_is_not_finite_ends_the_run(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    minibatch(f);
    f->exceeded = true;
    f->maxima = maxima_of_one(INFINITY);
    evaluate(f, (double[]){NAN}, 1);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_NOT_FINITE);
    assert_int_equal(view_of(f).done, 1);
}

static void its_sums_become_the_initial_hessian(void **state) {
    struct fixture *f = *state;
    struct operation operation;
    all_minibatches(f);
    assert_string_equal(operations_of(f, NULL, -1), "CGSAM");
    assert_true(view_of(f).running);
    bench_answer(f, (double[]){4}, 1);
    assert_string_equal(operations_of(f, &operation, OPERATION_DIAGONAL), "DZAB");
    assert_true(operation.a == REGISTER_A && operation.alpha == 0.5 && operation.beta == 0.02);
    assert_int_equal(part_sent(f).count, CHUNKS);
    assert_false(view_of(f).running);
    assert_int_equal(view_of(f).epoch, EPOCHS);
}

static void sums_of_nothing_are_no_hessian(void **state) {
    struct fixture *f = *state;
    all_minibatches(f);
    bench_answer(f, (double[]){0}, 1);
    assert_string_equal(operations_of(f, NULL, -1), "ZAB");
}

static void they_are_not_where_they_cost_steps(void **state) {
    struct fixture *f = *state;
    f->settings.downpour.scales = false;
    bench_begin(f, &f->settings);
    all_minibatches(f);
    assert_string_equal(operations_of(f, NULL, -1), "CGSAZAB");
    assert_int_equal(part_sent(f).count, CHUNKS);
    assert_false(view_of(f).running);
}

static void each_epoch_is_recorded(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    for (unsigned i = 0; i < CHUNKS; i++)
        minibatch(f);
    const struct store_epoch *epoch = &bench_recorded(f, RECORD_EPOCH)->epoch;
    assert_true(epoch->epoch == 1 && epoch->minibatches == CHUNKS && epoch->rows == f->data.rows);
    assert_true(epoch->loss == 1 && isnan(epoch->holdout_loss));
}

static void alone_it_ends_with_an_evaluation_of_all_data(void **state) {
    struct fixture *f = *state;
    f->settings.downpour.alone = true;
    bench_begin(f, &f->settings);
    all_minibatches(f);
    assert_string_equal(operations_of(f, NULL, -1), "CGSAZAB");
    assert_int_equal(part_sent(f).count, CHUNKS);
    evaluate(f, (double[]){CHUNKS * BLOCK}, 1);
    bench_answer(f, (double[]){0, 1, 0.5, 0}, 4);
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_EPOCH_LIMIT);
    assert_true(coordinator_view(f->coordinator).answer.loss == 1);
}

static void a_time_limit_ends_it_where_it_is(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    minibatch(f);
    for (unsigned i = 0; i < 2; i++) { /* the caller asks again and again */
        output_clear(&f->out);
        coordinator_stop(f->coordinator, REASON_TIME_LIMIT, 0, &f->out);
        if (i == 0)
            assert_string_equal(operations_of(f, NULL, -1), "ZAB");
        else
            assert_int_equal(f->out.messages.count, 0);
        if (i == 0)
            evaluate(f, (double[]){CHUNKS * BLOCK}, 1);
    }
    bench_answer(f, (double[]){0, 1, 0.5, 0}, 4);
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_TIME_LIMIT);
    assert_true(coordinator_view(f->coordinator).answer.loss == 1);
}

static void a_run_that_is_cancelled_keeps_its_last_step(void **state) {
    struct fixture *f = *state;
    f->settings.shards_folder = "/shards";
    f->settings.checkpoint_ns = INT64_MAX;
    bench_begin(f, &f->settings);
    bench_start(f);
    minibatch(f);
    minibatch(f);
    output_clear(&f->out);
    coordinator_stop(f->coordinator, REASON_CANCELLED, 0, &f->out);
    struct message message = bench_sent(f, SHARD_0, MESSAGE_CHECKPOINT);
    assert_true(message.checkpoint.step == 2 && message.checkpoint.sums);
    bench_checkpointed(f, SHARD_0, 11);
    bench_checkpointed(f, SHARD_1, 22);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
}

/* The sums are the diagonal by then. */
static void one_that_is_cancelled_where_l_bfgs_takes_over_goes_on_there(void **state) {
    struct fixture *f = *state;
    f->settings.shards_folder = "/shards";
    f->settings.checkpoint_ns = INT64_MAX;
    bench_begin(f, &f->settings);
    all_minibatches(f);
    bench_answer(f, (double[]){4}, 1);
    output_clear(&f->out);
    coordinator_stop(f->coordinator, REASON_CANCELLED, 0, &f->out);
    struct message message = bench_sent(f, SHARD_0, MESSAGE_CHECKPOINT);
    assert_true(message.checkpoint.step == MINIBATCHES && message.checkpoint.sums);
    bench_checkpointed(f, SHARD_0, 11);
    bench_checkpointed(f, SHARD_1, 22);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
}

/* One minibatch is made, and durable; gives the second. */
static struct evaluation_part begin_with_checkpoint(struct fixture *f) {
    f->settings.shards_folder = "/shards";
    f->settings.checkpoint_ns = 50 * NS_PER_S;
    bench_begin(f, &f->settings);
    bench_start(f);
    f->now_ns = 60 * NS_PER_S;
    minibatch(f);
    struct evaluation_part second = part_sent(f);
    bench_checkpointed(f, SHARD_0, 11);
    bench_checkpointed(f, SHARD_1, 22);
    return second;
}

static void shard_returns(struct fixture *f) {
    bench_return(f, SHARD_1);
    for (uint32_t shard = SHARD_0; shard <= SHARD_1; shard++) {
        struct message message = {.type = MESSAGE_RESTORED};
        bench_ready(f, shard);
        message.restored = (struct message_restored){
            .attempt = coordinator_view(f->coordinator).attempt, .step = 1, .reason = ""};
        assert_int_equal(bench_feed(f, shard, message), 0);
    }
    bench_ready(f, REPLICA_1);
    bench_ready(f, REPLICA_0);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void a_lost_shard_sets_it_back_to_its_last_checkpoint(void **state) {
    struct fixture *f = *state;
    struct evaluation_part second = begin_with_checkpoint(f);
    bench_lose(f, SHARD_1);
    const struct record *back = bench_recorded(f, RECORD_ROLL_BACK);
    assert_true(back->roll_back.checkpoint == 1 && back->roll_back.step == 0 &&
                back->roll_back.epochs == 0);
    shard_returns(f);
    assert_int_equal(view_of(f).done, 1);
    assert_int_equal(part_sent(f).first, second.first);
}

/* As if its first minibatch had taken as long as each of those since. */
static void an_epoch_that_is_taken_up_in_its_middle_has_the_rate_of_the_rest(void **state) {
    struct fixture *f = *state;
    begin_with_checkpoint(f);
    bench_lose(f, SHARD_1);
    f->now_ns = 100 * NS_PER_S;
    shard_returns(f);
    for (unsigned i = 1; i < CHUNKS; i++) {
        f->now_ns += NS_PER_S;
        minibatch(f);
    }
    assert_float_equal(bench_recorded(f, RECORD_EPOCH)->epoch.seconds, CHUNKS, 1e-9);
}

/* ---- the holdout ---- */

static void hold_out(struct fixture *f, uint32_t patience) {
    f->data.chunks = CHUNKS + 1;
    f->data.holdout_chunks = 1;
    f->data.holdout_rows = 32;
    f->data.holdout_weight_sum = 32;
    f->settings.downpour.measures = true;
    f->settings.optimizer.patience = patience;
    bench_begin(f, &f->settings);
    bench_start(f);
}

static void an_epoch(struct fixture *f, double holdout_loss) {
    for (unsigned i = 0; i < CHUNKS; i++)
        minibatch(f);
    struct evaluation_part part = part_sent(f);
    assert_true(part.kind == EVALUATION_LOSS && part.first == CHUNKS && part.count == 1);
    evaluate(f, (double[]){32 * holdout_loss, 16}, 2);
}

static void the_holdout_is_evaluated_between_epochs(void **state) {
    struct fixture *f = *state;
    hold_out(f, 0);
    an_epoch(f, 0.75);
    assert_true(bench_recorded(f, RECORD_EPOCH)->epoch.holdout_loss == 0.75);
    assert_string_equal(operations_of(f, NULL, -1), "CB");
    assert_true(view_of(f).holdout.loss == 0.75 && view_of(f).epoch == 1);
}

static void the_best_epoch_is_where_it_goes_on(void **state) {
    struct fixture *f = *state;
    hold_out(f, 1);
    an_epoch(f, 0.75);
    assert_string_equal(operations_of(f, NULL, -1), "CXAB");
    an_epoch(f, NAN);
    assert_string_equal(operations_of(f, NULL, -1), "CXAM");
    assert_true(view_of(f).best_epoch == 1 && !view_of(f).stopped_early);
}

static void a_time_limit_ends_it_at_the_best_epoch(void **state) {
    struct fixture *f = *state;
    for (unsigned steps = 0; steps < 2; steps++) { /* since that epoch */
        hold_out(f, 5);
        an_epoch(f, 0.75);
        for (unsigned i = 0; i < steps; i++)
            minibatch(f);
        output_clear(&f->out);
        coordinator_stop(f->coordinator, REASON_TIME_LIMIT, 0, &f->out);
        assert_string_equal(operations_of(f, NULL, -1), steps ? "XAZAB" : "ZAB");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, bench_tear_down)

SUITE(pouring) {
    const struct CMUnitTest tests[] = {
        TEST(a_step_goes_out_with_the_minibatch_after_it),
        TEST(a_minibatch_beyond_its_bound_is_evaluated_again_without_a_step),
        TEST(the_bounds_of_a_minibatch_follow_from_the_one_before),
        TEST(a_loss_that_is_not_finite_ends_the_run),
        TEST(its_sums_become_the_initial_hessian),
        TEST(sums_of_nothing_are_no_hessian),
        TEST(they_are_not_where_they_cost_steps),
        TEST(each_epoch_is_recorded),
        TEST(alone_it_ends_with_an_evaluation_of_all_data),
        TEST(a_time_limit_ends_it_where_it_is),
        TEST(a_run_that_is_cancelled_keeps_its_last_step),
        TEST(one_that_is_cancelled_where_l_bfgs_takes_over_goes_on_there),
        TEST(a_lost_shard_sets_it_back_to_its_last_checkpoint),
        TEST(an_epoch_that_is_taken_up_in_its_middle_has_the_rate_of_the_rest),
        TEST(the_holdout_is_evaluated_between_epochs),
        TEST(the_best_epoch_is_where_it_goes_on),
        TEST(a_time_limit_ends_it_at_the_best_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
