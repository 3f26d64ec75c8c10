/* What cells of a text hold: numbers, read as strtod() reads them in the C locale, correctly
 * rounded; and lists. */
#ifndef DML_DATA_TEXT_NUMBER_H
#define DML_DATA_TEXT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined __SSE2__
#include <emmintrin.h>
#endif

#include "base/bytes.h"

/* Reads a decimal number at `at`. The text must end with a byte that no number contains (a line
 * end, or the final 0). Returns the end of the number; NULL if there is no number or it is beyond
 * the range of a double. NaN and infinity are not numbers here. */
const char *number_parse(const char *at, double *value);

/* Reads a text that is a number as a whole; false if it is not. */
bool number_of_text(const char *text, double *value);

/* As number_of_text(); with `decimal_comma` a comma stands for the point, and a text with a point
 * is no number, as it may separate thousands. The text stays as it is. */
bool number_of_decimal(bool decimal_comma, char *text, double *value);

/* Whether a text looks like a number with a decimal comma. */
bool number_has_decimal_comma(const char *text);

/* Reads a text that is an amount as a whole, as people and spreadsheets write it: with the sign of
 * a currency or its code, or with %, before or after the digits; with groups of thousands, apart
 * by a blank, an apostrophe, or that of comma and point which is not `point`; negative by -, by
 * U+2212, or in parentheses; 0 for a dash beside a currency. 12% is 12. A plain number is an
 * amount. False for any other. */
bool number_of_amount(const char *text, char point, double *value);

/* Whether a text is digits that commas part into thousands, or one decimal comma does: "1,285". */
bool number_is_thousands(const char *text);

/* What stands after a number, and perhaps a blank, if that is one word of a few letters, such as
 * the "kg" of "12 kg"; else "". */
const char *number_unit(const char *text);

/* Whether a text is a number except for the currencies, minus signs, blanks and apostrophes that
 * number_of_amount() knows, "%", commas, and points before a decimal comma; or except for its unit,
 * if that is `unit`. */
bool number_is_formatted(const char *text, const char *unit);

/* What such a text must be stripped to, for a message: without all but digits and its decimal
 * point, or the comma that is one, as in "1.200,50 \u20ac" and, with `decimal_comma`, everywhere.
 */
const char *number_bare_form(const char *text, bool decimal_comma);

/* Whether a text that is a number is rather a code, of which the number lacks something: an integer
 * with zeros before it, or of 2^53 or more, where several integers have one double. Labels that are
 * such keep their text. */
bool number_is_code(const char *text, size_t length);

#define NUMBER_TEXT 32

/* The shortest text that reads back as `value`: "1", "-0.5". */
void number_format(double value, char text[NUMBER_TEXT]);

/* The text with the fewest digits, as Arrow writes it: "0.1", "-0", with an exponent from 1e+10 on
 * and below 1e-6; "nan", "inf" and "-inf". A number of 32 bits has it of the double that its own
 * shortest text means. Returns its length. */
size_t number_shortest(double value, char text[NUMBER_TEXT]);

/* Reads a list, as the labels of rows that have several are: puts the next part of *at, without the
 * blanks around it and with a 0 after it, into `part`; *at moves on. Empty parts do not count.
 * False after the last part. */
bool list_next(const char **at, char separator, struct bytes *part);

/* For qsort(): doubles that are not NaN, and ids. A struct whose first member is its id is sorted
 * by it, too. */
int compare_doubles(const void *a, const void *b);
int compare_ids(const void *a, const void *b);

/* ---- numbers as most texts have them ----
 *
 * They are read many bytes at a time: how many digits they have cannot be predicted, so there is no
 * branch for each. */

/* So many bytes may be read after the 0 that ends a text. */
#define DIGITS_READ_PAST 16

#define DIGITS_FEW 8
#define DIGITS_MANY 15 /* as many always fit into a double */

/* The powers of ten. */
static const uint64_t digits_power[DIGITS_MANY + 1] = {1,
                                                       10,
                                                       100,
                                                       1000,
                                                       10000,
                                                       100000,
                                                       1000000,
                                                       10000000,
                                                       100000000,
                                                       1000000000,
                                                       10000000000,
                                                       100000000000,
                                                       1000000000000,
                                                       10000000000000,
                                                       100000000000000,
                                                       1000000000000000};
static const double digits_scale[DIGITS_MANY + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* The bits of a double, by which numbers are hashed and told apart. */
static inline uint64_t number_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static inline bool digits_is(char c) {
    return (unsigned char)(c - '0') < 10;
}

/* The number of the first `count` of eight characters of text, from one to DIGITS_FEW, all digits;
 * in memory the first stands lowest. */
static inline uint32_t digits_join(uint64_t text, unsigned count) {
    /* With zeros before the digits there are eight of them; then pairs, fours and the whole are put
     * together. */
    text = (text ^ UINT64_C(0x3030303030303030)) << 8 * (DIGITS_FEW - count);
    text = text * 10 + (text >> 8);
    return (
        uint32_t)(((text & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
                   (text >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
                  32);
}

/* Eight characters, the first lowest. */
static inline uint64_t digits_load(const char *p) {
    uint64_t text = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&text, p, sizeof text);
#else
    for (unsigned i = 0; i < sizeof text; i++)
        text |= (uint64_t)(unsigned char)p[i] << 8 * i;
#endif
    return text;
}

/* How many digits stand at `p`, up to DIGITS_FEW. */
static inline unsigned digits_count(const char *p) {
    /* Digits become 0 … 9. A byte of 10 or more gets its highest bit set; what it carries over,
     * only bytes after it see. */
    uint64_t text = digits_load(p) ^ UINT64_C(0x3030303030303030);
    uint64_t ends = (text | (text + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080);
    return ends ? (unsigned)__builtin_ctzll(ends) / 8 : DIGITS_FEW;
}

/* The number of the `count` digits at `p`, from one to DIGITS_FEW. */
static inline uint32_t digits_few(const char *p, unsigned count) {
    return digits_join(digits_load(p), count);
}

/* The number of the `count` digits at `p`, from one to DIGITS_MANY. */
static inline uint64_t digits_many(const char *p, unsigned count) {
    if (count <= DIGITS_FEW)
        return digits_few(p, count);
    unsigned rest = count - DIGITS_FEW;
    return digits_few(p, DIGITS_FEW) * digits_power[rest] + digits_few(p + DIGITS_FEW, rest);
}

/* The number of digits with a point after the first `whole`, fewer than eight. */
static inline uint64_t digits_around_point(const char *p, unsigned whole, unsigned count) {
    const uint64_t before = (UINT64_C(1) << 8 * whole) - 1;
    uint64_t text = (digits_load(p) & before) | (digits_load(p + 1) & ~before);
    if (count <= DIGITS_FEW)
        return digits_join(text, count);
    unsigned rest = count - DIGITS_FEW;
    return digits_join(text, DIGITS_FEW) * digits_power[rest] +
           digits_few(p + 1 + DIGITS_FEW, rest);
}

/* Sixteen bytes of text: a bit for each, the first lowest. */
struct digits_window {
    uint32_t ends;   /* the delimiter, blanks, control characters */
    uint32_t others; /* whatever is no digit */
};

static inline struct digits_window digits_look(const char *p, char delimiter) {
#if defined __SSE2__
    __m128i text = _mm_loadu_si128((const void *)p), blank = _mm_set1_epi8(' ');
    __m128i digit = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
    __m128i is_end = _mm_cmpeq_epi8(_mm_min_epu8(text, blank), text);
    if (delimiter != ' ')
        is_end = _mm_or_si128(is_end, _mm_cmpeq_epi8(text, _mm_set1_epi8(delimiter)));
    return (struct digits_window){.ends = (uint32_t)_mm_movemask_epi8(is_end),
                                  .others = (uint32_t)_mm_movemask_epi8(is_digit) ^ 0xffff};
#else
    struct digits_window window = {0};
    for (unsigned i = 0; i < 16; i++) {
        window.ends |= (uint32_t)((unsigned char)p[i] <= ' ' || p[i] == delimiter) << i;
        window.others |= (uint32_t)!digits_is(p[i]) << i;
    }
    return window;
#endif
}

/* Reads the number at `p`: up to DIGITS_MANY digits, perhaps with a point among them and a minus
 * before, and then a delimiter, a blank or a control character. Mantissa and power of ten are exact
 * doubles, so their quotient is rounded correctly. Returns the end; NULL for anything else, which
 * may be a number or not. */
static inline const char *digits_number(const char *p, char delimiter, double *value) {
    struct digits_window window = digits_look(p, delimiter);
    if (!window.ends)
        return NULL;
    const char *end = p + __builtin_ctz(window.ends);
    unsigned negative = *p == '-', places = 0;
    uint32_t others = (window.others & (window.ends ^ (window.ends - 1)) >> 1) - negative;
    const char *first = p + negative;
    unsigned count = (unsigned)(end - first);
    uint64_t mantissa;
    if (!count)
        return NULL;
    if (!others) {
        mantissa = digits_many(first, count);
    } else {
        const char *point = p + __builtin_ctz(others);
        unsigned whole = (unsigned)(point - first);
        if (*point != '.' || others & (others - 1) || whole >= DIGITS_FEW || --count == 0)
            return NULL;
        places = count - whole;
        if (whole == 1 && places && *first == '0') /* most fractions */
            mantissa = digits_many(point + 1, places);
        else
            mantissa = digits_around_point(first, whole, count);
    }
    double number = (double)(int64_t)mantissa / digits_scale[places];
    *value = negative ? -number : number;
    return end;
}

#endif
