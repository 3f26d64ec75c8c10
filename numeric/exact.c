#include "numeric/exact.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { NEGATIVE = 8 }; /* in an encoding, beside the bits of enum exact_special */

/* Limbs above this one only hold the sign: 2⁶⁴ terms of 2¹⁰²⁴ need 2162 bits. */
#define LIMBS_IN_USE (EXACT_LIMBS - 2)

static_assert(32 * LIMBS_IN_USE >= 1074 + 1024 + 64, "2⁶⁴ terms of any size fit");
static_assert(EXACT_TERMS_BETWEEN_CARRIES <= UINT32_C(1) << 31,
              "a limb of 2⁶³ has room for the terms, and for the limb before them");
static_assert(EXACT_LIMBS <= UINT8_MAX, "the number of a limb is sent as a byte");
static_assert((NEGATIVE &
               (EXACT_NOT_A_NUMBER | EXACT_POSITIVE_INFINITY | EXACT_NEGATIVE_INFINITY)) == 0,
              "the sign has a bit of its own");
static_assert(EXACT_ENCODED_MAX >= 4 + 4 * LIMBS_IN_USE, "an encoded limb takes four bytes");

/* Brings every limb but the last into [0, 2³²); the last one carries the sign. */
static void propagate(struct exact *sum) {
    int64_t carry = 0;
    assert(sum->pending <= EXACT_TERMS_BETWEEN_CARRIES);
    for (int i = 0; i < EXACT_LIMBS - 1; i++) {
        int64_t total = sum->limb[i] + carry;
        sum->limb[i] = (int64_t)((uint64_t)total & 0xffffffff);
        carry = total >> 32;
    }
    sum->limb[EXACT_LIMBS - 1] += carry;
    sum->pending = 1;
}

/* Makes `sum` its magnitude, with carries propagated; true if it was negative. */
static bool take_sign(struct exact *sum) {
    propagate(sum);
    if (sum->limb[EXACT_LIMBS - 1] >= 0)
        return false;
    for (int i = 0; i < EXACT_LIMBS; i++)
        sum->limb[i] = -sum->limb[i];
    propagate(sum);
    assert(sum->limb[EXACT_LIMBS - 1] >= 0);
    return true;
}

/* One bit: NaN, one of the infinities, or 0. */
static uint8_t special_kind(uint8_t special) {
    bool both = (special & EXACT_POSITIVE_INFINITY) && (special & EXACT_NEGATIVE_INFINITY);
    return (special & EXACT_NOT_A_NUMBER) || both ? EXACT_NOT_A_NUMBER : special;
}

void exact_init(struct exact *sum) {
    *sum = (struct exact){0};
}

void exact_add(struct exact *sum, double value) {
    struct exact_term term = exact_split(value);
    int64_t *limb = &sum->limb[term.limb];
    limb[0] += term.part[0];
    limb[1] += term.part[1];
    limb[2] += term.part[2];
    sum->special |= (uint8_t)term.special;
    if (++sum->pending >= EXACT_TERMS_BETWEEN_CARRIES)
        propagate(sum);
}

void exact_merge(struct exact *sum, const struct exact *other) {
    struct exact carried;
    if (other->pending >= EXACT_TERMS_BETWEEN_CARRIES / 2) {
        carried = *other;
        propagate(&carried);
        other = &carried;
    }
    if (sum->pending >= EXACT_TERMS_BETWEEN_CARRIES / 2)
        propagate(sum);
    for (int i = 0; i < EXACT_LIMBS; i++)
        sum->limb[i] += other->limb[i];
    sum->pending += other->pending;
    assert(sum->pending <= EXACT_TERMS_BETWEEN_CARRIES);
    sum->special |= other->special;
}

/* The bit of a magnitude that counts 2^(position − 1074). */
static bool bit_at(const struct exact *sum, int position) {
    return position >= 0 && (sum->limb[position / 32] >> (position % 32) & 1);
}

/* True if a bit below `position` is set. */
static bool any_below(const struct exact *sum, int position) {
    assert(position >= 0 && position < 32 * EXACT_LIMBS);
    for (int i = 0; i < position / 32; i++)
        if (sum->limb[i])
            return true;
    uint64_t partial = (UINT64_C(1) << (position % 32)) - 1;
    return ((uint64_t)sum->limb[position / 32] & partial) != 0;
}

/* The position of the highest bit of a magnitude, −1 for zero. */
static int highest_bit(const struct exact *sum) {
    for (int i = EXACT_LIMBS - 1; i >= 0; i--)
        if (sum->limb[i])
            return 32 * i + 63 - __builtin_clzll((uint64_t)sum->limb[i]);
    return -1;
}

double exact_value(const struct exact *sum) {
    uint8_t special = special_kind(sum->special);
    if (special)
        return special == EXACT_NOT_A_NUMBER        ? NAN
               : special == EXACT_POSITIVE_INFINITY ? INFINITY
                                                    : -INFINITY;
    struct exact magnitude = *sum;
    bool negative = take_sign(&magnitude);
    int top = highest_bit(&magnitude);
    assert(top < 32 * EXACT_LIMBS - 1);
    int lowest = top > 52 ? top - 52 : 0;
    uint64_t mantissa = 0;
    for (int position = top; position >= lowest; position--)
        mantissa = mantissa << 1 | bit_at(&magnitude, position);
    if (bit_at(&magnitude, lowest - 1) && ((mantissa & 1) || any_below(&magnitude, lowest - 1)))
        mantissa++;
    assert(mantissa <= UINT64_C(1) << 53);
    double value = ldexp((double)mantissa, lowest - 1074);
    return negative ? -value : value;
}

/* Four bytes: sign and special value, first limb in use, number of limbs, 0. Then the limbs of the
 * magnitude, the first and the last of which are not 0: that makes the form canonical. */
void exact_encode(const struct exact *sum, struct bytes *out) {
    struct exact magnitude = *sum;
    uint8_t flags = special_kind(sum->special);
    if (flags)
        exact_init(&magnitude);
    else if (take_sign(&magnitude))
        flags = NEGATIVE;
    int first = 0;
    int end = EXACT_LIMBS;
    while (end > 0 && !magnitude.limb[end - 1])
        end--;
    while (first < end && !magnitude.limb[first])
        first++;
    bytes_put_u8(out, flags);
    bytes_put_u8(out, (uint8_t)first);
    bytes_put_u8(out, (uint8_t)(end - first));
    bytes_put_u8(out, 0);
    for (int i = first; i < end; i++)
        bytes_put_u32(out, (uint32_t)magnitude.limb[i]);
}

/* True if the four leading bytes can start a canonical form. */
static bool header_is_canonical(uint8_t flags, uint8_t first, uint8_t count, uint8_t zero) {
    if (zero || first + count > LIMBS_IN_USE)
        return false;
    if (count)
        return flags == 0 || flags == NEGATIVE;
    return first == 0 && (flags == 0 || flags == EXACT_NOT_A_NUMBER ||
                          flags == EXACT_POSITIVE_INFINITY || flags == EXACT_NEGATIVE_INFINITY);
}

static bool decode_limbs(struct exact *sum, uint8_t first, uint8_t count, bool negative,
                         struct cursor *in) {
    assert(first + count <= LIMBS_IN_USE);
    for (int i = first; i < first + count; i++) {
        int64_t limb = cursor_u32(in);
        if (!limb && (i == first || i == first + count - 1))
            return false;
        sum->limb[i] = negative ? -limb : limb;
    }
    return true;
}

bool exact_decode(struct exact *sum, struct cursor *in) {
    exact_init(sum);
    uint8_t flags = cursor_u8(in);
    uint8_t first = cursor_u8(in);
    uint8_t count = cursor_u8(in);
    uint8_t zero = cursor_u8(in);
    if (in->failed || !header_is_canonical(flags, first, count, zero) ||
        !decode_limbs(sum, first, count, flags == NEGATIVE, in) || in->failed) {
        exact_init(sum);
        in->failed = true;
        return false;
    }
    sum->special = (uint8_t)(flags & ~NEGATIVE);
    assert(sum->special == special_kind(sum->special));
    sum->pending = 1;
    return true;
}

void totals_init(struct totals *totals, uint32_t count) {
    assert(count <= TOTALS_MAX);
    totals->count = count;
    for (uint32_t i = 0; i < count; i++)
        exact_init(&totals->sum[i]);
}

void totals_merge(struct totals *into, const struct totals *from) {
    assert(into->count == from->count);
    for (uint32_t i = 0; i < into->count; i++)
        exact_merge(&into->sum[i], &from->sum[i]);
}

void totals_encode(const struct totals *totals, struct bytes *out) {
    assert(totals->count <= TOTALS_MAX);
    for (uint32_t i = 0; i < totals->count; i++)
        exact_encode(&totals->sum[i], out);
}

bool totals_decode(struct totals *totals, uint32_t count, const void *data, size_t length) {
    struct cursor cursor = cursor_over(data, length);
    totals_init(totals, count);
    for (uint32_t i = 0; i < count; i++)
        if (!exact_decode(&totals->sum[i], &cursor))
            break;
    bool whole = !cursor.failed && cursor_left(&cursor) == 0;
    if (!whole)
        totals_init(totals, count);
    return whole;
}
