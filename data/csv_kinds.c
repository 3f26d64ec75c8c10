/* Whether a column holds numbers or categories.
 *
 * Decided once, from the first block of text of the first file: a block is a property of the text
 * alone, so the answer never depends on threads or machines. The majority decides: a typing error
 * does not turn a column of numbers into a category, nor does a code such as "unknown"; such a cell
 * is an error that names its line. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/format.h"
#include "data/number.h"

struct tally {
    uint32_t numbers, texts;
};

static void count_cell(const struct format *format, struct tally *tally, const char *cell) {
    double value;
    if (number_of_text(cell, &value))
        tally->numbers++;
    else if (!csv_is_missing(format, cell, strlen(cell)))
        tally->texts++;
}

/* Lines that are malformed are passed over: they will be reported. */
static void count_line(const struct format *format, struct tally *tally, char *line, char *end) {
    char *at = line;
    *end = '\0';
    for (uint32_t i = 0; i < format->columns && at; i++) {
        char *cell = csv_cell(&at, end, format->delimiter);
        if (!cell)
            return;
        count_cell(format, &tally[i], cell);
    }
}

static void count_text(const struct format *format, struct tally *tally, char *at, char *end) {
    while (at < end) {
        char *line_end = memchr(at, '\n', (size_t)(end - at)), *next;
        next = line_end ? line_end + 1 : end;
        line_end = line_end ? line_end : end;
        if (line_end > at && line_end[-1] == '\r')
            line_end--;
        if (line_end > at)
            count_line(format, tally, at, line_end);
        at = next;
    }
}

void csv_kinds_find(struct format *format, const struct text_line *text, const bool *known) {
    struct tally *tally = memory_new(format->columns, sizeof *tally);
    char *copy = memory_new(text->length + 1, 1);
    memcpy(copy, text->text, text->length);
    count_text(format, tally, copy, copy + text->length);
    for (uint32_t i = 0; i < format->columns; i++) {
        if (known[i])
            continue;
        format->table->column[i].found = true;
        if (tally[i].texts > tally[i].numbers)
            format->table->column[i].kind = COLUMN_CATEGORY;
    }
    free(copy);
    free(tally);
}
