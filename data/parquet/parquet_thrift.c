/* Thrift's compact protocol, as its specification has it. */
#include <string.h>

#include "data/parquet/parquet.h"

#define DEPTH_MAX 32

/* How values go; those that no struct of Parquet has are skipped alone. */
enum { THRIFT_TRUE = 1, THRIFT_FALSE, THRIFT_I8, THRIFT_I16, THRIFT_I64 = 6, THRIFT_DOUBLE };
enum { THRIFT_LIST = 9, THRIFT_SET, THRIFT_MAP };

struct thrift thrift_over(const void *data, size_t length) {
    return (struct thrift){.cursor = cursor_over(data, length)};
}

bool thrift_failed(const struct thrift *thrift) {
    return thrift->cursor.failed;
}

static void fail(struct thrift *thrift) {
    thrift->cursor.failed = true;
    thrift->cursor.at = thrift->cursor.end;
}

static uint64_t varint(struct thrift *thrift) {
    uint64_t value;
    if (parquet_varint(&thrift->cursor, &value))
        return value;
    fail(thrift);
    return 0;
}

static int64_t zigzag(struct thrift *thrift) {
    return (int64_t)parquet_zigzag(varint(thrift));
}

uint8_t thrift_field(struct thrift *thrift, int16_t *id) {
    uint8_t head = cursor_u8(&thrift->cursor), type = head & 15;
    if (thrift->cursor.failed || !type)
        return 0;
    int64_t next = head >> 4 ? *id + (head >> 4) : zigzag(thrift);
    if (next <= INT16_MIN || next > INT16_MAX)
        fail(thrift);
    *id = (int16_t)next;
    return thrift->cursor.failed ? 0 : type;
}

int64_t thrift_integer(struct thrift *thrift, uint8_t type) {
    if (type == THRIFT_I8)
        return (int8_t)cursor_u8(&thrift->cursor);
    if (type < THRIFT_I16 || type > THRIFT_I64)
        fail(thrift);
    return thrift->cursor.failed ? 0 : zigzag(thrift);
}

bool thrift_bool(struct thrift *thrift, uint8_t type) {
    if (type != THRIFT_TRUE && type != THRIFT_FALSE)
        fail(thrift);
    return type == THRIFT_TRUE;
}

const char *thrift_text(struct thrift *thrift, uint8_t type, size_t *length) {
    *length = 0;
    if (type != THRIFT_BINARY)
        fail(thrift);
    uint64_t bytes = varint(thrift);
    if (bytes > cursor_left(&thrift->cursor))
        fail(thrift);
    if (thrift->cursor.failed)
        return "";
    *length = bytes;
    return cursor_take(&thrift->cursor, bytes);
}

bool thrift_struct(struct thrift *thrift, uint8_t type) {
    if (type != THRIFT_STRUCT)
        fail(thrift);
    return !thrift->cursor.failed;
}

uint32_t thrift_list(struct thrift *thrift, uint8_t type, uint8_t *of) {
    uint8_t head = cursor_u8(&thrift->cursor);
    uint64_t count = head >> 4;
    *of = head & 15;
    if (type != THRIFT_LIST && type != THRIFT_SET)
        fail(thrift);
    if (count == 15)
        count = varint(thrift);
    if (count > cursor_left(&thrift->cursor) || count > UINT32_MAX)
        fail(thrift);
    return thrift->cursor.failed ? 0 : (uint32_t)count;
}

static void skip_element(struct thrift *thrift, uint8_t type) {
    if (type == THRIFT_TRUE || type == THRIFT_FALSE)
        cursor_u8(&thrift->cursor); /* of a list they have a byte each */
    else
        thrift_skip(thrift, type);
}

static void skip_list(struct thrift *thrift, uint8_t type) {
    uint8_t of;
    uint32_t count = thrift_list(thrift, type, &of);
    for (uint32_t i = 0; i < count && !thrift->cursor.failed; i++)
        skip_element(thrift, of);
}

static void skip_map(struct thrift *thrift) {
    uint64_t count = varint(thrift);
    uint8_t types = count ? cursor_u8(&thrift->cursor) : 0;
    for (uint64_t i = 0; i < count && !thrift->cursor.failed; i++) {
        skip_element(thrift, types >> 4);
        skip_element(thrift, types & 15);
    }
}

static void skip_struct(struct thrift *thrift) {
    int16_t id = 0;
    uint8_t type;
    while ((type = thrift_field(thrift, &id)))
        thrift_skip(thrift, type);
}

void thrift_skip(struct thrift *thrift, uint8_t type) {
    size_t length;
    if (++thrift->depth > DEPTH_MAX || !type || type > THRIFT_STRUCT)
        fail(thrift);
    else if (type >= THRIFT_I8 && type <= THRIFT_I64)
        thrift_integer(thrift, type);
    else if (type == THRIFT_DOUBLE)
        cursor_u64(&thrift->cursor);
    else if (type == THRIFT_BINARY)
        thrift_text(thrift, type, &length);
    else if (type == THRIFT_LIST || type == THRIFT_SET)
        skip_list(thrift, type);
    else if (type == THRIFT_MAP)
        skip_map(thrift);
    else if (type == THRIFT_STRUCT)
        skip_struct(thrift);
    thrift->depth--;
}
