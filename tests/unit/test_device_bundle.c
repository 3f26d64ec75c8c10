#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "objective/device_arranged.h"
#include "tests/unit/device_fixture.h"

enum { ARRAYS = 4000, ROOM = ARRAYS * BUNDLE_ALIGNMENT, LARGE = 100000 };

struct bench {
    struct device *device;
    struct device_bundle bundle;
    unsigned char *there, *back;
};

static void begin(struct bench *bench, size_t bytes) {
    void *there;
    bench->device = test_device();
    device_bundle_init(&bench->bundle, bench->device, QUEUE_COPY);
    assert_int_equal(device_new(bench->device, bytes, &there), 0);
    assert_int_equal(device_fill(bench->device, QUEUE_COPY, there, 7, bytes), 0);
    bench->there = there;
    bench->back = memory_new(bytes, 1);
}

static void end(struct bench *bench) {
    device_bundle_release(&bench->bundle);
    device_close(bench->device);
    free(bench->back);
}

static void put(struct bench *bench, size_t at, unsigned char value, size_t bytes) {
    unsigned char *from = memory_new(bytes, 1);
    memset(from, value, bytes);
    assert_int_equal(device_bundle_put(&bench->bundle, bench->there + at, from, bytes), 0);
    free(from);
}

static void get(struct bench *bench, size_t bytes) {
    assert_int_equal(device_bundle_flush(&bench->bundle), 0);
    assert_int_equal(device_get(bench->device, QUEUE_COPY, bench->back, bench->there, bytes), 0);
}

static void assert_holds(const struct bench *bench, size_t at, unsigned char value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(bench->back[at + i], value);
}

static size_t bytes_of(size_t array) {
    return array % BUNDLE_ALIGNMENT + 1;
}

static void arrays_behind_each_other_come_in_one_copy(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, ROOM);
    device_fail_after(bench.device, 2); /* a copy to the device, and one from it */
    for (size_t i = 0; i < ARRAYS; i++)
        put(&bench, i * BUNDLE_ALIGNMENT, (unsigned char)i, bytes_of(i));
    get(&bench, ROOM);
    for (size_t i = 0; i < ARRAYS; i++)
        assert_holds(&bench, i * BUNDLE_ALIGNMENT, (unsigned char)i, bytes_of(i));
    end(&bench);
}

static void what_lies_elsewhere_is_left_alone(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, ROOM);
    put(&bench, 0, 1, 10);
    put(&bench, 3 * BUNDLE_ALIGNMENT, 2, 10); /* not the next */
    put(&bench, BUNDLE_ALIGNMENT, 3, 10);
    put(&bench, 2 * BUNDLE_ALIGNMENT, 4, 0); /* nothing */
    get(&bench, ROOM);
    assert_holds(&bench, 0, 1, 10);
    assert_holds(&bench, BUNDLE_ALIGNMENT, 3, 10);
    assert_holds(&bench, 2 * BUNDLE_ALIGNMENT, 7, BUNDLE_ALIGNMENT);
    assert_holds(&bench, 3 * BUNDLE_ALIGNMENT, 2, 10);
    assert_holds(&bench, 4 * BUNDLE_ALIGNMENT, 7, BUNDLE_ALIGNMENT);
    end(&bench);
}

static void large_arrays_come_between_small_ones(void **state) {
    (void)state;
    enum { TIMES = 40, STEP = 5 * LARGE / 2 / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT };
    struct bench bench;
    begin(&bench, (size_t)TIMES * STEP);
    for (size_t i = 0; i < TIMES; i++) {
        put(&bench, i * STEP, (unsigned char)i, LARGE);
        put(&bench, i * STEP + (LARGE / BUNDLE_ALIGNMENT + 1) * BUNDLE_ALIGNMENT,
            (unsigned char)(i + 1), 60000);
    }
    get(&bench, (size_t)TIMES * STEP);
    for (size_t i = 0; i < TIMES; i++) {
        assert_holds(&bench, i * STEP, (unsigned char)i, LARGE);
        assert_holds(&bench, i * STEP + (LARGE / BUNDLE_ALIGNMENT + 1) * BUNDLE_ALIGNMENT,
                     (unsigned char)(i + 1), 60000);
    }
    end(&bench);
}

SUITE(device_bundle) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_behind_each_other_come_in_one_copy),
        cmocka_unit_test(what_lies_elsewhere_is_left_alone),
        cmocka_unit_test(large_arrays_come_between_small_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
