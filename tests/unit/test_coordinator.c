/* The coordinator's state machine, message by message, with two shards and two replicas that exist
 * only as what the test says in their names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "coordinator/coordinator.h"
#include "wire/program.h"

enum { SHARD_0, SHARD_1, REPLICA_0, REPLICA_1, LINKS };

#define EPOCH 7
#define CHUNKS 8

struct fixture {
    struct coordinator *coordinator;
    struct output out;
    struct set_info data;
};

static const char *const addresses[] = {"unix:/a", "unix:/b"};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    f->data = (struct set_info){.rows = 100,
                                .values = 1000,
                                .features = 10000,
                                .chunks = CHUNKS,
                                .uniform = true,
                                .uniform_exponent = 40,
                                .fingerprint = "f",
                                .label_max_abs = 3};
    struct coordinator_settings settings = {
        .optimizer = {.memory = 5, .steps_max = 100},
        .shape = {.kind = OBJECTIVE_LOGISTIC, .features = 10000, .outputs = 1, .intercept = true},
        .data = &f->data,
        .set_path = "/set",
        .run = "run",
        .epoch = EPOCH,
        .shards = 2,
        .replicas = 2,
        .portion_chunks = 2,
        .shard_addresses = addresses,
        .shards_folder = "",
        .restarts_max = 3,
    };
    f->coordinator = coordinator_new(&settings);
    output_init(&f->out);
    coordinator_begin(f->coordinator, 0, &f->out);
    for (uint32_t link = 0; link < LINKS; link++)
        coordinator_opened(f->coordinator, link, 0, &f->out);
    error_clear();
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    coordinator_free(f->coordinator);
    output_release(&f->out);
    free(f);
    return 0;
}

/* Feeds one message; what was sent before is forgotten. */
static int feed(struct fixture *f, uint32_t link, struct message message) {
    output_clear(&f->out);
    message.epoch = EPOCH;
    return coordinator_step(f->coordinator, link, &message, 0, &f->out);
}

/* The `nth` message of a type sent to a link, decoded; fails the test if there is none. */
static struct message sent(const struct fixture *f, uint32_t link, enum message_type type) {
    struct message message;
    const char *why;
    for (size_t i = 0; i < f->out.messages.count; i++) {
        const struct envelope *envelope = &f->out.messages.envelopes[i];
        if (envelope->to != link || envelope->type != type)
            continue;
        assert_int_equal(message_decode(type, outbox_body(&f->out.messages, envelope),
                                        envelope->body_length, &message, &why),
                         0);
        return message;
    }
    fail_msg("no %s was sent to link %u", message_name(type), link);
    abort();
}

static size_t count_sent(const struct fixture *f, uint32_t link, enum message_type type) {
    size_t count = 0;
    for (size_t i = 0; i < f->out.messages.count; i++)
        count +=
            f->out.messages.envelopes[i].to == link && f->out.messages.envelopes[i].type == type;
    return count;
}

static struct message welcome(const struct fixture *f, uint32_t link, uint64_t proof) {
    const struct worker *worker = &f->coordinator->workers[link];
    struct message message = {.type = MESSAGE_WELCOME};
    message.welcome = (struct message_welcome){.protocol = PROTOCOL_VERSION,
                                               .role = (uint8_t)worker->role,
                                               .incarnation = worker->incarnation,
                                               .pid = 100 + link,
                                               .host = "here",
                                               .description = "test",
                                               .proof = proof};
    return message;
}

static void welcome_all(struct fixture *f) {
    for (uint32_t link = 0; link < LINKS; link++)
        assert_int_equal(feed(f, link, welcome(f, link, 42)), 0);
}

static void ready_all(struct fixture *f) {
    for (uint32_t link = 0; link < LINKS; link++) {
        struct message message = {.type = MESSAGE_READY};
        message.ready.attempt = 1;
        assert_int_equal(feed(f, link, message), 0);
    }
}

/* Up to the first evaluation; its messages are in the output. */
static void start(struct fixture *f) {
    welcome_all(f);
    ready_all(f);
    assert_int_equal(f->coordinator->phase, PHASE_RUNNING);
}

static struct flush_id flush_id(const struct fixture *f, uint32_t replica, uint32_t sequence) {
    return (struct flush_id){.attempt = 1,
                             .evaluation = f->coordinator->evaluation.number,
                             .incarnation = f->coordinator->workers[replica].incarnation,
                             .sequence = sequence};
}

/* A FLUSHED of `chunks` chunks from `first` on, with a loss of `chunks`. */
static int flush(struct fixture *f, uint32_t replica, uint32_t sequence, uint32_t first,
                 uint32_t chunks) {
    struct run run = {.first = first, .count = chunks};
    uint64_t incarnations[2] = {f->coordinator->workers[SHARD_0].incarnation,
                                f->coordinator->workers[SHARD_1].incarnation};
    struct exact loss;
    struct bytes encoded;
    exact_init(&loss);
    exact_add(&loss, chunks);
    bytes_init(&encoded);
    exact_encode(&loss, &encoded);
    struct message message = {.type = MESSAGE_FLUSHED};
    message.flushed = (struct message_flushed){
        .flush = flush_id(f, replica, sequence),
        .portions = {.items = &run, .length = 1},
        .loss = {.data = encoded.data, .length = (uint32_t)encoded.length},
        .derivative_max = 0.5,
        .incarnations = {.items = incarnations, .length = 2},
        .busy_ns = 1000,
    };
    int code = feed(f, replica, message);
    bytes_release(&encoded);
    return code;
}

static void folded(struct fixture *f, uint32_t shard, uint32_t replica, uint32_t sequence) {
    struct message message = {.type = MESSAGE_FOLDED};
    message.folded.flush = flush_id(f, replica, sequence);
    assert_int_equal(feed(f, shard, message), 0);
}

/* ---- tests ---- */

static void workers_are_greeted_with_incarnations_of_their_own(void **state) {
    struct fixture *f = *state;
    uint64_t seen[LINKS];
    for (uint32_t link = 0; link < LINKS; link++) {
        seen[link] = sent(f, link, MESSAGE_HELLO).hello.incarnation;
        for (uint32_t other = 0; other < link; other++)
            assert_true(seen[other] != seen[link]);
    }
}

static void ranges_fall_on_blocks_and_cover_everything(void **state) {
    struct fixture *f = *state;
    uint64_t first, count, next = 0;
    for (uint32_t shard = 0; shard < 2; shard++) {
        coordinator_range(f->coordinator, shard, &first, &count);
        assert_int_equal(first, next);
        assert_int_equal(first % BLOCK_ELEMENTS, 0);
        next = first + count;
    }
    assert_int_equal(next, 10001);
}

static void a_worker_that_computes_other_bits_is_refused(void **state) {
    struct fixture *f = *state;
    assert_int_equal(feed(f, SHARD_0, welcome(f, SHARD_0, 42)), 0);
    assert_int_equal(feed(f, REPLICA_0, welcome(f, REPLICA_0, 43)),
                     0); /* other role: other proof */
    assert_int_equal(feed(f, SHARD_1, welcome(f, SHARD_1, 44)), ERROR_UNAVAILABLE);
    assert_int_equal(count_sent(f, SHARD_1, MESSAGE_REFUSED), 1);
    assert_non_null(strstr(error_text(), "other bits"));
    assert_int_equal(f->coordinator->phase, PHASE_FAILED);
}

static void replicas_hear_of_the_shards_when_all_shards_are_there(void **state) {
    struct fixture *f = *state;
    feed(f, REPLICA_0, welcome(f, REPLICA_0, 42));
    feed(f, SHARD_1, welcome(f, SHARD_1, 42));
    assert_int_equal(count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 0);
    feed(f, SHARD_0, welcome(f, SHARD_0, 42));
    assert_int_equal(count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 2);
    assert_int_equal(count_sent(f, REPLICA_1, MESSAGE_SHARD_AT), 0);
    feed(f, REPLICA_1, welcome(f, REPLICA_1, 42));
    assert_int_equal(count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 0);
    assert_int_equal(count_sent(f, REPLICA_1, MESSAGE_SHARD_AT), 2);
}

static void the_first_evaluation_begins_when_all_are_ready(void **state) {
    struct fixture *f = *state;
    start(f);
    struct message program = sent(f, SHARD_1, MESSAGE_PROGRAM);
    assert_int_equal(program.program.number, 1);
    assert_true(program.program.hash ==
                program_hash(program.program.operations.data, program.program.operations.length));
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.evaluation, 1);
    struct message portion = sent(f, REPLICA_1, MESSAGE_PORTION);
    assert_int_equal(portion.portion.first, CHUNKS / 2);
    assert_int_equal(portion.portion.count, 2);
}

static void who_wants_is_given_the_next_portion_and_then_a_rest(void **state) {
    struct fixture *f = *state;
    start(f);
    struct message want = {.type = MESSAGE_WANT};
    want.want = (struct message_want){.attempt = 1, .evaluation = 1};
    feed(f, REPLICA_0, want);
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_PORTION).portion.first, 2);
    feed(f, REPLICA_0, want);
    struct message last = sent(f, REPLICA_0, MESSAGE_PORTION);
    assert_int_equal(last.portion.first, 6);
    assert_true(last.portion.flags & PORTION_LAST);
    feed(f, REPLICA_0, want);
    assert_int_equal(count_sent(f, REPLICA_0, MESSAGE_REST), 1);
    want.want.evaluation = 9;
    feed(f, REPLICA_0, want);
    assert_int_equal(f->out.messages.count, 0);
}

static void an_accepted_flush_is_folded_by_every_shard_before_its_verdict(void **state) {
    struct fixture *f = *state;
    start(f);
    assert_int_equal(flush(f, REPLICA_0, 0, 0, 2), 0);
    assert_int_equal(count_sent(f, SHARD_0, MESSAGE_FOLD), 1);
    assert_int_equal(count_sent(f, SHARD_1, MESSAGE_FOLD), 1);
    assert_int_equal(count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    folded(f, SHARD_0, REPLICA_0, 0);
    folded(f, SHARD_0, REPLICA_0, 0); /* said twice, counted once */
    assert_int_equal(count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    folded(f, SHARD_1, REPLICA_0, 0);
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 1);
}

static void a_flush_with_a_counted_chunk_is_dropped_whole_and_the_rest_goes_back(void **state) {
    struct fixture *f = *state;
    start(f);
    flush(f, REPLICA_0, 0, 0, 2);
    uint32_t waiting = f->coordinator->plan.waiting;
    flush(f, REPLICA_1, 0, 1, 3);
    assert_int_equal(count_sent(f, SHARD_0, MESSAGE_DROP), 1);
    assert_int_equal(count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    assert_int_equal(sent(f, REPLICA_1, MESSAGE_VERDICT).verdict.accepted, 0);
    assert_int_equal(f->coordinator->plan.counted_chunks, 2);
    assert_int_equal(f->coordinator->plan.waiting, waiting + 2);
}

static void a_repeated_flush_gets_the_same_verdict_and_is_not_counted_again(void **state) {
    struct fixture *f = *state;
    start(f);
    flush(f, REPLICA_0, 0, 0, 2);
    folded(f, SHARD_0, REPLICA_0, 0);
    folded(f, SHARD_1, REPLICA_0, 0);
    flush(f, REPLICA_0, 0, 0, 2);
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 1);
    assert_int_equal(count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    assert_int_equal(f->coordinator->plan.counted_chunks, 2);
    assert_true(exact_value(&f->coordinator->evaluation.loss) == 2);
}

static void a_flush_kept_by_a_dead_shard_is_dropped(void **state) {
    struct fixture *f = *state;
    start(f);
    f->coordinator->workers[SHARD_1].incarnation++;
    uint64_t living = f->coordinator->workers[SHARD_1].incarnation;
    f->coordinator->workers[SHARD_1].incarnation = living - 1;
    struct run run = {.first = 0, .count = 2};
    uint64_t incarnations[2] = {f->coordinator->workers[SHARD_0].incarnation, living};
    struct message message = {.type = MESSAGE_FLUSHED};
    message.flushed = (struct message_flushed){
        .flush = flush_id(f, REPLICA_0, 0),
        .portions = {.items = &run, .length = 1},
        .incarnations = {.items = incarnations, .length = 2},
    };
    feed(f, REPLICA_0, message);
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 0);
    assert_int_equal(f->coordinator->plan.counted_chunks, 0);
}

static void a_message_of_another_epoch_changes_nothing(void **state) {
    struct fixture *f = *state;
    start(f);
    struct message want = {.type = MESSAGE_WANT, .epoch = EPOCH - 1};
    want.want = (struct message_want){.attempt = 1, .evaluation = 1};
    output_clear(&f->out);
    assert_int_equal(coordinator_step(f->coordinator, REPLICA_0, &want, 0, &f->out), 0);
    assert_int_equal(f->out.messages.count, 0);
    assert_int_equal(f->coordinator->stale, 1);
}

/* Everything counted by replica 0 in one flush. */
static void count_all(struct fixture *f) {
    flush(f, REPLICA_0, 0, 0, CHUNKS);
}

static void an_evaluation_ends_only_when_every_fold_is_confirmed(void **state) {
    struct fixture *f = *state;
    start(f);
    count_all(f);
    assert_true(plan_complete(&f->coordinator->plan));
    assert_int_equal(count_sent(f, SHARD_0, MESSAGE_PROGRAM), 0);
    folded(f, SHARD_1, REPLICA_0, 0);
    assert_int_equal(count_sent(f, SHARD_0, MESSAGE_PROGRAM), 0);
    folded(f, SHARD_0, REPLICA_0, 0);
    struct message message = sent(f, SHARD_0, MESSAGE_PROGRAM);
    struct cursor cursor =
        cursor_over(message.program.operations.data, message.program.operations.length);
    struct operation operation;
    struct flush_id id = flush_id(f, REPLICA_0, 0);
    assert_true(program_next(&cursor, &operation));
    assert_int_equal(operation.code, OPERATION_CHECK);
    assert_int_equal(operation.folds, 1);
    assert_true(operation.hash == flush_id_hash(&id));
}

/* Both shards answer the program that is out with the same scalars, halves of sums. */
static void answer(struct fixture *f, const double *scalars, uint32_t count) {
    struct bytes encoded;
    bytes_init(&encoded);
    for (uint32_t i = 0; i < count; i++) {
        struct exact part;
        exact_init(&part);
        exact_add(&part, scalars[i] / 2);
        if (f->coordinator->round.is_max[i])
            bytes_put_f64(&encoded, scalars[i]);
        else
            exact_encode(&part, &encoded);
    }
    struct message message = {.type = MESSAGE_RESULT};
    message.result = (struct message_result){
        .attempt = 1,
        .number = f->coordinator->round.number,
        .scalars = {.data = encoded.data, .length = (uint32_t)encoded.length},
    };
    assert_int_equal(feed(f, SHARD_0, message), 0);
    assert_int_equal(feed(f, SHARD_1, message), 0);
    bytes_release(&encoded);
}

/* Through the first evaluation and its measurement, with this gradient. */
static void finish_first(struct fixture *f, double gradient_square, double gradient_max) {
    start(f);
    count_all(f);
    folded(f, SHARD_0, REPLICA_0, 0);
    folded(f, SHARD_1, REPLICA_0, 0);
    answer(f, (double[]){0, gradient_square, gradient_max, 0}, 4);
}

static const struct record *recorded(const struct fixture *f, enum record_kind kind) {
    for (uint32_t i = 0; i < f->out.record_count; i++)
        if (f->out.records[i].kind == kind)
            return &f->out.records[i];
    fail_msg("no such record");
    abort();
}

static void the_starting_point_is_recorded_as_step_0(void **state) {
    struct fixture *f = *state;
    finish_first(f, 1, 0.5);
    const struct record *step = recorded(f, RECORD_STEP);
    assert_int_equal(step->step.step, 0);
    assert_true(step->step.loss == (double)CHUNKS / 100);
    assert_string_equal(recorded(f, RECORD_EVALUATION)->evaluation.outcome, "accepted");
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.evaluation, 2);
}

static void a_converged_start_ends_and_the_model_is_read_in_order(void **state) {
    struct fixture *f = *state;
    finish_first(f, 0, 0);
    assert_int_equal(f->coordinator->optimizer.reason, REASON_GRADIENT_TOLERANCE);
    answer(f, NULL, 0); /* the program that accepts the trial */
    uint64_t expected = 0;
    static double values[1 << 14];
    for (uint32_t shard = 0; f->coordinator->phase == PHASE_READING; shard++) {
        struct message read = sent(f, shard, MESSAGE_READ);
        assert_int_equal(read.read.first, expected);
        expected += read.read.count;
        struct message slice = {.type = MESSAGE_SLICE};
        slice.slice = (struct message_slice){
            .register_ = REGISTER_X, .first = read.read.first, .count = read.read.count};
        slice.bulk = (struct bulk){.data = values, .length = read.read.count * sizeof(double)};
        assert_int_equal(feed(f, shard, slice), 0);
        assert_int_equal(recorded(f, RECORD_SLICE)->slice.count, read.read.count);
    }
    assert_int_equal(f->coordinator->phase, PHASE_READ);
    assert_int_equal(expected, 10001);
}

static void a_stop_ends_at_the_last_accepted_point(void **state) {
    struct fixture *f = *state;
    finish_first(f, 1, 0.5);
    output_clear(&f->out);
    coordinator_stop(f->coordinator, REASON_TIME_LIMIT, 0, &f->out);
    assert_int_equal(f->coordinator->optimizer.reason, REASON_TIME_LIMIT);
    assert_int_equal(f->coordinator->phase, PHASE_READING);
    /* The evaluation that was running is over: its flushes are dropped. */
    flush(f, REPLICA_0, 1, 0, 2);
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 0);
}

static void a_worker_that_fails_ends_the_run_with_its_status(void **state) {
    struct fixture *f = *state;
    start(f);
    struct message message = {.type = MESSAGE_FAILED};
    message.failed = (struct message_failed){.status = 65, .reason = "chunk 3 is damaged"};
    assert_int_equal(feed(f, REPLICA_1, message), ERROR_DATA);
    assert_non_null(strstr(error_text(), "chunk 3 is damaged"));
}

static void an_exceeded_bound_is_redone_with_one_that_holds(void **state) {
    struct fixture *f = *state;
    f->coordinator->settings.shape.kind = OBJECTIVE_SQUARED;
    start(f);
    assert_int_equal(sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.derivative_exponent, 2);
    f->coordinator->evaluation.exceeded = true;
    f->coordinator->evaluation.derivative_max = 1000;
    count_all(f);
    folded(f, SHARD_0, REPLICA_0, 0);
    folded(f, SHARD_1, REPLICA_0, 0);
    struct message again = sent(f, REPLICA_0, MESSAGE_EVALUATE);
    assert_int_equal(again.evaluate.evaluation, 2);
    assert_int_equal(again.evaluate.derivative_exponent, 10);
    assert_string_equal(recorded(f, RECORD_EVALUATION)->evaluation.outcome, "bound exceeded");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(workers_are_greeted_with_incarnations_of_their_own),
        TEST(ranges_fall_on_blocks_and_cover_everything),
        TEST(a_worker_that_computes_other_bits_is_refused),
        TEST(replicas_hear_of_the_shards_when_all_shards_are_there),
        TEST(the_first_evaluation_begins_when_all_are_ready),
        TEST(who_wants_is_given_the_next_portion_and_then_a_rest),
        TEST(an_accepted_flush_is_folded_by_every_shard_before_its_verdict),
        TEST(a_flush_with_a_counted_chunk_is_dropped_whole_and_the_rest_goes_back),
        TEST(a_repeated_flush_gets_the_same_verdict_and_is_not_counted_again),
        TEST(a_flush_kept_by_a_dead_shard_is_dropped),
        TEST(a_message_of_another_epoch_changes_nothing),
        TEST(an_evaluation_ends_only_when_every_fold_is_confirmed),
        TEST(the_starting_point_is_recorded_as_step_0),
        TEST(a_converged_start_ends_and_the_model_is_read_in_order),
        TEST(a_stop_ends_at_the_last_accepted_point),
        TEST(a_worker_that_fails_ends_the_run_with_its_status),
        TEST(an_exceeded_bound_is_redone_with_one_that_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
