/* Whether a column holds numbers or categories.
 *
 * Decided once, from the first block of text of the first file: a block is a property of the text
 * alone, so the result never depends on threads or machines. The majority decides: a typing error
 * does not turn a column of numbers into a category, nor does a code such as "unknown"; such a cell
 * is an error that names its line. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/csv/layout.h"
#include "data/text/date.h"
#include "data/text/number.h"

struct cell_counts {
    uint32_t numbers, texts;
    uint32_t commas;    /* texts that look like numbers with a decimal comma */
    char *comma;        /* the first of them */
    uint32_t no_dates;  /* formats of which some text is no date, as in date_formats_narrow() */
    uint32_t formatted; /* texts that are numbers but for signs, as "$1,200.50", or one unit */
    const char *unit;   /* of the first text; "" if it has none */
    char *dress;        /* the first of them */
    char *padded;       /* the first number with a zero before it, as codes have, not quantities */
    char *foreign;      /* the first text that is not UTF-8 */
    char *total;        /* the last text that names a sum of other rows, */
    uint64_t totals, total_row; /* how many there are, and the row of the last */
};

/* Is shown the cells of a text, one after the other. */
typedef void see_cell(void *context, uint32_t column, char *cell);

struct sight {
    const struct format *format;
    see_cell *see;
    void *context;
};

/* The rest of a malformed line is passed over: parsing will report the line. */
static void see_line(const struct sight *sight, char *line, char *end) {
    char *at = line;
    *end = '\0';
    for (uint32_t i = 0; i < sight->format->own && at; i++) {
        char *cell = csv_cell(&at, end, &sight->format->rule);
        if (!cell)
            return;
        sight->see(sight->context, i, cell);
    }
    for (uint32_t i = 0; i < sight->format->folders; i++)
        if (sight->format->folder[i].column >= sight->format->own)
            sight->see(sight->context, sight->format->folder[i].column,
                       sight->format->folder[i].of->value);
}

/* Calls `see` with the cells of a copy of the text; free it. */
static char *see_text(const struct sight *sight, const struct text_line *text) {
    char *copy = memory_new(text->length + 1, 1), *at = copy, *end = copy + text->length;
    memcpy(copy, text->text, text->length);
    while (at < end) {
        char *line_end = record_end(&sight->format->rule, at, end), *next;
        next = line_end < end ? line_end + 1 : end;
        if (line_end > at && line_end[-1] == '\r')
            line_end--;
        if (line_end > at && !record_is_comment(&sight->format->rule, at))
            see_line(sight, at, line_end);
        at = next;
    }
    return copy;
}

struct cell_counter {
    const struct format *format;
    struct cell_counts *counts; /* of each column */
    uint64_t row;               /* that is seen, from 1 */
};

/* What stands beside sums below a table. */
static bool is_total(const char *cell) {
    static const char *const words[] = {"total",    "totals",      "grand total",
                                        "sum",      "summe",       "gesamt",
                                        "subtotal", "gesamtsumme", "zwischensumme"};
    size_t length = strlen(cell);
    length -= length && cell[length - 1] == ':';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && !strncasecmp(cell, words[i], length))
            return true;
    return false;
}

static void count_cell(void *context, uint32_t column, char *cell) {
    struct cell_counter *counter = context;
    assert(column < counter->format->columns);
    struct cell_counts *counts = &counter->counts[column];
    double value;
    counter->row += column == 0;
    if (is_total(cell)) {
        counts->total = cell;
        counts->totals++;
        counts->total_row = counter->row;
    }
    if (csv_number(counter->format, counter->format->table->column[column].amounts, cell, &value)) {
        counts->numbers++;
        if (!counts->padded && *cell == '0' && cell[1] && !cell[strspn(cell, "0123456789")])
            counts->padded = cell;
    } else if (!csv_is_missing(counter->format, cell, strlen(cell))) {
        counts->texts++;
        counts->comma = !counts->commas && number_has_decimal_comma(cell) ? cell : counts->comma;
        counts->commas += number_has_decimal_comma(cell);
        counts->unit = counts->texts == 1 ? number_unit(cell) : counts->unit;
        const bool formatted = number_is_formatted(cell, counts->unit);
        counts->dress = !counts->formatted && formatted ? cell : counts->dress;
        counts->formatted += formatted;
        if (!counts->foreign && !text_is_utf8(cell))
            counts->foreign = cell;
        uint32_t formats = ~counts->no_dates;
        date_formats_narrow(cell, &formats);
        counts->no_dates = ~formats;
    }
}

/* Refuses a column all of whose texts look like numbers, unless the job says what a decimal point
 * is: of 4,5 and 3,25 as texts nothing can be learnt. Labels may be such lists. */
static int check_commas(const struct format *format, const char *path,
                        const struct cell_counts *counts, uint32_t column) {
    const struct source_options *options = format->options;
    char name[COLUMN_TEXT];
    if (!counts->commas || counts->commas < counts->texts || options->syntax.decimal ||
        options->table.surveys || format->kind == FORMAT_JSONL ||
        (column == format->label && options->label.separator))
        return 0;
    if (number_is_thousands(counts->comma))
        return error_set(ERROR_DATA,
                         "%s: %s holds texts such as \"%.40s\": if the comma parts thousands, list "
                         "the column in "
                         "csv.amounts; if it is a decimal point, set csv.decimal = \",\"; if texts "
                         "are meant, list "
                         "the column in csv.categories",
                         path, table_describe(format->table, column, name), counts->comma);
    return error_set(
        ERROR_DATA,
        "%s: %s holds texts such as \"%.40s\": if the comma is a decimal point, set "
        "csv.decimal = \",\"; if texts are meant, list the column in csv.categories, or "
        "set csv.decimal = \".\"",
        path, table_describe(format->table, column, name), counts->comma);
}

/* If dates are read as texts, most rows have a text of their own, and a new row has none that
 * training had. */
static void report_dates(const struct format *format, const char *path, uint32_t column,
                         const struct cell_counts *counts) {
    char name[COLUMN_TEXT];
    const char *dates = counts->texts > 1 ? date_formats_first(~counts->no_dates) : NULL;
    bool iso = dates && !strcmp(dates, DATE_FORMAT_ISO);
    if (dates && date_formats_are_ambiguous(~counts->no_dates))
        log_warning("%s: %s holds dates of which all may be read with the day first or the month "
                    "first: csv.date_format says which, if it is listed in csv.dates",
                    path, table_describe(format->table, column, name));
    else if (dates)
        log_warning(
            "%s: %s holds dates, each of which is a category level: list it in csv.dates%s%s%s to "
            "learn from year, month, weekday, hour and days, or in csv.categories if levels are "
            "meant",
            path, table_describe(format->table, column, name),
            iso ? "" : ", with csv.date_format = \"", iso ? "" : dates, iso ? "" : "\",");
}

/* As categories amounts are worth nothing, although the columns may matter most. */
static void warn_of_formatted(const struct format *format, const char *path, uint32_t column,
                              const struct cell_counts *counts) {
    char name[COLUMN_TEXT];
    const char point = format->decimal_comma ? ',' : '.';
    double value;
    if (counts->formatted <= counts->texts - counts->texts / 10)
        return;
    table_describe(format->table, column, name);
    if (number_of_amount(counts->dress, point, &value))
        log_warning(
            "%s: %s holds amounts such as \"%.40s\", which are texts: list it in csv.amounts "
            "to read them as numbers; if texts are meant, in csv.categories",
            path, name, counts->dress);
    else if (number_of_amount(counts->dress, point == '.' ? ',' : '.', &value))
        log_warning("%s: %s holds amounts such as \"%.40s\", which are texts: to read them as "
                    "numbers list it in csv.amounts and set csv.decimal = \"%c\"; if texts are "
                    "meant, list it in csv.categories",
                    path, name, counts->dress, point == '.' ? ',' : '.');
    else
        log_warning("%s: %s holds numbers such as \"%.40s\", which are texts until all but %s is "
                    "taken out of them; if texts are meant, list it in csv.categories",
                    path, name, counts->dress,
                    number_bare_form(counts->dress, format->decimal_comma));
}

/* A sum of the rows above is no example, and its numbers are far beyond theirs. A text that other
 * rows have, too, is a category. */
static void warn_of_total(const struct format *format, const char *path, uint32_t column,
                          const struct cell_counts *counts, uint64_t rows) {
    char name[COLUMN_TEXT];
    if (rows > 2 && counts->totals == 1 && counts->total_row == rows && !counts->numbers &&
        format->table->column[column].kind == COLUMN_CATEGORY)
        log_warning("%s: the last row of the first block of text has \"%.40s\" in %s, as no other "
                    "row has: if it holds sums of the rows above, it is no example; take it out of "
                    "the file",
                    path, counts->total, table_describe(format->table, column, name));
}

/* A weight for each step of a postal code says nothing. */
static void report_codes(const struct format *format, const char *path, uint32_t column,
                         const struct cell_counts *counts) {
    char name[COLUMN_TEXT];
    if (counts->padded)
        log_info("%s: %s holds numbers with zeros before them, such as %.40s: if these are codes, "
                 "list it in csv.categories, else in csv.numbers",
                 path, table_describe(format->table, column, name), counts->padded);
}

/* Finds the kind of a column, unless it is known. */
static int find_kind(struct format *format, const char *path, uint32_t i,
                     const struct cell_counts *counts, uint64_t rows, bool known) {
    struct table_column *column = &format->table->column[i];
    int code = !known || i == format->label ? check_commas(format, path, counts, i) : 0;
    if (code)
        return code;
    if (!known && (counts->texts > counts->numbers || csv_folder_has_texts(format, i)))
        column->kind = COLUMN_CATEGORY;
    /* The rows that are to be scored may be in UTF-8, as most are, and would have none of these
     * texts.
     */
    char name[COLUMN_TEXT];
    if (counts->foreign && format->table->column[i].kind == COLUMN_CATEGORY)
        log_warning("%s: %s holds texts that are not UTF-8, such as \"%.40s\": the same texts in "
                    "UTF-8 are others; if they are Latin-1 or Windows-1252, this converts them: "
                    "iconv -f WINDOWS-1252 -t UTF-8 FILE > FILE.csv",
                    path, table_describe(format->table, i, name), counts->foreign);
    warn_of_total(format, path, i, counts, rows);
    if (known)
        return 0;
    column->found = true;
    column->padded = counts->padded;
    if (column->kind == COLUMN_CATEGORY) {
        report_dates(format, path, i, counts);
        warn_of_formatted(format, path, i, counts);
    } else {
        report_codes(format, path, i, counts);
    }
    return 0;
}

int csv_kinds_find(struct format *format, const char *path, const struct text_line *text,
                   const bool *known) {
    struct cell_counts *counts = memory_new(format->columns, sizeof *counts);
    struct cell_counter counter = {.format = format, .counts = counts};
    char *copy = see_text(&(struct sight){format, count_cell, &counter}, text);
    int code = 0;
    for (uint32_t i = 0; i < format->columns && !code; i++)
        code = find_kind(format, path, i, &counts[i], counter.row, known[i]);
    free(copy);
    free(counts);
    return code;
}

struct cell_search {
    const struct csv_cells *first;
    uint32_t alike; /* cells of the line that is seen that are as in the first */
    bool some;      /* one of them is a text */
    bool found;
    uint64_t copies;
};

static void compare_cell(void *context, uint32_t column, char *cell) {
    struct cell_search *search = context;
    assert(column < search->first->count + search->first->folders);
    const char *one = search->first->cell[column];
    const bool same = !strcmp(one, cell);
    search->alike = (column ? search->alike : 0) + same;
    search->some = (column && search->some) || (same && *one);
    if (column + 1 < search->first->count)
        return;
    const bool copy = search->alike == search->first->count;
    search->copies += copy;
    search->found |= search->some && !copy;
}

bool csv_recurs(const struct format *format, const struct csv_cells *first,
                const struct text_line *behind, uint64_t *copies) {
    struct cell_search search = {.first = first};
    assert(format->own == first->count);
    free(see_text(&(struct sight){format, compare_cell, &search}, behind));
    *copies = search.copies;
    return search.found;
}
