/* What a user says about the columns of a table and their cells. Lists of columns are
 * NULL-terminated, or NULL, and have columns by name or by number from 1. */
#ifndef DML_DATA_TABLE_OPTIONS_H
#define DML_DATA_TABLE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/table/table.h"

/* What a file without a column of `known` is. AUTO is for whoever reads jobs; here it is ERROR. */
enum missing_columns { MISSING_COLUMNS_AUTO, MISSING_COLUMNS_ERROR, MISSING_COLUMNS_MISSING };

struct table_options {
    const char *const *skip;                        /* columns to leave out */
    const char *const *numbers, *const *categories; /* columns of these kinds */
    const char *const *amounts; /* columns of numbers, or of labels and the like, which are written
                                   as amounts: number_of_amount() */
    const char *const *text;    /* columns of texts, which become words */
    const char *const *dates;   /* columns of dates, */
    const char *date_format;    /* which are written so: date_parse(); NULL: ISO 8601 */
    const char *const *missing; /* words for a missing cell, and for a missing label;
                                   NULL-terminated. None or NULL: table_missing_words, for cells */
    uint32_t hash_bits; /* texts of categories, and words, are hashed to so many bits; 0: not */
    bool trim;          /* blanks around the text of a category do not count */
    bool numbers_only;  /* every column is a number, and no cell may be missing */
    bool surveys;       /* for a look at a file: texts too long for a category are cut, and texts
                           such as 4,5 are no error */

    const struct table *known; /* what the columns are, found out before; NULL: find it out. Columns
                                  are matched by name where both sides have names, and the lists
                                  and words above do not count */
    bool by_model;             /* `known` is a model's, which settles what columns are */
    const struct table *order; /* without `known`: columns take the numbers that they have here, by
                                  name, where both sides have names; new ones follow */
    enum missing_columns missing_columns; /* with `known` */
    bool adds_columns; /* one of several files, whose columns add up: `known` becomes larger by
                          those that it does not have, and `skip`, `numbers` and `categories` may
                          name columns of other files */
    uint32_t columns;  /* how many there must be, less the label's if that is optional; of an array:
                          one more than a row has; 0: as many as there are */
};

/* How texts become words: struct table_text. */
struct word_options {
    uint32_t ngrams;     /* so many words together at most; 0: 1 */
    bool lowercase;      /* words are brought to lower case, */
    uint32_t least;      /* have so many letters at the least; 0: WORD_LEAST, */
    const char *letters; /* and these besides letters, digits and _; NULL or "": none */
};

#endif
