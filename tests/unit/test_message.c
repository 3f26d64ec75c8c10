#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "wire/message.h"

static const struct chunk_range ranges[] = {{3, 4}, {9, 1}, {11, 200}};
static const struct evaluation_part parts[] = {{1, 0, 30}, {2, 30, 4}};
static const uint64_t numbers[] = {1, UINT64_C(0xfedcba9876543210)};

/* Something different in every field. */
static uint64_t next;

#define U8(field) body->field = (uint8_t)next++;
#define U32(field) body->field = (uint32_t)next++;
#define U64(field) body->field = next++;
#define I64(field) body->field = -(int64_t)next++;
#define F64(field) body->field = (double)next++ / 3;
#define TEXT(field) body->field = #field;
#define BLOB(field) body->field = (struct blob){"blob\0bytes", 10};
#define RUNS(field) body->field = (struct chunk_ranges){ranges, 3};
#define U64S(field) body->field = (struct u64_list){numbers, 2};
#define PARTS(field) body->field = (struct part_list){parts, 2};
#define BOUNDS(field) body->field = (struct bounds){2, {-(int)next++, 3}};
#define MAXIMA(field) body->field = (struct maxima){3, {1, (double)next++ / 3, 0}};
#define FLUSH(field)                                                                               \
    next += 2;                                                                                     \
    body->field = (struct flush_id){(uint32_t)next, 2, next + 1, 4};
#define IN(section) fill_section_##section(&body->section);
#define SECTION(name, text, fields)                                                                \
    static void fill_section_##name(struct section_##name *body) {                                 \
        fields                                                                                     \
    }
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    static void fill_##name(struct message *message) {                                             \
        struct message_##name *body = &message->name;                                              \
        fields                                                                                     \
    }
#include "wire/messages.def"

static struct message filled(unsigned type) {
    struct message message = {.type = type, .term = 7};
    next = 0x0102030405060708;
    switch (type) {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    case MESSAGE_##NAME:                                                                           \
        fill_##name(&message);                                                                     \
        break;
#include "wire/messages.def"
    }
    return message;
}

#define U8(field) assert_int_equal(x->field, y->field);
#define U32 U8
#define U64 U8
#define I64 U8
#define F64(field) assert_memory_equal(&x->field, &y->field, sizeof x->field);
#define TEXT(field) assert_string_equal(x->field, y->field);
#define BLOB(field)                                                                                \
    assert_int_equal(x->field.length, y->field.length);                                            \
    assert_memory_equal(x->field.data, y->field.data, x->field.length);
#define RUNS(field)                                                                                \
    assert_int_equal(x->field.length, y->field.length);                                            \
    assert_memory_equal(x->field.items, y->field.items, x->field.length * sizeof *x->field.items);
#define U64S RUNS
#define PARTS RUNS
#define FLUSH(field) assert_true(flush_id_equal(&x->field, &y->field));
#define BOUNDS(field) assert_memory_equal(&x->field, &y->field, sizeof x->field);
#define MAXIMA BOUNDS
#define IN(section) assert_equal_section_##section(&x->section, &y->section);
#define SECTION(name, text, fields)                                                                \
    static void assert_equal_section_##name(const struct section_##name *x,                        \
                                            const struct section_##name *y) {                      \
        fields                                                                                     \
    }
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    static void assert_equal_##name(const struct message *a, const struct message *b) {            \
        const struct message_##name *x = &a->name, *y = &b->name;                                  \
        fields                                                                                     \
    }
#include "wire/messages.def"

static void assert_equal(const struct message *a, const struct message *b) {
    switch (a->type) {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    case MESSAGE_##NAME:                                                                           \
        assert_equal_##name(a, b);                                                                 \
        break;
#include "wire/messages.def"
    }
}

static void every_message_reads_back_as_written(void **state) {
    (void)state;
    size_t count;
    const uint16_t *types = message_types(&count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        struct message message = filled(types[i]), back;
        struct bytes body;
        const char *why;
        bytes_init(&body);
        message_encode(&message, &body);
        assert_int_equal(message_decode(types[i], body.data, body.length, &back, &why), 0);
        assert_int_equal(back.type, types[i]);
        assert_equal(&message, &back);
        bytes_release(&body);
    }
}

static void a_body_with_bytes_missing_or_added_is_refused(void **state) {
    (void)state;
    size_t count;
    const uint16_t *types = message_types(&count);
    for (size_t i = 0; i < count; i++) {
        struct message message = filled(types[i]), back;
        struct bytes body;
        const char *why;
        bytes_init(&body);
        message_encode(&message, &body);
        for (size_t length = 0; length < body.length; length++) {
            assert_int_not_equal(message_decode(types[i], body.data, length, &back, &why), 0);
            assert_non_null(why);
        }
        bytes_put_u8(&body, 0);
        assert_int_not_equal(message_decode(types[i], body.data, body.length, &back, &why), 0);
        bytes_release(&body);
    }
}

static void a_text_with_a_zero_inside_is_refused(void **state) {
    (void)state;
    struct message message = {.type = MESSAGE_BYE, .bye = {.reason = "all done"}}, back;
    struct bytes body;
    const char *why;
    bytes_init(&body);
    message_encode(&message, &body);
    body.data[6] = 0;
    assert_int_not_equal(message_decode(MESSAGE_BYE, body.data, body.length, &back, &why), 0);
    bytes_release(&body);
}

static void a_text_too_long_for_its_message_is_cut(void **state) {
    (void)state;
    char reason[20000];
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    struct message message = {.type = MESSAGE_FAILED, .failed = {70, reason, 0}}, back;
    struct bytes body;
    const char *why;
    bytes_init(&body);
    message_encode(&message, &body);
    assert_true(body.length <= message_body_max(MESSAGE_FAILED));
    assert_int_equal(message_decode(MESSAGE_FAILED, body.data, body.length, &back, &why), 0);
    assert_true(strlen(back.failed.reason) > 8000);
    bytes_release(&body);
}

static void numbers_that_name_no_message_are_refused(void **state) {
    (void)state;
    struct message back;
    const char *why;
    assert_string_equal(message_name(0), "?");
    assert_string_equal(message_name(65535), "?");
    assert_int_equal(message_body_max(22), 0);
    assert_false(message_has_bulk(65535));
    assert_int_not_equal(message_decode(22, "", 0, &back, &why), 0);
    assert_string_equal(message_name(MESSAGE_STAGE), "STAGE");
    assert_true(message_has_bulk(MESSAGE_STAGE));
}

static void an_outbox_keeps_order_and_aligns_bodies(void **state) {
    (void)state;
    struct outbox outbox;
    const char *why;
    outbox_init(&outbox);
    for (uint32_t i = 0; i < 40; i++) {
        struct message message = filled(i % 2 ? MESSAGE_RESULT : MESSAGE_BYE);
        outbox_add(&outbox, i, &message);
    }
    assert_int_equal(outbox.count, 40);
    for (uint32_t i = 0; i < 40; i++) {
        const struct envelope *envelope = &outbox.envelopes[i];
        struct message message = filled(envelope->type), back;
        assert_int_equal(envelope->to, i);
        assert_int_equal(envelope->term, 7);
        assert_int_equal(envelope->body_offset % 8, 0);
        assert_int_equal(message_decode(envelope->type, outbox_body(&outbox, envelope),
                                        envelope->body_length, &back, &why),
                         0);
        assert_equal(&message, &back);
    }
    outbox_release(&outbox);
}

static void flush_ids_that_differ_in_one_part_hash_apart(void **state) {
    (void)state;
    const struct flush_id id = {1, 2, 3, 4},
                          others[] = {
                              {2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}, {2, 1, 3, 4}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(flush_id_hash(&id) != flush_id_hash(&others[i]));
        assert_false(flush_id_equal(&id, &others[i]));
    }
    assert_true(flush_id_equal(&id, &id));
}

SUITE(message) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_reads_back_as_written),
        cmocka_unit_test(a_body_with_bytes_missing_or_added_is_refused),
        cmocka_unit_test(a_text_with_a_zero_inside_is_refused),
        cmocka_unit_test(a_text_too_long_for_its_message_is_cut),
        cmocka_unit_test(numbers_that_name_no_message_are_refused),
        cmocka_unit_test(an_outbox_keeps_order_and_aligns_bodies),
        cmocka_unit_test(flush_ids_that_differ_in_one_part_hash_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
