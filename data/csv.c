/* The lines of a CSV file. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "data/date.h"
#include "data/number.h"
#include "data/format.h"
#include "data/blocks.h"

/* A quoted cell: `p` is behind the opening quote. A doubled quote is one. */
static char *unquote(char *p, char *end, char **behind) {
    char *to = p, *from = p;
    for (; from < end; from++) {
        if (*from == '"') {
            if (from[1] != '"')
                break;
            from++;
        }
        *to++ = *from;
    }
    if (from >= end)
        return NULL;
    *to = '\0';
    for (from++; from < end && *from == ' ';)
        from++;
    *behind = from;
    return p;
}

char *csv_cell(char **at, char *end, char delimiter) {
    char *p = *at, *behind, *cell;
    while (p < end && *p == ' ')
        p++;
    if (p < end && *p == '"') {
        cell = unquote(p + 1, end, &behind);
        if (!cell || (behind < end && *behind != delimiter))
            return NULL;
    } else {
        cell = p;
        behind = memchr(p, delimiter, (size_t)(end - p));
        if (!behind)
            behind = end;
        char *last = behind;
        while (last > p && last[-1] == ' ')
            last--;
        *last = '\0';
    }
    *at = behind < end ? behind + 1 : NULL;
    *behind = '\0';
    return cell;
}

static const char *describe_column(const struct format *format, uint32_t column,
                                   char text[COLUMN_TEXT]) {
    if (format->names)
        snprintf(text, COLUMN_TEXT, "column %u (%.100s)", column + 1, format->names[column]);
    else
        snprintf(text, COLUMN_TEXT, "column %u", column + 1);
    return text;
}

/* What is known of the line being read. */
struct csv_line {
    const struct format *format;
    struct batch *batch;
    char *at, *end;
    uint64_t number, last;
    double label;
    const char *label_text;
    uint32_t missing; /* cells of numbers */
};

/* ---- numbers with a decimal comma ---- */

bool csv_number(const struct format *format, char *cell, double *value) {
    if (!format->decimal_comma)
        return number_of_text(cell, value);
    char *comma = strchr(cell, ',');
    if (strchr(cell, '.')) /* it may part thousands */
        return false;
    if (comma)
        *comma = '.';
    bool is_number = number_of_text(cell, value);
    if (comma)
        *comma = ',';
    return is_number;
}

bool csv_has_decimal_comma(const char *cell) {
    cell += *cell == '-' || *cell == '+';
    size_t whole = strspn(cell, "0123456789");
    size_t digits = cell[whole] == ',' ? strspn(cell + whole + 1, "0123456789") : 0;
    return whole && digits && !cell[whole + 1 + digits];
}

/* ---- cells that are refused ---- */

static bool reject_cell(const struct csv_line *line, uint32_t column, const char *cell) {
    char name[COLUMN_TEXT];
    bool first = line->number == 1 && !line->format->header;
    describe_column(line->format, column, name);
    if (*cell == '\0')
        return batch_reject(line->batch, line->number,
                            "%s is empty: every cell must be a number for this model", name);
    if (!line->format->decimal_comma && csv_has_decimal_comma(cell))
        return batch_reject(line->batch, line->number,
                            "%s holds \"%.40s\", which is not a finite number; if its comma is a "
                            "decimal point, set csv.decimal = \",\"",
                            name, cell);
    if (line->format->decimal_comma && strchr(cell, '.'))
        return batch_reject(line->batch, line->number,
                            "%s holds \"%.40s\", which is no number where csv.decimal = \",\": "
                            "take out points that part thousands",
                            name, cell);
    return batch_reject(line->batch, line->number,
                        "%s holds \"%.40s\", which is not a finite number; if the column holds "
                        "texts, list it in csv.categories, or of sentences in csv.text; if this "
                        "stands for a missing number, "
                        "list it in csv.missing; or leave the column out with csv.skip%s",
                        name, cell,
                        first ? "; if this line names the columns, set csv.header = yes" : "");
}

static bool reject_quote(const struct csv_line *line, uint32_t column) {
    char name[COLUMN_TEXT];
    return batch_reject(line->batch, line->last,
                        "%s: a quote is not closed: a quoted text of several lines has %u bytes at "
                        "most, and behind it the next column or line begins",
                        describe_column(line->format, column, name), QUOTED_BYTES_MAX);
}

bool csv_is_missing(const struct format *format, const char *cell, size_t length) {
    for (uint32_t i = 0; i < format->words; i++)
        if (format->missing[i].length == length && !memcmp(format->missing[i].text, cell, length))
            return true;
    return length == 0 && !format->options->numbers_only;
}

/* ---- labels ---- */

static bool take_label(struct csv_line *line, uint32_t column) {
    const struct format *format = line->format;
    char name[COLUMN_TEXT], *cell = csv_cell(&line->at, line->end, format->delimiter);
    if (!cell)
        return reject_quote(line, column);
    if (line->last > line->number && strchr(cell, '\n'))
        return batch_reject(
            line->batch, line->number, "%s: the label has a line break in it",
            describe_column(format, column, name)); /* they are printed one a line */
    line->label = NAN;
    if (format->options->separator) {
        line->label_text = cell;
        return true;
    }
    if (csv_number(format, cell, &line->label)) {
        line->label += 0.0; /* −0 is 0 */
        return true;
    }
    line->label = NAN;
    /* A text is a label that is missing only if the job says so: "none" may be a class. */
    const char *const *words = format->options->missing;
    if (*cell && !(words && *words && csv_is_missing(format, cell, strlen(cell)))) {
        line->label_text = cell;
        return true;
    }
    describe_column(format, column, name);
    return format->options->label_optional ||
           (*cell ? batch_reject(line->batch, line->number,
                                 "%s: the label is missing: \"%.40s\" is one of csv.missing", name,
                                 cell)
                  : batch_reject(line->batch, line->number, "%s: the label is empty", name));
}

/* ---- weights, offsets, exposures ---- */

static bool reject_property(const struct csv_line *line, uint32_t column, const char *cell,
                            enum row_property property) {
    const struct property_rule *rule = &property_rules[property];
    char name[COLUMN_TEXT];
    describe_column(line->format, column, name);
    if (!*cell)
        return batch_reject(line->batch, line->number, "%s: the %s is empty", name, rule->name);
    return batch_reject(line->batch, line->number,
                        "%s holds \"%.40s\", which is no %s: allowed: %s", name, cell, rule->name,
                        rule->allowed);
}

static bool take_property(struct csv_line *line, uint32_t column, enum row_property property) {
    char *cell = csv_cell(&line->at, line->end, line->format->delimiter);
    double number;
    if (!cell)
        return reject_quote(line, column);
    if (property == ROW_WEIGHT && line->format->options->ignores_weights)
        return true;
    if (!csv_number(line->format, cell, &number) || !property_is_valid(property, number))
        return reject_property(line, column, cell, property);
    if (property == ROW_WEIGHT)
        line->batch->row_weight = number;
    else
        line->batch->row_offset += property_offset(property, number);
    return true;
}

/* ---- numbers ---- */

/* Reads a cell that is a number and nothing else, as most are. */
static inline bool usual_cell(char **at, const char *end, char delimiter, double *value) {
    char *p = *at;
    const char *behind = p + 1;
    if (digits_is(*p) && *behind == delimiter) { /* short, as counts and codes are */
        *value = *p - '0';
        *at = p + 2;
        return true;
    }
    behind = digits_number(p, delimiter, value);
    if (!behind && !(behind = number_parse(p, value)))
        return false;
    if (behind > end || (behind < end && *behind != delimiter))
        return false;
    *at = behind < end ? p + (behind - p) + 1 : NULL;
    return true;
}

static bool unusual_number(struct csv_line *line, uint32_t column, double *value) {
    char *cell = csv_cell(&line->at, line->end, line->format->delimiter);
    if (!cell)
        return reject_quote(line, column);
    if (csv_number(line->format, cell, value))
        return true;
    if (!csv_is_missing(line->format, cell, strlen(cell)))
        return reject_cell(line, column, cell);
    *value = NAN;
    line->missing++;
    return true;
}

/* ---- categories ---- */

/* The text of a cell, *length bytes of it; NULL: a quote is not closed. */
static char *text_cell(struct csv_line *line, bool trim, size_t *length) {
    char *cell = line->at;
    size_t blanks = strspn(cell, " ");
    if (!trim && cell[blanks] != '"') {
        char *behind = memchr(cell, line->format->delimiter, (size_t)(line->end - cell));
        line->at = behind ? behind + 1 : NULL;
        behind = behind ? behind : line->end;
        *behind = '\0';
        *length = (size_t)(behind - cell);
        return cell;
    }
    cell = csv_cell(&line->at, line->end, line->format->delimiter);
    if (!cell)
        return NULL;
    while (trim && is_blank(*cell))
        cell++;
    *length = strlen(cell);
    while (trim && *length && is_blank(cell[*length - 1]))
        cell[--*length] = '\0';
    return cell;
}

/* Texts are hashed as those of categories, and 0 is none. The table of a model may name a column of
 * clusters, too: where none are asked for, it says nothing. */
static bool take_cluster(struct csv_line *line, uint32_t column) {
    size_t length;
    char *cell = text_cell(line, line->format->options->trim, &length);
    if (!cell)
        return reject_quote(line, column);
    if (!line->format->options->cluster)
        return true;
    if (!length || csv_is_missing(line->format, cell, length))
        return reject_property(line, column, "", ROW_CLUSTER);
    uint64_t hash = hash64(cell, length);
    line->batch->row_cluster = hash ? hash : 1;
    return true;
}

static bool take_category(struct csv_line *line, uint32_t column) {
    const struct format *format = line->format;
    size_t length;
    char name[COLUMN_TEXT], *cell = text_cell(line, format->table->trim, &length);
    if (!cell)
        return reject_quote(line, column);
    if (length > CATEGORY_BYTES_MAX)
        return batch_reject(line->batch, line->number,
                            "%s holds a text of %zu bytes, and a category has %u at most; if it "
                            "holds sentences, list it in csv.text, or leave the column out with "
                            "csv.skip",
                            describe_column(format, column, name), length, CATEGORY_BYTES_MAX);
    bool missing = csv_is_missing(format, cell, length);
    struct source_origin origin = {.text = missing ? NULL : cell,
                                   .column = format->column[column].number,
                                   .role = missing ? ROLE_MISSING : ROLE_VALUE};
    enum table_ids ids = format->table->ids;
    uint64_t id = table_feature(ids, origin.column, origin.role, cell, length);
    if (!missing && format->table->hash) {
        origin.text = NULL;
        origin.role = ROLE_HASHED;
        origin.hash = table_hash(format->table, origin.column, cell, length);
        id = table_hashed_feature(ids, origin.column, origin.hash);
    }
    batch_add_text(line->batch, id, 1, &origin);
    return true;
}

/* ---- texts ---- */

static bool reject_words(const struct csv_line *line, uint32_t column, enum words_error error,
                         const char *cell) {
    char name[COLUMN_TEXT];
    describe_column(line->format, column, name);
    if (error == WORDS_COLLIDE)
        return batch_reject(line->batch, line->number,
                            "%s: two words of the data have the same hash; change csv.ngrams or "
                            "leave the column out with csv.skip",
                            name);
    size_t at = line->batch->words.invalid;
    return batch_reject(
        line->batch, line->number,
        "%s: the text is not UTF-8: byte 0x%02x behind %zu bytes of it; convert the "
        "file, as with iconv -f latin1 -t utf8",
        name, (unsigned char)cell[at], at);
}

/* An empty text has no words, and neither has a missing one. */
static bool take_words(struct csv_line *line, uint32_t column) {
    const struct format *format = line->format;
    struct words *words = &line->batch->words;
    char *cell = csv_cell(&line->at, line->end, format->delimiter);
    if (!cell)
        return reject_quote(line, column);
    uint32_t number = format->column[column].number;
    enum words_error error = words_find(words, format->table, number, cell, strlen(cell));
    if (error)
        return reject_words(line, column, error, cell);
    struct source_origin origin = {.column = number,
                                   .role = format->table->hash ? ROLE_HASHED : ROLE_WORD};
    for (uint32_t i = 0; i < words->count; i++) {
        origin.text = words->found[i].text;
        origin.hash = words->found[i].number;
        batch_add_text(line->batch, words->found[i].id, words->found[i].count, &origin);
    }
    return true;
}

/* ---- dates ---- */

static bool take_date(struct csv_line *line, uint32_t column) {
    const struct format *format = line->format;
    struct date date;
    char name[COLUMN_TEXT], *cell = csv_cell(&line->at, line->end, format->delimiter);
    if (!cell)
        return reject_quote(line, column);
    if (csv_is_missing(format, cell, strlen(cell))) {
        csv_put_date(format, line->batch, column, NULL);
        line->missing++;
        return true;
    }
    const char *as = format->table->date_format;
    if (!date_parse(cell, as, &date))
        return batch_reject(line->batch, line->number,
                            "%s holds \"%.40s\", which is no date as csv.date_format has it: %s%s; "
                            "if this stands for a missing date, list it in csv.missing",
                            describe_column(format, column, name), cell, as ? as : DATE_FORMAT_ISO,
                            as ? "" : ", as 2024-05-06 or 2024-05-06T07:08:09Z");
    csv_put_date(format, line->batch, column, &date);
    return true;
}

/* ---- rows ---- */

static bool reject_count(const struct csv_line *line, uint32_t seen, bool more) {
    return batch_reject(line->batch, line->number, "%s: %s%u columns where the first line has %u",
                        more ? "an extra column" : "a missing column", more ? "more than " : "",
                        seen, line->format->columns);
}

/* Marks the missing numbers, and leaves out their values. */
static void put_numbers(const struct format *format, struct batch *batch) {
    uint64_t at = batch->value_count;
    for (uint32_t i = 0; i < format->numbers; i++) {
        double value = batch->value[batch->value_count + i];
        struct source_origin origin = {.column = (uint32_t)format->number_id[i] - 1};
        if (isnan(value)) {
            origin.role = ROLE_MISSING;
            batch_add_text(batch,
                           table_feature(format->table->ids, origin.column, ROLE_MISSING, NULL, 0),
                           1, &origin);
            continue;
        }
        batch->id[at] = format->number_id[i];
        batch->value[at] = value;
        batch->origin[at++] = origin;
    }
    batch->value_count = at;
}

/* Ends a row that differs from others in its ids. */
static bool end_different(struct csv_line *line) {
    struct batch *batch = line->batch;
    uint64_t repeated;
    if (!batch->has_origins)
        batch_tell_apart(batch);
    put_numbers(line->format, batch);
    if (!batch_put_texts(batch))
        return batch_reject(batch, line->number,
                            "two texts of this row have the same hash; leave the column of one of "
                            "them out with csv.skip");
    return batch_row(batch, line->label, line->label_text, true, &repeated);
}

/* The rows of numbers are alike: only the first has its ids. */
static bool end_row(struct csv_line *line) {
    const struct format *format = line->format;
    struct batch *batch = line->batch;
    uint64_t repeated;
    if (line->missing || !batch->alike)
        return end_different(line);
    if (!batch->row_count)
        memcpy(batch->id, format->number_id, format->numbers * sizeof *batch->id);
    batch->value_count += format->numbers;
    return batch_row(batch, line->label, line->label_text, true, &repeated);
}

static bool take_other(struct csv_line *line, uint32_t column) {
    enum column_kind kind = line->format->column[column].kind;
    switch (kind) {
    case COLUMN_CATEGORY:
        return take_category(line, column);
    case COLUMN_WORDS:
        return take_words(line, column);
    case COLUMN_DATE:
        return take_date(line, column);
    case COLUMN_LABEL:
        return take_label(line, column);
    case COLUMN_WEIGHT:
    case COLUMN_OFFSET:
    case COLUMN_EXPOSURE:
        return take_property(line, column, property_of(kind));
    case COLUMN_CLUSTER:
        return take_cluster(line, column);
    default:
        return csv_cell(&line->at, line->end, line->format->delimiter) ||
               reject_quote(line, column);
    }
}

bool csv_parse_line(const struct format *format, struct batch *batch, char *text, char *end,
                    uint64_t number, uint64_t last) {
    *end = '\0';
    if ((unsigned char)*text <= ' ' && text + strspn(text, " \t\r") == end)
        return false;
    if (batch->has_zeros && memchr(text, '\0', (size_t)(end - text)))
        return batch_reject(batch, number, "a zero byte: is this a text file?");
    batch_reserve(batch, format->values);
    struct csv_line line = {format, batch, text, end, number, last, NAN, NULL, 0};
    double *value = batch->value + batch->value_count;
    for (uint32_t i = 0; i < format->columns; i++) {
        const struct csv_column *column = &format->column[i];
        if (!line.at)
            return reject_count(&line, i, false);
        bool usual = column->kind == COLUMN_NUMBER && !format->decimal_comma &&
                     usual_cell(&line.at, end, format->delimiter, value + column->place);
        if (!usual &&
            !(column->kind == COLUMN_NUMBER ? unusual_number(&line, i, value + column->place)
                                            : take_other(&line, i)))
            return false;
    }
    return line.at ? reject_count(&line, format->columns, true) : end_row(&line);
}
