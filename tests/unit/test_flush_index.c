/* Finding flushes by their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "tests/unit/suites.h"
#include "wire/evaluation.h"

/* As many replicas send flushes, a few each: ids differ in two of their parts. */
static struct flush_id id_of(uint32_t number) {
    return (struct flush_id){
        .attempt = 1, .evaluation = 2, .incarnation = number / 3, .sequence = number % 3};
}

static void each_of_many_flushes_is_found_by_its_id(void **state) {
    (void)state;
    struct flush_index index = {0};
    for (uint32_t i = 0; i < 5000; i++) {
        struct flush_id id = id_of(i);
        assert_false(flush_index_find(&index, &id, NULL));
        flush_index_add(&index, &id, i);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        struct flush_id id = id_of(i);
        uint32_t number = UINT32_MAX;
        assert_true(flush_index_find(&index, &id, &number));
        assert_int_equal(number, i);
    }
    struct flush_id other = id_of(0);
    other.attempt = 7;
    assert_false(flush_index_find(&index, &other, NULL));
    flush_index_release(&index);
}

static void a_cleared_index_has_no_flush_and_takes_others(void **state) {
    (void)state;
    struct flush_index index = {0};
    struct flush_id first = id_of(1), second = id_of(2);
    uint32_t number;
    flush_index_clear(&index);
    flush_index_add(&index, &first, 0);
    flush_index_clear(&index);
    assert_false(flush_index_find(&index, &first, NULL));
    flush_index_add(&index, &second, 0);
    assert_true(flush_index_find(&index, &second, &number));
    assert_int_equal(number, 0);
    flush_index_release(&index);
}

/* As slices come and go at a shard: some slots of a run of full ones are emptied, in any order. */
static void flushes_that_are_taken_out_are_gone_and_all_others_found(void **state) {
    (void)state;
    enum { FLUSHES = 600 };
    struct flush_index index = {0};
    bool there[FLUSHES] = {false};
    struct random random;
    random_init(&random, 1);
    for (uint32_t turn = 0; turn < 20000; turn++) {
        uint32_t one = (uint32_t)random_below(&random, FLUSHES), number;
        struct flush_id id = id_of(one);
        if (there[one])
            flush_index_remove(&index, &id);
        else
            flush_index_add(&index, &id, one);
        there[one] = !there[one];
        for (uint32_t i = turn % 97; i < FLUSHES; i += 97) {
            id = id_of(i);
            assert_int_equal(flush_index_find(&index, &id, &number), there[i]);
            assert_true(!there[i] || number == i);
        }
    }
    flush_index_release(&index);
}

SUITE(flush_index) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_flushes_is_found_by_its_id),
        cmocka_unit_test(flushes_that_are_taken_out_are_gone_and_all_others_found),
        cmocka_unit_test(a_cleared_index_has_no_flush_and_takes_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
