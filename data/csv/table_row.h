/* Rows of a table, from cells of whatever file. */
#ifndef DML_DATA_CSV_TABLE_ROW_H
#define DML_DATA_CSV_TABLE_ROW_H

#include "data/csv/format.h"

/* The row being read. */
struct table_row {
    const struct format *format;
    struct batch *batch;
    uint64_t number; /* the line that it begins on */
    double label;
    const char *label_text;
    uint32_t missing; /* cells of numbers */
};

struct table_row row_begin(const struct format *format, struct batch *batch, uint64_t number);

/* Where the numbers of the row go, each to the place of its column. */
static inline double *row_numbers(const struct table_row *row) {
    return row->batch->value + row->batch->value_count;
}

/* Takes the next cell, of column `column` of the file: a text that may be written into, and stays
 * until the rows are handed out. False: the row was rejected. Columns may come in any order. */
bool row_take(struct table_row *row, uint32_t column, char *cell);

/* Takes a number as the cell of a column; NaN: the cell is missing. */
bool row_take_number(struct table_row *row, uint32_t column, double number);

/* Takes a finite number as the cell of a column of labels, weights, offsets or exposures. False:
 * the cell is none of these, or not valid, which its text will tell. */
bool row_try_number(struct table_row *row, uint32_t column, double number);

/* What a cell means; it is trimmed in place. False if it is too long. */
bool category_of(const struct format *format, uint32_t column, char *cell,
                 struct category *category);
bool row_take_category(struct table_row *row, uint32_t column, const struct category *category);

/* Before the first row of a batch: the cells that folders give. */
void row_prepare_folders(const struct format *format, struct batch *batch);

/* Takes those cells, after all others of the row. False: the row was rejected. */
bool row_take_folders(struct table_row *row);

/* The cell of a column that a folder gives; NULL: it is one of the file's own. */
const char *row_folder_cell(const struct format *format, const struct batch *batch,
                            uint32_t column);

/* True if the row was added. */
bool row_end(struct table_row *row);

/* "column 3 (age)", by number from 1. */
const char *row_describe_column(const struct format *format, uint32_t column,
                                char text[COLUMN_TEXT]);

/* Puts the parts of a date of the row being read, of column `column` of the file; NULL: the cell is
 * missing. */
struct date;
void csv_put_date(const struct format *format, struct batch *batch, uint32_t column,
                  const struct date *date);

#endif
