/* How users say what is to be computed on. */
#include "tests/unit/suites.h"
#include "device/find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_choice(const char *text, enum device_choice_kind kind, int number) {
    struct device_choice choice = {0};
    if (!device_choice_read(text, &choice))
        fail_msg("`%s` is not read", text);
    assert_int_equal(choice.kind, kind);
    assert_int_equal(choice.number, number);
}

static void each_choice_is_read(void **state) {
    (void)state;
    assert_choice("auto", CHOICE_AUTO, -1);
    assert_choice("cpu", CHOICE_CPU, -1);
    assert_choice("cuda", CHOICE_CUDA, -1);
    assert_choice("cuda:0", CHOICE_CUDA, 0);
    assert_choice("cuda:12", CHOICE_CUDA, 12);
    assert_choice("cuda:1023", CHOICE_CUDA, DEVICE_NUMBER_MAX);
    assert_choice("emulated", CHOICE_EMULATED, -1);
}

static void nothing_said_is_auto(void **state) {
    (void)state;
    assert_choice("", CHOICE_AUTO, -1);
    assert_choice(NULL, CHOICE_AUTO, -1);
}

static void anything_else_is_refused_and_changes_nothing(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "gpu",       "CPU",      "cuda:",      "cuda:-1", "cuda:1 ", "cuda:+1",
        "cuda:1024", "cuda:0x1", "emulated:1", "cudas",   " cpu",    "cuda:99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct device_choice choice = {CHOICE_EMULATED, 7};
        if (device_choice_read(wrong[i], &choice))
            fail_msg("`%s` is taken", wrong[i]);
        assert_int_equal(choice.kind, CHOICE_EMULATED);
        assert_int_equal(choice.number, 7);
    }
}

SUITE(device_choice) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_choice_is_read),
        cmocka_unit_test(nothing_said_is_auto),
        cmocka_unit_test(anything_else_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
