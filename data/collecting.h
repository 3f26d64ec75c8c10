/* Columns while they are found: only for the files that do so. */
#ifndef DML_DATA_COLLECTING_H
#define DML_DATA_COLLECTING_H

#include "data/merge.h"

/* Working state. What is found is numbered by first appearance; `columns` holds such numbers until
 * they are ordered by frequency. */
struct collecting {
    const struct split *split;
    struct dictionary dictionary; /* by first appearance */
    uint64_t *id;                 /* what is numbered so; owned */
    uint64_t *values;             /* how many values training has of each; owned */
    uint64_t **trained; /* for each pack that is split: the number of values of each feature,
                           counted over training rows */
    struct bytes order; /* scratch: features of a row in the text's order */
};

/* Prepares the columns of a table as its training rows say: makes bins, finds what values bring
 * with them, and puts the rare values of categories together. ERROR_DATA for a category in which
 * nearly every row differs. */
int columns_prepare(struct columns *columns, struct collecting *collecting,
                    const struct set_options *options);

/* Adds a column behind those that are there. */
void collecting_add(struct columns *columns, struct collecting *collecting, uint64_t id,
                    uint64_t values);

/* Counts what the training rows of packs have for columns that their files lack: what says that a
 * number or a category is missing, which may be a column of its own, and the number's mean. */
void columns_find_absent(struct columns *columns, struct collecting *collecting);

/* Lists it for each pack, when columns have their final numbers. */
void columns_list_absent(struct columns *columns, const struct split *split);

/* Replaces each number by its place in `to`, as a number may be DICTIONARY_NONE. */
void columns_renumber(struct columns *columns, const struct split *split, const uint32_t *to);

/* Names the columns that no pack names. */
void columns_make_names(struct columns *columns);

#endif
