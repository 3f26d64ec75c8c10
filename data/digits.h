/* Runs of digits, eight bytes of text at a time. */
#ifndef DML_DATA_DIGITS_H
#define DML_DATA_DIGITS_H

#include <stdint.h>
#include <string.h>

/* So many bytes may be read behind the 0 that ends a text. */
#define DIGITS_READ_PAST 8

/* How many digits stand at `p`, up to eight, and their value; a byte that is no digit ends them.
 * The length of a number cannot be predicted, so there is no branch for each digit. */
static inline unsigned digits_take(const char *p, uint32_t *value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t text;
    memcpy(&text, p, sizeof text);
    /* Digits become 0 … 9. A byte of 10 or more gets its highest bit set; what it carries over,
     * only bytes behind it see. */
    text ^= UINT64_C(0x3030303030303030);
    uint64_t ends = (text | (text + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080);
    unsigned count = ends ? (unsigned)__builtin_ctzll(ends) / 8 : 8;
    if (count == 0)
        return 0;
    /* The first digit stands lowest. With zeros before the digits there are eight of them; then
     * pairs, fours and the whole are put together. */
    text <<= 8 * (8 - count);
    text = text * 10 + (text >> 8);
    *value =
        (uint32_t)(((text & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
                    (text >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
                   32);
    return count;
#else
    unsigned count = 0;
    for (*value = 0; count < 8 && (unsigned char)(p[count] - '0') < 10; count++)
        *value = *value * 10 + (uint32_t)(p[count] - '0');
    return count;
#endif
}

#endif
