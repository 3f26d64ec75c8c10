/* A replica's handshake and set-up, and what it does when something breaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"

/* ---- handshake and set-up ---- */

static void an_older_coordinator_is_refused(void **state) {
    (void)state;
    struct bench bench;
    bench_new(&bench, 1);
    hello(&bench, TERM - 1, "run 1");
    bench.term = TERM - 1; /* told in the name of its own term, or it would take no notice */
    sent(&bench, COORDINATOR, MESSAGE_REFUSED);
    bench.term = TERM;
    hello(&bench, TERM, "run 2");
    sent(&bench, COORDINATOR, MESSAGE_REFUSED);
    give(&bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_REPLICA_SETUP,
             .term = TERM - 1,
             .replica_setup = {
                 .scratch = "", .machine.device = "", .attempt = ATTEMPT, .shards = 1}});
    assert_int_equal(replica_counters(bench.replica)->stale, 1);
    bench_free(&bench);
}

static void a_replica_is_ready_when_the_set_is_open_and_every_shard_has_greeted(void **state) {
    (void)state;
    struct bench bench;
    bench_new(&bench, 2);
    set_up(&bench);
    for (uint32_t i = 0; i < 2; i++) {
        shard_at(&bench, i, 100 + i);
        connect_shard(&bench, i);
        greeted(&bench, i);
        nothing_more(&bench);
    }
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    sent(&bench, COORDINATOR, MESSAGE_READY);
    bench_free(&bench);
}

/* Tries in vain to connect to shard 0. */
static void nobody_listens(struct bench *bench, int tries) {
    for (int i = 0; i < tries; i++) {
        if (i)
            replica_timer(bench->replica, replica_deadline_ns(bench->replica), &bench->outbox);
        asked(bench, ACTION_CONNECT);
        replica_connected(bench->replica, 0, 0, ERROR_UNAVAILABLE, "nobody listens",
                          &bench->outbox);
    }
}

static void what_fails_in_the_set_up_is_told_to_the_coordinator(void **state) {
    (void)state;
    struct bench bench;
    bench_new(&bench, 1);
    set_up(&bench);
    replica_opened(bench.replica, ERROR_DATA, "data.set: damaged", bench.now_ns, &bench.outbox);
    struct message failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 65);
    assert_string_equal(failed.failed.reason, "data.set: damaged");
    bench_free(&bench);

    bench_new(&bench, 1);
    set_up(&bench);
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    shard_at(&bench, 0, 100);
    nobody_listens(&bench, 20);
    failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 69);
    assert_string_equal(failed.failed.reason, "shard 0 at unix:/run/shard: nobody listens");
    bench_free(&bench);
}

/* ---- trouble ---- */

static void a_damaged_chunk_is_told_to_the_coordinator(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    take_up(&bench, 1, 0, PORTION_LAST);
    struct computed answer = {.error = ERROR_DATA, .reason = "data.set: chunk 1 is damaged"};
    totals_init(&answer.totals, 1);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    struct message failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 65);
    assert_string_equal(failed.failed.reason, "data.set: chunk 1 is damaged");
    portion(&bench, 1, 2, PORTION_LAST);
    bench_free(&bench);
}

static void a_device_that_fails_is_told_as_such_and_another_set_up_begins_anew(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    take_up(&bench, 1, 0, PORTION_LAST);
    replica_device_failed(bench.replica, ERROR_UNAVAILABLE, "cuda:0 is lost", &bench.outbox);
    struct message failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 69);
    assert_int_equal(failed.failed.device, 1);
    assert_string_equal(failed.failed.reason, "cuda:0 is lost");
    portion(&bench, 1, 2, PORTION_LAST);
    nothing_more(&bench);
    bench.device = "cpu";
    setup_message(&bench);
    asked(&bench, ACTION_STOP);
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    assert_string_equal(asked(&bench, ACTION_OPEN_SET).setup.device, "cpu");
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    shard_at(&bench, 0, 100);
    connect_shard(&bench, 0);
    greeted(&bench, 0);
    assert_string_equal(sent(&bench, COORDINATOR, MESSAGE_READY).ready.device, "cpu");
    bench_free(&bench);
}

static void another_device_is_another_set_up_and_told_in_ready(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    setup_message(&bench);
    nothing_more(&bench); /* all is open */
    bench.device = "cuda:1";
    setup_message(&bench);
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    assert_string_equal(asked(&bench, ACTION_OPEN_SET).setup.device, "cuda:1");
    replica_computes_on(bench.replica, "cuda:1 NVIDIA H200");
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    shard_at(&bench, 0, 100);
    connect_shard(&bench, 0);
    greeted(&bench, 0);
    assert_string_equal(sent(&bench, COORDINATOR, MESSAGE_READY).ready.device,
                        "cuda:1 NVIDIA H200");
    bench_free(&bench);
}

static void
a_broken_connection_is_made_again_and_what_was_not_acknowledged_sent_again(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    struct flush_id id = solo(&bench, 0);
    staged(&bench, 0, id);
    replica_gone(bench.replica, FIRST_SHARD + 1, &bench.outbox);
    connect_shard(&bench, 1);
    nothing_more(&bench);
    greeted(&bench, 1);
    struct message again = sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_true(flush_id_equal(&again.stage.flush, &id));
    sent(&bench, COORDINATOR, MESSAGE_READY);
    nothing_more(&bench);
    replica_gone(bench.replica, FIRST_SHARD, &bench.outbox);
    nobody_listens(&bench, 100); /* the coordinator may say where the next one is */
    replica_timer(bench.replica, replica_deadline_ns(bench.replica), &bench.outbox);
    connect_shard(&bench, 0); /* or it can be reached again */
    nothing_more(&bench);
    bench_free(&bench);
}

static void a_shard_elsewhere_takes_the_place_of_the_old_one(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_SHARD_AT,
                          .shard_at = {ATTEMPT, 0, 200, 0, PARAMETERS, "unix:/run/shard", ""}});
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    connect_shard(&bench, 0);
    evaluate(&bench, 1);
    nothing_more(&bench);
    give(&bench, FIRST_SHARD, (struct message){.type = MESSAGE_GREETED, .greeted = {0, 200}});
    sent(&bench, COORDINATOR, MESSAGE_READY);
    fetch(&bench, 1);
    bench_free(&bench);
}

static void place_nearby(struct bench *bench, const char *secret) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_SHARD_AT,
                          .shard_at = {ATTEMPT, 0, 200, 0, PARAMETERS, "tls:here:4000", secret}});
}

static void a_shard_of_the_host_is_reached_over_tcp_where_its_socket_is_not(void **state) {
    (void)state;
    const char *secret = "0123456789abcdef0123456789abcdef";
    struct bench bench;
    bench_ready(&bench, 1);
    place_nearby(&bench, secret);
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    struct action action = asked(&bench, ACTION_CONNECT);
    assert_string_equal(action.address, "unix:@dml-0123456789abcdef");
    replica_connected(bench.replica, 0, 0, ERROR_UNAVAILABLE, "refused", &bench.outbox);
    action = asked(&bench, ACTION_CONNECT);
    assert_string_equal(action.address, "tls:here:4000");
    replica_connected(bench.replica, 0, FIRST_SHARD, 0, "", &bench.outbox);
    assert_string_equal(sent(&bench, FIRST_SHARD, MESSAGE_GREET).greet.local, "");
    place_nearby(&bench, secret); /* the next coordinator says the same */
    nothing_more(&bench);
    bench_free(&bench);
}

static void a_shard_of_the_host_is_told_its_secret(void **state) {
    (void)state;
    const char *secret = "0123456789abcdef0123456789abcdef";
    struct bench bench;
    bench_ready(&bench, 1);
    place_nearby(&bench, secret);
    asked(&bench, ACTION_CLOSE);
    asked(&bench, ACTION_CONNECT);
    replica_connected(bench.replica, 0, FIRST_SHARD, 0, "", &bench.outbox);
    assert_string_equal(sent(&bench, FIRST_SHARD, MESSAGE_GREET).greet.local, secret);
    replica_gone(bench.replica, FIRST_SHARD, &bench.outbox); /* it takes another for it */
    replica_timer(bench.replica, replica_deadline_ns(bench.replica), &bench.outbox);
    assert_string_equal(asked(&bench, ACTION_CONNECT).address, "tls:here:4000");
    bench_free(&bench);
}

static void a_new_set_up_starts_over(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    solo(&bench, 0);
    take_up(&bench, 1, 2, PORTION_LAST);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP,
                          .replica_setup = {.scratch = "",
                                            .machine.device = "",
                                            .attempt = ATTEMPT + 1,
                                            .set = "other.set",
                                            .fingerprint = "f01",
                                            .objective = "logistic",
                                            .loss = loss_blob(),
                                            .layout = layout_blob(BLOCK_ELEMENTS, 1, 0),
                                            .shards = 1}});
    asked(&bench, ACTION_STOP);
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    assert_string_equal(asked(&bench, ACTION_OPEN_SET).setup.set, "other.set");
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    shard_at(&bench, 0, 100); /* of the old attempt */
    evaluate(&bench, 2);
    nothing_more(&bench);
    assert_int_equal(replica_counters(bench.replica)->stale, 2);
    bench_free(&bench);
}

/* The layout of a network does not say how its units compute. */
static void another_activation_or_precision_is_another_set_up(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    struct message_replica_setup setup = {.scratch = "",
                                          .machine.device = "",
                                          .attempt = ATTEMPT + 1,
                                          .set = "data.set",
                                          .fingerprint = "f00",
                                          .objective = "logistic",
                                          .loss = loss_blob(),
                                          .layout = layout_blob(PARAMETERS, 1, 0),
                                          .shards = 1};
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    nothing_more(&bench);
    setup.activation = 1;
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    assert_int_equal(asked(&bench, ACTION_OPEN_SET).setup.activation, 1);
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    setup.precision = 1;
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    assert_int_equal(asked(&bench, ACTION_OPEN_SET).setup.precision, 1);
    bench_free(&bench);
}

SUITE(replica) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_coordinator_is_refused),
        cmocka_unit_test(a_replica_is_ready_when_the_set_is_open_and_every_shard_has_greeted),
        cmocka_unit_test(what_fails_in_the_set_up_is_told_to_the_coordinator),
        cmocka_unit_test(a_damaged_chunk_is_told_to_the_coordinator),
        cmocka_unit_test(a_device_that_fails_is_told_as_such_and_another_set_up_begins_anew),
        cmocka_unit_test(another_device_is_another_set_up_and_told_in_ready),
        cmocka_unit_test(
            a_broken_connection_is_made_again_and_what_was_not_acknowledged_sent_again),
        cmocka_unit_test(a_shard_elsewhere_takes_the_place_of_the_old_one),
        cmocka_unit_test(a_shard_of_the_host_is_reached_over_tcp_where_its_socket_is_not),
        cmocka_unit_test(a_shard_of_the_host_is_told_its_secret),
        cmocka_unit_test(a_new_set_up_starts_over),
        cmocka_unit_test(another_activation_or_precision_is_another_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
