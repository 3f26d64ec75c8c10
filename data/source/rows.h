/* Rows of a source file, as readers hand them out. */
#ifndef DML_DATA_SOURCE_ROWS_H
#define DML_DATA_SOURCE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "data/table/table.h"

/* A malformed line. */
struct bad_line {
    uint64_t line;
    uint32_t row; /* the next row of the same batch, if there is one */
    char *why;    /* owned by the batch */
};

/* Where a value of a CSV row comes from. */
struct source_origin {
    const char *text; /* of ROLE_VALUE and ROLE_WORD; else NULL */
    uint32_t column;  /* from 0, as the table counts */
    enum feature_role role;
    uint32_t hash;   /* of ROLE_HASHED; of ROLE_WORD its number among the words of the block */
    uint32_t *known; /* NULL, or where whoever takes the rows may keep what it knows this by: 0
                        before, and the same for all values that are alike in id and origin */
};

/* Some consecutive rows of a file, in the file's order. Owned by the reader; valid in the call. */
struct source_rows {
    uint32_t count;
    uint64_t first_line;   /* of the file, from 1; rows of an array count as lines */
    const uint64_t *line;  /* of each row, from 1; NULL: of a pack, whose lines are rows */
    const uint64_t *start; /* count+1 offsets into id and value */
    const uint64_t *id;    /* original feature id: LIBSVM's index; CSV: table_feature(); of an
                              array the place in the row, from 1. Rising within a row (sorted
                              if the text was not) */
    bool alike;            /* every row has the ids of the first, and `id` has those alone */
    const double *value;
    bool bytes;                         /* the values are bytes in the file */
    const struct source_origin *origin; /* of each value, if some are not ROLE_NUMBER; or NULL */
    bool known;                         /* all texts have a place for what they are known by */
    uint32_t words;                     /* how many different words the block has; 0 of a pack */
    const uint32_t *column;             /* of a pack of CSV, as `id`: the column of each value */
    const uint32_t *position; /* of each value in its row's text, from 0; NULL: as they stand */
    const double *label;      /* NaN where the label is a text or absent */
    const char *const *label_text; /* NULL where the label is a number and nothing else: of a code,
                                      as number_is_code() has it, it is there beside `label`; the
                                      whole array may be NULL */
    const double *weight;          /* from 0 to WEIGHT_MAX; NULL: all are 1 */
    const double *offset;          /* with the logarithm of the exposure; NULL: all are 0 */
    const uint64_t *cluster;       /* the hash of its text; NULL: there are none */
    const uint64_t *hash;       /* of the raw row, as it stands in the file, whatever is read of it:
                                   doc/FORMATS.md. NULL: it was not asked for */
    const char *const *carried; /* count × carried_count cells, row-major, as texts; NULL: none */
    uint32_t carried_count;
    const struct bad_line *bad; /* the lines between the rows that were skipped, in order; from a
                                   pack there are none */
    uint64_t bad_count;
    struct bytes *workspace; /* of source_read_in_parts() only */
};

static inline uint64_t source_row_line(const struct source_rows *rows, uint32_t row) {
    return rows->line ? rows->line[row] : rows->first_line + row;
}

/* The cells that go along with a row; NULL: there are none. */
static inline const char *const *source_row_carried(const struct source_rows *rows, uint32_t row) {
    return rows->carried ? rows->carried + (size_t)row * rows->carried_count : NULL;
}

/* The ids of a row's values. */
static inline const uint64_t *source_row_ids(const struct source_rows *rows, uint32_t row) {
    return rows->id + (rows->alike ? 0 : rows->start[row]);
}

/* The column of value `i` of a row of CSV, from 0, as the table counts. */
static inline uint32_t source_row_column(const struct source_rows *rows, uint32_t row, uint64_t i) {
    uint64_t at = (rows->alike ? 0 : rows->start[row]) + i;
    return rows->column   ? rows->column[at]
           : rows->origin ? rows->origin[rows->start[row] + i].column
                          : (uint32_t)(rows->id[at] - 1);
}

#endif
