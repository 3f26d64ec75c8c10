#include "tests/fuzz/odd_message.h"

#include <string.h>

#include "wire/program.h"

static uint64_t odd_number(uint64_t value, struct draw *draw) {
    switch (draw_below(draw, 8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return value + 1;
    case 3:
        return value - 1;
    case 4:
        return UINT64_MAX;
    case 5:
        return draw_byte(draw);
    case 6:
        return UINT64_C(1) << draw_below(draw, 64);
    default:
        return draw_u64(draw);
    }
}

static double odd_double(double value, struct draw *draw) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = draw_below(draw, 2) ? draw_u64(draw) : bits ^ UINT64_C(1) << draw_below(draw, 64);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static const char *odd_text(const char *text, struct draw *draw) {
    static const char *const odd[] = {"", "x", "/", "../x", "unix:", "%s\n", "\xff\xfe"};
    uint32_t number = draw_below(draw, sizeof odd / sizeof *odd + 1);
    return number < sizeof odd / sizeof *odd ? odd[number] : text;
}

static void flip_bytes(uint8_t *data, size_t length, struct draw *draw) {
    for (uint32_t hits = draw_below(draw, 4) + 1; hits && length; hits--)
        data[draw_u64(draw) % length] = draw_byte(draw);
}

/* A copy with some bytes changed or the end cut off. */
static struct blob odd_bytes(const void *data, uint32_t length, struct draw *draw) {
    static _Alignas(8) uint8_t copy[1 << 16];
    if (length > sizeof copy)
        return (struct blob){data, length};
    if (length)
        memcpy(copy, data, length);
    if (draw_below(draw, 2))
        flip_bytes(copy, length, draw);
    else if (length)
        length = (uint32_t)(draw_u64(draw) % length);
    return (struct blob){copy, length};
}

static struct chunk_ranges odd_chunk_ranges(struct chunk_ranges list, struct draw *draw) {
    const uint32_t size = sizeof *list.items;
    struct blob odd = odd_bytes(list.items, list.length * size, draw);
    return (struct chunk_ranges){odd.data, odd.length / size};
}

static struct u64_list odd_u64s(struct u64_list list, struct draw *draw) {
    const uint32_t size = sizeof *list.items;
    struct blob odd = odd_bytes(list.items, list.length * size, draw);
    return (struct u64_list){odd.data, odd.length / size};
}

static struct part_list odd_parts(struct part_list list, struct draw *draw) {
    const uint32_t size = sizeof *list.items;
    struct blob odd = odd_bytes(list.items, list.length * size, draw);
    return (struct part_list){odd.data, odd.length / size};
}

static void odd_flush(struct flush_id *id, struct draw *draw) {
    switch (draw_below(draw, 4)) {
    case 0:
        id->attempt = (uint32_t)odd_number(id->attempt, draw);
        break;
    case 1:
        id->evaluation = (uint32_t)odd_number(id->evaluation, draw);
        break;
    case 2:
        id->incarnation = odd_number(id->incarnation, draw);
        break;
    default:
        id->sequence = (uint32_t)odd_number(id->sequence, draw);
    }
}

/* A count beyond the last there may be cannot be written. */
static uint32_t odd_count(uint32_t count, struct draw *draw) {
    return draw_below(draw, 2) ? count : draw_below(draw, TENSORS_MAX + 1);
}

static void odd_bounds(struct bounds *bounds, struct draw *draw) {
    uint32_t chosen = draw_below(draw, TENSORS_MAX);
    bounds->count = odd_count(bounds->count, draw);
    bounds->exponent[chosen] = (int)odd_number((uint64_t)bounds->exponent[chosen], draw);
}

static void odd_maxima(struct maxima *maxima, struct draw *draw) {
    uint32_t chosen = draw_below(draw, TENSORS_MAX);
    maxima->count = odd_count(maxima->count, draw);
    maxima->value[chosen] = odd_double(maxima->value[chosen], draw);
}

/* Functions that change field number `chosen`, if there is one, of fields that are numbered from
 * `number` on; they answer the number after the last field. */
#define FIELD(change)                                                                              \
    if (number++ == chosen)                                                                        \
        change;
#define U8(field) FIELD(body->field = (uint8_t)odd_number(body->field, draw))
#define U32(field) FIELD(body->field = (uint32_t)odd_number(body->field, draw))
#define U64(field) FIELD(body->field = odd_number(body->field, draw))
#define I64(field) FIELD(body->field = (int64_t)odd_number((uint64_t)body->field, draw))
#define F64(field) FIELD(body->field = odd_double(body->field, draw))
#define TEXT(field) FIELD(body->field = odd_text(body->field, draw))
#define BLOB(field) FIELD(body->field = odd_bytes(body->field.data, body->field.length, draw))
#define RUNS(field) FIELD(body->field = odd_chunk_ranges(body->field, draw))
#define U64S(field) FIELD(body->field = odd_u64s(body->field, draw))
#define PARTS(field) FIELD(body->field = odd_parts(body->field, draw))
#define FLUSH(field) FIELD(odd_flush(&body->field, draw))
#define BOUNDS(field) FIELD(odd_bounds(&body->field, draw))
#define MAXIMA(field) FIELD(odd_maxima(&body->field, draw))
#define IN(section) number = change_section_##section(&body->section, number, chosen, draw);
#define SECTION(name, text, fields)                                                                \
    static uint32_t change_section_##name(struct section_##name *body, uint32_t number,            \
                                          uint32_t chosen, struct draw *draw) {                    \
        fields return number;                                                                      \
    }
#define MESSAGE(NAME, name, number_, limit, bulk, text, fields)                                    \
    static uint32_t change_##name(struct message *message, uint32_t chosen, struct draw *draw) {   \
        struct message_##name *body = &message->name;                                              \
        uint32_t number = 0;                                                                       \
        fields return number;                                                                      \
    }
#include "wire/messages.def"

/* Changes field number `chosen`, if there is one. Returns how many fields the message has. */
static uint32_t change_field(struct message *message, uint32_t chosen, struct draw *draw) {
    switch (message->type) {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    case MESSAGE_##NAME:                                                                           \
        return change_##name(message, chosen, draw);
#include "wire/messages.def"
    }
    return 0;
}

/* Corrects the hash of most programs, so that the code behind its check is reached. */
static void sign_program(struct message_program *program, struct draw *draw) {
    if (draw_below(draw, 8))
        program->hash = program_hash(program->operations.data, program->operations.length);
}

void odd_message(struct message *message, uint8_t *bulk, struct draw *draw) {
    uint32_t fields = change_field(message, UINT32_MAX, draw);
    uint32_t chosen = draw_below(draw, fields + 1);
    if (chosen < fields)
        change_field(message, chosen, draw);
    else if (message->bulk.length && draw_below(draw, 4))
        flip_bytes(bulk, message->bulk.length, draw);
    else if (message->bulk.length)
        message->bulk.length = draw_u64(draw) % message->bulk.length;
    if (message->type == MESSAGE_PROGRAM)
        sign_program(&message->program, draw);
}
