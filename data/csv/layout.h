/* The parts of csv_layout_find(): for the files alone that find out the layout of CSV. */
#ifndef DML_DATA_CSV_LAYOUT_H
#define DML_DATA_CSV_LAYOUT_H

#include "data/csv/format.h"

/* The cells of a line; they point into a copy of it. */
struct csv_cells {
    const char *path; /* NULL: they are of no file */
    uint64_t number;  /* of the line */
    bool keys;        /* they are the keys of JSON Lines */
    char *copy;
    char **cell;
    uint32_t count;
    uint32_t folders; /* names after these, of columns that folders give; no copies */
};

/* Finds the columns that folders give, and puts their names after those of the line, of which all
 * are counted in `count` once it is known that it has names: ERROR_DATA if the files of the list
 * have no such columns in common. */
void csv_find_folders(struct format *format, struct csv_cells *first);
int csv_take_folders(struct format *format, struct csv_cells *first);

/* Finds what categories the folders' cells are, when the columns are laid out. ERROR_DATA if a
 * folder gives a column that the file has, too, and whose cells are not compared. */
int csv_check_folders(struct format *format, const struct csv_cells *first);

/* Whether a column that a folder gives has a text in some file of the list. */
bool csv_folder_has_texts(const struct format *format, uint32_t column);

/* Names the columns that folders give, in one line of log. */
void csv_tell_of_folders(const struct format *format, const char *path);

/* Warns of two columns of one name: it may be a mistake of whoever wrote the file, and a key that
 * gives the name means the first alone. What was said of the file that a table was made of is not
 * said again. */
void csv_warn_of_twins(const struct format *format, const struct csv_cells *first);

/* Whether a column is an index that a program wrote beside the table: it names rows, and would be a
 * feature that no new row shares, or the label. */
bool csv_is_index(const struct format *format, const struct csv_cells *first, uint32_t column);

/* Leaves out the columns that are an index and not `known`, with a word about them. */
void csv_leave_out_index(struct format *format, const struct csv_cells *first, bool *known);

/* The column that `text` means, from 0; `count` if there is none. */
uint32_t csv_find_column(const struct csv_cells *first, bool header, const char *text);

/* Whether `text` gives a column by its number. */
bool csv_is_number(const char *text);

/* ERROR_DATA: there is no `column` to do `what` with. */
int csv_no_column(const struct csv_cells *first, bool header, const char *what, const char *column);

/* ERROR_DATA: nothing is read. */
int csv_no_column_left(const struct format *format, const struct csv_cells *first);

/* As csv_no_column() for the column of a property. */
int csv_no_property(const struct csv_cells *first, bool header, enum row_property property,
                    const char *column);

/* ERROR_DATA unless the file has `expected` columns, or lacks the label's alone; 0: any number. */
int csv_check_count(const struct format *format, const struct csv_cells *first, uint32_t expected);

/* Finds the columns of the table (format->table) in a file: by name where both have names, else by
 * position. Fills format->column and the label. `text` is after the names. */
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

/* Finds the columns whose cells go along with rows. ERROR_DATA if there is no such column. */
int csv_find_carried(struct format *format, const struct csv_cells *first);

/* Adds the parts of the dates that have none, after the columns that are there. */
void csv_add_date_parts(struct table *table);

/* Finds the parts of the dates of a file in the table. */
void csv_place_dates(struct format *format);

/* How many of the columns of the table that features are made of a line names, of *used. */
uint32_t csv_count_named(const struct table *table, const struct csv_cells *first, uint32_t *used);

/* Whether a cell of the line occurs again in its column in the text after the line. Copies of the
 * whole line do not count as such; *copies is their number. */
bool csv_recurs(const struct format *format, const struct csv_cells *first,
                const struct text_line *behind, uint64_t *copies);

#endif
