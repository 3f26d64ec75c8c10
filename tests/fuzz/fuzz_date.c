/* Dates: the text up to a line end is the format, the rest the date. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/text/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    char *format = memory_new(length + 1, 1);
    struct date date;
    if (length)
        memcpy(format, data, length);
    char *text = strchr(format, '\n');
    if (text)
        *text++ = '\0';
    text = text ? text : format + length;
    bool read = date_format_is_valid(format) && date_parse(text, format, &date);
    if (read && (date.year < 1 || date.year > 9999 || date_weekday(&date) > 6 || date.hour > 23 ||
                 !(fabs(date_days(&date)) < 3e6)))
        abort();
    uint32_t formats = DATE_FORMATS_ALL;
    date_formats_narrow(text, &formats);
    free(format);
    return 0;
}
