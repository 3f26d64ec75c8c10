/* How the lines of one source are to be read, found out from its first line, and the parsers. */
#ifndef DML_DATA_CSV_FORMAT_H
#define DML_DATA_CSV_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/batch.h"
#include "data/source/blocks.h"
#include "data/source/rows.h"
#include "data/source/source.h"

#define CSV_COLUMNS_MAX (1u << 24)

/* Where a part of a date goes. */
struct csv_part {
    uint32_t number; /* of its column in the table, */
    uint32_t place;  /* and of a number as below */
};

/* What becomes of a column of the file. */
struct csv_column {
    enum column_kind kind;
    uint32_t number;       /* in the table, from 0 */
    uint32_t place;        /* of a number: among those of a row */
    struct csv_part *part; /* of a date: DATE_PARTS; owned. Else NULL */
    bool amounts;          /* its numbers are written as amounts */
};

/* A word that stands for a missing cell. */
struct csv_word {
    const char *text; /* the table's */
    size_t length;
};

/* What a text means in a column of categories. */
struct category {
    uint64_t id;
    struct source_origin origin;
    size_t length;  /* of the text: above CATEGORY_BYTES_MAX it is none, and the rest is not set */
    uint32_t known; /* for origin.known, where the category is kept for many rows */
};

struct format {
    const struct source_options *options; /* the caller's */
    enum source_format kind;              /* never FORMAT_AUTO once found */
    struct record_rule rule;
    char delimiter;
    bool decimal_comma;
    bool header;         /* the first line holds names */
    bool names_doubtful; /* it is taken for a row, but may hold names */
    uint32_t columns;    /* of a table */
    uint32_t own;        /* so many of them stand in each line, before those of folders */
    uint32_t label;      /* column from 0; `columns` if there is none */
    char *head;          /* of CSV: the line of names as it stands, or NULL; owned */
    size_t head_length;
    char **names; /* `columns` and a NULL, or NULL; owned */

    /* CSV: */
    struct table *table;       /* owned */
    struct csv_column *column; /* `columns`; owned */
    uint32_t numbers;          /* columns of numbers, */
    uint64_t *number_id;       /* and their ids, rising; owned */
    uint32_t categories;       /* columns of categories and of texts, and of dates */
    uint64_t values;           /* that a row has at most */
    struct csv_word *missing;  /* `words`; owned */
    uint32_t words;
    struct json_columns *keys; /* JSON Lines: the columns by their keys; owned */
    uint32_t keys_met;         /* so many were in the text; options name the others, after them */
    const bool *is_index; /* of each column, whether the file says that it names the rows alone;
                             NULL: it says nothing. Whoever has it finds the layout */
    struct csv_folder {
        const struct source_folder *of; /* the options' */
        uint32_t column;          /* below `own` if the file has it, too, with the same cells */
        struct category category; /* of a column of categories: what the cell is, */
        char *text;               /* and its text; owned */
    } * folder;                   /* `folders`; owned */
    uint32_t folders;
    uint32_t *carried;      /* the columns of options->carried, from 0, */
    uint32_t carried_count; /* and how many; owned */
};

/* Finds out the format from the first block of text; `length` bytes with a 0 after them. */
int format_find(struct format *format, const char *path, char *text, size_t length,
                const struct source_options *options);
void format_release(struct format *format);

/* Whether text from the beginning of the file has a row, be it malformed: more than a header, empty
 * lines and comments. The format is that which format_find() found in it. */
bool format_has_rows(const struct format *format, char *text, size_t length);

/* A line without its end. */
struct text_line {
    const char *text;
    size_t length;
};

/* How records are written, as far as options tell. */
struct record_rule csv_rule(const struct text_syntax *syntax);

/* The rest of format_find() for CSV: of the first two lines that are not empty, where the second
 * has length 0 if it is not there, and of the text after the first. */
int csv_layout_find(struct format *format, const char *path, uint64_t line_number,
                    const struct text_line *first, const struct text_line *second,
                    const struct text_line *behind);

/* ---- JSON Lines: an object on each line ---- */

/* Whether a first line is of JSON: of objects one a line, or of a file that must be made that. */
bool json_lines_begin(const char *line, size_t length);

/* The rest of format_find() for JSON Lines: keys of the block are the columns, in the order of
 * their first appearance, and so are those that options name besides. Needs format->options. */
int json_lines_find(struct format *format, const char *path, const char *text, size_t length);

/* About how much text a block may have: rows are as wide as the columns are many, however short
 * their lines. */
size_t json_lines_block(const struct format *format);

/* Before the first line of a batch. */
void json_lines_start(const struct format *format, struct batch *batch);

/* Reads [line, end) as csv_parse_line() does. */
bool json_lines_parse(const struct format *format, struct batch *batch, char *line, char *end,
                      uint64_t number);

void json_columns_free(struct json_columns *columns); /* harmless on NULL */

/* Lays out rows of cells with columns of these names for `options->table`, which must be set, as
 * format_find() does for a file with them as its header. names == NULL: the columns are those of
 * the file that was trained on, by their places, and the label's may be missing where it was the
 * last. Options must outlive the format; release it in any case. ERROR_DATA. */
int format_of_names(struct format *format, const struct source_options *options,
                    const char *const *names, uint32_t count);

/* Finds out the kinds of columns that options do not tell: a column is a category if most of its
 * cells in `text`, missing ones left aside, are no numbers. `known` tells which columns are not
 * looked at. ERROR_DATA if one seems to hold numbers with a decimal comma. */
int csv_kinds_find(struct format *format, const char *path, const struct text_line *text,
                   const bool *known);

/* Whether a cell stands for nothing: it is empty, or one of the words. */
bool csv_is_missing(const struct format *format, const char *cell, size_t length);

/* Reads a cell that is a number as a whole, or an amount if the column's numbers are written so;
 * the cell stays as it is. */
bool csv_number(const struct format *format, bool amounts, char *cell, double *value);

/* Parses the line [line, end); *end may be overwritten, and is a line end or 0. DIGITS_READ_PAST
 * bytes after it are read, too, and must have been written: other lines, or zeros. True if a row
 * was added, else the line was rejected or holds none. A record of CSV ends on line `last`. */
bool libsvm_parse_line(const struct format *format, struct batch *batch, char *line, char *end,
                       uint64_t number);
bool csv_parse_line(const struct format *format, struct batch *batch, char *line, char *end,
                    uint64_t number, uint64_t last);

/* Parses all lines of the batch's text, but for the first if `skip_first`; stops after more than
 * options->bad_lines_max bad ones. */
void format_parse(const struct format *format, struct batch *batch, bool skip_first);

/* ERROR_DATA: rows of this file have no cells. */
int format_carries_none(const char *path);

/* Notes these cells of a line of the batch's text, for the row that is read next. */
void csv_carry(const struct format *format, struct batch *batch, const char *line, const char *end);

/* The next cell of a CSV line, which the first delimiter of the rule ends: quotes are taken off in
 * place, if they are such, and it is ended with a 0. *at moves past the delimiter; to NULL after
 * the last cell. NULL: a quote is not closed. */
char *csv_cell(char **at, char *end, const struct record_rule *rule);

#endif
