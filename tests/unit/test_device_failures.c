/* What the coordinator does about workers whose device failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "tests/unit/coordinator_bench.h"

/* The worker's device fails, and its replacement is greeted. */
static void lose_device(struct fixture *f, uint32_t link) {
    struct message message = {.type = MESSAGE_FAILED};
    message.failed = (struct message_failed){69, "the memory of cuda:0 is full", 1};
    assert_int_equal(bench_feed(f, link, message), 0);
    assert_int_equal(bench_recorded(f, RECORD_START)->start.link, link);
    coordinator_opened(f->coordinator, link, 0, &f->out);
    bench_feed(f, link, bench_welcome(f, link, 42));
}

static void
a_worker_whose_device_failed_is_set_up_with_the_cpu_if_the_choice_is_its_own(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    lose_device(f, REPLICA_1);
    assert_string_equal(
        bench_sent(f, REPLICA_1, MESSAGE_REPLICA_SETUP).replica_setup.machine.device, "cpu");
    lose_device(f, REPLICA_1); /* one that goes by a choice of its own */
    assert_string_equal(
        bench_sent(f, REPLICA_1, MESSAGE_REPLICA_SETUP).replica_setup.machine.device, "cpu");
    lose_device(f, SHARD_0);
    assert_string_equal(bench_sent(f, SHARD_0, MESSAGE_SHARD_SETUP).shard_setup.machine.device,
                        "cpu");
    coordinator_lost(f->coordinator, SHARD_1, "killed", 0, &f->out); /* for another reason */
    coordinator_opened(f->coordinator, SHARD_1, 0, &f->out);
    bench_feed(f, SHARD_1, bench_welcome(f, SHARD_1, 42));
    assert_string_equal(bench_sent(f, SHARD_1, MESSAGE_SHARD_SETUP).shard_setup.machine.device, "");
}

static void a_worker_whose_device_failed_is_set_up_with_it_again_if_the_job_says_so(void **state) {
    struct fixture *f = *state;
    f->settings.device = "cuda";
    f->settings.restarts_max = 2;
    bench_begin(f, &f->settings);
    bench_start(f);
    for (int i = 0; i < 2; i++) {
        lose_device(f, REPLICA_0);
        assert_string_equal(
            bench_sent(f, REPLICA_0, MESSAGE_REPLICA_SETUP).replica_setup.machine.device, "cuda");
    }
    struct message message = {.type = MESSAGE_FAILED};
    message.failed = (struct message_failed){69, "the memory of cuda:0 is full", 1};
    assert_int_equal(bench_feed(f, REPLICA_0, message), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "the memory of cuda:0 is full"));
}

static void what_a_worker_computes_on_is_known_until_it_is_lost(void **state) {
    struct fixture *f = *state;
    bench_welcome_all(f);
    assert_string_equal(coordinator_worker(f->coordinator, REPLICA_0).device, "");
    struct message message = {.type = MESSAGE_READY};
    message.ready = (struct message_ready){1, "cuda:0 NVIDIA H200"};
    bench_feed(f, REPLICA_0, message);
    assert_string_equal(coordinator_worker(f->coordinator, REPLICA_0).device, "cuda:0 NVIDIA H200");
    assert_int_equal(bench_recorded(f, RECORD_WORKER)->worker.link, REPLICA_0);
    assert_string_equal(bench_recorded(f, RECORD_EVENT)->event.text,
                        "replica 0 computes on cuda:0 NVIDIA H200");
    coordinator_lost(f->coordinator, REPLICA_0, "killed", 0, &f->out);
    assert_string_equal(coordinator_worker(f->coordinator, REPLICA_0).device, "");
}

static void the_workers_of_a_host_are_numbered_to_share_out_its_devices(void **state) {
    struct fixture *f = *state;
    for (uint32_t hosts = 0; hosts <= 2; hosts++) {
        f->settings.on_hosts = hosts;
        bench_begin(f, &f->settings);
        uint32_t expected = hosts == 2 ? 0 : 1;
        bench_feed(f, SHARD_0, bench_welcome(f, SHARD_0, 42));
        bench_feed(f, SHARD_1, bench_welcome(f, SHARD_1, 42));
        assert_int_equal(bench_sent(f, SHARD_1, MESSAGE_SHARD_SETUP).shard_setup.machine.on_host,
                         expected);
        bench_feed(f, REPLICA_1, bench_welcome(f, REPLICA_1, 42));
        assert_int_equal(
            bench_sent(f, REPLICA_1, MESSAGE_REPLICA_SETUP).replica_setup.machine.on_host,
            expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

SUITE(device_failures) {
    const struct CMUnitTest tests[] = {
        TEST(a_worker_whose_device_failed_is_set_up_with_the_cpu_if_the_choice_is_its_own),
        TEST(a_worker_whose_device_failed_is_set_up_with_it_again_if_the_job_says_so),
        TEST(the_workers_of_a_host_are_numbered_to_share_out_its_devices),
        TEST(what_a_worker_computes_on_is_known_until_it_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
