#include "base/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are little-endian, as memory is");

void bytes_init(struct bytes *bytes) {
    *bytes = (struct bytes){0};
}

void bytes_release(struct bytes *bytes) {
    free(bytes->data);
    bytes_init(bytes);
}

void bytes_clear(struct bytes *bytes) {
    bytes->length = 0;
}

void *bytes_extend(struct bytes *bytes, size_t length) {
    size_t needed = bytes->length + length;
    assert(bytes->length <= bytes->capacity && needed >= length);
    if (needed > bytes->capacity || !bytes->data) {
        size_t capacity = bytes->capacity ? bytes->capacity : 64;
        while (capacity < needed)
            capacity += capacity;
        bytes->data = memory_resize(bytes->data, capacity, 1);
        bytes->capacity = capacity;
    }
    void *start = bytes->data + bytes->length;
    bytes->length = needed;
    return start;
}

void bytes_append(struct bytes *bytes, const void *data, size_t length) {
    if (length)
        memcpy(bytes_extend(bytes, length), data, length);
}

struct cursor cursor_over(const void *data, size_t length) {
    const uint8_t *at = length ? data : (const void *)""; /* none: no place to add 0 to */
    return (struct cursor){.at = at, .end = at + length};
}

size_t cursor_left(const struct cursor *cursor) {
    assert(cursor->at <= cursor->end);
    return (size_t)(cursor->end - cursor->at);
}

const void *cursor_take(struct cursor *cursor, size_t length) {
    if (cursor->failed || cursor_left(cursor) < length) {
        cursor->failed = true;
        return NULL;
    }
    const void *start = cursor->at;
    cursor->at += length;
    return start;
}

#define FIELD(name, type)                                                                          \
    void bytes_put_##name(struct bytes *bytes, type value) {                                       \
        bytes_append(bytes, &value, sizeof value);                                                 \
    }                                                                                              \
    type cursor_##name(struct cursor *cursor) {                                                    \
        type value = 0;                                                                            \
        const void *start = cursor_take(cursor, sizeof value);                                     \
        if (start)                                                                                 \
            memcpy(&value, start, sizeof value);                                                   \
        return value;                                                                              \
    }
FIELD(u8, uint8_t)
FIELD(u16, uint16_t)
FIELD(u32, uint32_t)
FIELD(u64, uint64_t)
FIELD(i64, int64_t)
FIELD(f64, double)
#undef FIELD
