/* The text of an error. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"

static void too_many_open_files_are_told_with_the_limit(void **state) {
    (void)state;
    struct rlimit limit;
    char number[32];
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    snprintf(number, sizeof number, ": %llu are allowed", (unsigned long long)limit.rlim_cur);
    errno = EMFILE;
    assert_int_equal(error_set_errno(ERROR_IO, "cannot open x"), ERROR_IO);
    assert_int_equal(strncmp(error_text(), "cannot open x: ", 15), 0);
    assert_non_null(strstr(error_text(), number));
    assert_non_null(strstr(error_text(), "ulimit -n"));
    error_clear();
}

static void the_first_error_stays_until_it_is_cleared(void **state) {
    (void)state;
    error_set(ERROR_DATA, "first");
    errno = EMFILE;
    error_set_errno(ERROR_IO, "second");
    assert_string_equal(error_text(), "first");
    error_clear();
    assert_string_equal(error_text(), "");
}

SUITE(error) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_open_files_are_told_with_the_limit),
        cmocka_unit_test(the_first_error_stays_until_it_is_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
