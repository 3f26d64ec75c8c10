/* On which host each worker is started, and which hosts are set aside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "coordinator/hosts.h"
#include "coordinator/job/host_list.h"

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
    hosts_came(&hosts, 2, now_ns);
    assert_in_range(hosts_failed(&hosts, 2, "gone", now_ns) - now_ns, 0, 60 * NS_PER_S);
    hosts_release(&hosts);
}

static void a_host_that_comes_back_is_used_again(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    int64_t when_ns = fail_times(&hosts, 2, 3, 0);
    hosts_started(&hosts, 2, when_ns);
    hosts_came(&hosts, 2, when_ns);
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
    hosts_came(&hosts, 2, NS_PER_S);
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
    hosts_came(&hosts, 3, 0); /* replica 2, on c */
    assert_int_equal(hosts_failed(&hosts, 0, "gone", NS_PER_S), NS_PER_S);
    assert_string_equal(at(&hosts, 0), "c");
    hosts_release(&hosts);
}

static void a_shard_is_started_again_where_other_workers_live(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    hosts_came(&hosts, 1, 0); /* replica 0, beside it on a */
    hosts_came(&hosts, 2, 0);
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
    hosts_came(&hosts, 6, 0);
    hosts_came(&hosts, 7, 0);
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
    hosts_came(&hosts, 2, NS_PER_S);
    assert_int_equal(hosts_late(&hosts, 2 * NS_PER_S), HOSTS_NONE);
    assert_int_equal(hosts_late(&hosts, 5 * NS_PER_S), 0);
    hosts_elsewhere(&hosts, 0, 5 * NS_PER_S);
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
    assert_false(hosts_lost(&hosts));
    assert_int_equal(fail_times(&hosts, 4, 3, 0), INT64_MAX);
    assert_true(hosts_lost(&hosts));
    hosts_release(&hosts);
}

static void the_only_host_that_answers_is_tried_more_often_but_not_for_ever(void **state) {
    (void)state;
    struct hosts hosts;
    int times = 0;
    make(&hosts, 1, 1, 1);
    hosts_came(&hosts, 0, 0);
    while (hosts_failed(&hosts, 1, "out of memory", times * NS_PER_S) < INT64_MAX)
        times++;
    assert_int_equal(times, HOSTS_LAST_TRIES_MAX - 1);
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
    hosts_came(&hosts, 2, 0);
    assert_int_equal(hosts_changed(&hosts), 1);
    assert_int_equal(hosts_changed(&hosts), HOSTS_NONE);
    hosts_failed(&hosts, 1, "gone", 0);
    assert_int_equal(hosts_changed(&hosts), 0);
    hosts_release(&hosts);
}

/* ---- the keys ---- */

static void hosts_have_names_and_perhaps_threads(void **state) {
    (void)state;
    static const char *const good[] = {
        "a",  "node-1.example.org:8", "[fe80::1]", "[::1]:256", "10.0.0.1:1", "local", "slurm",
        "n_1"};
    static const char *const bad[] = {"",
                                      "-oProxyCommand=reboot",
                                      "-v",
                                      "a b",
                                      "a:",
                                      "a:0",
                                      "a:-1",
                                      "a:257",
                                      "a:4x",
                                      "user@a",
                                      "a;b",
                                      "$(reboot)",
                                      "[a",
                                      "[]",
                                      "[g]",
                                      "::1",
                                      "a:99999999999999999999",
                                      "a/b",
                                      " a",
                                      "a\nb",
                                      "[-]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!host_list_fits(good[i]))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (host_list_fits(bad[i]))
            fail_msg("%s is taken", bad[i]);
}

static void assert_words(const char *text, const char *const *expected) {
    char **words = launch_words(text, "node", 8);
    size_t i = 0;
    assert_non_null(words);
    for (; expected[i]; i++) {
        assert_non_null(words[i]);
        assert_string_equal(words[i], expected[i]);
    }
    assert_null(words[i]);
    launch_words_free(words);
}

static void a_launch_command_is_split_as_a_shell_would_without_a_shell(void **state) {
    (void)state;
    assert_words("  ssh  -o 'A B'\t%h ", (const char *[]){"ssh", "-o", "A B", "node", NULL});
    assert_words("x \"a 'b' \\\" %c\" '' %h%%",
                 (const char *[]){"x", "a 'b' \" 8", "", "node%", NULL});
    assert_words("a'b'\"c\"\\ d=$HOME;%h '\\%h'",
                 (const char *[]){"abc d=$HOME;node", "\\node", NULL});
}

static void a_launch_command_that_means_nothing_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",    " ",    "ssh",      "ssh %",   "ssh %x %h",
                                      "'%h", "\"%h", "ssh %h\\", "ssh %%h", "'' %h"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (launch_fits(bad[i]))
            fail_msg("%s is taken", bad[i]);
    assert_true(launch_fits(LAUNCH_SSH));
    assert_true(launch_fits(LAUNCH_SLURM));
}

int main(void) {
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
        cmocka_unit_test(the_only_host_that_answers_is_tried_more_often_but_not_for_ever),
        cmocka_unit_test(an_adopted_replica_must_be_on_its_own_host_and_a_shard_may_be_anywhere),
        cmocka_unit_test(each_change_of_a_host_is_named_once),
        cmocka_unit_test(hosts_have_names_and_perhaps_threads),
        cmocka_unit_test(a_launch_command_is_split_as_a_shell_would_without_a_shell),
        cmocka_unit_test(a_launch_command_that_means_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
