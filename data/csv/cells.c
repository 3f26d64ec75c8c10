/* What a cell of a table means for its row, whatever the file that it comes from is. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "data/csv/table_row.h"
#include "data/source/blocks.h"
#include "data/table/spelling.h"
#include "data/text/date.h"
#include "data/text/number.h"

const char *row_describe_column(const struct format *format, uint32_t column,
                                char text[COLUMN_TEXT]) {
    if (format->names)
        snprintf(text, COLUMN_TEXT, "column %u (%.100s)", column + 1, format->names[column]);
    else
        snprintf(text, COLUMN_TEXT, "column %u", column + 1);
    return text;
}

/* ---- numbers with a decimal comma ---- */

bool csv_number(const struct format *format, bool amounts, char *cell, double *value) {
    return number_of_decimal(format->decimal_comma, cell, value) ||
           (amounts && number_of_amount(cell, format->decimal_comma ? ',' : '.', value));
}

/* ---- cells that are refused ---- */

static bool reject_cell(const struct table_row *row, uint32_t column, const char *cell) {
    char name[COLUMN_TEXT];
    bool first = row->number == 1 && !row->format->header;
    row_describe_column(row->format, column, name);
    if (*cell == '\0')
        return batch_reject(row->batch, row->number,
                            "%s is empty: every cell must be a number for this model", name);
    if (row->format->column[column].amounts)
        return batch_reject(row->batch, row->number,
                            "%s holds \"%.40s\", which is no amount with a decimal %s, as "
                            "csv.decimal has it; if this stands for a missing number, list it in "
                            "csv.missing",
                            name, cell, row->format->decimal_comma ? "comma" : "point");
    if (!row->format->decimal_comma && number_is_thousands(cell))
        return batch_reject(row->batch, row->number,
                            "%s holds \"%.40s\", which is not a finite number; if its comma parts "
                            "thousands, list the column in csv.amounts; if it is a decimal point, "
                            "set csv.decimal = \",\"",
                            name, cell);
    if (!row->format->decimal_comma && number_has_decimal_comma(cell))
        return batch_reject(row->batch, row->number,
                            "%s holds \"%.40s\", which is not a finite number; if its comma is a "
                            "decimal point, set csv.decimal = \",\"",
                            name, cell);
    if (row->format->decimal_comma && strchr(cell, '.'))
        return batch_reject(row->batch, row->number,
                            "%s holds \"%.40s\", which is no number where csv.decimal = \",\": if "
                            "its points part thousands, list the column in csv.amounts",
                            name, cell);
    if (row->format->options->table.by_model && !first)
        return batch_reject(row->batch, row->number,
                            "%s holds \"%.40s\", which is not a finite number, as those are that "
                            "the model was trained on; an empty cell is a missing number",
                            name, cell);
    return batch_reject(row->batch, row->number,
                        "%s holds \"%.40s\", which is not a finite number; if the column holds "
                        "texts, list it in csv.categories, or of sentences in csv.text; if this "
                        "stands for a missing number, "
                        "list it in csv.missing; or leave the column out with csv.skip%s",
                        name, cell,
                        first ? "; if this line names the columns, set csv.header = yes" : "");
}

bool csv_is_missing(const struct format *format, const char *cell, size_t length) {
    for (uint32_t i = 0; i < format->words; i++)
        if (format->missing[i].length == length && !memcmp(format->missing[i].text, cell, length))
            return true;
    return length == 0 && !format->options->table.numbers_only;
}

/* ---- labels ---- */

static bool take_label(struct table_row *row, uint32_t column, char *cell) {
    const struct format *format = row->format;
    char name[COLUMN_TEXT];
    if (strchr(cell, '\n'))
        return batch_reject(
            row->batch, row->number, "%s: the label has a line break in it",
            row_describe_column(format, column, name)); /* they are printed one a line */
    row->label = NAN;
    if (format->options->label.separator) {
        row->label_text = cell;
        return true;
    }
    if (csv_number(format, format->column[column].amounts, cell, &row->label)) {
        row->label += 0.0; /* −0 is 0 */
        if (number_is_code(cell, strlen(cell)))
            row->label_text = cell;
        return true;
    }
    row->label = NAN;
    /* A text is a label that is missing only if the job says so: "none" may be a class. */
    const char *const *words = format->options->table.missing;
    if (*cell && !(words && *words && csv_is_missing(format, cell, strlen(cell)))) {
        row->label_text = cell;
        return true;
    }
    row_describe_column(format, column, name);
    return format->options->label.optional ||
           (*cell ? batch_reject(row->batch, row->number,
                                 "%s: the label is missing: \"%.40s\" is one of csv.missing", name,
                                 cell)
                  : batch_reject(row->batch, row->number, "%s: the label is empty", name));
}

/* ---- weights, offsets, exposures ---- */

static bool reject_property(const struct table_row *row, uint32_t column, const char *cell,
                            enum row_property property) {
    const struct property_rule *rule = &property_rules[property];
    char name[COLUMN_TEXT];
    row_describe_column(row->format, column, name);
    if (!*cell)
        return batch_reject(row->batch, row->number, "%s: the %s is empty", name, rule->name);
    return batch_reject(row->batch, row->number, "%s holds \"%.40s\", which is no %s: allowed: %s",
                        name, cell, rule->name, rule->allowed);
}

static bool take_valid(struct table_row *row, enum row_property property, double number) {
    assert(property < ROW_NUMBERS && property_is_valid(property, number));
    if (property == ROW_WEIGHT)
        row->batch->row_weight = number;
    else
        row->batch->row_offset += property_offset(property, number);
    return true;
}

/* ---- numbers ---- */

/* What a missing number is until the row ends: put_numbers() leaves it out. */
static bool take_number(struct table_row *row, uint32_t column, char *cell) {
    double *value = row_numbers(row) + row->format->column[column].place;
    assert(row->format->column[column].place < row->format->numbers);
    if (csv_number(row->format, row->format->column[column].amounts, cell, value))
        return true;
    if (!csv_is_missing(row->format, cell, strlen(cell)))
        return reject_cell(row, column, cell);
    *value = NAN;
    row->missing++;
    return true;
}

/* ---- categories ---- */

static char *trim_blanks(char *cell, size_t *length) {
    while (is_blank(*cell))
        cell++;
    *length = strlen(cell);
    while (*length && is_blank(cell[*length - 1]))
        cell[--*length] = '\0';
    return cell;
}

/* Texts are hashed as those of categories, and 0 is none. The table of a model may name a column of
 * clusters, too: where none are asked for, it says nothing. */
static bool take_cluster(struct table_row *row, uint32_t column, char *cell) {
    size_t length = strlen(cell);
    if (row->format->options->table.trim)
        cell = trim_blanks(cell, &length);
    if (!row->format->options->property.column[ROW_CLUSTER])
        return true;
    if (!length || csv_is_missing(row->format, cell, length))
        return reject_property(row, column, "", ROW_CLUSTER);
    uint64_t hash = hash64(cell, length);
    row->batch->row_cluster = hash ? hash : 1;
    return true;
}

bool category_of(const struct format *format, uint32_t column, char *cell,
                 struct category *category) {
    size_t length = strlen(cell);
    assert(column < format->columns);
    if (format->table->trim)
        cell = trim_blanks(cell, &length);
    if (length > CATEGORY_BYTES_MAX && format->options->table.surveys)
        cell[length = CATEGORY_BYTES_MAX] = '\0';
    category->length = length;
    if (length > CATEGORY_BYTES_MAX)
        return false;
    bool missing = csv_is_missing(format, cell, length);
    struct source_origin origin = {.text = missing ? NULL : cell,
                                   .column = format->column[column].number,
                                   .role = missing ? ROLE_MISSING : ROLE_VALUE};
    category->id = table_feature(origin.column, origin.role, cell, length);
    if (!missing && format->table->hash) {
        char room[SPELLING_BYTES];
        const char *text = spelling_canonical(cell, room);
        origin.text = NULL;
        origin.role = ROLE_HASHED;
        origin.hash = table_hash(format->table, origin.column, text, strlen(text));
        category->id = table_hashed_feature(origin.column, origin.hash);
    }
    category->origin = origin;
    return true;
}

bool row_take_category(struct table_row *row, uint32_t column, const struct category *category) {
    char name[COLUMN_TEXT];
    assert(row->format->column[column].kind == COLUMN_CATEGORY);
    if (category->length > CATEGORY_BYTES_MAX)
        return batch_reject(row->batch, row->number,
                            "%s holds a text of %zu bytes, and a category has %u at most; if it "
                            "holds sentences, list it in csv.text, or leave the column out with "
                            "csv.skip",
                            row_describe_column(row->format, column, name), category->length,
                            CATEGORY_BYTES_MAX);
    batch_add_text(row->batch, category->id, 1, &category->origin);
    return true;
}

/* ---- texts ---- */

static bool reject_words(const struct table_row *row, uint32_t column, enum words_error error,
                         const char *cell) {
    char name[COLUMN_TEXT];
    row_describe_column(row->format, column, name);
    if (error == WORDS_COLLIDE)
        return batch_reject(row->batch, row->number,
                            "%s: two words of the data have the same hash; change csv.ngrams or "
                            "leave the column out with csv.skip",
                            name);
    size_t at = row->batch->words.invalid;
    return batch_reject(
        row->batch, row->number,
        "%s: the text is not UTF-8: byte 0x%02x behind %zu bytes of it; convert the "
        "file, as with iconv -f latin1 -t utf8",
        name, (unsigned char)cell[at], at);
}

/* An empty text has no words, and neither has a missing one. */
static bool take_words(struct table_row *row, uint32_t column, const char *cell) {
    const struct format *format = row->format;
    struct words *words = &row->batch->words;
    uint32_t number = format->column[column].number;
    size_t length = strlen(cell);
    char name[COLUMN_TEXT];
    if (length > LINE_BYTES_MAX) /* as a line of text cannot be, but a cell of others */
        return batch_reject(row->batch, row->number,
                            "%s holds a text of %zu bytes, and up to %u are read",
                            row_describe_column(format, column, name), length, LINE_BYTES_MAX);
    enum words_error error = words_find(words, format->table, number, cell, length);
    if (error)
        return reject_words(row, column, error, cell);
    struct source_origin origin = {.column = number,
                                   .role = format->table->hash ? ROLE_HASHED : ROLE_WORD};
    for (uint32_t i = 0; i < words->count; i++) {
        origin.text = words->found[i].text;
        origin.hash = words->found[i].number;
        batch_add_text(row->batch, words->found[i].id, words->found[i].count, &origin);
    }
    return true;
}

/* ---- dates ---- */

static bool take_date(struct table_row *row, uint32_t column, const char *cell) {
    const struct format *format = row->format;
    struct date date;
    char name[COLUMN_TEXT];
    if (csv_is_missing(format, cell, strlen(cell))) {
        csv_put_date(format, row->batch, column, NULL);
        row->missing++;
        return true;
    }
    const char *as = format->table->date_format;
    if (!date_parse(cell, as, &date))
        return batch_reject(row->batch, row->number,
                            "%s holds \"%.40s\", which is no date as csv.date_format has it: %s%s; "
                            "if this stands for a missing date, list it in csv.missing",
                            row_describe_column(format, column, name), cell,
                            as ? as : DATE_FORMAT_ISO,
                            as ? "" : ", as 2024-05-06 or 2024-05-06T07:08:09Z");
    csv_put_date(format, row->batch, column, &date);
    return true;
}

/* ---- rows ---- */

/* An id that says that a number is missing. */
struct missing_number {
    uint64_t id; /* first, for compare_ids() */
    uint32_t number;
};

/* Where numbers and their absence come from: found out once. */
static struct batch_number *numbers_of(const struct format *format, struct batch *batch) {
    if (batch->numbers || !format->numbers)
        return batch->numbers;
    batch->numbers = memory_new(format->numbers, sizeof *batch->numbers);
    for (uint32_t i = 0; i < format->numbers; i++) {
        struct batch_number *of = &batch->numbers[i];
        assert(format->number_id[i] > (i ? format->number_id[i - 1] : 0)); /* rising, from 1 */
        uint32_t column = (uint32_t)format->number_id[i] - 1;
        of->number = (struct source_origin){.column = column, .known = &of->known[0]};
        of->missing =
            (struct source_origin){.column = column, .role = ROLE_MISSING, .known = &of->known[1]};
        of->missing_id = table_feature(column, ROLE_MISSING, NULL, 0);
    }
    struct missing_number *missing = memory_new(format->numbers, sizeof *missing);
    for (uint32_t i = 0; i < format->numbers; i++)
        missing[i] = (struct missing_number){batch->numbers[i].missing_id, i};
    qsort(missing, format->numbers, sizeof *missing, compare_ids);
    for (uint32_t i = 0; i < format->numbers; i++)
        batch->numbers[i].by_missing = missing[i].number;
    free(missing);
    return batch->numbers;
}

/* So many numbers are looked at together. Which of them are missing cannot be predicted, so there
 * is no branch for each: what is noted of a number that is of no use is overwritten by the next. */
#define LOOKED_AT 64

/* Ends a row that differs from others in its ids. */
static bool end_different(struct table_row *row) {
    struct batch *batch = row->batch;
    uint64_t repeated;
    if (!batch->has_origins)
        batch_give_ids_per_row(batch);
    /* Leaves out the values of those that are missing. */
    const struct batch_number *numbers = numbers_of(row->format, batch);
    const double *value = batch->value + batch->value_count;
    uint64_t at = batch->value_count;
    /* Marks the missing numbers, by rising id. */
    for (uint32_t first = 0, here; first < row->format->numbers; first += here) {
        uint32_t missing[LOOKED_AT], count = 0, left = row->format->numbers - first;
        here = left < LOOKED_AT ? left : LOOKED_AT;
        for (uint32_t k = first; k < first + here; k++) {
            missing[count] = numbers[k].by_missing;
            count += isnan(value[numbers[k].by_missing]) != 0;
        }
        for (uint32_t i = 0; i < count; i++)
            batch_add_text(batch, numbers[missing[i]].missing_id, 1, &numbers[missing[i]].missing);
    }
    for (uint32_t i = 0; i < row->format->numbers; i++) {
        bool there = !isnan(value[i]);
        batch->id[at] = row->format->number_id[i];
        batch->value[at] = value[i];
        batch->origin[at] = numbers[i].number;
        at += there;
    }
    assert(at <= batch->value_capacity);
    batch->value_count = at;
    if (!batch_put_texts(batch))
        return batch_reject(batch, row->number,
                            "two texts of this row have the same hash; leave the column of one of "
                            "them out with csv.skip");
    return batch_row(batch, row->label, row->label_text, true, &repeated);
}

/* The rows of numbers are alike: only the first has its ids. */
bool row_end(struct table_row *row) {
    const struct format *format = row->format;
    struct batch *batch = row->batch;
    uint64_t repeated;
    if (row->missing || !batch->alike)
        return end_different(row);
    if (!batch->row_count)
        memcpy(batch->id, format->number_id, format->numbers * sizeof *batch->id);
    assert(batch->value_count + format->numbers <= batch->value_capacity);
    batch->value_count += format->numbers;
    return batch_row(batch, row->label, row->label_text, true, &repeated);
}

struct table_row row_begin(const struct format *format, struct batch *batch, uint64_t number) {
    assert(!batch->text_count); /* those of the row before were put or dropped */
    batch_reserve(batch, format->values);
    return (struct table_row){
        .format = format, .batch = batch, .number = number, .label = (double)NAN};
}

bool row_try_number(struct table_row *row, uint32_t column, double number) {
    const struct source_options *options = row->format->options;
    enum column_kind kind = row->format->column[column].kind;
    if (kind == COLUMN_LABEL && fabs(number) >= 0x1p53) /* its text may be a code */
        return false;
    if (kind == COLUMN_LABEL && !options->label.separator) {
        row->label = number + 0.0; /* −0 is 0 */
        return true;
    }
    enum row_property property = property_of(kind);
    if (property == ROW_WEIGHT && options->property.ignores_weights)
        return true;
    return property < ROW_NUMBERS && property_is_valid(property, number) &&
           take_valid(row, property, number);
}

bool row_take(struct table_row *row, uint32_t column, char *cell) {
    assert(column < row->format->columns);
    enum column_kind kind = row->format->column[column].kind;
    switch (kind) {
    case COLUMN_NUMBER:
        return take_number(row, column, cell);
    case COLUMN_CATEGORY: {
        struct category category;
        category_of(row->format, column, cell, &category);
        return row_take_category(row, column, &category);
    }
    case COLUMN_WORDS:
        return take_words(row, column, cell);
    case COLUMN_DATE:
        return take_date(row, column, cell);
    case COLUMN_LABEL:
        return take_label(row, column, cell);
    case COLUMN_WEIGHT:
    case COLUMN_OFFSET:
    case COLUMN_EXPOSURE: {
        const enum row_property property = property_of(kind);
        double number;
        if (property == ROW_WEIGHT && row->format->options->property.ignores_weights)
            return true;
        if (!csv_number(row->format, row->format->column[column].amounts, cell, &number) ||
            !property_is_valid(property, number))
            return reject_property(row, column, cell, property);
        return take_valid(row, property, number);
    }
    case COLUMN_CLUSTER:
        return take_cluster(row, column, cell);
    default:
        return true;
    }
}

bool row_take_number(struct table_row *row, uint32_t column, double number) {
    const struct csv_column *of = &row->format->column[column];
    enum row_property property = property_of(of->kind);
    bool is_number = of->kind == COLUMN_NUMBER || property < ROW_NUMBERS;
    char cell[NUMBER_TEXT] = "", name[COLUMN_TEXT];
    if (isnan(number))
        return row_take(row, column, cell);
    if (of->kind == COLUMN_NUMBER && isfinite(number)) {
        row_numbers(row)[of->place] = number;
        return true;
    }
    if (property < ROW_NUMBERS && property_is_valid(property, number))
        return take_valid(row, property, number);
    snprintf(cell, sizeof cell, "%.17g", number);
    row_describe_column(row->format, column, name);
    if (!is_number)
        return batch_reject(row->batch, row->number,
                            "%s is one of texts, and the number %s was given: give the text that "
                            "training would have had",
                            name, cell);
    return batch_reject(row->batch, row->number, "%s holds %s; allowed: %s", name, cell,
                        property < ROW_NUMBERS ? property_rules[property].allowed
                                               : "a finite number");
}
