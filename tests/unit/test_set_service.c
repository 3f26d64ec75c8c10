/* Answers to replicas that do not see the file of the set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "coordinator/run/set_service.h"
#include "tests/unit/suites.h"

static struct set_service service;
static uint32_t busy; /* a link that takes no answers now */

static int set_up(void **state) {
    (void)state;
    set_service_init(&service, NULL); /* of no set: each answer is a reason */
    busy = UINT32_MAX;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    set_service_release(&service);
    return 0;
}

static bool is_free(const void *context, uint32_t link) {
    (void)context;
    return link != busy;
}

static void ask(uint32_t link, uint64_t offset) {
    set_service_ask(&service, link, &(struct message_read_set){"f00", offset, 10});
}

static void expect_answer(uint32_t link, uint64_t offset) {
    struct message answer;
    uint32_t to;
    assert_true(set_service_answer(&service, is_free, NULL, &to, &answer));
    assert_int_equal(to, link);
    assert_int_equal(answer.type, MESSAGE_SET_BYTES);
    assert_int_equal(answer.set_bytes.offset, offset);
    assert_string_equal(answer.set_bytes.reason, "the coordinator works on another set");
    assert_null(message_fault(&answer));
}

static void expect_none(void) {
    struct message answer;
    uint32_t to;
    assert_false(set_service_answer(&service, is_free, NULL, &to, &answer));
}

static void questions_are_answered_in_their_order_and_once(void **state) {
    (void)state;
    ask(1, 0);
    ask(2, 0);
    ask(1, 10);
    ask(2, 0); /* it waits already */
    expect_answer(1, 0);
    expect_answer(2, 0);
    expect_answer(1, 10);
    expect_none();
}

static void who_takes_no_answers_keeps_nobody_waiting(void **state) {
    (void)state;
    ask(1, 0);
    ask(2, 0);
    busy = 1;
    expect_answer(2, 0);
    expect_none();
    busy = UINT32_MAX;
    expect_answer(1, 0);
}

static void another_worker_at_a_link_gets_no_answer_to_what_the_former_asked(void **state) {
    (void)state;
    ask(1, 0);
    ask(2, 0);
    ask(1, 10);
    set_service_forget(&service, 1);
    expect_answer(2, 0);
    expect_none();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

SUITE(set_service) {
    const struct CMUnitTest tests[] = {
        TEST(questions_are_answered_in_their_order_and_once),
        TEST(who_takes_no_answers_keeps_nobody_waiting),
        TEST(another_worker_at_a_link_gets_no_answer_to_what_the_former_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
