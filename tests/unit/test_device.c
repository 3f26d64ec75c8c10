#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"
#include "tests/unit/device_kernels.def"

enum { BLOCKS = 9, REVERSED = BLOCKS * 64 };

struct bench {
    struct device *device;
    uint64_t host[REVERSED], back[REVERSED];
    void *in, *out;
};

static void begin(struct bench *bench) {
    bench->device = test_device();
    for (uint64_t i = 0; i < REVERSED; i++)
        bench->host[i] = i * i;
    assert_int_equal(device_new(bench->device, sizeof bench->host, &bench->in), 0);
    assert_int_equal(device_new(bench->device, sizeof bench->host, &bench->out), 0);
}

static void end(struct bench *bench) {
    device_close(bench->device);
    error_clear();
}

static int put(struct bench *bench, enum device_queue queue) {
    return device_put(bench->device, queue, bench->in, bench->host, sizeof bench->host);
}

static int reverse(struct bench *bench) {
    const struct reverse_arguments arguments = {bench->in, bench->out};
    return device_launch(bench->device, QUEUE_COMPUTE, &kernel_reverse, BLOCKS, &arguments);
}

static int get(struct bench *bench) {
    return device_get(bench->device, QUEUE_COMPUTE, bench->back, bench->out, sizeof bench->back);
}

static bool is_reversed(const struct bench *bench) {
    for (size_t i = 0; i < REVERSED; i++)
        if (bench->back[i] != bench->host[i / 64 * 64 + 63 - i % 64])
            return false;
    return true;
}

static void threads_see_in_a_phase_what_others_wrote_in_the_one_before(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench);
    assert_int_equal(put(&bench, QUEUE_COMPUTE), 0);
    memset(bench.host, 0, sizeof bench.host); /* it was taken */
    for (uint64_t i = 0; i < REVERSED; i++)
        bench.host[i] = i * i;
    assert_int_equal(reverse(&bench), 0);
    assert_int_equal(get(&bench), 0);
    assert_true(is_reversed(&bench));
    end(&bench);
}

static void a_queue_sees_what_another_did_only_if_it_was_told_to_wait(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench);
    if (test_device_is_emulated(bench.device)) {
        assert_int_equal(put(&bench, QUEUE_COPY), 0);
        assert_int_equal(reverse(&bench), 0);
        assert_int_equal(get(&bench), 0);
        assert_false(is_reversed(&bench));
    }
    assert_int_equal(put(&bench, QUEUE_COPY), 0);
    assert_int_equal(device_order(bench.device, QUEUE_COPY, QUEUE_COMPUTE), 0);
    assert_int_equal(reverse(&bench), 0);
    assert_int_equal(get(&bench), 0);
    assert_true(is_reversed(&bench));
    end(&bench);
}

static void refill(struct bench *bench, uint64_t add) {
    for (uint64_t i = 0; i < REVERSED; i++)
        bench->host[i] += add;
}

/* Puts other numbers in while the kernel has not run; answers whether it has seen those before. */
static bool kernel_is_first(struct bench *bench, bool told) {
    assert_int_equal(put(bench, QUEUE_COMPUTE), 0);
    assert_int_equal(device_wait(bench->device, QUEUE_COMPUTE), 0);
    assert_int_equal(reverse(bench), 0);
    if (told)
        assert_int_equal(device_order(bench->device, QUEUE_COMPUTE, QUEUE_COPY), 0);
    refill(bench, 1);
    assert_int_equal(put(bench, QUEUE_COPY), 0);
    refill(bench, (uint64_t)-1);
    assert_int_equal(get(bench), 0);
    return is_reversed(bench);
}

static void a_queue_leaves_alone_what_another_reads_only_if_it_was_told_to_wait(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench);
    device_shuffle(bench.device, 2);
    if (test_device_is_emulated(bench.device))
        assert_false(kernel_is_first(&bench, false));
    assert_true(kernel_is_first(&bench, true));
    end(&bench);
}

static void atomics_find_sum_and_maximum_over_all_threads(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench);
    int64_t sum = 0, expected = 0;
    uint64_t largest = 0;
    void *sums;
    assert_int_equal(device_new(bench.device, 16, &sums), 0);
    assert_int_equal(device_fill(bench.device, QUEUE_COMPUTE, sums, 0, 16), 0);
    assert_int_equal(put(&bench, QUEUE_COMPUTE), 0);
    const struct total_arguments arguments = {bench.in, sums, (uint64_t *)sums + 1, 3};
    assert_int_equal(
        device_launch(bench.device, QUEUE_COMPUTE, &kernel_total, REVERSED / 32, &arguments), 0);
    assert_int_equal(device_get(bench.device, QUEUE_COMPUTE, &sum, sums, 8), 0);
    assert_int_equal(device_get(bench.device, QUEUE_COMPUTE, &largest, (uint64_t *)sums + 1, 8), 0);
    for (size_t i = 0; i < REVERSED; i++)
        expected += 3 * (int64_t)bench.host[i];
    assert_true(sum == expected);
    assert_true(largest == bench.host[REVERSED - 1]);
    end(&bench);
}

/* More than a GPU's pinned memory holds, and more copies. */
static void what_is_put_in_many_parts_comes_back_in_one(void **state) {
    (void)state;
    enum { BYTES = (9 << 20) + 13, PARTS = 3000 };
    struct device *device = test_device();
    unsigned char *bytes = memory_new(BYTES, 1), *back = memory_new(BYTES, 1);
    void *there;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 1000);
    assert_int_equal(device_new(device, BYTES, &there), 0);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(device_put(device, QUEUE_COPY, (char *)there + i, bytes + i, 1), 0);
    assert_int_equal(
        device_put(device, QUEUE_COPY, (char *)there + PARTS, bytes + PARTS, (size_t)BYTES - PARTS),
        0);
    assert_int_equal(device_get(device, QUEUE_COPY, back, there, BYTES), 0);
    assert_memory_equal(back, bytes, BYTES);
    device_close(device);
    free(bytes);
    free(back);
}

static void too_much_memory_is_refused_and_the_device_goes_on(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench);
    void *more;
    device_limit(bench.device, 2 * sizeof bench.host + 100);
    assert_int_equal(device_room(bench.device), 100);
    assert_int_equal(device_new(bench.device, 101, &more), ERROR_UNAVAILABLE);
    assert_null(more);
    assert_non_null(strstr(error_text(), "no memory"));
    assert_false(device_is_lost(bench.device));
    error_clear();
    device_delete(bench.device, bench.out);
    assert_int_equal(device_new(bench.device, sizeof bench.host, &bench.out), 0);
    assert_int_equal(put(&bench, QUEUE_COMPUTE), 0);
    end(&bench);
}

static void a_lost_device_fails_every_call_and_can_be_closed(void **state) {
    (void)state;
    for (uint64_t calls = 0; calls < 3; calls++) {
        struct bench bench;
        begin(&bench);
        device_fail_after(bench.device, calls);
        int code = put(&bench, QUEUE_COMPUTE);
        code = code ? code : reverse(&bench);
        code = code ? code : get(&bench);
        assert_int_equal(code, ERROR_UNAVAILABLE);
        assert_true(device_is_lost(bench.device));
        assert_int_equal(device_wait(bench.device, QUEUE_COMPUTE), ERROR_UNAVAILABLE);
        assert_int_equal(device_room(bench.device), 0);
        end(&bench);
    }
}

/* Makes the device hang; false: a GPU of hardware cannot be made to. */
static bool make_it_hang(struct device *device) {
    if (!test_device_is_emulated(device) && !strstr(device_name(device), "interpreted"))
        return false;
    setenv("DML_PTX_HANGS", "1", 1);
    setenv("DML_FAILPOINT", "device_hang:1:hit", 1);
    assert_int_equal(failpoint_setup("test", NULL, 0), 0);
    return true;
}

static void hang_no_more(void) {
    unsetenv("DML_PTX_HANGS");
    unsetenv("DML_FAILPOINT");
    unsetenv("DML_DEVICE_PATIENCE_MS");
    assert_int_equal(failpoint_setup("test", NULL, 0), 0);
}

/* Answers whether the device can be made to hang. */
static bool wait_for_one_that_hangs(int wait(struct bench *bench)) {
    struct bench bench;
    setenv("DML_DEVICE_PATIENCE_MS", "20", 1);
    begin(&bench);
    bool hangs = make_it_hang(bench.device);
    assert_int_equal(put(&bench, QUEUE_COMPUTE), 0);
    assert_int_equal(reverse(&bench), 0);
    if (hangs) {
        assert_int_equal(wait(&bench), ERROR_UNAVAILABLE);
        assert_non_null(strstr(error_text(), "it hangs"));
        assert_non_null(strstr(error_text(), "0.020 s"));
        assert_true(device_is_lost(bench.device));
    }
    end(&bench);
    hang_no_more();
    return hangs;
}

static int wait_for_queue(struct bench *bench) {
    return device_wait(bench->device, QUEUE_COMPUTE);
}

/* A process that had a GPU that hangs opens none any more. */
static void a_device_that_hangs_is_lost_when_patience_ends(void **state) {
    (void)state;
    const char *why;
    if (!wait_for_one_that_hangs(get))
        skip();
    if (getenv("DML_TEST_DEVICE"))
        assert_int_equal(device_count(DEVICE_CUDA, &why), 0);
    else
        assert_true(wait_for_one_that_hangs(wait_for_queue));
}

static void a_device_that_is_not_there_is_an_error_that_says_why(void **state) {
    (void)state;
    struct device *device;
    const char *why = NULL;
    assert_int_equal(device_open(DEVICE_EMULATED, 1, &device), ERROR_UNAVAILABLE);
    assert_null(device);
    error_clear();
    if (device_count(DEVICE_CUDA, &why) == 0) {
        assert_non_null(why);
        assert_int_equal(device_open(DEVICE_CUDA, 0, &device), ERROR_UNAVAILABLE);
        assert_non_null(strstr(error_text(), why));
        error_clear();
    }
}

SUITE(device) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_see_in_a_phase_what_others_wrote_in_the_one_before),
        cmocka_unit_test(a_queue_sees_what_another_did_only_if_it_was_told_to_wait),
        cmocka_unit_test(a_queue_leaves_alone_what_another_reads_only_if_it_was_told_to_wait),
        cmocka_unit_test(atomics_find_sum_and_maximum_over_all_threads),
        cmocka_unit_test(what_is_put_in_many_parts_comes_back_in_one),
        cmocka_unit_test(too_much_memory_is_refused_and_the_device_goes_on),
        cmocka_unit_test(a_lost_device_fails_every_call_and_can_be_closed),
        cmocka_unit_test(a_device_that_is_not_there_is_an_error_that_says_why),
        cmocka_unit_test(a_device_that_hangs_is_lost_when_patience_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
