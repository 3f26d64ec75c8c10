/* Which device a worker takes, and what it says if there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/file.h"
#include "device/find.h"

/* How often somebody looked for a device, which wakes the driver of GPUs. */
static unsigned looks;

unsigned __real_device_count(enum device_kind kind, const char **why);
unsigned __wrap_device_count(enum device_kind kind, const char **why);
unsigned __wrap_device_count(enum device_kind kind, const char **why) {
    looks++;
    return __real_device_count(kind, why);
}

/* What is prepared on a device, and what comes of it and of the proof. */
struct work {
    int code;
    unsigned tries;
};

static int proof;
static unsigned proofs;

static int prove(struct device *device) {
    assert_non_null(device);
    proofs++;
    return proof ? error_set(proof, "other bits") : 0;
}

static int prepare(void *context, struct device *device) {
    struct work *work = context;
    work->tries++;
    assert_non_null(device);
    return work->code ? error_set(work->code, "the work does not fit") : 0;
}

/* From now on `auto` is the emulated device, which has the mark of one that was checked. */
static void emulate(void) {
    char *path;
    setenv("DML_AUTO_DEVICE", "emulated", 1);
    setenv("DML_DEVICE_MARK", "test_choose.mark", 1);
    assert_int_equal(device_mark_checked(DEVICE_EMULATED, 0, &path), 0);
    assert_string_equal(path, "test_choose.mark");
    free(path);
}

static void emulate_no_more(void) {
    unlink("test_choose.mark");
    unsetenv("DML_DEVICE_MARK");
    unsetenv("DML_AUTO_DEVICE");
}

/* From the device that is open to the one that is then. */
static struct device *choose_from(struct device *device, struct device_wish wish, int code,
                                  int expected, unsigned tries) {
    struct work work = {.code = code};
    error_clear();
    wish.prove = prove;
    wish.use = prepare;
    wish.context = &work;
    assert_int_equal(device_choose(&wish, &device), expected);
    assert_int_equal(work.tries, tries);
    return device;
}

static struct device *choose(struct device_wish wish, int code, int expected, unsigned tries) {
    return choose_from(NULL, wish, code, expected, tries);
}

static void assert_emulated(struct device *device) {
    assert_non_null(device);
    assert_string_equal(device_name(device), "emulated");
    device_close(device);
}

static void what_was_asked_for_is_taken_however_small_the_work(void **state) {
    (void)state;
    assert_emulated(choose((struct device_wish){.asked = "emulated"}, 0, 0, 1));
    assert_null(choose((struct device_wish){.asked = "cpu", .pays = true}, 0, 0, 0));
}

static void a_worker_s_own_choice_goes_before_that_of_the_job(void **state) {
    (void)state;
    assert_null(choose((struct device_wish){.asked = "emulated", .own = "cpu"}, 0, 0, 0));
    assert_emulated(choose((struct device_wish){.asked = "cpu", .own = "emulated"}, 0, 0, 1));
}

static void what_was_asked_for_and_cannot_be_had_is_an_error_that_says_why(void **state) {
    (void)state;
    struct device_wish wish = {.asked = "emulated", .cannot = "no plug-in runs there"};
    assert_null(choose(wish, 0, ERROR_CONFIG, 0));
    assert_non_null(strstr(error_text(), "no plug-in runs there"));
    wish = (struct device_wish){.asked = "emulated"};
    assert_null(choose(wish, ERROR_UNAVAILABLE, ERROR_UNAVAILABLE, 1));
    assert_string_equal(error_text(), "the work does not fit");
    wish.asked = "cuda:1023";
    assert_null(choose(wish, 0, ERROR_CONFIG, 0));
    assert_non_null(strstr(error_text(), "cuda"));
    wish.asked = "tpu";
    assert_null(choose(wish, 0, ERROR_CONFIG, 0));
    assert_non_null(strstr(error_text(), "`emulated`"));
    error_clear();
}

static void a_free_choice_falls_back_to_the_processor(void **state) {
    (void)state;
    emulate();
    const struct device_wish wish = {.asked = "auto"};
    assert_emulated(choose(wish, 0, 0, 1));
    assert_emulated(choose((struct device_wish){.asked = ""}, 0, 0, 1));
    assert_null(choose(wish, ERROR_UNAVAILABLE, 0, 1));
    assert_string_equal(error_text(), "");
    assert_null(choose(wish, ERROR_INTERNAL, 0, 1));
    assert_null(choose((struct device_wish){.asked = "auto", .cannot = "no"}, 0, 0, 0));
    setenv("DML_DEVICE_BYTES", "0", 1); /* it opens, but has no memory for the work */
    assert_null(choose(wish, ERROR_UNAVAILABLE, 0, 1));
    unsetenv("DML_DEVICE_BYTES");
    emulate_no_more();
}

/* Writes the mark with one line changed: KEY becomes "KEY other". */
static void spoil_mark(const char *key) {
    char *text, *at;
    size_t length;
    assert_int_equal(file_read(getenv("DML_DEVICE_MARK"), 4096, &text, &length), 0);
    FILE *file = fopen(getenv("DML_DEVICE_MARK"), "w");
    assert_non_null(at = strstr(text, key));
    fprintf(file, "%.*s%s other%s", (int)(at - text), text, key, strchr(at, '\n'));
    fclose(file);
    free(text);
}

static void a_free_choice_takes_only_a_device_that_was_checked(void **state) {
    static const char *const lines[] = {"device", "driver", "build", "dml device check"};
    const struct device_wish wish = {.asked = "auto"};
    (void)state;
    emulate();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_null(device_unchecked(DEVICE_EMULATED, 0));
        spoil_mark(lines[i]);
        assert_null(choose(wish, 0, 0, 0));
        char *why = device_unchecked(DEVICE_EMULATED, 0), *path;
        assert_non_null(strstr(why, i < 3 ? lines[i] : "was not checked on this machine"));
        assert_non_null(strstr(why, "make check-cuda"));
        free(why);
        assert_int_equal(device_mark_checked(DEVICE_EMULATED, 0, &path), 0);
        free(path);
    }
    assert_int_equal(unlink(getenv("DML_DEVICE_MARK")), 0);
    assert_null(choose(wish, 0, 0, 0));
    assert_emulated(choose((struct device_wish){.asked = "emulated"}, 0, 0, 1));
    assert_string_equal(error_text(), "");
    emulate_no_more();
}

static void a_free_choice_takes_no_emulated_device(void **state) {
    (void)state;
    struct work work = {0};
    struct device *device = NULL;
    const struct device_wish wish = {
        .asked = "auto", .pays = true, .prove = prove, .use = prepare, .context = &work};
    assert_int_equal(device_choose(&wish, &device), 0);
    if (device) /* this machine has a GPU */
        assert_non_null(strstr(device_name(device), "cuda"));
    device_close(device);
    assert_null(choose((struct device_wish){.asked = "auto"}, 0, 0, 0)); /* too small to pay */
}

static void work_that_is_not_for_a_gpu_does_not_look_for_one(void **state) {
    (void)state;
    looks = 0;
    assert_null(choose((struct device_wish){.asked = "auto"}, 0, 0, 0));
    assert_null(
        choose((struct device_wish){.asked = "auto", .pays = true, .cannot = "no"}, 0, 0, 0));
    assert_null(choose((struct device_wish){.asked = "cpu", .pays = true}, 0, 0, 0));
    assert_int_equal(looks, 0);
    struct device *device = choose_from(NULL, (struct device_wish){.asked = "emulated"}, 0, 0, 1);
    assert_null(choose_from(device, (struct device_wish){.asked = "auto"}, 0, 0, 0));
}

static void a_device_is_proved_when_it_is_opened_and_stays_open(void **state) {
    (void)state;
    const struct device_wish wish = {.asked = "emulated"};
    proofs = 0;
    struct device *device = choose(wish, 0, 0, 1);
    assert_ptr_equal(choose_from(device, wish, 0, 0, 1), device);
    assert_int_equal(proofs, 1);
    device_fail_after(device, 0);
    void *memory;
    assert_int_equal(device_new(device, 1, &memory), ERROR_UNAVAILABLE);
    device = choose_from(device, wish, 0, 0, 1); /* the one that is lost is of no use */
    assert_false(device_is_lost(device));
    assert_int_equal(proofs, 2);
    assert_null(choose_from(device, (struct device_wish){.asked = "cpu"}, 0, 0, 0));
}

static void a_device_that_gives_other_bits_is_not_used(void **state) {
    (void)state;
    proof = ERROR_UNAVAILABLE;
    assert_null(choose((struct device_wish){.asked = "emulated"}, 0, ERROR_UNAVAILABLE, 0));
    assert_string_equal(error_text(), "other bits");
    emulate();
    assert_null(choose((struct device_wish){.asked = "auto"}, 0, 0, 0));
    emulate_no_more();
    proof = 0;
}

static void a_choice_is_free_if_it_is_auto(void **state) {
    (void)state;
    assert_true(device_wish_is_free(&(struct device_wish){.asked = "auto"}));
    assert_true(device_wish_is_free(&(struct device_wish){.asked = "cuda", .own = "auto"}));
    assert_false(device_wish_is_free(&(struct device_wish){.asked = "auto", .own = "cuda"}));
    assert_false(device_wish_is_free(&(struct device_wish){.asked = "cpu"}));
    assert_false(device_wish_is_free(&(struct device_wish){.asked = "tpu"}));
}

SUITE(choose) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_asked_for_is_taken_however_small_the_work),
        cmocka_unit_test(a_worker_s_own_choice_goes_before_that_of_the_job),
        cmocka_unit_test(what_was_asked_for_and_cannot_be_had_is_an_error_that_says_why),
        cmocka_unit_test(a_free_choice_falls_back_to_the_processor),
        cmocka_unit_test(a_free_choice_takes_only_a_device_that_was_checked),
        cmocka_unit_test(a_free_choice_takes_no_emulated_device),
        cmocka_unit_test(work_that_is_not_for_a_gpu_does_not_look_for_one),
        cmocka_unit_test(a_device_is_proved_when_it_is_opened_and_stays_open),
        cmocka_unit_test(a_device_that_gives_other_bits_is_not_used),
        cmocka_unit_test(a_choice_is_free_if_it_is_auto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
