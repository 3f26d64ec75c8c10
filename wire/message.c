#include "wire/message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

static_assert(sizeof(struct chunk_range) == 8 && sizeof(struct evaluation_part) == 12,
              "items of lists have no padding: they are sent as they lie in memory");
static_assert(FLUSH_ID_BYTES == 3 * sizeof(uint32_t) + sizeof(uint64_t), "the fields of an id");

const char *role_name(enum role role) {
    static const char *const names[] = {"coordinator", "shard", "replica"};
    return (unsigned)role < sizeof names / sizeof *names ? names[role] : "?";
}

bool flush_id_equal(const struct flush_id *a, const struct flush_id *b) {
    return a->attempt == b->attempt && a->evaluation == b->evaluation &&
           a->incarnation == b->incarnation && a->sequence == b->sequence;
}

uint64_t flush_id_hash(const struct flush_id *id) {
    const uint64_t words[3] = {(uint64_t)id->attempt << 32 | id->evaluation, id->incarnation,
                               id->sequence};
    return hash64(words, sizeof words);
}

void flush_id_encode(const struct flush_id *id, struct bytes *out) {
    size_t start = out->length;
    bytes_put_u32(out, id->attempt);
    bytes_put_u32(out, id->evaluation);
    bytes_put_u64(out, id->incarnation);
    bytes_put_u32(out, id->sequence);
    assert(out->length - start == FLUSH_ID_BYTES);
}

struct flush_id flush_id_decode(struct cursor *in) {
    struct flush_id id;
    size_t left = cursor_left(in);
    id.attempt = cursor_u32(in);
    id.evaluation = cursor_u32(in);
    id.incarnation = cursor_u64(in);
    id.sequence = cursor_u32(in);
    assert(in->failed || left - cursor_left(in) == FLUSH_ID_BYTES);
    return id;
}

/* ---- writing ---- */

struct message_writer {
    struct bytes *out;
    size_t start; /* of the body in `out` */
    size_t limit; /* bytes of a body of this type */
};

/* A text that is too long for its message is cut. Reasons are for people, and a long one must not
 * keep its message from being sent. Paths are limited where they come from. */
static void write_text(struct message_writer *writer, const char *text) {
    enum { KEPT_FREE = 64 }; /* for the fields behind it */
    size_t written = writer->out->length - writer->start + KEPT_FREE;
    size_t room = writer->limit > written ? writer->limit - written : 0;
    size_t length = text ? strnlen(text, room) : 0;
    bytes_put_u32(writer->out, (uint32_t)length);
    bytes_append(writer->out, text, length);
    bytes_put_u8(writer->out, 0);
}

static void write_list(struct message_writer *writer, const void *items, uint32_t length,
                       size_t size) {
    assert(items || !length);
    bytes_put_u32(writer->out, length);
    /* List items are pointed to in place when they are decoded, so they begin on a multiple of 8.
     */
    while ((writer->out->length - writer->start) % 8)
        bytes_put_u8(writer->out, 0);
    bytes_append(writer->out, items, length * size);
}

#define U8(field) bytes_put_u8(writer->out, body->field);
#define U32(field) bytes_put_u32(writer->out, body->field);
#define U64(field) bytes_put_u64(writer->out, body->field);
#define I64(field) bytes_put_i64(writer->out, body->field);
#define F64(field) bytes_put_f64(writer->out, body->field);
#define TEXT(field) write_text(writer, body->field);
#define BLOB(field)                                                                                \
    bytes_put_u32(writer->out, body->field.length);                                                \
    bytes_append(writer->out, body->field.data, body->field.length);
#define RUNS(field)                                                                                \
    write_list(writer, body->field.items, body->field.length, sizeof *body->field.items);
#define U64S RUNS
#define PARTS RUNS
#define FLUSH(field) flush_id_encode(&body->field, writer->out);
#define BOUNDS(field) bounds_encode(&body->field, writer->out);
#define MAXIMA(field) maxima_encode(&body->field, writer->out);
#define IN(section) write_section_##section(writer, &body->section);
#define SECTION(name, text, fields)                                                                \
    static void write_section_##name(struct message_writer *writer,                                \
                                     const struct section_##name *body) {                          \
        fields                                                                                     \
    }
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    static void write_##name(struct message_writer *writer, const struct message *message) {       \
        const struct message_##name *body = &message->name;                                        \
        fields                                                                                     \
    }
#include "wire/messages.def"

/* ---- reading: fields in the order in which they were written ---- */

struct message_reader {
    struct cursor cursor;
    const uint8_t *start;
    const char *why; /* the first fault, or NULL */
};

static void reader_fault(struct message_reader *reader, const char *why) {
    if (!reader->why)
        reader->why = why;
}

static const char *read_text(struct message_reader *reader) {
    size_t length = cursor_u32(&reader->cursor);
    const char *text = cursor_take(&reader->cursor, length + 1);
    if (!text)
        return "";
    if (memchr(text, 0, length + 1) != text + length)
        reader_fault(reader, "a text that does not end where it says");
    return text;
}

static struct blob read_blob(struct message_reader *reader) {
    uint32_t length = cursor_u32(&reader->cursor);
    const void *data = cursor_take(&reader->cursor, length);
    assert(data || reader->cursor.failed);
    return (struct blob){.data = data, .length = data ? length : 0};
}

static const void *read_list(struct message_reader *reader, size_t size, uint32_t *length) {
    uint32_t count = cursor_u32(&reader->cursor);
    *length = 0;
    while (!reader->cursor.failed && (reader->cursor.at - reader->start) % 8)
        if (cursor_u8(&reader->cursor))
            reader_fault(reader, "padding that is not zero");
    const void *items = cursor_take(&reader->cursor, count * size);
    if (items)
        *length = count;
    assert((uintptr_t)items % 8 == 0 && (items || !*length));
    return items;
}

#define U8(field) body->field = cursor_u8(&reader->cursor);
#define U32(field) body->field = cursor_u32(&reader->cursor);
#define U64(field) body->field = cursor_u64(&reader->cursor);
#define I64(field) body->field = cursor_i64(&reader->cursor);
#define F64(field) body->field = cursor_f64(&reader->cursor);
#define TEXT(field) body->field = read_text(reader);
#define BLOB(field) body->field = read_blob(reader);
#define RUNS(field)                                                                                \
    body->field.items = read_list(reader, sizeof *body->field.items, &body->field.length);
#define U64S RUNS
#define PARTS RUNS
#define FLUSH(field) body->field = flush_id_decode(&reader->cursor);
#define BOUNDS(field) body->field = bounds_decode(&reader->cursor);
#define MAXIMA(field) body->field = maxima_decode(&reader->cursor);
#define IN(section) read_section_##section(reader, &body->section);
#define SECTION(name, text, fields)                                                                \
    static void read_section_##name(struct message_reader *reader, struct section_##name *body) {  \
        fields                                                                                     \
    }
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    static void read_##name(struct message_reader *reader, struct message *message) {              \
        struct message_##name *body = &message->name;                                              \
        fields                                                                                     \
    }
#include "wire/messages.def"

/* ---- the table ---- */

struct message_kind {
    const char *name;
    size_t body_max;
    bool bulk;
    void (*write)(struct message_writer *writer, const struct message *message);
    void (*read)(struct message_reader *reader, struct message *message);
};

static const struct message_kind kinds[] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    [number] = {#NAME, limit, bulk, write_##name, read_##name},
#include "wire/messages.def"
};

#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    static_assert((number) > 0 && (number) <= UINT16_MAX && (limit) <= FRAME_BODY_BYTES_MAX &&     \
                      (bulk) <= 1,                                                                 \
                  "a frame can carry " #NAME);
#include "wire/messages.def"

static const uint16_t types[] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) number,
#include "wire/messages.def"
};

static const struct message_kind *kind_of(unsigned type) {
    return type < sizeof kinds / sizeof *kinds && kinds[type].name ? &kinds[type] : NULL;
}

const char *message_name(unsigned type) {
    const struct message_kind *kind = kind_of(type);
    return kind ? kind->name : "?";
}

size_t message_body_max(unsigned type) {
    const struct message_kind *kind = kind_of(type);
    return kind ? kind->body_max : 0;
}

bool message_has_bulk(unsigned type) {
    const struct message_kind *kind = kind_of(type);
    return kind && kind->bulk;
}

const uint16_t *message_types(size_t *count) {
    *count = sizeof types / sizeof *types;
    return types;
}

void message_encode(const struct message *message, struct bytes *body) {
    const struct message_kind *kind = kind_of(message->type);
    assert(kind);
    struct message_writer writer = {.out = body, .start = body->length, .limit = kind->body_max};
    kind->write(&writer, message);
    assert(body->length - writer.start <= kind->body_max);
}

int message_decode(unsigned type, const void *body, size_t length, struct message *message,
                   const char **why) {
    const struct message_kind *kind = kind_of(type);
    assert((uintptr_t)body % 8 == 0 || !length);
    struct message_reader reader = {.cursor = cursor_over(body, length), .start = body};
    *message = (struct message){.type = type};
    if (!kind)
        reader_fault(&reader, "unknown message type");
    else if (length > kind->body_max)
        reader_fault(&reader, "longer than its type allows");
    else
        kind->read(&reader, message);
    if (reader.cursor.failed)
        reader_fault(&reader, "cut short");
    else if (cursor_left(&reader.cursor))
        reader_fault(&reader, "more bytes than fields");
    *why = reader.why;
    return reader.why ? -1 : 0;
}

void outbox_init(struct outbox *outbox) {
    *outbox = (struct outbox){0};
    bytes_init(&outbox->bodies);
}

static void free_owned(struct outbox *outbox) {
    for (size_t i = 0; i < outbox->count; i++)
        free(outbox->envelopes[i].owned);
}

void outbox_release(struct outbox *outbox) {
    free_owned(outbox);
    free(outbox->envelopes);
    bytes_release(&outbox->bodies);
    outbox_init(outbox);
}

void outbox_clear(struct outbox *outbox) {
    assert(outbox->count <= outbox->capacity);
    free_owned(outbox);
    outbox->count = 0;
    bytes_clear(&outbox->bodies);
}

void outbox_add(struct outbox *outbox, uint32_t to, const struct message *message) {
    MEMORY_ROOM(outbox->envelopes, outbox->count, outbox->capacity);
    while (outbox->bodies.length % 8)
        bytes_put_u8(&outbox->bodies, 0);
    struct envelope *envelope = &outbox->envelopes[outbox->count++];
    *envelope = (struct envelope){.to = to,
                                  .type = message->type,
                                  .term = message->term,
                                  .body_offset = outbox->bodies.length,
                                  .bulk = message->bulk};
    message_encode(message, &outbox->bodies);
    envelope->body_length = outbox->bodies.length - envelope->body_offset;
    assert(!message_fault(message));
}

void outbox_add_owned(struct outbox *outbox, uint32_t to, const struct message *message,
                      void *bulk) {
    outbox_add(outbox, to, message);
    outbox->envelopes[outbox->count - 1].owned = bulk;
}

const void *outbox_body(const struct outbox *outbox, const struct envelope *envelope) {
    assert(envelope->body_offset % 8 == 0 &&
           envelope->body_offset + envelope->body_length <= outbox->bodies.length);
    return outbox->bodies.data + envelope->body_offset;
}
