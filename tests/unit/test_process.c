/* Works that threads share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/process.h"

#define PARTS 1000
#define FAILING 10

struct done {
    atomic_uint times[PARTS];
    atomic_uint sum;
};

static int do_part(void *context, unsigned part) {
    struct done *done = context;
    atomic_fetch_add(&done->times[part], 1);
    atomic_fetch_add(&done->sum, 1);
    return 0;
}

static int fail_from_one_on(void *context, unsigned part) {
    do_part(context, part);
    return part < FAILING ? 0 : error_set(ERROR_DATA, "part %u", part);
}

static void each_part_is_done_once(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct done done = {0};
        assert_int_equal(threads_try(threads, PARTS, do_part, &done), 0);
        for (unsigned i = 0; i < PARTS; i++)
            assert_int_equal(done.times[i], 1);
    }
    assert_int_equal(threads_try(4, 0, do_part, NULL), 0);
}

static void behind_a_failure_no_part_is_begun(void **state) {
    (void)state;
    struct done done = {0};
    assert_int_equal(threads_try(1, PARTS, fail_from_one_on, &done), ERROR_DATA);
    assert_string_equal(error_text(), "part 10");
    assert_int_equal(done.sum, FAILING + 1);
    error_clear();
}

/* Whichever thread it was. */
static void the_caller_is_told_of_a_failure(void **state) {
    (void)state;
    struct done done = {0};
    assert_int_equal(threads_try(4, PARTS, fail_from_one_on, &done), ERROR_DATA);
    assert_memory_equal(error_text(), "part 1", 6);
    error_clear();
    assert_int_equal(threads_try(4, FAILING, fail_from_one_on, &done), 0);
    assert_string_equal(error_text(), "");
}

SUITE(process) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_is_done_once),
        cmocka_unit_test(behind_a_failure_no_part_is_begun),
        cmocka_unit_test(the_caller_is_told_of_a_failure),
    };
    return cmocka_run_group_tests_name("works that threads share", tests, NULL, NULL);
}
