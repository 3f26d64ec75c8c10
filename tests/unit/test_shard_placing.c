/* What a shard finds to compute on. */
#include "tests/unit/suites.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/shard_bench.h"

#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/find.h"
#include "shard/placing.h"

/* A device that is sound but for one bit of what is brought to it: see tests/unit/shard.mk. */
static bool spoils;
int __real_device_put(struct device *device, enum device_queue queue, void *to, const void *from,
                      size_t bytes);
int __wrap_device_put(struct device *device, enum device_queue queue, void *to, const void *from,
                      size_t bytes);

int __wrap_device_put(struct device *device, enum device_queue queue, void *to, const void *from,
                      size_t bytes) {
    unsigned char *copy = memory_new(bytes ? bytes : 1, 1);
    if (bytes)
        memcpy(copy, from, bytes);
    if (spoils && bytes > 1000 * sizeof(double))
        copy[800 * sizeof(double)] ^= 1;
    int code = __real_device_put(device, queue, to, copy, bytes);
    free(copy);
    return code;
}

static int find(struct shard_placing *placing, const char *choice, uint64_t count,
                struct shard_place *place) {
    const struct message_shard_setup setup = {.machine.device = choice, .count = count};
    *place = (struct shard_place){0};
    return shard_placing_find(placing, &setup, place);
}

static void small_ranges_and_cpu_stay_on_the_cpu(void **state) {
    (void)state;
    struct shard_placing placing = {0};
    struct shard_place place;
    assert_int_equal(find(&placing, "auto", DEVICE_ELEMENTS_MIN - 1, &place), 0);
    assert_null(place.device);
    assert_ptr_equal(place.backend, &shard_on_host);
    assert_int_equal(find(&placing, "cpu", DEVICE_ELEMENTS_MIN, &place), 0);
    assert_null(place.device);
    assert_int_equal(find(&placing, "", 10, &place), 0); /* as auto */
    assert_null(place.device);
}

static void the_emulated_device_is_opened_once(void **state) {
    (void)state;
    struct shard_placing placing = {0};
    struct shard_place first, second;
    assert_int_equal(find(&placing, "emulated", 10, &first), 0);
    assert_ptr_equal(first.backend, &shard_on_device);
    assert_string_equal(first.name, "emulated");
    assert_false(first.optional);
    assert_int_equal(find(&placing, "emulated", 20, &second), 0);
    assert_ptr_equal(first.device, second.device);
    shard_placing_release(&placing);
}

static void a_lost_device_is_opened_anew(void **state) {
    (void)state;
    struct shard_placing placing = {0};
    struct shard_place place;
    assert_int_equal(find(&placing, "emulated", 10, &place), 0);
    device_fail_after(place.device, 0);
    assert_int_not_equal(device_wait(place.device, QUEUE_COMPUTE), 0);
    error_clear();
    assert_int_equal(find(&placing, "emulated", 10, &place), 0);
    assert_int_equal(device_wait(place.device, QUEUE_COMPUTE), 0);
    shard_placing_release(&placing);
}

static void the_choice_of_the_process_goes_before_that_of_the_run(void **state) {
    (void)state;
    struct shard_placing placing = {.own = "emulated"};
    struct shard_place place;
    assert_int_equal(find(&placing, "cpu", 10, &place), 0);
    assert_string_equal(place.name, "emulated");
    placing.own = "cpu";
    assert_int_equal(find(&placing, "emulated", 10, &place), 0);
    assert_null(place.device);
    shard_placing_release(&placing);
}

static void a_device_with_other_bits_is_refused(void **state) {
    (void)state;
    struct shard_placing placing = {0};
    struct shard_place place;
    spoils = true;
    int code = find(&placing, "emulated", 10, &place);
    spoils = false;
    assert_int_equal(code, ERROR_CONFIG);
    assert_non_null(strstr(error_text(), "emulated does not compute the bits"));
    error_clear();
    assert_null(placing.device);
}

static void auto_takes_no_device_with_other_bits(void **state) {
    (void)state;
    struct shard_placing placing = {0};
    struct shard_place place;
    char *mark;
    setenv("DML_AUTO_DEVICE", "emulated", 1);
    setenv("DML_DEVICE_MARK", "test_shard_placing.mark", 1);
    assert_int_equal(device_mark_checked(DEVICE_EMULATED, 0, &mark), 0);
    spoils = true;
    assert_int_equal(find(&placing, "auto", 10, &place), 0);
    assert_null(place.device);
    assert_ptr_equal(place.backend, &shard_on_host);
    spoils = false;
    assert_int_equal(find(&placing, "auto", 10, &place), 0);
    assert_string_equal(place.name, "emulated");
    assert_true(place.optional);
    unlink(mark);
    free(mark);
    unsetenv("DML_DEVICE_MARK");
    unsetenv("DML_AUTO_DEVICE");
    shard_placing_release(&placing);
}

static void a_device_that_fails_in_the_proof_is_refused(void **state) {
    (void)state;
    for (uint64_t calls = 0; calls < 200; calls += 7) {
        struct device *device = test_device();
        device_fail_after(device, calls);
        int code = shard_proof_of_device(device);
        device_close(device);
        if (!code) {
            assert_true(calls > 30);
            return;
        }
        assert_int_equal(code, ERROR_UNAVAILABLE);
        error_clear();
    }
    fail_msg("the proof never ends");
}

static void what_is_no_device_is_refused(void **state) {
    (void)state;
    struct shard_placing placing = {0};
    struct shard_place place;
    assert_int_not_equal(find(&placing, "abacus", 10, &place), 0);
    error_clear();
}

SUITE(shard_placing) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ranges_and_cpu_stay_on_the_cpu),
        cmocka_unit_test(the_emulated_device_is_opened_once),
        cmocka_unit_test(a_lost_device_is_opened_anew),
        cmocka_unit_test(the_choice_of_the_process_goes_before_that_of_the_run),
        cmocka_unit_test(a_device_with_other_bits_is_refused),
        cmocka_unit_test(auto_takes_no_device_with_other_bits),
        cmocka_unit_test(a_device_that_fails_in_the_proof_is_refused),
        cmocka_unit_test(what_is_no_device_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
