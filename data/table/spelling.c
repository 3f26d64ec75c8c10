#include "data/table/spelling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/number.h"

static void add(struct spellings *spellings, const char *text) {
    if (spellings->count < SPELLINGS_MAX && strlen(text) < SPELLING_BYTES)
        strcpy(spellings->text[spellings->count++], text);
}

/* ---- truths ---- */

static void add_truths(struct spellings *spellings, const char *text) {
    static const char *const truths[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};
    for (int truth = 0; truth < 2; truth++)
        for (int i = 0; i < 3; i++)
            if (!strcmp(text, truths[truth][i]))
                for (int other = 0; other < 3; other++)
                    add(spellings, truths[truth][other]);
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
    if (is_whole)
        add(spellings, whole);
    if (!is_whole || strcmp(whole, shortest) != 0)
        add(spellings, shortest);
    if (strcmp(python, shortest) != 0)
        add(spellings, python);
}

/* ---- times ---- */

/* The parts of a time, each as a text. */
struct parts {
    char date[11], time[9], fraction[10], zone[8]; /* "" if it lacks them; a zone as "+HHMM" */
};

/* Reads what is like `form`, where 0 stands for a digit, and returns the end; NULL: it is not. */
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

static void add_zones(struct spellings *spellings, const struct parts *parts, const char *time) {
    char text[SPELLING_BYTES];
    snprintf(text, sizeof text, "%.39sZ", time);
    if (!strcmp(parts->zone, "+0000"))
        add(spellings, text);
    snprintf(text, sizeof text, "%.39s%s", time, parts->zone);
    add(spellings, text);
    if (!*parts->zone)
        return;
    snprintf(text, sizeof text, "%.39s%.3s:%s", time, parts->zone, parts->zone + 3);
    add(spellings, text);
}

static void add_times(struct spellings *spellings, const char *text) {
    static const unsigned units[] = {0, 3, 6, 9}; /* digits of the fraction */
    struct parts parts = {0};
    char time[SPELLING_BYTES - sizeof parts.zone];
    if (!digits_is(*text) || !read_parts(text, &parts))
        return;
    unsigned least = (unsigned)strlen(parts.fraction);
    if (*parts.date && !least && !*parts.zone && !strcmp(parts.time, "00:00:00"))
        add(spellings, parts.date);
    for (const char *between = *parts.date ? " T" : " "; *between; between++)
        for (unsigned i = 0, before = 10; i < sizeof units / sizeof *units; i++) {
            unsigned digits = units[i] > least ? units[i] : least;
            if (digits == before)
                continue;
            before = digits;
            snprintf(time, sizeof time, "%s%.*s%s%s%s%.*s", parts.date, *parts.date ? 1 : 0,
                     between, parts.time, digits ? "." : "", parts.fraction, (int)(digits - least),
                     "000000000");
            add_zones(spellings, &parts, time);
        }
}

void spellings_find(struct spellings *spellings, const char *text) {
    spellings->count = 0;
    add_truths(spellings, text);
    add_numbers(spellings, text);
    add_times(spellings, text);
}

/* Whether a text is a whole number without leading zeros, which is canonical. Doubles have all
 * numbers of so many digits. */
static bool is_plain_whole(const char *text) {
    size_t digits = strspn(text, "0123456789");
    return digits && digits <= 15 && !text[digits] && (*text != '0' || digits == 1);
}

const char *spelling_canonical(const char *text, char room[SPELLING_BYTES]) {
    struct spellings spellings;
    if ((!digits_is(*text) && (!*text || !strchr("-tTfF", *text))) || is_plain_whole(text))
        return text;
    spellings_find(&spellings, text);
    return spellings.count ? strcpy(room, spellings.text[0]) : text;
}

uint64_t spelling_find_known(uint32_t column, const char *text,
                             bool (*known)(const void *context, uint64_t id), const void *context) {
    struct spellings spellings;
    spellings_find(&spellings, text);
    for (uint32_t i = 0; i < spellings.count; i++) {
        const char *other = spellings.text[i];
        uint64_t id = table_feature(column, ROLE_VALUE, other, strlen(other));
        if (known(context, id))
            return id;
    }
    return 0;
}
