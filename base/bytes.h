/* A growing run of bytes, and bounded reading and writing of little-endian fields.
 *
 * A `struct cursor` reads from memory that it does not own. Reading past the end yields zeros and
 * sets `failed`, so a decoder reads all its fields and asks once at the end. */
#ifndef DML_BASE_BYTES_H
#define DML_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data; /* owned */
    size_t length;
    size_t capacity;
};

void bytes_init(struct bytes *bytes);
void bytes_release(struct bytes *bytes);
void bytes_clear(struct bytes *bytes); /* keeps the memory */

/* Adds `length` bytes at the end and returns where they start. Their contents are undefined; the
 * pointer is valid until the next call that adds bytes. */
void *bytes_extend(struct bytes *bytes, size_t length);

void bytes_append(struct bytes *bytes, const void *data, size_t length);
void bytes_put_u8(struct bytes *bytes, uint8_t value);
void bytes_put_u16(struct bytes *bytes, uint16_t value);
void bytes_put_u32(struct bytes *bytes, uint32_t value);
void bytes_put_u64(struct bytes *bytes, uint64_t value);
void bytes_put_i64(struct bytes *bytes, int64_t value);
void bytes_put_f64(struct bytes *bytes, double value);

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

struct cursor cursor_over(const void *data, size_t length);
size_t cursor_left(const struct cursor *cursor);

/* The next `length` bytes, not copied; NULL if fewer are left. */
const void *cursor_take(struct cursor *cursor, size_t length);
uint8_t cursor_u8(struct cursor *cursor);
uint16_t cursor_u16(struct cursor *cursor);
uint32_t cursor_u32(struct cursor *cursor);
uint64_t cursor_u64(struct cursor *cursor);
int64_t cursor_i64(struct cursor *cursor);
double cursor_f64(struct cursor *cursor);

#endif
