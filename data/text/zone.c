#include "data/text/zone.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/text/date.h"
#include "data/text/number.h"

#define ZONE_BYTES_MAX (1u << 20)
#define NAME_BYTES_MAX 64
#define HEADER_BYTES 44
#define SECONDS_A_DAY 86400
#define SECONDS_A_YEAR 31556952 /* on average */

/* When clocks change in each year: at `seconds` of the local day. */
struct change {
    char form; /* 'M': weekday `day` of week `week` (5: the last) of `month`; 'J': day 1 … 365,
                  without the 29th of February; 'n': day 0 … 365 */
    int month, week, day;
    int32_t seconds;
};

struct zone {
    uint32_t count;  /* of changes in the past */
    int64_t *at;     /* of each, in seconds since 1970; rising; owned */
    int32_t *offset; /* from it on, in seconds; owned */
    int32_t first;   /* before all */
    bool has_rule, has_summer;
    int32_t standard, summer; /* after the last change, by a rule for each year */
    struct change begin, end; /* of summer */
};

/* ---- rules, as POSIX has them in the variable TZ ---- */

static bool pass_name(const char **at) {
    const char *first = *at;
    if (**at == '<') {
        const char *end = strchr(*at, '>');
        *at = end ? end + 1 : *at;
        return end;
    }
    while ((**at | 0x20) >= 'a' && (**at | 0x20) <= 'z')
        ++*at;
    return *at > first;
}

static bool read_integer(const char **at, int most, int *number) {
    const char *first = *at;
    for (*number = 0; digits_is(**at) && *number <= most; ++*at)
        *number = 10 * *number + (**at - '0');
    return *at > first && *number <= most;
}

/* Hours, and minutes and seconds if they are there. */
static bool read_time(const char **at, int32_t *seconds) {
    int part[3] = {0}, sign = **at == '-' ? -1 : 1;
    *at += **at == '-' || **at == '+';
    bool read = read_integer(at, 167, &part[0]);
    for (int i = 1; i < 3 && read && **at == ':'; i++) {
        ++*at;
        read = read_integer(at, 59, &part[i]);
    }
    *seconds = sign * (part[0] * 3600 + part[1] * 60 + part[2]);
    return read;
}

static bool read_change(const char **at, struct change *change) {
    bool read;
    *change = (struct change){.form = 'n', .seconds = 2 * 3600};
    if (*(*at)++ != ',')
        return false;
    if (**at == 'M') {
        ++*at;
        change->form = 'M';
        read = read_integer(at, 12, &change->month) && *(*at)++ == '.' &&
               read_integer(at, 5, &change->week) && *(*at)++ == '.' &&
               read_integer(at, 6, &change->day) && change->month && change->week;
    } else {
        change->form = **at == 'J' ? 'J' : 'n';
        *at += **at == 'J';
        read = read_integer(at, 365, &change->day);
    }
    if (read && **at == '/') {
        ++*at;
        read = read_time(at, &change->seconds);
    }
    return read;
}

static bool read_rule(const char *at, struct zone *zone) {
    int32_t west;
    if (!pass_name(&at) || !read_time(&at, &west))
        return false;
    zone->standard = -west;
    zone->summer = zone->standard + 3600;
    zone->has_summer = *at != '\0';
    if (!zone->has_summer)
        return true;
    if (!pass_name(&at))
        return false;
    if (*at != ',') {
        if (!read_time(&at, &west))
            return false;
        zone->summer = -west;
    }
    return read_change(&at, &zone->begin) && read_change(&at, &zone->end) && !*at;
}

/* Days from 1970 to the first of January. */
static int64_t days_to(int64_t year) {
    int64_t before = year - 1;
    return 365 * (year - 1970) + (before / 4 - before / 100 + before / 400) -
           (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static int64_t change_day(const struct change *change, int64_t year) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    int64_t day = days_to(year);
    if (change->form == 'J')
        return day + change->day - 1 + (date_is_leap(year) && change->day > 59);
    if (change->form == 'n')
        return day + change->day;
    assert(change->month >= 1 && change->month <= 12);
    int64_t first = day + before[change->month - 1] + (date_is_leap(year) && change->month > 2);
    int64_t next = day + before[change->month] + (date_is_leap(year) && change->month > 1);
    int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970 began on a Thursday */
    int64_t found = first + (change->day - weekday + 7) % 7 + 7 * (change->week - 1);
    return found < next ? found : found - 7;
}

static int32_t offset_by_rule(const struct zone *zone, int64_t seconds) {
    if (!zone->has_summer)
        return zone->standard;
    int64_t local = seconds + zone->standard, year = 1970 + local / SECONDS_A_YEAR;
    while (days_to(year) * SECONDS_A_DAY > local)
        year--;
    while (days_to(year + 1) * SECONDS_A_DAY <= local)
        year++;
    int64_t begin =
        change_day(&zone->begin, year) * SECONDS_A_DAY + zone->begin.seconds - zone->standard;
    int64_t end = change_day(&zone->end, year) * SECONDS_A_DAY + zone->end.seconds - zone->summer;
    bool summer =
        begin < end ? seconds >= begin && seconds < end : seconds >= begin || seconds < end;
    return summer ? zone->summer : zone->standard;
}

/* ---- the database ---- */

struct header {
    uint32_t utc, standard, leaps, times, types, letters;
    char version;
};

static uint32_t big_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t big_i64(const uint8_t *at) {
    return (int64_t)((uint64_t)big_u32(at) << 32 | big_u32(at + 4));
}

/* How many bytes the numbers after a header have; 0: there is none. */
static size_t read_header(const uint8_t *at, size_t left, size_t time_bytes,
                          struct header *header) {
    if (left < HEADER_BYTES || memcmp(at, "TZif", 4) != 0)
        return 0;
    *header =
        (struct header){big_u32(at + 20), big_u32(at + 24), big_u32(at + 28), big_u32(at + 32),
                        big_u32(at + 36), big_u32(at + 40), (char)at[4]};
    if (header->utc > left || header->standard > left || header->leaps > left ||
        header->times > left || !header->types || header->types > left || header->letters > left)
        return 0;
    size_t bytes = header->times * (time_bytes + 1) + header->types * (size_t)6 + header->letters +
                   header->leaps * (time_bytes + 4) + header->standard + header->utc;
    return bytes <= left - HEADER_BYTES ? bytes : 0;
}

static bool read_changes(const uint8_t *at, const struct header *header, struct zone *zone) {
    const uint8_t *type = at + header->times * (size_t)8, *types = type + header->times;
    zone->count = header->times;
    zone->at = memory_new(header->times, sizeof *zone->at);
    zone->offset = memory_new(header->times, sizeof *zone->offset);
    zone->first = (int32_t)big_u32(types);
    for (uint32_t i = 0; i < header->times; i++) {
        zone->at[i] = big_i64(at + i * (size_t)8);
        if (type[i] >= header->types || (i && zone->at[i] <= zone->at[i - 1]))
            return false;
        zone->offset[i] = (int32_t)big_u32(types + type[i] * (size_t)6);
    }
    return true;
}

static bool read_zone(const uint8_t *bytes, size_t length, struct zone *zone) {
    struct header header;
    size_t old = read_header(bytes, length, 4, &header);
    if (!old || header.version < '2')
        return false;
    const uint8_t *at = bytes + HEADER_BYTES + old, *end = bytes + length;
    size_t wide = read_header(at, (size_t)(end - at), 8, &header);
    if (!wide || !read_changes(at + HEADER_BYTES, &header, zone))
        return false;
    const char *rule = (const char *)at + HEADER_BYTES + wide;
    size_t left = (size_t)((const char *)end - rule);
    const char *line_end = left > 1 ? memchr(rule + 1, '\n', left - 1) : NULL;
    if (!line_end || *rule != '\n')
        return false;
    char text[NAME_BYTES_MAX * 2];
    snprintf(text, sizeof text, "%.*s", (int)(line_end - rule - 1), rule + 1);
    zone->has_rule = *text;
    return !*text || read_rule(text, zone);
}

/* ---- zones ---- */

static bool read_distance(const char *name, struct zone *zone) {
    int hours, minutes;
    const char *at = name + 1;
    if (!strcmp(name, "UTC") || !strcmp(name, "Etc/UTC") || !strcmp(name, "GMT"))
        return true;
    if ((*name != '+' && *name != '-') || !read_integer(&at, 24, &hours) || *at++ != ':' ||
        !read_integer(&at, 59, &minutes) || *at)
        return false;
    zone->first = (*name == '-' ? -60 : 60) * (60 * hours + minutes);
    return true;
}

/* A name leads to nowhere but into the database. */
static bool is_name(const char *name) {
    size_t length = strlen(name);
    return length && length < NAME_BYTES_MAX && *name != '/' && !strstr(name, "..") &&
           !name[strspn(name,
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/")];
}

struct zone *zone_open(const char *name) {
    struct zone *zone = memory_new(1, sizeof *zone);
    char *bytes = NULL;
    size_t length;
    if (read_distance(name, zone))
        return zone;
    char *path = memory_format("/usr/share/zoneinfo/%s", name);
    bool read = is_name(name) && !file_read(path, ZONE_BYTES_MAX, &bytes, &length) &&
                read_zone((const uint8_t *)bytes, length, zone);
    free(path);
    free(bytes);
    if (read)
        return zone;
    error_clear(); /* the caller says what it wanted the zone for */
    zone_free(zone);
    return NULL;
}

void zone_free(struct zone *zone) {
    if (!zone)
        return;
    free(zone->at);
    free(zone->offset);
    free(zone);
}

int32_t zone_minutes(const struct zone *zone, int64_t seconds) {
    assert(zone);
    if (zone->has_rule && (!zone->count || seconds >= zone->at[zone->count - 1]))
        return offset_by_rule(zone, seconds) / 60;
    uint32_t low = 0, high = zone->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (zone->at[middle] <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return (low ? zone->offset[low - 1] : zone->first) / 60;
}
