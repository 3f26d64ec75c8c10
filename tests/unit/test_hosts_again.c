/* What is kept of hosts from one run of a path to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "coordinator/machine/hosts.h"

/* Hosts a, b, c, …, and workers on them. */
static void make(struct hosts *hosts, uint32_t count, uint32_t shards, uint32_t replicas) {
    *hosts = (struct hosts){0};
    for (uint32_t i = 0; i < count; i++)
        hosts_add(hosts, (char[]){(char)('a' + i), '\0'}, NULL, 4);
    hosts_begin(hosts, shards, replicas);
}

/* The worker fails `times` running; answers when it is started next. */
static int64_t fail_times(struct hosts *hosts, uint32_t worker, int times, int64_t now_ns) {
    int64_t when_ns = 0;
    for (int i = 0; i < times; i++)
        when_ns = hosts_failed(hosts, worker, "no route to host", now_ns);
    return when_ns;
}

static void what_is_known_of_hosts_holds_for_the_next_run(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 3, 1, 3);
    for (uint32_t worker = 0; worker < 3; worker++)
        hosts_worker_up(&hosts, worker, NS_PER_S);
    int64_t when_ns = fail_times(&hosts, 3, 3, 2 * NS_PER_S);
    while (hosts_changed(&hosts) != HOSTS_NONE)
        continue;
    hosts_begin_next_run(&hosts);
    for (uint32_t host = 0; host < 3; host++)
        assert_int_equal(hosts_changed(&hosts), host);
    assert_int_equal(hosts_state(hosts_of(&hosts, 3)), HOSTS_SET_ASIDE);
    assert_true(hosts_due(&hosts, 3) == when_ns && when_ns > 20 * NS_PER_S);
    hosts_worker_left(&hosts, 2);
    assert_int_equal(hosts_of(&hosts, 2)->up, 0);
    assert_true(hosts_due(&hosts, 2) <= 2 * NS_PER_S && hosts_of(&hosts, 2)->failed == 0);
    hosts_release(&hosts);
}

/* Runs may be shorter than the time after which a worker is forgiven. */
static void a_worker_that_is_greeted_by_several_runs_has_worked_since_the_first(void **state) {
    (void)state;
    struct hosts hosts;
    make(&hosts, 2, 1, 2);
    fail_times(&hosts, 1, 2, 0);
    for (int64_t second = 0; second < 100; second++) {
        hosts_started(&hosts, 1, second * NS_PER_S);
        hosts_worker_up(&hosts, 1, second * NS_PER_S);
        hosts_tick(&hosts, second * NS_PER_S);
    }
    assert_int_equal(hosts_of(&hosts, 1)->failures, 0);
    hosts_release(&hosts);
}

SUITE(hosts_begin_next_run) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_of_hosts_holds_for_the_next_run),
        cmocka_unit_test(a_worker_that_is_greeted_by_several_runs_has_worked_since_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
