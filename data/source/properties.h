/* What rows have of their own beside features: labels, and weights, offsets, exposures and
 * clusters. How options name them, which values are valid, and the files that have a line for each
 * row. */
#ifndef DML_DATA_SOURCE_PROPERTIES_H
#define DML_DATA_SOURCE_PROPERTIES_H

#include <stdbool.h>

#include "data/table/table.h"

struct batch;
struct source_report;

/* A number from a column of a table, or from a file with a line for each row; a cluster from a
 * column alone. */
enum row_property {
    ROW_WEIGHT,                /* from 0 to WEIGHT_MAX; rows without one weigh 1 */
    ROW_OFFSET,                /* a finite number, which is added to the row's margin */
    ROW_EXPOSURE,              /* above 0: its natural logarithm is added to the offset */
    ROW_NUMBERS,               /* after those that are numbers, and may have files */
    ROW_CLUSTER = ROW_NUMBERS, /* a text: rows that have it in common are not independent */
    ROW_PROPERTIES
};

struct label_options {
    const char *column; /* of a table: by name or by number from 1; NULL: the last. If `optional`,
                           one that is not there means no labels */
    const char *file;   /* of an array: the file with a label for each row; else NULL */
    bool optional;      /* for prediction: rows may come without their label */
    char separator;     /* labels are texts: lists with this between their parts, which may be none
                           (data/text/number.h); 0: a row has one label */
};

struct property_options {
    /* The column of a table, by name or by number from 1. NULL: that of the known table if it has
     * one, which may be missing from the file if it has weights; but no clusters. */
    const char *column[ROW_PROPERTIES];
    const char *file[ROW_PROPERTIES]; /* with a number for each row, or NULL; no clusters */
    bool ignores_weights;             /* every row weighs 1 */
};

/* How a property is called, and told. */
struct property_rule {
    const char *name;      /* "weight" */
    const char *key;       /* of the job, that names its column */
    const char *allowed;   /* which numbers it may be */
    enum column_kind kind; /* of its column */
};
extern const struct property_rule property_rules[ROW_PROPERTIES];

/* The property that a column of this kind has; ROW_PROPERTIES: none. */
enum row_property property_of(enum column_kind kind);

/* Whether a number is such a property of a row: finite, and as property_rules has it. */
bool property_is_valid(enum row_property property, double number);

/* What the property adds to an offset. */
double property_offset(enum row_property property, double number);

/* A file has one number a line, for the lines of a data file in their order, as the tools of LIBSVM
 * take weights, or is an array of one number a row, IDX or .npy; plain, .gz or .zst. Lines of
 * blanks do not count, here as in the data; a malformed line of the data has its number, too. */

struct property_file; /* opaque; used by one thread at a time */

/* Opens the file of a property of `data`. Both paths must outlive it. Errors as of source_read();
 * close it after them, too. */
int property_file_open(const char *path, const char *data, enum row_property property,
                       struct property_file **file);
void property_file_close(struct property_file *file); /* harmless on NULL */

/* Gives the rows of the next block of the data their numbers. ERROR_DATA if there are too few, or
 * one is not valid. */
int property_file_take(struct property_file *file, struct batch *batch);

/* Ends the reading, after the last row: no number may be left. Notes hash and stamp. */
int property_file_end(struct property_file *file, struct source_report *report);

#endif
