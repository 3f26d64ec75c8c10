/* The columns of a set, and what a row has in them. data/set/column_builder.h is for the files that
 * find them. */
#ifndef DML_DATA_SET_COLUMNS_H
#define DML_DATA_SET_COLUMNS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/set/set_file.h"
#include "data/set/split.h"
#include "data/source/dictionary.h"

#define COLUMN_NONE UINT64_MAX

/* Numbers of columns: of 32 bits each, or of 64 where there may be more than FEATURES_MAX columns.
 */
struct column_numbers {
    uint32_t *narrow; /* DICTIONARY_NONE: no column */
    uint64_t *wide;   /* COLUMN_NONE: no column */
};

static inline uint64_t column_number(const struct column_numbers *numbers, uint64_t i) {
    if (!numbers->narrow)
        return numbers->wide[i];
    return numbers->narrow[i] == DICTIONARY_NONE ? COLUMN_NONE : numbers->narrow[i];
}

/* COLUMN_NONE becomes DICTIONARY_NONE. */
static inline void column_number_put(struct column_numbers *numbers, uint64_t i, uint64_t column) {
    if (numbers->narrow)
        numbers->narrow[i] = (uint32_t)column;
    else
        numbers->wide[i] = column;
}

struct column_numbers column_numbers_new(uint64_t count, bool wide);
void column_numbers_free(struct column_numbers *numbers);

/* The columns of the rows that are trained on. */
struct columns {
    uint64_t count;
    uint64_t *id;                   /* original id of each column */
    uint64_t *values;               /* how many values the text had of each, with room for
                                       one more */
    const char **name;              /* into the packs, or NULL */
    struct column_numbers order;    /* columns by rising id */
    bool wide;                      /* there are more than numbers of 32 bits are for: FEATURES_MAX,
                                       or fewer in tests. Then there is no table */
    struct column_numbers *of_pack; /* for each pack: the column of each of its features, if any */
    uint32_t packs;
    struct table *table;                   /* CSV: with what the rows teach; owned. Else NULL */
    uint32_t *number_column, *rare_column; /* of each column of the table, or DICTIONARY_NONE: that
                                              of its number, and of its rare values */
    uint32_t steps_most;      /* how many bins a row can have beyond one for each number */
    uint32_t **bin_column;    /* of each column of the table: those of its bins, or NULL */
    uint32_t *missing_column; /* of each column of the table that some pack lacks: the column that
                                 says so, or DICTIONARY_NONE */
    struct derivation *
        *derivation;         /* for each pack: of each of its features; NULL if it has none, */
    bool **derives;          /* and whether there is one for it: rows are gone over by this */
    struct absent *absent;   /* for each pack */
    struct crosses *crosses; /* or NULL */
    uint32_t texts;          /* columns of texts that the table has; 0: the rest is not used */
    uint32_t *text_number;   /* of each column of the table: its number among these, or
                                DICTIONARY_NONE */
    bool *has_words;         /* for each pack */
    double *idf;             /* of each column, 0 if it is no word; NULL: words are not weighed */
    double *centre;          /* what is taken off the values of each column; NULL: nothing */
    uint64_t *far;           /* the columns that something is taken off; owned */
    size_t far_count;
    char **made_name; /* names that no pack has; owned; `made_names` of them */
    uint32_t made_names, made_capacity;
};

/* A column of the set as one of those that a row has one of. */
struct cross_level {
    uint32_t slot; /* DICTIONARY_NONE: it is none */
    uint32_t level;
};

/* A column of the table that is crossed. */
struct cross_slot {
    uint32_t levels, capacity;
    uint32_t *number; /* the column of the set that each level is; owned */
};

struct cross {
    uint32_t columns;
    uint32_t slot[CROSS_COLUMNS_MAX];
    uint64_t first;          /* what a cell's number begins at */
    struct dictionary cells; /* those that are columns; while they are counted, all that occur */
    uint32_t *number;        /* of each cell: the column of the set; owned */
    uint64_t *values;        /* while they are counted: rows of each cell; owned */
    uint32_t counted, capacity;
};

struct crosses {
    struct cross *cross; /* `count`, as in the table; owned */
    uint32_t count;
    struct cross_slot *slot; /* owned */
    uint32_t slots;
    struct cross_level *level; /* of each column of the set; owned */
};

/* What the value of a feature brings with it: the mean of the number that it says is missing, or
 * the bin that it is in. */
struct derivation {
    const struct table_column *column; /* of the table; NULL: nothing */
    const uint32_t *bin_column;        /* of each of the bins; NULL: the mean */
    const uint32_t *number_column;     /* the number's */
};

struct derived {
    uint32_t column;
    double value;
};

/* What every row of a pack has besides, for the columns of the table that its file lacks. */
struct absent {
    struct derived *values; /* owned */
    uint32_t count;
};

/* Whether a feature is a column. */
static inline bool columns_has(const struct columns *columns, uint32_t pack, uint32_t feature) {
    return column_number(&columns->of_pack[pack], feature) != COLUMN_NONE;
}

/* Whether a feature brings something with it. */
static inline bool columns_derive(const struct columns *columns, uint32_t pack, uint32_t feature) {
    return columns->derives[pack] && columns->derives[pack][feature];
}

/* Writes what its value brings to `made`, unless that is NULL, and returns how many these are: a
 * mean, a bin, or of a monotone number all bins up to its own but the first. */
static inline uint32_t columns_derived(const struct columns *columns, uint32_t pack,
                                       uint32_t feature, double value, struct derived *made) {
    const struct derivation *derivation = &columns->derivation[pack][feature];
    if (!derivation->bin_column) {
        if (made)
            *made = (struct derived){*derivation->number_column, derivation->column->mean};
        return 1;
    }
    uint32_t bin = table_bin(derivation->column, value);
    uint32_t first = derivation->column->monotone == MONOTONE_NONE ? bin : 1;
    for (uint32_t i = first; made && i <= bin; i++)
        made[i - first] = (struct derived){derivation->bin_column[i], 1};
    return bin + 1 - first;
}

/* Whether rows of a pack have more than their text has. */
static inline bool columns_makes(const struct columns *columns, uint32_t pack) {
    return columns->derivation[pack] || columns->absent[pack].count || columns->crosses;
}

/* Makes all that a row has besides its text: *count values, valid until the workspace is used
 * again. Safe from many threads. */
const struct derived *columns_make(const struct columns *columns, uint32_t pack,
                                   const struct pack_rows *rows, uint32_t row,
                                   struct bytes *workspace, uint32_t *count);

/* How many these are. */
uint64_t columns_made(const struct columns *columns, uint32_t pack, const struct pack_rows *rows,
                      uint32_t row, struct bytes *workspace);

/* At least as many as any row of a block has, its text's values included. */
uint64_t columns_made_most(const struct columns *columns, uint32_t pack,
                           const struct pack_rows *rows);

int columns_find(struct columns *columns, const struct split *split,
                 const struct set_options *options);
void columns_release(struct columns *columns);

/* Whether a feature of a pack is a word; of a pack that has some. */
bool columns_is_word(const struct columns *columns, const struct pack *pack, uint32_t feature);

/* Whether a pack has words: then rows have other values, or fewer, than there. */
static inline bool columns_has_words(const struct columns *columns, uint32_t pack) {
    return columns->texts && columns->has_words[pack];
}

/* The values of a row of a pack that has words, as a set has them; in the workspace. */
const double *columns_row_values(const struct columns *columns, const struct split *split,
                                 uint32_t p, const struct pack_rows *rows, uint32_t row,
                                 struct bytes *workspace);

/* The type of the value that a word has in a set of which a text has it so often. */
enum value_type columns_word_type(const struct columns *columns, double count);

/* How many columns there are, of a table. */
static inline uint32_t columns_of_table(const struct columns *columns) {
    assert(!columns->wide && columns->count < DICTIONARY_NONE);
    return (uint32_t)columns->count;
}

#endif
