/* Columns while they are found, for the files that do so, each of which adds columns of its kind:
 * data/set/columns_find.c (what texts have), prepare.c (bins, missing and rare values), cross.c and
 * weigh_words.c. */
#ifndef DML_DATA_SET_COLUMN_BUILDER_H
#define DML_DATA_SET_COLUMN_BUILDER_H

#include "data/set/columns.h"

/* Finds the means of the numbers over the training rows, and with `bins` the edges that part them
 * into so many (data/set/bins.h). Neither depends on how rows are ordered or spread. */
void column_stats_find(struct table *table, const struct split *split, uint32_t bins,
                       unsigned threads);

/* What is found is numbered by first
 * appearance; `columns` holds such numbers until they are ordered by frequency. */
struct column_builder {
    const struct split *split;
    struct wide_dictionary dictionary; /* by first appearance */
    uint64_t *id;                      /* what is numbered so; owned */
    uint64_t *values;                  /* how many values training has of each; owned */
    uint64_t room;                     /* of both */
    uint64_t **trained; /* for each pack that is split: the number of values of each feature,
                           counted over training rows */
    struct bytes order; /* workspace: features of a row in the text's order */
};

/* Prepares the columns of a table as its training rows say: makes bins, finds what values bring
 * with them, and puts the rare values of categories together. ERROR_DATA for a category in which
 * nearly every row differs. */
int columns_prepare(struct columns *columns, struct column_builder *builder,
                    const struct set_options *options);

/* Finds the crosses of the columns that are there, and adds their cells after them.
 * ERROR_CONFIG or ERROR_DATA if columns cannot be crossed so, or there would be too many. */
int columns_cross(struct columns *columns, struct column_builder *builder,
                  const struct set_options *options);

/* Replaces the numbers of columns by their places in `to`; then the levels of so many. */
void crosses_renumber(struct crosses *crosses, const uint32_t *to);
void crosses_find_levels(struct crosses *crosses, uint32_t columns);

/* The name of cell `known` of cross `number`, of the names of the other columns. Free it. */
char *crosses_name(const struct columns *columns, uint32_t number, uint32_t known);
void crosses_free(struct crosses *crosses); /* harmless on NULL */

/* Makes room for so many more columns. */
void column_builder_reserve(const struct columns *columns, struct column_builder *builder,
                            uint64_t more);

/* Adds a column after those that are there. */
void column_builder_add(struct columns *columns, struct column_builder *builder, uint64_t id,
                        uint64_t values);

/* Counts what the training rows of packs have for columns that their files lack: what says that a
 * number or a category is missing, which may be a column of its own, and the number's mean. */
void columns_find_absent(struct columns *columns, struct column_builder *builder);

/* Lists it for each pack, by the numbers that columns have now. */
void columns_list_absent(struct columns *columns, const struct split *split);

/* Notes the columns of texts, and which packs have some. */
void columns_find_texts(struct columns *columns, const struct split *split);

/* Finds out what words weigh, if they do, when columns have their final numbers. */
void columns_weigh_words(struct columns *columns, const struct split *split);

/* Replaces each number by its place in `to`, as a number may be none. */
void columns_renumber(struct columns *columns, const struct split *split,
                      const struct column_numbers *to);

/* Names the columns that no pack names. */
void columns_make_names(struct columns *columns);

#endif
