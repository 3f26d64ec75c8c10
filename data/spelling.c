#include "data/spelling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/number.h"

static void add(struct spellings *spellings, const char *text, const char *other) {
    if (spellings->count < SPELLINGS_MAX && strlen(other) < SPELLING_BYTES &&
        strcmp(text, other) != 0)
        strcpy(spellings->text[spellings->count++], other);
}

/* ---- truths ---- */

static void add_truths(struct spellings *spellings, const char *text) {
    static const char *const truths[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};
    for (int truth = 0; truth < 2; truth++)
        for (int i = 0; i < 3; i++)
            if (!strcmp(text, truths[truth][i]))
                for (int other = 0; other < 3; other++)
                    add(spellings, text, truths[truth][other]);
}

/* ---- numbers ---- */

/* As Python, and so pandas, writes a number: with ".0" if it is whole, and an exponent of at least
 * two digits from 1e16 on and below 1e-4. */
static void write_as_python(double value, const char *shortest, char text[SPELLING_BYTES]) {
    char digits[NUMBER_TEXT];
    const double size = fabs(value);
    double read = NAN;
    snprintf(text, SPELLING_BYTES, "%s%s", shortest, strpbrk(shortest, ".e") ? "" : ".0");
    if (size >= 1e10 && size < 1e16) {
        int places = 6;
        do
            snprintf(text, SPELLING_BYTES, "%.*f", places, value);
        while (places-- > 1 && text[strlen(text) - 1] == '0');
    } else if (size > 0 && size < 1e-4) {
        int count = 0;
        do
            snprintf(digits, sizeof digits, "%.*e", count, value);
        while (number_of_text(digits, &read) && read != value && count++ < 17);
        snprintf(text, SPELLING_BYTES, "%s", digits);
    }
}

static void add_numbers(struct spellings *spellings, const char *text) {
    char shortest[NUMBER_TEXT], python[SPELLING_BYTES], whole[SPELLING_BYTES];
    double value;
    if (strlen(text) >= NUMBER_TEXT || !number_of_text(text, &value))
        return;
    number_shortest(value, shortest);
    write_as_python(value, shortest, python);
    snprintf(whole, sizeof whole, "%.0f", fabs(value) < 1e17 ? value : 0);
    bool is_whole = value == round(value) && fabs(value) < 1e17;
    if (strcmp(text, shortest) != 0 && strcmp(text, python) != 0 &&
        !(is_whole && !strcmp(text, whole)))
        return;
    add(spellings, text, shortest);
    add(spellings, text, python);
    if (is_whole)
        add(spellings, text, whole);
}

/* ---- times ---- */

/* The parts of a time, each as a text. */
struct parts {
    char date[11], time[9], fraction[10], zone[8]; /* "" if it lacks them; a zone as "+HHMM" */
};

/* Reads what is like `form`, where 0 stands for a digit, and answers the end; NULL: it is not. */
static const char *like(const char *at, const char *form, char *to) {
    for (; *form; form++, at++) {
        if (*form == '0' ? !digits_is(*at) : *at != *form)
            return NULL;
        *to++ = *at;
    }
    *to = '\0';
    return at;
}

static const char *read_fraction(const char *at, struct parts *parts) {
    if (*at != '.')
        return at;
    size_t count = strspn(++at, "0123456789");
    if (!count || count > 9)
        return NULL;
    memcpy(parts->fraction, at, count);
    for (size_t kept = count; kept && parts->fraction[kept - 1] == '0'; kept--)
        parts->fraction[kept - 1] = '\0';
    return at + count;
}

static bool read_zone(const char *at, struct parts *parts) {
    char hours[3], minutes[3];
    const char *behind = *at == '+' || *at == '-' ? like(at + 1, "00", hours) : NULL;
    if (!*at)
        return true;
    if (!strcmp(at, "Z"))
        return strcpy(parts->zone, "+0000");
    if (!behind || !(behind = like(behind + (*behind == ':'), "00", minutes)) || *behind)
        return false;
    snprintf(parts->zone, sizeof parts->zone, "%c%s%s", *at, hours, minutes);
    return true;
}

static bool read_parts(const char *text, struct parts *parts) {
    const char *at = like(text, "0000-00-00", parts->date);
    if (at && !*at)
        return strcpy(parts->time, "00:00:00");
    if (at && *at != ' ' && *at != 'T')
        return false;
    if (!at)
        *parts->date = '\0';
    at = like(at ? at + 1 : text, "00:00:00", parts->time);
    at = at ? read_fraction(at, parts) : NULL;
    return at && read_zone(at, parts) && (*parts->date || !*parts->zone);
}

static void add_zones(struct spellings *spellings, const char *text, const struct parts *parts,
                      const char *time) {
    char other[SPELLING_BYTES];
    snprintf(other, sizeof other, "%.39s%s", time, parts->zone);
    add(spellings, text, other);
    if (!*parts->zone)
        return;
    snprintf(other, sizeof other, "%.39s%.3s:%s", time, parts->zone, parts->zone + 3);
    add(spellings, text, other);
    snprintf(other, sizeof other, "%.39sZ", time);
    if (!strcmp(parts->zone, "+0000"))
        add(spellings, text, other);
}

static void add_times(struct spellings *spellings, const char *text) {
    static const unsigned units[] = {0, 3, 6, 9}; /* digits of the fraction */
    struct parts parts = {0};
    char time[SPELLING_BYTES - sizeof parts.zone];
    if (!digits_is(*text) || !read_parts(text, &parts))
        return;
    unsigned least = (unsigned)strlen(parts.fraction);
    if (*parts.date && !least && !*parts.zone && !strcmp(parts.time, "00:00:00"))
        add(spellings, text, parts.date);
    for (const char *between = *parts.date ? " T" : " "; *between; between++)
        for (unsigned i = 0, before = 10; i < sizeof units / sizeof *units; i++) {
            unsigned digits = units[i] > least ? units[i] : least;
            if (digits == before)
                continue;
            before = digits;
            snprintf(time, sizeof time, "%s%.*s%s%s%s%.*s", parts.date, *parts.date ? 1 : 0,
                     between, parts.time, digits ? "." : "", parts.fraction, (int)(digits - least),
                     "000000000");
            add_zones(spellings, text, &parts, time);
        }
}

void spellings_find(struct spellings *spellings, const char *text) {
    spellings->count = 0;
    add_truths(spellings, text);
    add_numbers(spellings, text);
    add_times(spellings, text);
}
