/* What a choice of a device comes to here: the tests hold with GPUs and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "device/find.h"

static unsigned gpus(void) {
    const char *why;
    return device_count(DEVICE_CUDA, &why);
}

static int find(const char *text, uint32_t index, struct device_found *found) {
    struct device_choice choice;
    assert_true(device_choice_read(text, &choice));
    return device_find(&choice, index, found);
}

static void the_cpu_and_the_emulated_device_are_everywhere(void **state) {
    (void)state;
    struct device_found found;
    assert_int_equal(find("cpu", 3, &found), 0);
    assert_false(found.any);
    assert_int_equal(find("emulated", 3, &found), 0);
    assert_true(found.any);
    assert_int_equal(found.kind, DEVICE_EMULATED);
    assert_int_equal(found.number, 0);
}

static void auto_is_the_cpu_where_there_is_no_gpu(void **state) {
    (void)state;
    struct device_found found;
    assert_int_equal(find("auto", 0, &found), 0);
    assert_int_equal(found.any, gpus() > 0);
}

static void gpus_are_shared_out_by_the_workers_numbers(void **state) {
    (void)state;
    struct device_found found;
    for (uint32_t i = 0; i < 2 * gpus(); i++) {
        assert_int_equal(find("cuda", i, &found), 0);
        assert_int_equal(found.number, i % gpus());
    }
}

static void a_gpu_that_is_not_there_is_an_error_that_says_what_to_do(void **state) {
    (void)state;
    struct device_found found;
    assert_int_equal(find("cuda:1000", 0, &found), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), gpus() ? "`dml-replica --devices` lists" : "or `auto`"));
    error_clear();
    if (gpus())
        return;
    assert_int_equal(find("cuda", 0, &found), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "device cuda: there is none here: "));
    error_clear();
}

static void the_list_has_a_line_a_gpu_or_says_why_there_is_none(void **state) {
    (void)state;
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    device_list(out);
    fclose(out);
    unsigned lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, gpus() ? gpus() : 1);
    assert_int_equal(strncmp(text, gpus() ? "cuda:0 " : "no GPU: ", 7), 0);
    free(text);
}

SUITE(find) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_and_the_emulated_device_are_everywhere),
        cmocka_unit_test(auto_is_the_cpu_where_there_is_no_gpu),
        cmocka_unit_test(gpus_are_shared_out_by_the_workers_numbers),
        cmocka_unit_test(a_gpu_that_is_not_there_is_an_error_that_says_what_to_do),
        cmocka_unit_test(the_list_has_a_line_a_gpu_or_says_why_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
