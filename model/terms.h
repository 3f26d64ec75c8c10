/* Turns rows as files have them into terms of a model: its features, by their ranks, and what
 * multiplies their weights. Inside model/ and library/ only. */
#ifndef DML_MODEL_TERMS_H
#define DML_MODEL_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/rows.h"
#include "model/model.h"

/* Zeroed memory has none. Release with terms_release(). */
struct terms {
    size_t count, room;
    uint64_t *feature;
    double *value;
};

void terms_append(struct terms *terms, const struct terms *others);
void terms_release(struct terms *terms);

/* The place of a feature among those of a model, if the model has it; else of the next. The steps
 * from `from` double at first, then a binary search follows: what is near is found in a step or
 * two. */
static inline uint64_t rank_from(const struct model_layout *layout, uint64_t from, uint64_t id) {
    const uint64_t *ids = layout->feature_id;
    uint64_t step = 1, end = from, count = layout->features;
    while (end < count && ids[end] < id) {
        from = end + 1;
        end = step < count - end ? end + step : count;
        step *= 2;
    }
    while (from < end) {
        uint64_t middle = from + (end - from) / 2;
        if (ids[middle] < id)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

static inline bool has_rank(const struct model_layout *layout, uint64_t rank, uint64_t id) {
    return rank < layout->features && layout->feature_id[rank] == id;
}

/* Where ids are among a model's features, so that a look finds the feature, or nearly. Those that
 * are hashes by their upper bits: they are spread evenly. Both are owned. */
struct rank_index {
    uint64_t numbers; /* ids below have their ranks here, or that of the next one; 0: the model has
                         few of them, or they are far apart */
    uint32_t *rank;
    uint32_t *first; /* rank of the first id with such bits, and the end after the last; NULL: the
                        model has too few */
    unsigned shift;
};

struct missing; /* a number that a row may lack */
struct cross_mapper;

/* How rows become terms. In rows of tables one feature may add the terms of others: the mean of a
 * number that is missing, the bin of a number, what stands for a rare text, and its crosses. Counts
 * of words become the values that the model was trained with. */
struct term_mapper {
    const struct model *model;
    struct missing *missing; /* by rising id; owned */
    uint32_t missing_count;
    uint64_t missing_bits; /* of their ids */
    struct rank_index index;
    uint64_t **bins;     /* of each column: the rank of each of its bins, or NULL; owned */
    bool *told;          /* of each column: whether a warning said that a file lacks it; owned */
    struct terms absent; /* of columns that no row of the data has */
    struct cross_mapper *crosses; /* or NULL; owned */
    bool has_texts;
    double *squares; /* of each column: of the values of its words in a row; owned */
    struct word_term {
        size_t term; /* its place among the terms */
        uint32_t column;
    } * words; /* of a row; owned */
    size_t words_count, words_room;
    struct row_value *values; /* of a row; owned */
    uint64_t values_room;
    uint64_t unseen;        /* values of features that the model does not have, so far */
    uint32_t unseen_column; /* that had the first text among them, if counts[] has it */
    uint64_t rows;
    /* One for each column; the parts of a date share that of the date. Owned. */
    struct term_counts {
        uint64_t known, unseen; /* numbers, and texts or words, that the model has or not */
        uint64_t missing;       /* the id that says that the cell is missing */
        char *text;             /* the first that is unseen, for a message, or NULL; owned */
    } * counts;
};

void term_mapper_init(struct term_mapper *mapper, const struct model *model);
void term_mapper_release(struct term_mapper *mapper);

/* To be called before rows of a file are scored that was read by another table than the model's, as
 * packs of a run are. A column that has a name in the model, but is of another kind in the file or
 * not there, counts as missing in each row; if `warns`, a warning says so of the first such file.
 * ERROR_DATA if a column has another name, or if there are no names. */
int term_mapper_check_table(struct term_mapper *mapper, const char *path, const struct table *table,
                            bool warns);

/* Forgets what was counted so far. */
void term_mapper_forget(struct term_mapper *mapper);

/* Whether a column said nothing in so many rows that it is hardly by chance: all its cells were
 * missing, or had texts that training did not have. Not so of columns that were told of before, and
 * of those that said nothing in training, either. */
bool term_mapper_column_is_mute(const struct term_mapper *mapper, uint32_t column);

/* Adds the terms of a row. Returns how many of its values belong to features that the model has. */
uint64_t term_mapper_row(struct term_mapper *mapper, const struct source_rows *rows, uint32_t row,
                         struct terms *terms);

#endif
