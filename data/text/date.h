/* Dates and times of the Gregorian calendar, which is taken to have been in force from the year 1
 * on. */
#ifndef DML_DATA_TEXT_DATE_H
#define DML_DATA_TEXT_DATE_H

#include <stdbool.h>
#include <stdint.h>

/* As it was written, on the clock of its zone. */
struct date {
    int32_t year; /* 1 to 9999 */
    uint32_t month, day;
    bool has_time;
    uint32_t hour, minute;
    double second;  /* below 61: a leap second is the last of its minute */
    int32_t offset; /* of the zone's clock from UTC, in minutes; 0 if the text has no zone */
};

static inline bool date_is_leap(int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* What a format may be, beside a text with % in it. */
#define DATE_FORMAT_ISO "iso"
#define DATE_FORMAT_EPOCH "epoch"
#define DATE_FORMAT_EPOCH_MS "epoch_ms"

/* Reads a text that is a date as a whole. DATE_FORMAT_ISO (or NULL): 2024-05-06, which a time may
 * follow after T or a blank, 07:08, 07:08:09 or 07:08:09.25, and after that a zone: Z, +02, +0200
 * or +02:00. DATE_FORMAT_EPOCH: seconds since 1970 in UTC, without those that leapt;
 * DATE_FORMAT_EPOCH_MS: milliseconds. Else as POSIX has it for strptime: %Y %y %m %d %H %I %p %M %S
 * %z %b %s %%, a blank for any number of them, and characters that stand for themselves; %b is an
 * English month, and %S may have a fraction. False for any other text, and for a day or time that
 * does not exist. */
bool date_parse(const char *text, const char *format, struct date *date);

/* Usual formats, without those of which the text is no date: bit k of *formats is that of number k.
 * At first all are set. */
#define DATE_FORMATS_ALL UINT32_MAX
void date_formats_narrow(const char *text, uint32_t *formats);

/* The first format of such bits; NULL: there is none. */
const char *date_formats_first(uint32_t formats);

/* Whether a text may be a date with day and month, and with month and day: another date of a format
 * that such bits have beside the first. */
bool date_formats_are_ambiguous(uint32_t formats);

/* Whether a format is one of these, and gives year and month. A date without a day is the first of
 * its month. */
bool date_format_is_valid(const char *format);

/* Days since the beginning of 1970 in UTC, with the time as a fraction. */
double date_days(const struct date *date);

/* From 0, Monday. */
uint32_t date_weekday(const struct date *date);

#endif
