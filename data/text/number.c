#define _GNU_SOURCE
#include "data/text/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of a text: mantissa·10^exponent, exact if there are at most DIGITS_EXACT digits. */
struct decimal {
    uint64_t mantissa; /* wraps if there are more digits */
    size_t digits;     /* from the first that is not 0 */
    int64_t exponent;
    bool negative;
};

#define DIGITS_EXACT 19 /* as many fit into 64 bits */

/* More than a line has digits: beyond it, the position of the decimal point makes no difference. */
#define EXPONENT_LARGE INT64_C(1000000000000000)

/* Takes digits into the mantissa. Leading zeros are not counted as digits. `digits` tells whether
 * the first other digit has come: the mantissa cannot tell, as it may have wrapped to 0. */
static const char *take_digits(const char *p, struct decimal *decimal) {
    if (!decimal->digits)
        while (*p == '0')
            p++;
    const char *first = p;
    uint64_t mantissa = decimal->mantissa;
    for (; digits_is(*p); p++)
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
    decimal->mantissa = mantissa;
    decimal->digits += (size_t)(p - first);
    return p;
}

static const char *take_exponent(const char *p, int64_t *exponent) {
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!digits_is(*p))
        return NULL;
    int64_t e = 0;
    for (; digits_is(*p); p++)
        if (e < EXPONENT_LARGE)
            e = e * 10 + (*p - '0');
    *exponent += negative ? -e : e;
    return p;
}

/* Returns the end, or NULL if this is no number. */
static const char *scan(const char *p, struct decimal *decimal) {
    *decimal = (struct decimal){.negative = *p == '-'};
    if (*p == '-' || *p == '+')
        p++;
    const char *first = p;
    p = take_digits(p, decimal);
    bool any = p > first;
    if (*p == '.') {
        first = ++p;
        p = take_digits(p, decimal);
        any |= p > first;
        decimal->exponent = first - p;
    }
    if (!any)
        return NULL;
    if (*p == 'e' || *p == 'E')
        p = take_exponent(p + 1, &decimal->exponent);
    return p;
}

/* A mantissa and a power of ten that are doubles both give the right double in one operation. */
static bool convert_in_double(const struct decimal *decimal, double *value) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (decimal->mantissa >> DBL_MANT_DIG || decimal->exponent < -22 || decimal->exponent > 22)
        return false;
    double m = (double)decimal->mantissa;
    *value = decimal->exponent < 0 ? m / power[-decimal->exponent] : m * power[decimal->exponent];
    return true;
}

/* Converts with a mantissa of 64 bits. The second rounding, to a double, is correct unless the
 * dropped bits are exactly one half: then the first rounding may have decided wrongly. */
static bool convert_in_extended(const struct decimal *decimal, double *value) {
#if LDBL_MANT_DIG == 64
    static const long double power[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                        1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                        1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                        1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (decimal->exponent < -27 || decimal->exponent > 27)
        return false;
    long double m = (long double)decimal->mantissa;
    long double v =
        decimal->exponent < 0 ? m / power[-decimal->exponent] : m * power[decimal->exponent];
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    *value = (double)v;
    return (bits & 0x7ff) != 0x400;
#else
    (void)decimal, (void)value;
    return false;
#endif
}

static locale_t c_locale;

static void make_c_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", NULL);
}

const char *number_parse(const char *at, double *value) {
    struct decimal decimal;
    const char *end = scan(at, &decimal);
    if (!end)
        return NULL;
    if (decimal.digits <= DIGITS_EXACT &&
        (convert_in_double(&decimal, value) || convert_in_extended(&decimal, value))) {
        if (decimal.negative)
            *value = -*value;
        return end;
    }
    /* Correctly rounded for any text, whatever locale the program has set. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    *value = c_locale ? strtod_l(at, NULL, c_locale) : strtod(at, NULL);
    return isfinite(*value) ? end : NULL;
}

bool number_of_text(const char *text, double *value) {
    const char *end = number_parse(text, value);
    return end && *end == '\0';
}

bool number_of_decimal(bool decimal_comma, char *text, double *value) {
    if (!decimal_comma)
        return number_of_text(text, value);
    char *comma = strchr(text, ',');
    if (strchr(text, '.')) /* it may part thousands */
        return false;
    if (comma)
        *comma = '.';
    bool is_number = number_of_text(text, value);
    if (comma)
        *comma = ',';
    return is_number;
}

void number_format(double value, char text[NUMBER_TEXT]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

size_t number_shortest(double value, char text[NUMBER_TEXT]) {
    char digits[NUMBER_TEXT], *at = text, *from = digits;
    if (!isfinite(value))
        return (size_t)sprintf(text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    for (int count = fabs(value) < DBL_MIN ? 1 : DBL_DIG; count <= DBL_DECIMAL_DIG; count++) {
        double number = NAN;
        snprintf(digits, sizeof digits, "%.*e", count - 1, value);
        if (number_of_text(digits, &number) && number == value)
            break;
    }
    char *exponent = strchr(digits, 'e');
    int power = atoi(exponent + 1);
    if (memchr(digits, '.', (size_t)(exponent - digits))) {
        while (exponent[-1] == '0')
            exponent--;
        exponent -= exponent[-1] == '.';
    }
    *exponent = '\0';
    if (*from == '-')
        *at++ = *from++;
    char *whole = from;
    if (from[1] == '.')
        memmove(from + 1, from + 2, strlen(from + 1)); /* the digits alone */
    int count = (int)strlen(whole);
    if (power < -6 || power > 9)
        at += sprintf(at, "%c%s%.17se%+d", *whole, count > 1 ? "." : "", whole + 1, power);
    else if (power < 0)
        at += sprintf(at, "0.%.*s%.17s", -power - 1, "000000", whole);
    else if (count <= power + 1)
        at += sprintf(at, "%.17s%.*s", whole, power + 1 - count, "0000000000");
    else
        at += sprintf(at, "%.*s.%.17s", power + 1, whole, whole + power + 1);
    return (size_t)(at - text);
}

bool list_next(const char **at, char separator, struct bytes *part) {
    const char separators[] = {separator, '\0'};
    while (**at) {
        const char *first = *at, *end = first + strcspn(first, separators);
        *at = *end ? end + 1 : end;
        while (first < end && is_blank(*first))
            first++;
        while (end > first && is_blank(end[-1]))
            end--;
        if (first == end)
            continue;
        bytes_clear(part);
        bytes_append(part, first, (size_t)(end - first));
        bytes_put_u8(part, 0);
        return true;
    }
    return false;
}

int compare_doubles(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int compare_ids(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

bool number_has_decimal_comma(const char *text) {
    text += *text == '-' || *text == '+';
    size_t whole = strspn(text, "0123456789");
    size_t digits = text[whole] == ',' ? strspn(text + whole + 1, "0123456789") : 0;
    return whole && digits && !text[whole + 1 + digits];
}

/* ---- amounts ---- */

/* The first of some texts that `at` begins with: moves *at past it. */
static bool skip_one(const char **at, const char *const *texts) {
    for (; *texts; texts++) {
        const size_t length = strlen(*texts);
        if (!strncmp(*at, *texts, length)) {
            *at += length;
            return true;
        }
    }
    return false;
}

/* Those of a line: also without a break, thin, and narrow without a break. */
static const char *const blanks[] = {" ", "\u00a0", "\u2009", "\u202f", NULL};
static const char *const minuses[] = {"-", "\u2212", NULL};
static const char *const apostrophes[] = {"'", "\u2019", NULL};

/* Longer ones first, where others are their beginnings. */
static const char *const currencies[] = {
    "US$",    "A$",     "C$",     "R$",     "$",      "\u20ac", "\u00a3",  "\u00a5",  "\u20b9",
    "\u20bd", "\u20a9", "\u20ba", "\u20aa", "\u0e3f", "USD",    "EUR",     "GBP",     "CHF",
    "JPY",    "CNY",    "INR",    "CAD",    "AUD",    "NZD",    "SEK",     "NOK",     "DKK",
    "PLN",    "CZK",    "HUF",    "BRL",    "MXN",    "ZAR",    "KRW",     "TRY",     "RUB",
    "SGD",    "HKD",    "ILS",    "THB",    "Fr.",    "kr",     "z\u0142", "K\u010d", NULL};

/* What stands around the digits of an amount. */
struct dress {
    bool minus, plus, bracket, currency, percent;
};

/* Takes what may stand before the digits, or after them; false if something stands twice. */
static bool skip_dress(const char **at, struct dress *dress, bool behind) {
    for (;;) {
        if (skip_one(at, blanks))
            continue;
        bool *seen = skip_one(at, minuses)             ? &dress->minus
                     : skip_one(at, currencies)        ? &dress->currency
                     : !behind && **at == '+' && ++*at ? &dress->plus
                     : !behind && **at == '(' && ++*at ? &dress->bracket
                     : behind && **at == '%' && ++*at  ? &dress->percent
                                                       : NULL;
        if (!seen)
            return true;
        if (*seen)
            return false;
        *seen = true;
    }
}

/* Whether a separator of groups stands at *at, the same as in all groups before: moves on. */
static bool skip_separator(const char **at, char point, const char **separator) {
    const char *first = *at;
    const bool other = *first == (point == '.' ? ',' : '.');
    *at += other;
    if (!other && !skip_one(at, blanks) && !skip_one(at, apostrophes))
        return false;
    const bool alike = !*separator || !strncmp(*separator, first, (size_t)(*at - first));
    if (!*separator)
        *separator = first;
    if (!alike || !digits_is(**at))
        *at = first;
    return alike && *at > first;
}

/* Takes digits in groups of three, or, as in India, of two before the last three, into `bare`, with
 * a point for the decimal one; false if they are none. */
static bool take_groups(const char **at, char point, char *bare, size_t room) {
    const char *separator = NULL, *p = *at;
    size_t length = 0, group = 0, groups = 0, digits = 0;
    bool sound = true;
    for (;;) {
        for (group = 0; digits_is(*p) && length + 2 < room; group++)
            bare[length++] = *p++;
        digits += group;
        groups++;
        const char *before = p;
        const bool more = group && skip_separator(&p, point, &separator);
        sound = sound &&
                (!more || (groups == 1 ? group <= 3 && *bare != '0' : group == 3 || group == 2));
        if (!more) {
            p = before;
            break;
        }
    }
    sound = sound && (groups == 1 || group == 3) && !digits_is(*p);
    if (*p == point) {
        bare[length++] = '.';
        for (p++; digits_is(*p) && length + 1 < room; digits++)
            bare[length++] = *p++;
    }
    bare[length] = '\0';
    *at = p;
    return sound && digits && !digits_is(*p);
}

/* Spreadsheets write the zero of an account as a dash beside the currency. */
static bool is_dash(const char *at, const struct dress *dress) {
    return !*at && dress->minus && dress->currency && !dress->plus && !dress->bracket;
}

bool number_of_amount(const char *text, char point, double *value) {
    char bare[64];
    struct dress dress = {0};
    const char *at = text;
    if (point == '.' && number_of_text(text, value))
        return true;
    if (!skip_dress(&at, &dress, false))
        return false;
    if (is_dash(at, &dress)) {
        *value = 0;
        return true;
    }
    if (!take_groups(&at, point, bare, sizeof bare) || !skip_dress(&at, &dress, true) ||
        (dress.bracket && *at++ != ')') || dress.plus + dress.minus + dress.bracket > 1)
        return false;
    struct dress behind = {.minus = true, .currency = dress.currency, .percent = dress.percent};
    if (!skip_dress(&at, &behind, true) || *at || (behind.currency && behind.percent) ||
        !number_of_text(bare, value))
        return false;
    *value = dress.bracket || dress.minus ? -*value : *value;
    return true;
}

bool number_is_thousands(const char *text) {
    double value;
    return text[strspn(text, "+-0123456789,")] == '\0' && strchr(text, ',') &&
           number_of_amount(text, '.', &value);
}

/* ---- units ---- */

#define UNIT_MOST 6

const char *number_unit(const char *text) {
    const char *at = text + (*text == '-' || *text == '+');
    const size_t digits = strspn(at, "0123456789");
    at += digits;
    at += *at == '.' && digits ? 1 + strspn(at + 1, "0123456789") : 0;
    at += *at == ' ';
    size_t letters = 0;
    while ((at[letters] | 0x20) >= 'a' && (at[letters] | 0x20) <= 'z')
        letters++;
    return digits && letters && letters <= UNIT_MOST && !at[letters] ? at : "";
}

bool number_is_formatted(const char *text, const char *unit) {
    char bare[64];
    size_t length = 0;
    double value;
    const char *own = number_unit(text), *comma = strrchr(text, ',');
    if (*own)
        return !strcmp(own, unit);
    while (*text && length + 1 < sizeof bare) {
        const bool separates = *text == ',' || (*text == '.' && comma && text < comma);
        if (separates || *text == '%')
            text++;
        else if (skip_one(&text, minuses))
            bare[length++] = '-';
        else if (!skip_one(&text, blanks) && !skip_one(&text, apostrophes) &&
                 !skip_one(&text, currencies))
            bare[length++] = *text++;
    }
    bare[length] = '\0';
    return !*text && number_of_text(bare, &value);
}

const char *number_bare_form(const char *text, bool decimal_comma) {
    const char *comma = strrchr(text, ',');
    const bool thousands = comma && (strchr(comma, '.') || strspn(comma + 1, "0123456789") == 3);
    const bool points = comma && memchr(text, '.', (size_t)(comma - text));
    return decimal_comma || points || (comma && !thousands)
               ? "digits and the comma of csv.decimal = \",\""
               : "digits and a point";
}

bool number_is_code(const char *text, size_t length) {
    static const char limit[] = "9007199254740992"; /* 2^53 */
    const size_t sign = length && (*text == '-' || *text == '+');
    size_t digits = 0;
    text += sign;
    length -= sign;
    if (length < 2 || (*text != '0' && length < sizeof limit - 1))
        return false;
    while (digits < length && digits_is(text[digits]))
        digits++;
    return digits == length &&
           (*text == '0' || length >= sizeof limit || memcmp(text, limit, sizeof limit - 1) >= 0);
}
