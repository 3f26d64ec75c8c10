/* On which host each worker is started, and which hosts are set aside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "base/error.h"
#include "coordinator/machine/hosts.h"

/* Hosts a, b, c, …, and workers on them. */
static void make(struct hosts *hosts, uint32_t count, uint32_t shards, uint32_t replicas) {
    *hosts = (struct hosts){0};
    for (uint32_t i = 0; i < count; i++)
        hosts_add(hosts, (char[]){(char)('a' + i), '\0'}, NULL, 4);
    hosts_begin(hosts, shards, replicas);
}

static const char *at(const struct hosts *hosts, uint32_t worker) {
    return hosts_of(hosts, worker)->name;
}

/* The worker fails `times` running; answers when it is started next. */
static int64_t fail_times(struct hosts *hosts, uint32_t worker, int times, int64_t now_ns) {
    int64_t when_ns = 0;
    for (int i = 0; i < times; i++)
        when_ns = hosts_failed(hosts, worker, "no route to host", now_ns);
    return when_ns;
}

static void shards_and_replicas_are_spread_over_hosts_in_order(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 4, 3);
    const char *expected[] = {"a", "b", "c", "a", "a", "b", "c"};
    for (uint32_t i = 0; i < 7; i++)
        assert_string_equal(at(&hosts, i), expected[i]);
    hosts_release(&hosts);
}

static void replicas_of_one_host_share_its_threads(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 3);
    assert_int_equal(hosts.threads[0], 2);
    assert_int_equal(hosts.threads[1], 4);
    assert_int_equal(hosts.threads[2], 2);
    hosts_release(&hosts);
}

static void a_host_is_set_aside_after_three_failures_of_one_worker_running(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    const uint32_t replica = 2; /* on b */
    assert_true(fail_times(&hosts, replica, 2, 0) < 2 * NS_PER_S);
    assert_int_equal(hosts_state(hosts_of(&hosts, replica)), HOSTS_FAILING);
    int64_t when_ns = hosts_failed(&hosts, replica, "no route to host", 0);
    assert_int_equal(hosts_state(hosts_of(&hosts, replica)), HOSTS_SET_ASIDE);
    assert_string_equal(hosts_of(&hosts, replica)->why, "no route to host");
    assert_true(when_ns >= 10 * NS_PER_S && when_ns < 120 * NS_PER_S);
    assert_string_equal(at(&hosts, replica), "b");
    hosts_release(&hosts);
}

static void a_host_that_stays_away_is_tried_less_and_less_often_but_for_ever(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 0, times = 0;
    make(&hosts, 2, 1, 2);
    fail_times(&hosts, 2, 2, 0);
    for (; now_ns < 24 * 3600 * NS_PER_S; times++)
        now_ns = hosts_failed(&hosts, 2, "no route to host", now_ns);
    assert_in_range(times, 24 * 3, 24 * 12);
    hosts_worker_up(&hosts, 2, now_ns);
    assert_in_range(hosts_failed(&hosts, 2, "gone", now_ns) - now_ns, 0, 60 * NS_PER_S);
    hosts_release(&hosts);
}

static void a_host_that_comes_back_is_used_again(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    int64_t when_ns = fail_times(&hosts, 2, 3, 0);
    hosts_started(&hosts, 2, when_ns);
    hosts_worker_up(&hosts, 2, when_ns);
    assert_int_equal(hosts_state(hosts_of(&hosts, 2)), HOSTS_UP);
    /* until it has worked for a while, one more failure is enough */
    assert_true(hosts_failed(&hosts, 2, "gone", when_ns + NS_PER_S) > when_ns + 10 * NS_PER_S);
    assert_int_equal(hosts_state(hosts_of(&hosts, 2)), HOSTS_SET_ASIDE);
    hosts_release(&hosts);
}

static void a_worker_that_has_worked_for_a_while_is_forgiven(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    fail_times(&hosts, 2, 2, 0);
    hosts_worker_up(&hosts, 2, NS_PER_S);
    hosts_tick(&hosts, 2 * NS_PER_S);
    assert_int_equal(hosts_of(&hosts, 2)->failures, 2);
    hosts_tick(&hosts, 60 * NS_PER_S);
    assert_int_equal(hosts_of(&hosts, 2)->failures, 0);
    hosts_failed(&hosts, 2, "gone", 61 * NS_PER_S);
    assert_int_equal(hosts_state(hosts_of(&hosts, 2)), HOSTS_FAILING);
    hosts_release(&hosts);
}

static void a_shard_of_a_lost_host_goes_at_once_to_one_that_answers(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 4, 1, 4);
    hosts_worker_up(&hosts, 3, 0); /* replica 2, on c */
    assert_int_equal(hosts_failed(&hosts, 0, "gone", NS_PER_S), NS_PER_S);
    assert_string_equal(at(&hosts, 0), "c");
    hosts_release(&hosts);
}

static void a_shard_is_started_again_where_other_workers_live(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    hosts_worker_up(&hosts, 1, 0); /* replica 0, beside it on a */
    hosts_worker_up(&hosts, 2, 0);
    for (int i = 1; i < HOSTS_FAILURES_MAX; i++) {
        assert_true(hosts_failed(&hosts, 0, "killed", 0) > 0);
        assert_string_equal(at(&hosts, 0), "a");
    }
    hosts_failed(&hosts, 0, "killed", 0);
    assert_string_equal(at(&hosts, 0), "b");
    hosts_release(&hosts);
}

static void shards_of_a_lost_host_are_shared_out(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 5, 3); /* shards 0 and 3 on a, 1 and 4 on b, 2 on c */
    hosts_worker_up(&hosts, 6, 0);
    hosts_worker_up(&hosts, 7, 0);
    hosts_failed(&hosts, 0, "gone", 0);
    hosts_failed(&hosts, 3, "gone", 0);
    assert_string_equal(at(&hosts, 0), "c");
    assert_string_equal(at(&hosts, 3), "b");
    hosts_release(&hosts);
}

static void a_shard_does_not_go_round_hosts_that_do_not_answer_without_a_pause(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 0, times = 0;
    make(&hosts, 2, 1, 2);
    for (; now_ns < 10 * NS_PER_S; times++)
        now_ns = hosts_failed(&hosts, 0, "no route to host", now_ns);
    assert_in_range(times, 5, 12);
    hosts_release(&hosts);
}

static void a_shard_that_is_late_goes_to_a_host_that_answers_and_that_is_no_failure(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    hosts_started(&hosts, 0, 0);
    assert_int_equal(hosts_late(&hosts, 9 * NS_PER_S), HOSTS_NONE); /* nobody answers */
    hosts_worker_up(&hosts, 2, NS_PER_S);
    assert_int_equal(hosts_late(&hosts, 2 * NS_PER_S), HOSTS_NONE);
    assert_int_equal(hosts_late(&hosts, 5 * NS_PER_S), 0);
    hosts_start_now(&hosts, 0, 5 * NS_PER_S);
    assert_string_equal(at(&hosts, 0), "b");
    assert_int_equal(hosts.items[0].failed, 0);
    assert_int_equal(hosts_late(&hosts, 6 * NS_PER_S), HOSTS_NONE);
    hosts_release(&hosts);
}

static void a_replica_goes_to_a_spare_host_if_its_own_is_set_aside(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 1, 2);
    assert_int_equal(fail_times(&hosts, 2, 3, 0), 0); /* at once */
    assert_string_equal(at(&hosts, 2), "c");
    hosts_release(&hosts);
}

static void all_hosts_lost_but_one_is_enough(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 2, 3);
    for (uint32_t replica = 2; replica < 4; replica++) /* a and b */
        assert_true(fail_times(&hosts, replica, 3, 0) < INT64_MAX);
    for (uint32_t shard = 0; shard < 2; shard++) {
        assert_true(hosts_failed(&hosts, shard, "gone", 0) < INT64_MAX);
        assert_string_equal(at(&hosts, shard), "c");
    }
    assert_false(hosts.lost);
    assert_int_equal(fail_times(&hosts, 4, 3, 0), INT64_MAX);
    assert_true(hosts.lost);
    hosts_release(&hosts);
}

/* ---- failures of a worker and failures of a host ---- */

static void
a_worker_that_fails_where_others_live_avoids_the_host_which_is_not_set_aside(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 1, 3);
    for (uint32_t replica = 1; replica < 4; replica++)
        hosts_worker_up(&hosts, replica, 0);
    for (const char *name = "abc"; *name; name++) {
        assert_string_equal(at(&hosts, 0), ((char[]){*name, '\0'}));
        fail_times(&hosts, 0, 3, 0);
        assert_int_equal(hosts_state(&hosts.items[*name - 'a']), HOSTS_UP);
    }
    hosts_release(&hosts);
}

/* Else a shard would go round the hosts for ever: each would seem as good as new. */
static void a_move_does_not_forget_where_a_worker_failed(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 0;
    make(&hosts, 3, 1, 1); /* the replica on a; b and c do not answer */
    hosts_worker_up(&hosts, 1, 0);
    fail_times(&hosts, 0, 3, 0);
    for (int times = 0; times < 2; times++) {
        assert_string_not_equal(at(&hosts, 0), "a");
        now_ns = hosts_failed(&hosts, 0, "no route to host", now_ns);
    }
    assert_string_equal(at(&hosts, 0), "a"); /* where the replica is up */
    hosts_worker_up(&hosts, 0, now_ns);
    hosts_release(&hosts);
}

static void a_worker_that_fails_on_every_host_that_is_left_ends_the_run(void **state) {
    (void)state;
    for (uint32_t count = 1; count <= 5; count++) {
        struct hosts hosts;
        int64_t now_ns = 0;
        uint32_t times = 0;
        make(&hosts, count, 1, count);
        for (uint32_t replica = 1; replica <= count; replica++)
            hosts_worker_up(&hosts, replica, 0);
        for (; now_ns < INT64_MAX; times++)
            now_ns = hosts_failed(&hosts, 0, "out of memory", now_ns);
        assert_int_equal(times, count * HOSTS_FAILURES_MAX > HOSTS_TRIES_MAX
                                    ? count * HOSTS_FAILURES_MAX
                                    : HOSTS_TRIES_MAX);
        hosts_release(&hosts);
    }
}

static void the_last_replica_is_tried_more_often_but_not_for_ever(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 0, before_ns = 0;
    int times = 0;
    make(&hosts, 1, 1, 1);
    hosts_worker_up(&hosts, 0, 0);
    for (; (now_ns = hosts_failed(&hosts, 1, "out of memory", before_ns)) < INT64_MAX; times++) {
        assert_in_range(now_ns - before_ns, 0, 20 * NS_PER_S);
        before_ns = now_ns;
    }
    assert_int_equal(times, HOSTS_TRIES_MAX - 1);
    assert_in_range(before_ns, 30 * NS_PER_S, 120 * NS_PER_S);
    hosts_release(&hosts);
}

static void replicas_of_lost_hosts_do_not_end_a_run_while_one_is_left(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 1, 3);
    hosts_worker_up(&hosts, 0, 0);
    hosts_worker_up(&hosts, 1, 0); /* both on a */
    for (int64_t now_ns = 0; now_ns < 3600 * NS_PER_S;)
        now_ns = hosts_failed(&hosts, 2, "no route to host", now_ns);
    assert_true(hosts_failed(&hosts, 1, "killed", 3600 * NS_PER_S) < 3601 * NS_PER_S);
    int64_t when_ns = hosts_failed(&hosts, 2, "no route to host", 3601 * NS_PER_S);
    assert_true(when_ns < INT64_MAX && when_ns > 3602 * NS_PER_S);
    hosts_release(&hosts);
}

/* ---- one outage ---- */

static void a_host_with_many_workers_is_set_aside_once_for_an_outage(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t when_ns[4] = {0};
    make(&hosts, 2, 1, 8); /* replicas 1, 3, 5 and 7 on b */
    hosts_worker_up(&hosts, 0, 0);
    hosts_worker_up(&hosts, 1, 0);
    for (int64_t now_ns = 0; now_ns < 3 * NS_PER_S; now_ns += NS_PER_S)
        for (uint32_t i = 0; i < 4; i++)
            when_ns[i] = hosts_failed(&hosts, 2 + 2 * i, "no route to host", now_ns + i);
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(when_ns[i], 31 * NS_PER_S, 34 * NS_PER_S);
    hosts_release(&hosts);
}

static void workers_of_a_host_that_is_back_are_started_at_once_and_forgiven(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 0;
    make(&hosts, 2, 1, 4); /* replicas 1 and 3 on b */
    hosts_worker_up(&hosts, 0, 0);
    hosts_worker_up(&hosts, 1, 0);
    fail_times(&hosts, 4, 3, 0);
    for (int i = 0; i < 6; i++)
        now_ns = hosts_failed(&hosts, 2, "no route to host", now_ns);
    assert_true(hosts_failed(&hosts, 4, "no route to host", now_ns) > now_ns + 60 * NS_PER_S);
    assert_int_equal(hosts_late(&hosts, now_ns), HOSTS_NONE);
    hosts_worker_up(&hosts, 2, now_ns);
    assert_int_equal(hosts_late(&hosts, now_ns), 4);
    hosts_start_now(&hosts, 4, now_ns);
    assert_int_equal(hosts_late(&hosts, now_ns), HOSTS_NONE);
    assert_true(hosts_failed(&hosts, 4, "killed", now_ns) < now_ns + NS_PER_S);
    assert_int_equal(hosts_state(&hosts.items[1]), HOSTS_UP);
    hosts_release(&hosts);
}

static void a_shard_goes_to_a_host_that_was_set_aside_once_that_is_due(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    fail_times(&hosts, 1, 3, 0); /* a */
    hosts_failed(&hosts, 0, "gone", 0);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(at(&hosts, 0), "b");
        hosts_failed(&hosts, 0, "gone", NS_PER_S);
    }
    assert_string_equal(at(&hosts, 0), "b");
    hosts_failed(&hosts, 0, "gone", 40 * NS_PER_S);
    assert_string_equal(at(&hosts, 0), "a");
    hosts_release(&hosts);
}

/* ---- all hosts at once ---- */

static void lose_all(struct hosts *hosts, int64_t now_ns) {
    for (uint32_t i = 0; i < hosts->shards + hosts->replicas; i++)
        if (!hosts->lost)
            fail_times(hosts, i, 3, now_ns);
}

static void an_outage_of_all_hosts_at_once_is_waited_for(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 100 * NS_PER_S, next_ns;
    int times = 0;
    make(&hosts, 3, 1, 3);
    for (uint32_t i = 0; i < 4; i++)
        hosts_worker_up(&hosts, i, 0);
    lose_all(&hosts, now_ns);
    assert_true(hosts.lost);
    for (; (next_ns = hosts_failed(&hosts, 0, "network unreachable", now_ns)) < INT64_MAX;
         times++) {
        assert_in_range(next_ns - now_ns, 0, 20 * NS_PER_S);
        now_ns = next_ns;
    }
    assert_in_range(now_ns, (100 + HOSTS_LOST_SECONDS - 20) * NS_PER_S,
                    (100 + HOSTS_LOST_SECONDS + 20) * NS_PER_S);
    assert_in_range(times, 15, 60);
    hosts_release(&hosts);
}

static void when_one_of_all_lost_hosts_is_back_the_others_are_tried_at_once(void **state) {
    (void)state;
    struct hosts hosts;
    const int64_t now_ns = NS_PER_S + NS_PER_MS;
    make(&hosts, 3, 1, 3);
    for (uint32_t i = 0; i < 4; i++)
        hosts_worker_up(&hosts, i, 0);
    lose_all(&hosts, 0);
    for (uint32_t i = 0; i < 4; i++)
        hosts_failed(&hosts, i, "network unreachable", NS_PER_S);
    hosts_worker_up(&hosts, 2, now_ns); /* replica 1, on b */
    assert_false(hosts.lost);
    for (uint32_t late, i = 0; i < 3; i++) {
        late = hosts_late(&hosts, now_ns);
        assert_int_equal(late, ((uint32_t[]){0, 1, 3})[i]);
        hosts_start_now(&hosts, late, now_ns);
    }
    assert_string_equal(at(&hosts, 0), "b");
    assert_int_equal(hosts_late(&hosts, now_ns), HOSTS_NONE);
    hosts_release(&hosts);
}

static void hosts_on_which_nobody_ever_came_up_are_not_waited_for(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    lose_all(&hosts, 0);
    assert_true(hosts.lost);
    assert_int_equal(hosts_failed(&hosts, 0, "no such host", 0), INT64_MAX);
    hosts_release(&hosts);
    make(&hosts, 2, 1, 2); /* the coordinator before knew one */
    assert_true(hosts_adopt(&hosts, 1, 0, 0));
    lose_all(&hosts, 0);
    assert_true(hosts_failed(&hosts, 0, "network unreachable", 0) < INT64_MAX);
    hosts_release(&hosts);
}

/* A worker that dies as soon as it is greeted is no sign that an outage is over. */
static void workers_that_do_not_stay_do_not_keep_a_run_waiting_for_ever(void **state) {
    (void)state;
    struct hosts hosts;
    int64_t now_ns = 0;
    make(&hosts, 1, 1, 1);
    hosts_worker_up(&hosts, 0, 0);
    while ((now_ns = hosts_failed(&hosts, 0, "killed", now_ns)) < INT64_MAX) {
        assert_in_range(now_ns, 0, (HOSTS_LOST_SECONDS + 60) * NS_PER_S);
        now_ns += NS_PER_S;
        hosts_worker_up(&hosts, 0, now_ns);
        hosts_tick(&hosts, now_ns);
        now_ns += NS_PER_S;
    }
    hosts_release(&hosts);
}

static void an_adopted_replica_must_be_on_its_own_host_and_a_shard_may_be_anywhere(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    assert_false(hosts_adopt(&hosts, 1, 1, 0));
    assert_true(hosts_adopt(&hosts, 2, 1, 0));
    assert_true(hosts_adopt(&hosts, 0, 1, 0));
    assert_string_equal(at(&hosts, 0), "b");
    hosts_release(&hosts);
}

static void each_change_of_a_host_is_named_once(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    assert_int_equal(hosts_changed(&hosts), 0);
    assert_int_equal(hosts_changed(&hosts), 1);
    assert_int_equal(hosts_changed(&hosts), HOSTS_NONE);
    hosts_worker_up(&hosts, 2, 0);
    assert_int_equal(hosts_changed(&hosts), 1);
    assert_int_equal(hosts_changed(&hosts), HOSTS_NONE);
    hosts_failed(&hosts, 1, "gone", 0);
    assert_int_equal(hosts_changed(&hosts), 0);
    hosts_release(&hosts);
}

SUITE(hosts) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_and_replicas_are_spread_over_hosts_in_order),
        cmocka_unit_test(replicas_of_one_host_share_its_threads),
        cmocka_unit_test(a_host_is_set_aside_after_three_failures_of_one_worker_running),
        cmocka_unit_test(a_host_that_stays_away_is_tried_less_and_less_often_but_for_ever),
        cmocka_unit_test(a_host_that_comes_back_is_used_again),
        cmocka_unit_test(a_worker_that_has_worked_for_a_while_is_forgiven),
        cmocka_unit_test(a_shard_of_a_lost_host_goes_at_once_to_one_that_answers),
        cmocka_unit_test(a_shard_is_started_again_where_other_workers_live),
        cmocka_unit_test(shards_of_a_lost_host_are_shared_out),
        cmocka_unit_test(a_shard_does_not_go_round_hosts_that_do_not_answer_without_a_pause),
        cmocka_unit_test(a_shard_that_is_late_goes_to_a_host_that_answers_and_that_is_no_failure),
        cmocka_unit_test(a_replica_goes_to_a_spare_host_if_its_own_is_set_aside),
        cmocka_unit_test(all_hosts_lost_but_one_is_enough),
        cmocka_unit_test(
            a_worker_that_fails_where_others_live_avoids_the_host_which_is_not_set_aside),
        cmocka_unit_test(a_move_does_not_forget_where_a_worker_failed),
        cmocka_unit_test(a_worker_that_fails_on_every_host_that_is_left_ends_the_run),
        cmocka_unit_test(the_last_replica_is_tried_more_often_but_not_for_ever),
        cmocka_unit_test(replicas_of_lost_hosts_do_not_end_a_run_while_one_is_left),
        cmocka_unit_test(a_host_with_many_workers_is_set_aside_once_for_an_outage),
        cmocka_unit_test(workers_of_a_host_that_is_back_are_started_at_once_and_forgiven),
        cmocka_unit_test(a_shard_goes_to_a_host_that_was_set_aside_once_that_is_due),
        cmocka_unit_test(an_outage_of_all_hosts_at_once_is_waited_for),
        cmocka_unit_test(when_one_of_all_lost_hosts_is_back_the_others_are_tried_at_once),
        cmocka_unit_test(hosts_on_which_nobody_ever_came_up_are_not_waited_for),
        cmocka_unit_test(workers_that_do_not_stay_do_not_keep_a_run_waiting_for_ever),
        cmocka_unit_test(an_adopted_replica_must_be_on_its_own_host_and_a_shard_may_be_anywhere),
        cmocka_unit_test(each_change_of_a_host_is_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
