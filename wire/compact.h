/* Bulk in fewer bytes, for connections between hosts: without loss, and so fast that it is done for
 * each frame anew.
 *
 * Bulk is taken as 64-bit words, in blocks of 64. A word that was there lately is one byte, its
 * place in a table of 256 words that both ends keep: columns that the same rows have get the same
 * sums. The others of a block are numbers of as few bits as the longest of them needs: sums are
 * often shorter than 64 bits, a double that was a float ends in 29 zeros, and offsets rise by
 * little.
 *
 *   bytes
 *       8  which words are repeats, lowest bit first
 *       1  form of the others (enum compact_form)
 *       1  how many of their lowest bits are zero in all, and left out
 *       1  bits of each number: 0 to 56, or 64 for a word as it is
 *       2  the least exponent among them; else 0
 *       1  for each repeat: its place in the table
 *          the numbers, lowest bit first, padded to whole bytes
 *
 * What is behind the last whole word follows as it is. The table begins with zeros; a word has the
 * place compact_place(), and stays until another takes it. All little-endian. */
#ifndef DML_WIRE_COMPACT_H
#define DML_WIRE_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum compact_form {
    COMPACT_INTEGERS, /* with a sign, which is their lowest bit: 2·n, or −2·n − 1 */
    COMPACT_DOUBLES, /* beyond the power of two of the least exponent; the sign is the lowest bit */
    COMPACT_OFFSETS, /* two of 32 bits each: how far each is behind the one before, half of the
                        bits for the first */
    COMPACT_FORMS,
};

enum {
    COMPACT_WORDS = 64,        /* in a block */
    COMPACT_HEADER_BYTES = 13, /* of a block */
    COMPACT_BITS_MAX = 56,     /* of a number: it is read with the 64 bits from its byte on */
    COMPACT_PADDING = 8,       /* bytes behind what is packed that may be read or written */
    COMPACT_LENGTH_MIN = 512,  /* less than this is sent as it is */
};

static inline unsigned compact_place(uint64_t word) {
    return (unsigned)(word * UINT64_C(0x9E3779B97F4A7C15) >> 56);
}

/* Packs `length` bytes into `packed`, which has room for compact_room(length). Returns how many
 * bytes that took; 0 if it would not save an eighth: then the content of `packed` means nothing. */
size_t compact_pack(const void *data, size_t length, uint8_t *packed);
size_t compact_room(size_t length);

/* The least that so many bytes can be packed into. Whoever announces more than that in less is
 * refused before there is memory for it. */
size_t compact_least(size_t length);

/* Unpacks all of `packed`, which COMPACT_PADDING bytes follow, into `length` bytes at `data`. False
 * if it is not the packed form of so many bytes; the content of `data` means nothing then. */
bool compact_unpack(const uint8_t *packed, size_t packed_length, void *data, size_t length);

#endif
