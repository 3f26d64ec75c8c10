/* A replica in an evaluation: when it computes, flushes, waits, and ignores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "replica/flush.h"
#include "tests/unit/replica_bench.h"

/* ---- one evaluation ---- */

static void several_shards_parts_meet_in_one_point(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    struct computation computation = take_up(&bench, 1, 0, 0);
    assert_memory_equal(computation.parameters, bench.point, sizeof bench.point);
    bench_free(&bench);
}

static void the_next_portion_is_wanted_when_the_last_one_held_starts(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 2, 0);
    fetch(&bench, 1);
    started(&bench, 0);
    nothing_more(&bench); /* another is held */
    computed(&bench, 0.5, false);
    started(&bench, 2);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    nothing_more(&bench);                /* asked already */
    take_up(&bench, 1, 4, PORTION_LAST); /* nothing comes behind it */
    bench_free(&bench);
}

static void the_last_portion_is_flushed_with_what_was_accrued(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 6, PORTION_LAST);
    fetch(&bench, 1);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    started(&bench, 6);
    computed(&bench, 0.75, false);

    int64_t *sums = asked(&bench, ACTION_GATHER).into;
    for (int64_t i = 0; i < PARAMETERS; i++)
        sums[i] = i - 5;
    gathered(&bench);
    struct flush_id id = {0};
    for (uint32_t i = 0; i < 2; i++) {
        struct message stage = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        id = stage.stage.flush;
        assert_int_equal(stage.stage.portions.length, 2);
        assert_int_equal(stage.stage.portions.items[1].first, 6);
        assert_memory_equal(stage.bulk.data, sums + first_of(&bench, i), count_of(&bench, i) * 8);
    }
    assert_true(flush_id_equal(&id, &(struct flush_id){ATTEMPT, 1, INCARNATION, 1}));
    nothing_more(&bench);

    staged(&bench, 1, id);
    staged(&bench, 1, id);
    nothing_more(&bench); /* the other shard has yet to say so */
    staged(&bench, 0, id);
    struct message_flushed report = sent(&bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_true(flush_id_equal(&id, &report.flush));
    assert_int_equal(report.portions.length, 2);
    assert_true(loss_of(report.totals) == 2);
    assert_true(report.maxima.value[0] == 0.75);
    assert_int_equal(report.exceeded, 0);
    assert_int_equal(report.incarnations.length, 2);
    assert_int_equal(report.incarnations.items[0], 100);
    assert_int_equal(report.incarnations.items[1], 101);
    assert_true(report.busy_ns > 0);
    bench_free(&bench);
}

static void portions_that_follow_one_another_are_one_run_of_their_flush(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 1);
    for (uint32_t i = 0; i < 3; i++)
        portion(&bench, 1, 2 * i, i == 2 ? PORTION_LAST : 0);
    fetch(&bench, 1);
    for (uint32_t i = 0; i < 3; i++) {
        started(&bench, 2 * i);
        computed(&bench, 0.5, false);
    }
    asked(&bench, ACTION_GATHER);
    gathered(&bench);
    struct message stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(stage.stage.portions.length, 1);
    assert_int_equal(stage.stage.portions.items[0].first, 0);
    assert_int_equal(stage.stage.portions.items[0].count, 6);
    bench_free(&bench);
}

static void rest_flushes_once_nothing_is_left_to_compute(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    rest(&bench, 1);
    nothing_more(&bench); /* nothing accrued, nothing to flush */
    take_up(&bench, 1, 0, 0);
    rest(&bench, 1);
    nothing_more(&bench); /* still computing */
    computed(&bench, 0.5, false);
    flushed(&bench);
    bench_free(&bench);
}

static void a_solo_portion_is_a_flush_of_its_own(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 2, PORTION_SOLO);
    portion(&bench, 1, 4, 0);
    fetch(&bench, 1);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    flushed(&bench);
    started(&bench, 2);
    nothing_more(&bench);
    struct message_stage stage = one_portion_computed(&bench);
    assert_int_equal(stage.portions.items[0].first, 2);
    started(&bench, 4);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void what_is_accrued_is_flushed_after_flush_ms(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    assert_int_equal(replica_deadline_ns(bench.replica), INT64_MAX);
    portion(&bench, 1, 0, 0);
    int64_t deadline_ns = bench.now_ns + FLUSH_MS * NS_PER_MS;
    started(&bench, 0);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    computed(&bench, 0.5, false);
    assert_int_equal(replica_deadline_ns(bench.replica), deadline_ns);
    replica_timer(bench.replica, deadline_ns - 1, &bench.outbox);
    nothing_more(&bench);
    replica_timer(bench.replica, deadline_ns, &bench.outbox);
    flushed(&bench);
    assert_int_equal(replica_deadline_ns(bench.replica), INT64_MAX);

    take_up(&bench, 1, 2, 0); /* and when the time is up while it computes */
    bench.now_ns += FLUSH_MS * NS_PER_MS;
    portion(&bench, 1, 4, 0);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    flushed(&bench);
    started(&bench, 4);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void few_values_travel_sparse(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    take_up(&bench, 1, 0, PORTION_LAST);
    struct computed answer = {.values = 10};
    totals_init(&answer.totals, 1);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    int64_t *sums = asked(&bench, ACTION_GATHER).into;
    memset(sums, 0, PARAMETERS * sizeof *sums);
    sums[2] = 20;
    sums[8191] = -1;
    sums[8192 + 7] = 70;
    gathered(&bench);
    struct message stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(stage.stage.encoding, STAGE_SPARSE);
    assert_int_equal(stage.stage.entries, 2);
    assert_int_equal(stage.bulk.length, 8 + 16);
    assert_memory_equal(stage.bulk.data, ((uint32_t[]){2, 8191}), 8);
    assert_memory_equal((const char *)stage.bulk.data + 8, ((int64_t[]){20, -1}), 16);
    stage = sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_int_equal(stage.stage.entries, 1);
    assert_int_equal(stage.bulk.length, 8 + 8);
    assert_int_equal(*(const uint32_t *)stage.bulk.data, 7);
    bench_free(&bench);
}

/* The slice of a shard at `address` for sums of which the first `some` are not zero. */
static void expect_encoding(const char *address, uint64_t some, enum stage_encoding encoding,
                            size_t bytes) {
    struct bench bench;
    bench_ready_at(&bench, 1, address);
    begin(&bench, 1);
    take_up(&bench, 1, 0, PORTION_LAST);
    struct computed answer = {.values = PARAMETERS};
    totals_init(&answer.totals, 1);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    int64_t *sums = asked(&bench, ACTION_GATHER).into;
    for (uint64_t i = 0; i < PARAMETERS; i++)
        sums[i] = i < some ? -(int64_t)i - 1 : 0;
    gathered(&bench);
    struct message stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(stage.stage.encoding, encoding);
    assert_int_equal(stage.stage.entries, encoding == STAGE_DENSE ? PARAMETERS : some);
    assert_int_equal(stage.bulk.length, bytes);
    if (encoding == STAGE_BITMAP) {
        const uint64_t *words = stage.bulk.data;
        const int64_t *values = (const int64_t *)(const void *)(words + PARAMETERS / 64);
        assert_true(words[0] == UINT64_MAX && words[PARAMETERS / 64 - 1] == 0);
        assert_true(values[0] == -1 && values[some - 1] == -(int64_t)some);
    }
    bench_free(&bench);
}

static void between_hosts_slices_travel_in_the_fewest_bytes(void **state) {
    (void)state;
    const uint64_t n = PARAMETERS, half = n / 2, few = n / 8;
    expect_encoding("tls:host:1", n, STAGE_DENSE, n * 8);
    expect_encoding("host:1", n - n / 64, STAGE_DENSE, n * 8);
    expect_encoding("host:1", n - n / 64 - 1, STAGE_BITMAP, n * 8 - 8);
    expect_encoding("host:1", half, STAGE_BITMAP, n / 8 + half * 8);
    expect_encoding("host:1", few + 1, STAGE_BITMAP, n / 8 + (few + 1) * 8);
    expect_encoding("host:1", few, STAGE_SPARSE, few * 12); /* before it is packed */
    expect_encoding("unix:/run/shard", half, STAGE_DENSE, n * 8);
    expect_encoding("unix:/run/shard", few, STAGE_DENSE, n * 8); /* many values: not counted */
}

static void beyond_the_bound_only_losses_are_computed_and_flushed_without_elements(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 2, PORTION_SOLO);
    portion(&bench, 1, 4, 0);
    fetch(&bench, 1);
    assert_true(started(&bench, 0).sums);
    computed(&bench, 9, true);
    for (uint32_t i = 0; i < 2; i++) {
        struct message stage = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        assert_int_equal(stage.stage.encoding, STAGE_NONE);
        assert_int_equal(stage.stage.entries, 0);
        assert_int_equal(stage.bulk.length, 0);
    }
    assert_false(started(&bench, 2).sums);
    nothing_more(&bench);
    struct flush_id id = {ATTEMPT, 1, INCARNATION, 1};
    staged(&bench, 0, id);
    staged(&bench, 1, id);
    struct message_flushed report = sent(&bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_int_equal(report.exceeded, 1);
    assert_true(report.maxima.value[0] == 9);

    evaluate(&bench, 2); /* the sums of the first portion are of no use to it */
    portion(&bench, 2, 0, PORTION_LAST);
    asked(&bench, ACTION_STOP);
    computed(&bench, 9, false);
    fetch(&bench, 2);
    struct computation computation = started(&bench, 0);
    assert_true(computation.sums);
    assert_true(computation.clear);
    bench_free(&bench);
}

static void bounds_of_another_number_than_the_parameters_have_are_refused(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE,
                          .evaluate = {ATTEMPT, 1, {2, {0}}, gradient_parts, 0, 1, 0, {0}}});
    struct message_failed failed = sent(&bench, COORDINATOR, MESSAGE_FAILED).failed;
    assert_non_null(strstr(failed.reason, "bounds"));
    bench_free(&bench);
}

static void an_evaluation_of_the_loss_alone_is_flushed_without_elements(void **state) {
    (void)state;
    const struct evaluation_part loss = {EVALUATION_LOSS, 0, 1000};
    struct bench bench;
    bench_ready(&bench, 2);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE,
                          .evaluate = {ATTEMPT, 1, {1, {0}}, {&loss, 1}, 0, 1, 0, {0}}});
    portion(&bench, 1, 0, PORTION_LAST);
    fetch(&bench, 1);
    struct computation computation = started(&bench, 0);
    assert_false(computation.sums);
    assert_int_equal(computation.parts.items[0].kind, EVALUATION_LOSS);
    struct computed answer = {.values = PARAMETERS};
    totals_init(&answer.totals, 2); /* the loss, and the weight of rows predicted correctly */
    exact_add(&answer.totals.sum[0], 1);
    exact_add(&answer.totals.sum[1], 3);
    replica_computed(bench.replica, &answer, ++bench.now_ns, &bench.outbox);
    struct flush_id id = {ATTEMPT, 1, INCARNATION, 1};
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE).stage.encoding, STAGE_NONE);
        staged(&bench, i, id);
    }
    struct message_flushed report = sent(&bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    struct totals totals;
    assert_true(totals_decode(&totals, 2, report.totals.data, report.totals.length));
    assert_true(exact_value(&totals.sum[0]) == 1 && exact_value(&totals.sum[1]) == 3);
    assert_int_equal(report.exceeded, 0);
    bench_free(&bench);
}

/* ---- buffers ---- */

static void computing_waits_for_a_verdict_when_every_buffer_is_in_flight(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    struct flush_id id = solo(&bench, 0);
    for (uint32_t i = 1; i < FLUSH_BUFFERS_MAX; i++)
        solo(&bench, 2 * i);
    portion(&bench, 1, 20, PORTION_SOLO);
    portion(&bench, 1, 22, 0);
    started(&bench, 20);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    nothing_more(&bench);
    assert_int_equal(replica_deadline_ns(bench.replica), INT64_MAX);
    verdict(&bench, id, true);
    flushed(&bench);
    started(&bench, 22);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    assert_int_equal(replica_counters(bench.replica)->accepted, 1);
    bench_free(&bench);
}

static void abandoned_flushes_keep_their_buffers_until_every_shard_has_begun_anew(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    struct flush_id id = {0};
    const int64_t *buffers[FLUSH_BUFFERS_MAX];
    for (uint32_t i = 0; i < FLUSH_BUFFERS_MAX; i++) {
        take_up(&bench, 1, 2 * i, PORTION_SOLO);
        computed(&bench, 0.5, false);
        buffers[i] = asked(&bench, ACTION_GATHER).into;
        id = dense_flush(&bench);
        nothing_more(&bench);
    }
    evaluate(&bench, 2);
    staged(&bench, 0, id); /* of the old evaluation: of no interest */
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    sent(&bench, FIRST_SHARD + 1, MESSAGE_FETCH);
    portion(&bench, 2, 0, PORTION_LAST);
    parameters(&bench, 2, 0);
    nothing_more(&bench);
    parameters(&bench, 2, 1);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    const int64_t *into = asked(&bench, ACTION_GATHER).into;
    bool reused = false;
    for (uint32_t i = 0; i < FLUSH_BUFFERS_MAX; i++)
        reused |= into == buffers[i];
    assert_true(reused);
    dense_flush(&bench);
    bench_free(&bench);
}

/* ---- what is out of date ---- */

static void a_new_evaluation_abandons_the_computation_in_hand(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    take_up(&bench, 1, 0, 0);
    nothing_more(&bench);
    evaluate(&bench, 2);
    asked(&bench, ACTION_STOP);
    nothing_more(&bench); /* the workers still read the point */
    portion(&bench, 2, 6, PORTION_LAST);
    nothing_more(&bench);
    computed(&bench, 50, true);
    fetch(&bench, 2);
    assert_true(started(&bench, 6).clear);
    struct message_stage stage = one_portion_computed(&bench);
    assert_int_equal(stage.flush.evaluation, 2);
    staged(&bench, 0, stage.flush);
    struct message_flushed report = sent(&bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_true(loss_of(report.totals) == 1);
    assert_true(report.maxima.value[0] == 0.5);
    bench_free(&bench);
}

static void a_new_evaluation_abandons_a_flush_being_gathered(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    take_up(&bench, 1, 0, PORTION_LAST);
    computed(&bench, 0.5, false);
    asked(&bench, ACTION_GATHER);
    evaluate(&bench, 2);
    nothing_more(&bench);
    gathered(&bench);
    fetch(&bench, 2);
    assert_false(take_up(&bench, 2, 0, PORTION_LAST).clear); /* gathering left the sums zero */
    bench_free(&bench);
}

static void messages_of_another_evaluation_or_attempt_are_ignored(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 5);
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    evaluate(&bench, 4);
    evaluate(&bench, 5);
    portion(&bench, 4, 0, 0);
    rest(&bench, 4);
    parameters(&bench, 4, 0);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE,
                          .evaluate = {ATTEMPT - 1, 9, {1, {0}}, gradient_parts, 0, 1, 0, {0}}});
    verdict(&bench, (struct flush_id){ATTEMPT, 5, INCARNATION, 1}, true);
    nothing_more(&bench);
    assert_int_equal(replica_counters(bench.replica)->stale, 7);
    parameters(&bench, 5, 0);
    nothing_more(&bench);
    bench_free(&bench);
}

static void another_incarnations_acknowledgement_does_not_count(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    struct flush_id id = solo(&bench, 0);
    give(&bench, FIRST_SHARD, (struct message){.type = MESSAGE_STAGED, .staged = {id, 0, 55}});
    nothing_more(&bench);
    staged(&bench, 0, id);
    sent(&bench, COORDINATOR, MESSAGE_FLUSHED);
    bench_free(&bench);
}

SUITE(replica_evaluation) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_shards_parts_meet_in_one_point),
        cmocka_unit_test(the_next_portion_is_wanted_when_the_last_one_held_starts),
        cmocka_unit_test(the_last_portion_is_flushed_with_what_was_accrued),
        cmocka_unit_test(portions_that_follow_one_another_are_one_run_of_their_flush),
        cmocka_unit_test(rest_flushes_once_nothing_is_left_to_compute),
        cmocka_unit_test(a_solo_portion_is_a_flush_of_its_own),
        cmocka_unit_test(what_is_accrued_is_flushed_after_flush_ms),
        cmocka_unit_test(few_values_travel_sparse),
        cmocka_unit_test(between_hosts_slices_travel_in_the_fewest_bytes),
        cmocka_unit_test(bounds_of_another_number_than_the_parameters_have_are_refused),
        cmocka_unit_test(an_evaluation_of_the_loss_alone_is_flushed_without_elements),
        cmocka_unit_test(beyond_the_bound_only_losses_are_computed_and_flushed_without_elements),
        cmocka_unit_test(computing_waits_for_a_verdict_when_every_buffer_is_in_flight),
        cmocka_unit_test(abandoned_flushes_keep_their_buffers_until_every_shard_has_begun_anew),
        cmocka_unit_test(a_new_evaluation_abandons_the_computation_in_hand),
        cmocka_unit_test(a_new_evaluation_abandons_a_flush_being_gathered),
        cmocka_unit_test(messages_of_another_evaluation_or_attempt_are_ignored),
        cmocka_unit_test(another_incarnations_acknowledgement_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
