/* The keys of a job that name hosts, and the command that starts workers there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "coordinator/job/host_list.h"

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

SUITE(host_list) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_names_and_perhaps_threads),
        cmocka_unit_test(a_launch_command_is_split_as_a_shell_would_without_a_shell),
        cmocka_unit_test(a_launch_command_that_means_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
