#include "data/text/date.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "data/text/number.h"

#define SECONDS_A_DAY 86400.0
#define DAYS_TO_1970 719162 /* from the first day of the year 1 */
#define EPOCH_DAYS_LEAST (-DAYS_TO_1970)
#define EPOCH_DAYS_END 2932897 /* the first day of the year 10000 */

/* ---- the calendar ---- */

static uint32_t days_of_month(int32_t year, uint32_t month) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && date_is_leap(year) ? 29u : days[month - 1];
}

/* Days since 1970 of the date alone. */
static int32_t day_number(const struct date *date) {
    int32_t before = date->year - 1;
    int32_t days = 365 * before + before / 4 - before / 100 + before / 400 - DAYS_TO_1970;
    for (uint32_t month = 1; month < date->month; month++)
        days += (int32_t)days_of_month(date->year, month);
    return days + (int32_t)date->day - 1;
}

/* The date of a day since 1970. */
static void set_day(struct date *date, int32_t days) {
    date->month = date->day = 1;
    date->year = (int32_t)((days + DAYS_TO_1970) / 365.2425) + 1;
    date->year += date->year < 9999; /* at least the year that it is */
    while (day_number(date) > days)
        date->year--;
    days -= day_number(date);
    assert(days >= 0);
    for (; (uint32_t)days >= days_of_month(date->year, date->month); date->month++)
        days -= (int32_t)days_of_month(date->year, date->month);
    assert(date->month <= 12);
    date->day = (uint32_t)days + 1;
}

double date_days(const struct date *date) {
    double seconds = 3600.0 * date->hour + 60.0 * ((int32_t)date->minute - date->offset);
    return day_number(date) + (seconds + date->second) / SECONDS_A_DAY;
}

uint32_t date_weekday(const struct date *date) {
    return (uint32_t)(day_number(date) + DAYS_TO_1970) % 7; /* the year 1 began on a Monday */
}

/* ---- parts of a text ---- */

/* A text as it is read. */
struct reading {
    const char *at;
    struct date *date;
    bool afternoon, has_half; /* %p */
};

/* From `least` to `most` digits. */
static bool read_digits(struct reading *reading, unsigned least, unsigned most, uint32_t *number) {
    unsigned count = 0;
    *number = 0;
    for (; count < most && digits_is(reading->at[count]); count++)
        *number = 10 * *number + (uint32_t)(reading->at[count] - '0');
    reading->at += count;
    return count >= least;
}

static bool read_char(struct reading *reading, char c) {
    bool here = *reading->at == c;
    reading->at += here;
    return here;
}

static bool read_year(struct reading *reading) {
    uint32_t year;
    bool read = read_digits(reading, 4, 4, &year);
    reading->date->year = (int32_t)year;
    return read;
}

static bool read_seconds(struct reading *reading) {
    uint32_t whole;
    if (!read_digits(reading, 1, 2, &whole))
        return false;
    reading->date->second = whole;
    if ((*reading->at != '.' && *reading->at != ',') || !digits_is(reading->at[1]))
        return true;
    double unit = 1;
    uint32_t digits = 0;
    for (reading->at++; digits_is(*reading->at); reading->at++)
        if (digits++ < 9)
            reading->date->second += (*reading->at - '0') * (unit /= 10);
    return true;
}

/* "Z", "UTC", "GMT", "+02", "-0330" or "+02:00". */
static bool read_zone(struct reading *reading) {
    static const char *const names[] = {"Z", "z", "UTC", "GMT"};
    uint32_t hours, minutes = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(reading->at, names[i], strlen(names[i]))) {
            reading->at += strlen(names[i]);
            return true;
        }
    bool west = *reading->at == '-';
    if (!west && *reading->at != '+')
        return false;
    reading->at++;
    if (!read_digits(reading, 2, 2, &hours))
        return false;
    if (*reading->at == ':' || digits_is(*reading->at)) {
        reading->at += *reading->at == ':';
        if (!read_digits(reading, 2, 2, &minutes))
            return false;
    }
    reading->date->offset = (int32_t)(60 * hours + minutes) * (west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

static bool read_month_name(struct reading *reading) {
    static const char *const names[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
    for (uint32_t i = 0; i < 12; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(reading->at, names[i], 3))
            continue;
        reading->date->month = i + 1;
        reading->at += strncasecmp(reading->at, names[i], length) ? 3 : length;
        return true;
    }
    return false;
}

static bool read_half(struct reading *reading) {
    reading->has_half = true;
    reading->afternoon = !strncasecmp(reading->at, "pm", 2);
    bool known = reading->afternoon || !strncasecmp(reading->at, "am", 2);
    reading->at += known ? 2 : 0;
    return known;
}

static bool read_epoch(struct reading *reading, double unit) {
    double seconds;
    const char *end = number_parse(reading->at, &seconds);
    seconds = end ? seconds / unit : 0;
    double days = end ? floor(seconds / SECONDS_A_DAY) : 0;
    if (!end || days < EPOCH_DAYS_LEAST || days >= EPOCH_DAYS_END)
        return false;
    struct date *date = reading->date;
    double rest = seconds - days * SECONDS_A_DAY;
    set_day(date, (int32_t)days);
    date->hour = (uint32_t)(rest / 3600);
    date->minute = (uint32_t)((rest - 3600.0 * date->hour) / 60);
    date->second = rest - 3600.0 * date->hour - 60.0 * date->minute;
    date->has_time = true;
    reading->at = end;
    return true;
}

/* ---- formats ---- */

static bool read_iso(struct reading *reading) {
    struct date *date = reading->date;
    if (!read_year(reading) || !read_char(reading, '-') ||
        !read_digits(reading, 2, 2, &date->month) || !read_char(reading, '-') ||
        !read_digits(reading, 2, 2, &date->day))
        return false;
    if (!*reading->at)
        return true;
    if (*reading->at != 'T' && *reading->at != 't' && *reading->at != ' ')
        return false;
    reading->at++;
    date->has_time = true;
    if (!read_digits(reading, 2, 2, &date->hour) || !read_char(reading, ':') ||
        !read_digits(reading, 2, 2, &date->minute))
        return false;
    if (*reading->at == ':') {
        reading->at++;
        if (!digits_is(*reading->at) || !digits_is(reading->at[1]) || !read_seconds(reading))
            return false;
    }
    reading->at += *reading->at == ' ' && reading->at[1];
    return !*reading->at || read_zone(reading);
}

static bool read_part(struct reading *reading, char part) {
    struct date *date = reading->date;
    uint32_t year;
    date->has_time |= part && strchr("HIMSs", part);
    switch (part) {
    case 'Y':
        return read_year(reading);
    case 'y':
        if (!read_digits(reading, 2, 2, &year))
            return false;
        date->year = (int32_t)(year < 69 ? 2000 + year : 1900 + year);
        return true;
    case 'm':
        return read_digits(reading, 1, 2, &date->month);
    case 'b':
        return read_month_name(reading);
    case 'd':
        return read_digits(reading, 1, 2, &date->day);
    case 'H':
    case 'I':
        return read_digits(reading, 1, 2, &date->hour);
    case 'M':
        return read_digits(reading, 1, 2, &date->minute);
    case 'S':
        return read_seconds(reading);
    case 'p':
        return read_half(reading);
    case 'z':
        return read_zone(reading);
    case 's':
        return read_epoch(reading, 1);
    default:
        return part == '%' && read_char(reading, '%');
    }
}

static bool read_by(struct reading *reading, const char *format) {
    for (; *format; format++)
        if (*format == '%') {
            if (!read_part(reading, *++format))
                return false;
        } else if (is_blank(*format)) {
            while (is_blank(*reading->at))
                reading->at++;
        } else if (*reading->at != *format) {
            return false;
        } else {
            reading->at++;
        }
    return true;
}

/* On a clock of twelve hours the first of each half is 12. */
static bool set_half(const struct reading *reading) {
    struct date *date = reading->date;
    if (!reading->has_half)
        return true;
    if (date->hour < 1 || date->hour > 12)
        return false;
    date->hour = date->hour % 12 + (reading->afternoon ? 12 : 0);
    return true;
}

/* A minute has 61 seconds only where a leap second is: the last of an hour, or, in zones that are
 * half an hour off, of a half. */
static bool exists(const struct date *date) {
    bool leaps =
        date->minute == 59 || date->minute == 29 || date->minute == 14 || date->minute == 44;
    return date->year >= 1 && date->year <= 9999 && date->month >= 1 && date->month <= 12 &&
           date->day >= 1 && date->day <= days_of_month(date->year, date->month) &&
           date->hour < 24 && date->minute < 60 && date->second < (leaps ? 61 : 60);
}

bool date_parse(const char *text, const char *format, struct date *date) {
    struct reading reading = {.at = text, .date = date};
    *date = (struct date){.day = 1};
    bool read = !format || !strcmp(format, DATE_FORMAT_ISO) ? read_iso(&reading)
                : !strcmp(format, DATE_FORMAT_EPOCH)        ? read_epoch(&reading, 1)
                : !strcmp(format, DATE_FORMAT_EPOCH_MS)     ? read_epoch(&reading, 1000)
                                                            : read_by(&reading, format);
    return read && !*reading.at && set_half(&reading) && exists(date);
}

static const char *const usual[] = {DATE_FORMAT_ISO,
                                    "%d.%m.%Y",
                                    "%d.%m.%Y %H:%M",
                                    "%d.%m.%Y %H:%M:%S",
                                    "%m/%d/%Y",
                                    "%m/%d/%Y %H:%M",
                                    "%m/%d/%Y %H:%M:%S",
                                    "%m/%d/%Y %I:%M %p",
                                    "%m/%d/%Y %I:%M:%S %p",
                                    "%d/%m/%Y",
                                    "%d/%m/%Y %H:%M",
                                    "%d/%m/%Y %H:%M:%S",
                                    "%Y/%m/%d",
                                    "%Y/%m/%d %H:%M:%S",
                                    "%d-%b-%Y",
                                    "%d %b %Y",
                                    "%b %d, %Y",
                                    "%m/%d/%y",
                                    "%m/%d/%y %H:%M",
                                    "%d/%m/%y",
                                    "%d.%m.%y",
                                    "%d-%m-%Y",
                                    "%m-%d-%Y",
                                    "%d-%b-%y",
                                    "%Y-%m",
                                    "%m/%Y",
                                    "%b %Y",
                                    "%Y/%m"};
#define USUAL (sizeof usual / sizeof usual[0])

void date_formats_narrow(const char *text, uint32_t *formats) {
    struct date date;
    for (uint32_t i = 0; i < USUAL && *formats; i++)
        if (*formats >> i & 1 && !date_parse(text, usual[i], &date))
            *formats &= ~(UINT32_C(1) << i);
}

const char *date_formats_first(uint32_t formats) {
    for (uint32_t i = 0; i < USUAL; i++)
        if (formats >> i & 1)
            return usual[i];
    return NULL;
}

bool date_formats_are_ambiguous(uint32_t formats) {
    const char *first = date_formats_first(formats);
    const bool american = first && !strncmp(first, "%m", 2);
    for (uint32_t i = 0; i < USUAL && american; i++)
        if (formats >> i & 1 && !strncmp(usual[i], "%d", 2) && usual[i][2] == first[2])
            return true;
    return false;
}

bool date_format_is_valid(const char *format) {
    bool year = false, month = false;
    if (!strcmp(format, DATE_FORMAT_ISO) || !strcmp(format, DATE_FORMAT_EPOCH) ||
        !strcmp(format, DATE_FORMAT_EPOCH_MS))
        return true;
    for (; *format; format++) {
        if ((unsigned char)*format < ' ')
            return false;
        if (*format != '%')
            continue;
        format++;
        if (!*format || !strchr("YymbdHIMSpzs%", *format))
            return false;
        year |= strchr("Yys", *format) != NULL;
        month |= strchr("mbs", *format) != NULL;
    }
    return year && month;
}
