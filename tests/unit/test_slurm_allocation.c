#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "coordinator/run/host_lookup.h"

static struct slurm_allocation of(const char *names) {
    struct slurm_allocation allocation = {0};
    assert_int_equal(slurm_read_names(&allocation, names), 0);
    return allocation;
}

static void assert_cpus(const char *names, const char *cpus, ...) {
    struct slurm_allocation allocation = of(names);
    va_list expected;
    assert_int_equal(slurm_read_cpus(&allocation, cpus), 0);
    va_start(expected, cpus);
    for (uint32_t i = 0; i < allocation.count; i++)
        assert_int_equal(allocation.hosts[i].cpus, va_arg(expected, int));
    va_end(expected);
    slurm_allocation_release(&allocation);
}

static void a_line_is_a_host(void **state) {
    (void)state;
    struct slurm_allocation allocation = of("n1\nn2\n\nrack-7.n03");
    assert_int_equal(allocation.count, 3);
    assert_string_equal(allocation.hosts[0].name, "n1");
    assert_string_equal(allocation.hosts[2].name, "rack-7.n03");
    assert_string_equal(allocation.hosts[2].address, "rack-7.n03");
    assert_int_equal(allocation.hosts[2].cpus, 0);
    slurm_allocation_release(&allocation);
}

static void an_allocation_without_nodes_is_refused(void **state) {
    (void)state;
    static const char *const empty[] = {"", "\n", "\n\n"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct slurm_allocation allocation = {0};
        assert_int_equal(slurm_read_names(&allocation, empty[i]), ERROR_UNAVAILABLE);
        error_clear();
        slurm_allocation_release(&allocation);
    }
}

static void more_nodes_than_replicas_may_be_are_refused(void **state) {
    (void)state;
    char *names = memory_new(REPLICAS_MAX + 1, 2);
    struct slurm_allocation allocation;
    for (size_t i = 0; i < REPLICAS_MAX; i++)
        memcpy(names + 2 * i, "n\n", 2);
    allocation = of(names);
    assert_int_equal(allocation.count, REPLICAS_MAX);
    slurm_allocation_release(&allocation);
    memcpy(names + 2 * REPLICAS_MAX, "n", 1);
    assert_int_equal(slurm_read_names(&allocation, names), ERROR_UNAVAILABLE);
    error_clear();
    slurm_allocation_release(&allocation);
    free(names);
}

static void cpus_are_counted_out_over_the_nodes(void **state) {
    (void)state;
    assert_cpus("a\n", "64", 64);
    assert_cpus("a\nb\nc\nd\n", "2(x3),1", 2, 2, 2, 1);
    assert_cpus("a\nb\nc\n", "1,2,3", 1, 2, 3);
    assert_cpus("a\nb\nc\n", "72(x1),36(x2)", 72, 36, 36);
    assert_cpus("a\nb\n", "08(x02)", 8, 8);
    assert_cpus("a\n", "1000000", THREADS_MAX);
}

static void cpus_that_fit_no_nodes_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "2",
        "2(x2)",
        "2(x4)",
        "2(x2),1,1",
        "0(x3)",
        "2(x0),1(x3)",
        "2(x3",
        "2(3)",
        "2x3",
        "2(x3),",
        ",2(x3)",
        "2(x2),,1",
        "2 (x3)",
        "2(x3) ",
        "-2(x3)",
        "2(x-3)",
        "two",
        "2(x)",
        "2(xx3)",
        "2(x3)(x1)",
        "2.5(x3)",
        "1e1(x3)",
        "+2(x3)",
        /* numbers beyond every integer, and those that would be right once they have wrapped */
        "99999999999999999999(x3)",
        "2(x99999999999999999999)",
        "2(x4294967299)",
        "4294967298(x3)",
        "18446744073709551618(x3)",
        "1000001(x3)",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct slurm_allocation allocation = of("a\nb\nc\n");
        if (slurm_read_cpus(&allocation, bad[i]) != ERROR_UNAVAILABLE)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_non_null(strstr(error_text(), "SLURM_JOB_CPUS_PER_NODE"));
        error_clear();
        slurm_allocation_release(&allocation);
    }
}

static void a_node_is_reached_where_slurm_reaches_it(void **state) {
    (void)state;
    struct slurm_allocation allocation = of("n1\nn10\nn2\nn3\n");
    slurm_read_addresses(&allocation,
                         "NodeName=n2 Arch=x86_64 NodeAddr=10.0.0.2 NodeHostName=h2 Port=6818\n"
                         "NodeName=n1 NodeAddr=fe80::1 Comment=x NodeAddr=no NodeName=n3 \n"
                         "NodeName=other NodeAddr=10.0.0.9\n"
                         "NodeName=n3 NodeAddr= Version=22.05\n"
                         "no node at all\n\n"
                         "NodeName=n10 NodeAddr=n10-ib.example.org");
    assert_string_equal(allocation.hosts[0].address, "fe80::1");
    assert_string_equal(allocation.hosts[1].address, "n10-ib.example.org");
    assert_string_equal(allocation.hosts[2].address, "10.0.0.2");
    assert_string_equal(allocation.hosts[3].address, "n3");
    slurm_allocation_release(&allocation);
}

/* ---- with an scontrol that a test writes ---- */

static char *folder;

static void pretend(const char *nodes, const char *cpus, const char *scontrol) {
    char *path = memory_format("%s/scontrol", folder);
    FILE *file = fopen(path, "w");
    fprintf(file, "#!/bin/sh\n%s\n", scontrol);
    fclose(file);
    chmod(path, 0755);
    free(path);
    setenv("SLURM_JOB_NODELIST", nodes, 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", cpus, 1);
}

static void the_allocation_is_asked_for(void **state) {
    (void)state;
    struct slurm_allocation allocation;
    pretend("n[1-2]", "4,2",
            "case $2 in\n"
            "hostnames) [ \"$3\" = 'n[1-2]' ] && printf 'n1\\nn2\\n' ;;\n"
            "node) [ \"$4\" = 'n[1-2]' ] && echo NodeName=n2 NodeAddr=10.0.0.2 ;;\n"
            "esac");
    assert_int_equal(slurm_allocation_find(&allocation), 0);
    assert_int_equal(allocation.count, 2);
    assert_int_equal(allocation.hosts[0].cpus, 4);
    assert_string_equal(allocation.hosts[0].address, "n1");
    assert_string_equal(allocation.hosts[1].address, "10.0.0.2");
    slurm_allocation_release(&allocation);
}

static void without_an_answer_about_addresses_the_names_are_used(void **state) {
    (void)state;
    struct slurm_allocation allocation;
    pretend("n1", "4", "[ \"$2\" = hostnames ] && echo n1");
    assert_int_equal(slurm_allocation_find(&allocation), 0);
    assert_string_equal(allocation.hosts[0].address, "n1");
    assert_string_equal(error_text(), "");
    slurm_allocation_release(&allocation);
}

static void outside_of_an_allocation_the_message_says_what_to_do(void **state) {
    (void)state;
    struct slurm_allocation allocation;
    unsetenv("SLURM_JOB_NODELIST");
    assert_int_equal(slurm_allocation_find(&allocation), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "sbatch"));
    error_clear();
    slurm_allocation_release(&allocation);
}

static void an_scontrol_that_fails_or_is_not_there_is_named(void **state) {
    (void)state;
    struct slurm_allocation allocation;
    pretend("n1", "1", "exit 1");
    assert_int_equal(slurm_allocation_find(&allocation), ERROR_UNAVAILABLE);
    assert_string_equal(error_text(), "scontrol show hostnames failed");
    error_clear();
    slurm_allocation_release(&allocation);
    char *path = memory_format("%s/scontrol", folder);
    unlink(path);
    free(path);
    assert_int_equal(slurm_allocation_find(&allocation), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "cannot run scontrol"));
    error_clear();
    slurm_allocation_release(&allocation);
}

/* Nothing but this folder is on the path: a real scontrol shall not answer. */
static int begin(void **state) {
    static char name[] = "/tmp/dml-test-XXXXXX";
    (void)state;
    folder = mkdtemp(name);
    return folder ? setenv("PATH", folder, 1) : -1;
}

static int end(void **state) {
    (void)state;
    char *path = memory_format("%s/scontrol", folder);
    unlink(path);
    free(path);
    return rmdir(folder);
}

SUITE(slurm_allocation) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_host),
        cmocka_unit_test(an_allocation_without_nodes_is_refused),
        cmocka_unit_test(more_nodes_than_replicas_may_be_are_refused),
        cmocka_unit_test(cpus_are_counted_out_over_the_nodes),
        cmocka_unit_test(cpus_that_fit_no_nodes_are_refused),
        cmocka_unit_test(a_node_is_reached_where_slurm_reaches_it),
        cmocka_unit_test(the_allocation_is_asked_for),
        cmocka_unit_test(without_an_answer_about_addresses_the_names_are_used),
        cmocka_unit_test(outside_of_an_allocation_the_message_says_what_to_do),
        cmocka_unit_test(an_scontrol_that_fails_or_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
