/* The parts of csv_layout_find(): only for the files that find out the layout of CSV. */
#ifndef DML_DATA_CSV_LAYOUT_H
#define DML_DATA_CSV_LAYOUT_H

#include "data/format.h"

/* The cells of a line; they point into a copy of it. */
struct csv_cells {
    const char *path;
    uint64_t number; /* of the line */
    char *copy;
    char **cell;
    uint32_t count;
};

/* The column that `text` means, from 0; `count` if there is none. */
uint32_t csv_find_column(const struct csv_cells *first, bool header, const char *text);

/* Whether `text` gives a column by its number. */
bool csv_is_number(const char *text);

/* ERROR_DATA: there is no `column` to do `what` with. */
int csv_no_column(const struct csv_cells *first, bool header, const char *what, const char *column);

/* ERROR_DATA unless the file has `expected` columns, or lacks the label's alone; 0: any number. */
int csv_check_count(const struct format *format, const struct csv_cells *first, uint32_t expected);

/* Finds the columns of the table (format->table) in a file: by name where both have names, else by
 * position. Fills format->column and the label. `text` is behind the names. */
int csv_match(struct format *format, const struct csv_cells *first, const struct text_line *text);

/* Gives the columns of format->table their kinds, which are those of the file, in its order; but
 * not those that are `known`. */
int csv_find_kinds(struct format *format, const struct csv_cells *first,
                   const struct text_line *text, bool *known);

/* Numbers the columns of a table that was just made of a file's header as `order` does, by name.
 * New ones follow; of those that the file lacks the table keeps the name alone. */
void csv_number_as(struct table *table, const struct table *order, const struct csv_cells *first);

/* The cell that names the label of `order`, or NULL. */
const char *csv_label_before(const struct table *order, const struct csv_cells *first);

/* How many of the columns of the table that features are made of a line names, of *used. */
uint32_t csv_count_named(const struct table *table, const struct csv_cells *first, uint32_t *used);

/* Whether a cell of the line occurs in its column again in the text behind it. */
bool csv_recurs(const struct format *format, const struct csv_cells *first,
                const struct text_line *behind);

#endif
