#include "data/parquet/parquet_cell.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/number.h"
#include "data/text/zone.h"

#define SECONDS_A_DAY 86400
#define DAYS_TO_1970 719162        /* from the first day of the year 1 */
#define JULIAN_DAY_OF_1970 2440588 /* which began at the noon before */
#define DECIMAL_BYTES_MAX 32
#define TEXT_ROOM 64 /* of all that is no text, but for decimals */
#define EXACT_INTEGER (INT64_C(1) << 53)

static const uint8_t *value_at(const struct parquet_span *span, uint32_t i) {
    assert(i < span->values->count && span->values->width);
    return span->values->data + (size_t)i * span->values->width;
}

/* ---- integers ---- */

static int64_t integer_at(const struct parquet_span *span, uint32_t i) {
    int32_t narrow;
    int64_t wide;
    if (span->column->type == PARQUET_INT32) {
        memcpy(&narrow, value_at(span, i), sizeof narrow);
        return span->column->meaning == PARQUET_UNSIGNED ? (int64_t)(uint32_t)narrow : narrow;
    }
    memcpy(&wide, value_at(span, i), sizeof wide);
    return wide;
}

/* ---- numbers of 32 and 16 bits ---- */

static double half_at(const struct parquet_span *span, uint32_t i) {
    const uint8_t *at = value_at(span, i);
    uint32_t bits = at[0] | (uint32_t)at[1] << 8, exponent = bits >> 10 & 31;
    double fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24));
}

static float float_at(const struct parquet_span *span, uint32_t i) {
    float value;
    memcpy(&value, value_at(span, i), sizeof value);
    return value;
}

static double double_at(const struct parquet_span *span, uint32_t i) {
    double value;
    memcpy(&value, value_at(span, i), sizeof value);
    return value;
}

/* A text of digits, the sign before them and the point in their place. */
static size_t decimal_text(const struct parquet_span *span, uint32_t i, char *to);

static double decimal_at(const struct parquet_span *span, uint32_t i) {
    char text[128];
    double number;
    if (span->values->width != 4 && span->values->width != 8)
        return decimal_text(span, i, text) && number_of_text(text, &number) ? number : (double)NAN;
    bool integer = span->column->type == PARQUET_INT32 || span->column->type == PARQUET_INT64;
    int64_t value = integer ? integer_at(span, i) : EXACT_INTEGER + 1;
    if (value <= EXACT_INTEGER && value >= -EXACT_INTEGER && span->column->scale < EXACT_POWERS)
        return (double)value / exact_powers[span->column->scale];
    return decimal_text(span, i, text) && number_of_text(text, &number) ? number : (double)NAN;
}

static bool has_number(const struct parquet_column *column) {
    return column->meaning == PARQUET_HALF || column->meaning == PARQUET_DECIMAL ||
           column->meaning == PARQUET_UNSIGNED ||
           (column->meaning == PARQUET_PLAIN && column->type != PARQUET_BYTES &&
            column->type != PARQUET_FIXED && column->type != PARQUET_BOOLEAN);
}

static double number_at(const struct parquet_span *span, uint32_t i) {
    const struct parquet_column *column = span->column;
    if (column->meaning == PARQUET_HALF)
        return half_at(span, i);
    if (column->meaning == PARQUET_DECIMAL)
        return decimal_at(span, i);
    if (column->type == PARQUET_FLOAT)
        return parquet_double_of(float_at(span, i));
    if (column->type == PARQUET_DOUBLE)
        return double_at(span, i);
    int64_t value = integer_at(span, i);
    return column->meaning == PARQUET_UNSIGNED ? (double)(uint64_t)value : (double)value;
}

static bool only_finite(uint32_t count, double *to, size_t stride) {
    bool all = true;
    for (uint32_t i = 0; i < count; i++, to += stride) {
        bool finite = isfinite(*to);
        all &= finite;
        *to = finite ? *to : (double)NAN;
    }
    return all;
}

/* Puts numbers that lie one after the other, and are missing only where they are not finite. The
 * type is a constant for the compiler. */
__attribute__((always_inline)) static inline bool
put_plain(const uint8_t *at, enum parquet_type type, uint32_t count, double *to, size_t stride) {
    const uint64_t exponent = UINT64_C(0x7ff) << 52;
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
        double value;
        int32_t few;
        int64_t many;
        uint64_t bits;
        if (type == PARQUET_DOUBLE) {
            memcpy(&value, at + i * sizeof value, sizeof value);
        } else if (type == PARQUET_INT32) {
            memcpy(&few, at + i * sizeof few, sizeof few);
            value = few;
        } else {
            memcpy(&many, at + i * sizeof many, sizeof many);
            value = (double)many;
        }
        memcpy(&bits, &value, sizeof bits);
        all &= (bits & exponent) != exponent;
        to[i * stride] = value;
    }
    return all || only_finite(count, to, stride);
}

static bool put_some(const struct parquet_span *span, uint32_t first, const uint32_t *index,
                     uint32_t count, double *to, size_t stride) {
    bool any = has_number(span->column), all = true;
    for (uint32_t i = 0; i < count; i++) {
        double value = any ? number_at(span, index ? index[i] : first + i) : (double)NAN;
        bool finite = isfinite(value);
        all &= finite;
        to[i * stride] = finite ? value : (double)NAN;
    }
    return all;
}

static bool put_numbers(const struct parquet_span *span, uint32_t first, const uint32_t *index,
                        uint32_t count, double *to, size_t stride) {
    const struct parquet_column *column = span->column;
    if (index || column->meaning != PARQUET_PLAIN || !has_number(column) || !count)
        return put_some(span, first, index, count, to, stride);
    const uint8_t *at = value_at(span, first);
    assert(count <= span->values->count - first);
    switch (column->type) {
    case PARQUET_DOUBLE:
        return put_plain(at, PARQUET_DOUBLE, count, to, stride);
    case PARQUET_FLOAT:
        return parquet_doubles_of(at, count, to, stride) || only_finite(count, to, stride);
    case PARQUET_INT32:
        return put_plain(at, PARQUET_INT32, count, to, stride);
    case PARQUET_INT64:
        return put_plain(at, PARQUET_INT64, count, to, stride);
    default:
        return put_some(span, first, NULL, count, to, stride);
    }
}

bool parquet_numbers(const struct parquet_span *span, uint32_t first, const uint32_t *index,
                     uint32_t count, double *to, size_t stride) {
    const struct parquet_column *column = span->column;
    bool all = put_numbers(span, first, index, count, to, stride);
    for (uint32_t i = 0; column->divisor > 0 && i < count; i++)
        to[i * stride] = to[i * stride] * column->multiplier / column->divisor;
    return all;
}

/* ---- dates and times ---- */

/* A moment: days since 1970, and what is over of the day in units of which a second has `unit`; as
 * clocks show it that are so many minutes ahead of UTC. */
struct moment {
    int64_t day, rest;
    uint32_t unit;
    int32_t minutes;
};

/* What the clocks of the column's zone show at a moment. */
static struct moment local_moment(const struct parquet_column *column, struct moment moment) {
    if (!column->zone)
        return moment;
    moment.minutes =
        zone_minutes(column->zone, moment.day * SECONDS_A_DAY + moment.rest / moment.unit);
    int64_t a_day = (int64_t)moment.unit * SECONDS_A_DAY,
            rest = moment.rest + (int64_t)moment.minutes * 60 * moment.unit;
    int64_t more = rest / a_day - (rest % a_day < 0);
    moment.day += more;
    moment.rest = rest - more * a_day;
    return moment;
}

static struct moment moment_at(const struct parquet_span *span, uint32_t i) {
    const struct parquet_column *column = span->column;
    if (column->type == PARQUET_INT96) {
        const uint8_t *at = value_at(span, i);
        int64_t rest, day_ns = INT64_C(1000000000) * SECONDS_A_DAY;
        int32_t day;
        memcpy(&rest, at, sizeof rest);
        memcpy(&day, at + sizeof rest, sizeof day);
        int64_t more = rest / day_ns - (rest % day_ns < 0);
        return (struct moment){(int64_t)day - JULIAN_DAY_OF_1970 + more, rest - more * day_ns,
                               1000000000, 0};
    }
    int64_t value = integer_at(span, i);
    if (column->meaning == PARQUET_DATE)
        return (struct moment){value, 0, 1, 0};
    int64_t a_day = (int64_t)column->unit * SECONDS_A_DAY;
    int64_t day = value / a_day - (value % a_day < 0);
    return local_moment(column, (struct moment){day, value - day * a_day, column->unit, 0});
}

/* The date of a day in the proleptic Gregorian calendar, in cycles of 400 years from the first of
 * March on. */
static void set_day(int64_t day, int64_t *year, uint32_t *month, uint32_t *of_month) {
    int64_t shifted = day + DAYS_TO_1970 + 306, cycle = shifted / 146097 - (shifted % 146097 < 0);
    uint32_t rest = (uint32_t)(shifted - cycle * 146097);
    uint32_t years = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    uint32_t of_year = rest - (365 * years + years / 4 - years / 100);
    uint32_t march = (5 * of_year + 2) / 153;
    *of_month = of_year - (153 * march + 2) / 5 + 1;
    *month = march < 10 ? march + 3 : march - 9;
    *year = cycle * 400 + years + (*month <= 2);
}

static unsigned fraction_digits(uint32_t unit) {
    return unit == 1000000000 ? 9 : unit == 1000000 ? 6 : unit == 1000 ? 3 : 0;
}

bool parquet_date(const struct parquet_span *span, uint32_t i, struct date *date) {
    const struct parquet_column *column = span->column;
    if (column->meaning != PARQUET_DATE && column->meaning != PARQUET_STAMP)
        return false;
    struct moment moment = moment_at(span, i);
    int64_t year;
    *date = (struct date){0};
    set_day(moment.day, &year, &date->month, &date->day);
    date->year = (int32_t)year;
    if (year < 1 || year > 9999 || column->meaning == PARQUET_DATE)
        return year >= 1 && year <= 9999;
    int64_t seconds = moment.rest / moment.unit;
    uint32_t fraction = (uint32_t)(moment.rest % moment.unit), place = moment.unit / 10;
    date->has_time = true;
    date->offset = moment.minutes;
    date->hour = (uint32_t)(seconds / 3600);
    date->minute = (uint32_t)(seconds / 60 % 60);
    date->second = (double)(seconds % 60);
    double unit = 1;
    for (; place; fraction %= place, place /= 10) { /* digit by digit, as a text is read */
        const uint32_t digit = fraction / place;
        date->second += digit * (unit /= 10);
    }
    return true;
}

/* ---- texts ---- */

/* The digits of an integer of up to 32 bytes, the highest first; returns how many. The lowest come
 * first from the division. */
static size_t wide_digits(const uint8_t *bytes, size_t length, bool *negative, char *to) {
    uint32_t word[9] = {0};
    size_t count = 0;
    *negative = length && bytes[0] & 0x80;
    for (size_t i = 0; i < 36; i++) { /* two's complement, highest byte first in the file */
        uint8_t byte = i < length ? bytes[length - 1 - i] : *negative ? 0xff : 0;
        word[i / 4] |= (uint32_t)byte << 8 * (i % 4);
    }
    for (uint64_t i = 0, carry = 1; *negative && i < 9; i++, carry >>= 32) {
        carry += (uint32_t)~word[i];
        word[i] = (uint32_t)carry;
    }
    for (bool left = true; left || !count;) {
        uint64_t rest = 0;
        left = false;
        for (int i = 8; i >= 0; i--) {
            rest = rest << 32 | word[i];
            word[i] = (uint32_t)(rest / 10);
            rest %= 10;
            left |= word[i] != 0;
        }
        to[count++] = (char)('0' + rest);
    }
    for (size_t i = 0; i < count / 2; i++) {
        char other = to[i];
        to[i] = to[count - 1 - i];
        to[count - 1 - i] = other;
    }
    return count;
}

static size_t decimal_text(const struct parquet_span *span, uint32_t i, char *to) {
    char digits[128];
    uint8_t bytes[8];
    bool negative;
    size_t count, scale = span->column->scale;
    if (span->column->type == PARQUET_BYTES) {
        struct parquet_text text = span->values->text[i];
        if (text.length > DECIMAL_BYTES_MAX)
            return (size_t)sprintf(to, "a decimal of %u bytes", text.length);
        count = wide_digits(span->values->data + text.start, text.length, &negative, digits);
    } else if (span->column->type == PARQUET_FIXED) {
        count = wide_digits(value_at(span, i), span->values->width, &negative, digits);
    } else {
        uint64_t value = (uint64_t)integer_at(span, i);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)(value >> 8 * (7 - k));
        count = wide_digits(bytes, sizeof bytes, &negative, digits);
    }
    size_t zeros = count <= scale ? scale + 1 - count : 0, whole = count + zeros - scale;
    char *at = to;
    if (negative)
        *at++ = '-';
    for (size_t k = 0; k < count + zeros; k++) {
        if (k == whole)
            *at++ = '.';
        *at++ = k < zeros ? '0' : digits[k - zeros];
    }
    *at = '\0';
    return (size_t)(at - to);
}

/* With the digits of a unit, which is not finer than the moment's. */
static size_t time_text(const struct moment *moment, uint32_t shown, char *to) {
    int64_t seconds = moment->rest / moment->unit, rest = moment->rest % moment->unit;
    int at = sprintf(to, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600,
                     seconds / 60 % 60, seconds % 60);
    if (shown > 1)
        at += sprintf(to + at, ".%0*" PRId64, (int)fraction_digits(shown),
                      rest / (moment->unit / shown));
    return (size_t)at;
}

static size_t moment_text(const struct parquet_span *span, uint32_t i, char *to) {
    const struct parquet_column *column = span->column;
    struct moment moment = moment_at(span, i);
    if (column->meaning == PARQUET_TIME)
        return time_text(&moment, column->shown ? column->shown : moment.unit, to);
    int64_t year;
    uint32_t month, day;
    set_day(moment.day, &year, &month, &day);
    size_t at = (size_t)sprintf(to, "%04" PRId64 "-%02u-%02u", year, month, day);
    if (column->meaning == PARQUET_DATE)
        return at;
    to[at++] = ' ';
    at += time_text(&moment, column->shown ? column->shown : moment.unit, to + at);
    int minutes = abs((int)moment.minutes);
    if (column->zone && column->shows_zone)
        at += (size_t)sprintf(to + at, "%c%02d%02d", moment.minutes < 0 ? '-' : '+',
                              minutes / 60 % 100, minutes % 60);
    else if (column->utc)
        to[at++] = 'Z';
    to[at] = '\0';
    return at;
}

static size_t uuid_text(const uint8_t *bytes, char *to) {
    size_t at = 0;
    for (size_t i = 0; i < 16; i++)
        at += (size_t)sprintf(to + at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              bytes[i]);
    return at;
}

static size_t integer_text(const struct parquet_span *span, uint32_t i, char *to) {
    int64_t value = integer_at(span, i);
    bool negative = value < 0 && span->column->meaning != PARQUET_UNSIGNED;
    uint64_t left = negative ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[24];
    size_t count = 0, at = 0;
    do {
        digits[count++] = (char)('0' + left % 10);
    } while (left /= 10);
    if (negative)
        to[at++] = '-';
    while (count)
        to[at++] = digits[--count];
    to[at] = '\0';
    return at;
}

size_t parquet_text_room(const struct parquet_span *span, uint32_t i) {
    const struct parquet_column *column = span->column;
    if (column->meaning == PARQUET_DECIMAL)
        return 192;
    if (column->type == PARQUET_BYTES)
        return (size_t)span->values->text[i].length + 1;
    return column->type == PARQUET_FIXED && column->meaning == PARQUET_PLAIN ? column->width + 1u
                                                                             : TEXT_ROOM;
}

static size_t bytes_text(const void *bytes, size_t length, char *to) {
    if (length)
        memcpy(to, bytes, length);
    to[length] = '\0';
    return length;
}

size_t parquet_text_of(const struct parquet_span *span, uint32_t i, char *to) {
    const struct parquet_column *column = span->column;
    switch (column->meaning) {
    case PARQUET_DECIMAL:
        return decimal_text(span, i, to);
    case PARQUET_DATE:
    case PARQUET_TIME:
    case PARQUET_STAMP:
        return moment_text(span, i, to);
    case PARQUET_HALF:
        return number_shortest(half_at(span, i), to);
    case PARQUET_UUID:
        return uuid_text(value_at(span, i), to);
    default:
        break;
    }
    switch (column->type) {
    case PARQUET_BOOLEAN:
        return (size_t)sprintf(to, "%s", *value_at(span, i) ? "true" : "false");
    case PARQUET_FLOAT:
        return number_shortest(parquet_double_of(float_at(span, i)), to);
    case PARQUET_DOUBLE:
        return number_shortest(double_at(span, i), to);
    case PARQUET_BYTES:
        return bytes_text(span->values->data + span->values->text[i].start,
                          span->values->text[i].length, to);
    case PARQUET_FIXED:
        return bytes_text(value_at(span, i), column->width, to);
    default:
        return integer_text(span, i, to);
    }
}

bool parquet_is_quoted(const struct parquet_column *column) {
    return column->meaning == PARQUET_UUID ||
           (column->meaning == PARQUET_PLAIN &&
            (column->type == PARQUET_BYTES || column->type == PARQUET_FIXED));
}
