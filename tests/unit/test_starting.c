/* How a coordinator has its shards start elsewhere than at zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "tests/unit/coordinator_bench.h"

static const double *start_everywhere(struct fixture *f) {
    static double start[10001];
    f->settings.start = start;
    return start;
}

/* What a shard was sent of the start, which must be its range and no more. */
static void assert_start_sent(const struct fixture *f, uint32_t shard, const double *start) {
    uint64_t first, count;
    coordinator_range(f->coordinator, shard, &first, &count);
    assert_int_equal(bench_sent(f, shard, MESSAGE_SHARD_SETUP).shard_setup.start, 1);
    assert_int_equal(bench_count_sent(f, shard, MESSAGE_START), 1);
    struct message_start sent = bench_sent(f, shard, MESSAGE_START).start;
    assert_int_equal(sent.attempt, coordinator_view(f->coordinator).attempt);
    assert_int_equal(sent.first, first);
    assert_int_equal(sent.count, count);
    for (size_t i = 0; i < f->out.messages.count; i++) {
        const struct envelope *envelope = &f->out.messages.envelopes[i];
        if (envelope->to == shard && envelope->type == MESSAGE_START) {
            assert_ptr_equal(envelope->bulk.data, start + first);
            assert_int_equal(envelope->bulk.length, count * sizeof *start);
        }
    }
}

static void every_shard_is_sent_its_range_of_the_start(void **state) {
    struct fixture *f = *state;
    const double *start = start_everywhere(f);
    bench_begin(f, &f->settings);
    bench_feed(f, SHARD_1, bench_welcome(f, SHARD_1, 42));
    assert_start_sent(f, SHARD_1, start);
}

static void going_back_to_the_start_sends_it_again(void **state) {
    struct fixture *f = *state;
    const double *start = start_everywhere(f);
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    bench_lose(f, SHARD_1);
    assert_true(bench_recorded(f, RECORD_ROLL_BACK)->roll_back.to_start);
    assert_start_sent(f, SHARD_0, start);
    bench_return(f, SHARD_1);
    assert_int_equal(coordinator_view(f->coordinator).attempt, 2);
}

static void what_is_restored_needs_no_start(void **state) {
    struct fixture *f = *state;
    start_everywhere(f);
    bench_start_durable(f);
    bench_lose(f, SHARD_1);
    assert_int_equal(bench_sent(f, SHARD_0, MESSAGE_SHARD_SETUP).shard_setup.start, 0);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_START), 0);
}

/* A program and the halves of a pair that it is for, to both shards. */
static void assert_pair_sent(const struct fixture *f, const double *pair, uint64_t program) {
    for (uint32_t shard = SHARD_0; shard <= SHARD_1; shard++) {
        uint64_t first, count;
        coordinator_range(f->coordinator, shard, &first, &count);
        assert_int_equal(bench_count_sent(f, shard, MESSAGE_START), 2);
        struct message_start sent = bench_sent(f, shard, MESSAGE_START).start;
        assert_int_equal(sent.program, program);
        assert_int_equal(sent.first, first);
        assert_int_equal(sent.count, count);
        assert_int_equal(bench_sent(f, shard, MESSAGE_PROGRAM).program.number, program);
        for (size_t i = 0; i < f->out.messages.count; i++) {
            const struct envelope *envelope = &f->out.messages.envelopes[i];
            if (envelope->to == shard && envelope->type == MESSAGE_START) {
                assert_ptr_equal(envelope->bulk.data, pair + first);
                pair += 10001; /* s, then y */
            }
        }
        pair -= 2 * 10001;
    }
}

static void pairs_are_loaded_before_the_first_evaluation_and_again_after_a_loss(void **state) {
    struct fixture *f = *state;
    static double pairs[4 * 10001];
    start_everywhere(f);
    f->settings.start_pairs = pairs;
    f->settings.start_pair_count = 2;
    bench_begin(f, &f->settings);
    for (unsigned attempt = 1; attempt <= 2; attempt++) {
        if (attempt == 1)
            bench_welcome_all(f);
        bench_ready_all(f);
        assert_pair_sent(f, pairs, 1);
        assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_EVALUATE), 0);
        bench_answer(f, (double[]){0, 0, 4, 2}, 4);
        assert_pair_sent(f, pairs + 2 * 10001, 2);
        bench_answer(f, (double[]){0, 0, 1, 1, 0, 0, 6, 2}, 8);
        assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_EVALUATE), 1);
        assert_int_equal(bench_optimizer(f)->history.pairs, 2);
        assert_true(bench_optimizer(f)->history.gamma == 3);
        bench_lose(f, SHARD_1);
        assert_true(bench_recorded(f, RECORD_ROLL_BACK)->roll_back.to_start);
        bench_return(f, SHARD_1);
    }
}

static void a_pair_without_curvature_is_passed_over(void **state) {
    struct fixture *f = *state;
    static double pairs[2 * 10001];
    f->settings.start_pairs = pairs;
    f->settings.start_pair_count = 1;
    bench_begin(f, &f->settings);
    bench_start(f);
    bench_answer(f, (double[]){0, 0, -1, 2}, 4);
    assert_int_equal(bench_optimizer(f)->history.pairs, 0);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_EVALUATE), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

SUITE(starting) {
    const struct CMUnitTest tests[] = {
        TEST(every_shard_is_sent_its_range_of_the_start),
        TEST(going_back_to_the_start_sends_it_again),
        TEST(what_is_restored_needs_no_start),
        TEST(pairs_are_loaded_before_the_first_evaluation_and_again_after_a_loss),
        TEST(a_pair_without_curvature_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
