/* LIBSVM text: LABEL ID:VALUE ID:VALUE … # comment */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "data/digits.h"
#include "data/format.h"
#include "data/number.h"

/* How much of a line a message quotes. */
#define QUOTED 40

static const char *skip_blanks(const char *p) {
    while (is_blank(*p))
        p++;
    return p;
}

static int word_length(const char *p) {
    int length = 0;
    while (length < QUOTED && p[length] && !is_blank(p[length]) && p[length] != '\n')
        length++;
    return length;
}

/* The id at `p`, up to its colon; NULL if there is none that fits. */
static const char *parse_id(const char *p, uint64_t *id) {
    uint64_t value = 0;
    const char *first = p;
    for (; (unsigned char)(*p - '0') < 10; p++) {
        value = value * 10 + (uint64_t)(*p - '0');
        if (value > FEATURE_ID_MAX)
            return NULL;
    }
    *id = value;
    return p > first && *p == ':' && value ? p : NULL;
}

static bool reject_id(struct batch *batch, uint64_t number, const char *word) {
    size_t digits = strspn(word, "0123456789");
    int length = word_length(word);
    if (!digits || word[digits] != ':')
        return batch_reject(batch, number, "expected INDEX:VALUE but found \"%.*s\"", length, word);
    if (strspn(word, "0") == digits)
        return batch_reject(batch, number, "index 0 in \"%.*s\": indices start at 1", length, word);
    return batch_reject(batch, number, "the index in \"%.*s\" is over the limit of %llu", length,
                        word, (unsigned long long)FEATURE_ID_MAX);
}

static bool is_value_end(const char *p) {
    return !p || is_blank(*p) || *p == '\0';
}

/* Reads the label if the line has one; false if the line was rejected. */
static bool parse_label(const struct format *format, struct batch *batch, const char **at,
                        uint64_t number, double *label) {
    const char *first = *at;
    const char *end = number_parse(first, label);
    if (end && is_value_end(end)) {
        *at = end;
        *label += 0.0; /* −0 is 0 */
        return true;
    }
    bool missing = first[strcspn(first, ": \t")] == ':';
    if (missing && format->options->label_optional) {
        *label = NAN;
        return true;
    }
    int length = word_length(first);
    if (missing)
        return batch_reject(batch, number,
                            "the line begins with \"%.*s\" where its label should be", length,
                            first);
    return batch_reject(batch, number, "the label \"%.*s\" is not a finite number", length, first);
}

/* The digits of a value that number_short() reads: fewer than 2^53 holds. */
#define SHORT_DIGITS 15

/* Reads the usual number: a few digits, perhaps with a point among them. Mantissa and power of ten
 * are exact doubles, so their quotient is rounded as number_parse() rounds it. NULL for anything
 * else, which may be a number or not. */
static inline const char *parse_short(const char *p, double *value) {
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    static const uint32_t power_of_rest[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    bool negative = *p == '-';
    uint32_t part = 0, rest = 0;
    unsigned whole = digits_take(p += negative, &part), places = 0;
    uint64_t mantissa = part;
    if (whole == 8)
        return NULL;
    p += whole;
    if (*p == '.') {
        unsigned more = 0;
        places = digits_take(++p, &part);
        if (places == 8)
            more = digits_take(p + 8, &rest);
        if (whole + places + more == 0 || whole + places + more > SHORT_DIGITS)
            return NULL;
        mantissa = mantissa * (uint64_t)power[places] + (places ? part : 0);
        if (more)
            mantissa = mantissa * power_of_rest[more] + rest;
        places += more;
        p += places;
    } else if (!whole) {
        return NULL;
    }
    double number = (double)mantissa / power[places];
    *value = negative ? -number : number;
    return is_blank(*p) || !*p ? p : NULL;
}

/* The value at `p`; NULL if there is no number, or it goes on behind it. */
static inline const char *parse_value(const char *p, double *value) {
    unsigned digit = (unsigned char)(*p - '0');
    if (digit < 10 && is_value_end(p + 1)) { /* most counts, and all ones */
        *value = digit;
        return p + 1;
    }
    const char *end = parse_short(p, value);
    if (end)
        return end;
    end = number_parse(p, value);
    return end && is_value_end(end) ? end : NULL;
}

/* As parse_id(), for an id of up to seven digits. */
static inline const char *parse_any_id(const char *p, uint64_t *id) {
    uint32_t value;
    unsigned digits = digits_take(p, &value);
    if (digits == 0 || digits == 8 || p[digits] != ':' || !value)
        return parse_id(p, id);
    *id = value;
    return p + digits;
}

bool libsvm_parse_line(const struct format *format, struct batch *batch, char *line, char *end,
                       uint64_t number) {
    char *comment = memchr(line, '#', (size_t)(end - line));
    if (comment)
        end = comment;
    *end = '\0';
    const char *p = skip_blanks(line);
    if (p == end)
        return false;
    batch_reserve(batch, (uint64_t)(end - p) / 2 + 1);
    double label;
    if (!parse_label(format, batch, &p, number, &label))
        return false;
    bool sorted = true;
    uint64_t id, before = 0;
    for (p = skip_blanks(p); p < end && *p; p = skip_blanks(p)) {
        const char *colon = parse_any_id(p, &id);
        if (!colon)
            return reject_id(batch, number, p);
        double value;
        const char *behind = parse_value(colon + 1, &value);
        if (!behind)
            return batch_reject(batch, number, "the value in \"%.*s\" is not a finite number",
                                word_length(p), p);
        sorted &= id > before;
        before = id;
        batch_value(batch, id, value);
        p = behind;
    }
    if (p < end)
        return batch_reject(batch, number, "a zero byte: is this a text file?");
    if (!batch_row(batch, label, NULL, sorted, &id))
        return batch_reject(batch, number, "index %llu is repeated", (unsigned long long)id);
    return true;
}
