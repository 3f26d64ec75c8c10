#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "coordinator/job/options.h"

static const struct command commands[] = {
    {"run", NULL, "JOBFILE", 1, 1, OPTION_SET | OPTION_STATE | OPTION_DRY_RUN | OPTION_FRESH, true,
     "trains"},
    {"jobs", NULL, "[STATE...]", 0, INT_MAX, 0, false, "lists"},
    {0},
};

static struct options options;

#define PARSE(...) parse((char *[]){"dml-coordinator", __VA_ARGS__, NULL})

static int parse(char **argv) {
    int argc = 0;
    while (argv[argc])
        argc++;
    return options_parse(argc, argv, commands, &options);
}

static int release(void **state) {
    (void)state;
    options_release(&options);
    error_clear();
    return 0;
}

static void refused(int code, const char *text) {
    assert_int_equal(code, ERROR_USAGE);
    if (!strstr(error_text(), text))
        fail_msg("\"%s\" does not contain \"%s\"", error_text(), text);
    release(NULL);
}

static void options_and_operands_come_in_any_order(void **state) {
    (void)state;
    assert_int_equal(
        PARSE("--json", "run", "--set", "l2=1", "a.conf", "--set=name=x", "-n", "--state", "there"),
        0);
    assert_string_equal(options.command->name, "run");
    assert_int_equal(options.operands_count, 1);
    assert_string_equal(options.operands[0], "a.conf");
    assert_int_equal(options.settings_count, 2);
    assert_string_equal(options.settings[0], "l2=1");
    assert_string_equal(options.settings[1], "name=x");
    assert_string_equal(options.state, "there");
    assert_true(options.json && options.dry_run);
    assert_false(options.fresh || options.quiet || options.verbose || options.watch);
}

static void operands_are_kept_in_order(void **state) {
    (void)state;
    assert_int_equal(PARSE("jobs", "one", "two", "--", "--three"), 0);
    assert_int_equal(options.operands_count, 3);
    assert_string_equal(options.operands[0], "one");
    assert_string_equal(options.operands[2], "--three");
}

static void help_and_version_need_nothing_else(void **state) {
    (void)state;
    assert_int_equal(PARSE("--version"), 0);
    assert_true(options.version);
    release(NULL);
    assert_int_equal(PARSE("--list-failpoints"), 0);
    assert_true(options.list_failpoints);
    release(NULL);
    assert_int_equal(PARSE("-h"), 0);
    assert_true(options.help);
    assert_null(options.command);
    release(NULL);
    assert_int_equal(PARSE("run", "--help"), 0);
    assert_string_equal(options.command->name, "run");
}

static void what_is_not_known_is_named(void **state) {
    (void)state;
    refused(PARSE("walk"), "there is no command `walk`; `dml");
    refused(
        PARSE("jbos"),
        "there is no command `jbos`; `dml-coordinator --help` lists them; did you mean `jobs`?");
    refused(PARSE("fit"), "lists them; did you mean `run`?");
    refused(PARSE("help"), "lists them; did you mean `--help`?");
    refused(PARSE("a.conf"), "lists them; did you mean `run JOBFILE`?");
    refused(PARSE("run", "a.conf", "--jsno"), "lists them; did you mean `--json`?");
    refused(PARSE("run", "a.conf", "--sate=b"), "lists them; did you mean `--state`?");
    refused(PARSE("run", "a.conf", "--fast"), "there is no option `--fast`");
    refused(PARSE("run", "a.conf", "-nz"), "there is no option `-z`");
}

static void an_option_is_refused_where_it_means_nothing(void **state) {
    (void)state;
    refused(PARSE("jobs", "--fresh"), "`jobs` takes no option `--fresh`");
    refused(PARSE("run", "a.conf", "--watch"), "`run` takes no option `--watch`");
    refused(PARSE("jobs", "-q", "-v"), "`--quiet` and `--verbose` exclude each other");
}

static void arguments_of_options_are_counted(void **state) {
    (void)state;
    refused(PARSE("run", "a.conf", "--set"), "option `--set` needs an argument, KEY=VALUE");
    refused(PARSE("run", "a.conf", "--state="), "option `--state` needs an argument, DIR, and has");
    refused(PARSE("run", "a.conf", "--json=3"), "option `--json` takes no argument");
}

static void operands_are_counted(void **state) {
    (void)state;
    refused(PARSE("run"), "`run` needs JOBFILE; usage: dml-coordinator run JOBFILE");
    refused(PARSE("run", "a", "b"), "`run` does not take `b`");
    refused(PARSE("--json"), "a command is missing");
}

static void the_usage_of_a_command_lists_what_it_takes(void **state) {
    (void)state;
    static char text[16384];
    FILE *out = fmemopen(text, sizeof text, "w");
    options_print_command(&commands[0], "It trains.\n", out);
    fclose(out);
    assert_non_null(strstr(text, "usage: dml-coordinator run [OPTION...] JOBFILE"));
    assert_non_null(strstr(text, "--fresh"));
    assert_non_null(strstr(text, "--set KEY=VALUE"));
    assert_non_null(strstr(text, "gradient_tolerance"));
    assert_null(strstr(text, "--watch"));
    out = fmemopen(text, sizeof text, "w");
    options_print_usage(commands, out);
    fclose(out);
    assert_non_null(strstr(text, "jobs [STATE...]"));
    assert_null(strstr(text, "--fresh"));
}

#define TEST(name) cmocka_unit_test_teardown(name, release)

SUITE(options) {
    const struct CMUnitTest tests[] = {
        TEST(options_and_operands_come_in_any_order),
        TEST(operands_are_kept_in_order),
        TEST(help_and_version_need_nothing_else),
        TEST(what_is_not_known_is_named),
        TEST(an_option_is_refused_where_it_means_nothing),
        TEST(arguments_of_options_are_counted),
        TEST(operands_are_counted),
        TEST(the_usage_of_a_command_lists_what_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
