/* How many CPUs a process may use, by its affinity mask and by the quotas of control groups; and
 * what these say of memory. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/resources.h"
#include "base/file.h"
#include "tests/unit/folder_fixture.h"

static void put(const char *name, const char *text) {
    char *path = inside(name), *above = path_folder(path);
    assert_int_equal(folder_make(above, 0755), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    free(above);
}

static void the_least_quota_of_a_group_and_those_above_it_counts(void **state) {
    (void)state;
    put("cpu.max", "max 100000\n");
    put("a/cpu.max", "350000 100000\n");
    put("a/b/cpu.max", "800000 100000\n");
    assert_int_equal(cpus_quota(folder, "0::/a/b\n"), 3);
    assert_int_equal(cpus_quota(folder, "0::/a\n"), 3);
    assert_int_equal(cpus_quota(folder, "0::/\n"), 0);
    put("a/b/cpu.max", "50000 100000\n");
    assert_int_equal(cpus_quota(folder, "0::/a/b\n"), 1);
}

static void the_quota_of_version_1_is_that_of_the_cpu_controller(void **state) {
    (void)state;
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
    put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/free/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/free/cpu.cfs_period_us", "100000\n");
    put("cpuset/job/cpu.cfs_quota_us", "100000\n");
    put("cpuset/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_quota(folder, "5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/\n"), 2);
    assert_int_equal(cpus_quota(folder, "4:cpu,cpuacct:/free\n"), 0);
}

static void a_group_that_is_not_there_has_no_quota(void **state) {
    (void)state;
    assert_int_equal(cpus_quota(folder, "0::/gone/for/good\n"), 0);
    assert_int_equal(cpus_quota(folder, "nonsense\n::\n0:\n"), 0);
    assert_int_equal(cpus_quota(folder, ""), 0);
    put("cpu.max", "200000 100000\n"); /* the root is the container's own */
    assert_int_equal(cpus_quota(folder, "0::/gone\n"), 2);
}

static void a_process_that_is_bound_to_one_cpu_counts_one(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t set, one;
        size_t first = 0;
        sched_getaffinity(0, sizeof set, &set);
        while (!CPU_ISSET(first, &set))
            first++;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        _exit(sched_setaffinity(0, sizeof one, &one) ? 99 : (int)cpus_usable());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

static void the_least_limit_of_memory_counts(void **state) {
    (void)state;
    put("memory.max", "3000000000\n");
    put("a/memory.max", "max\n");
    put("a/b/memory.max", "2000000000\n");
    assert_true(memory_limit_of_groups(folder, "0::/a/b\n") == 2e9);
    assert_true(memory_limit_of_groups(folder, "0::/a\n") == 3e9);
    put("memory/free/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/job/memory.limit_in_bytes", "1000000000\n");
    assert_true(memory_limit_of_groups(folder, "4:memory:/free\n") == 0);
    assert_true(memory_limit_of_groups(folder, "4:memory:/job\n0::/\n") == 1e9);
    assert_true(memory_limit_of_groups(folder, "nonsense\n") == 0);
}

static void kills_are_counted_of_the_own_group(void **state) {
    (void)state;
    put("memory.events", "low 0\noom 9\noom_kill 9\n");
    put("a/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\noom_group_kill 7\n");
    uint64_t one = memory_kills_of_groups(folder, "0::/a\n");
    put("a/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 2\noom_group_kill 7\n");
    assert_int_equal(memory_kills_of_groups(folder, "0::/a\n"), one + 1);
    put("memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    uint64_t none = memory_kills_of_groups(folder, "4:memory:/job\n");
    put("memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    assert_int_equal(memory_kills_of_groups(folder, "4:memory:/job\n"), none + 3);
    assert_int_equal(memory_kills_of_groups(folder, ""), 0);
}

static void sizes_of_memory_are_said_in_words(void **state) {
    (void)state;
    assert_string_equal(memory_words(1.44e9), "1.4 GB");
    assert_string_equal(memory_words(6e8), "600 MB");
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

SUITE(cpus) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_least_quota_of_a_group_and_those_above_it_counts),
        IN_FOLDER(the_quota_of_version_1_is_that_of_the_cpu_controller),
        IN_FOLDER(a_group_that_is_not_there_has_no_quota),
        IN_FOLDER(the_least_limit_of_memory_counts),
        IN_FOLDER(kills_are_counted_of_the_own_group),
        cmocka_unit_test(sizes_of_memory_are_said_in_words),
        cmocka_unit_test(a_process_that_is_bound_to_one_cpu_counts_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
