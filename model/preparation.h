/* How rows of a table become features of a model, while they are scored: what the text of a row
 * says brings other features with it. */
#ifndef DML_MODEL_PREPARATION_H
#define DML_MODEL_PREPARATION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "model/terms.h"

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

struct missing; /* a number that a row may lack */

/* Of a model that is not of tables nothing is prepared. */
struct preparation {
    const struct model *model;
    struct missing *missing; /* by the id of the feature that says so, rising; owned */
    uint32_t missing_count;
    uint64_t **bins;     /* of each column: the rank of each of its bins, or NULL; owned */
    bool *told;          /* of each column: whether a warning said that a file lacks it; owned */
    struct terms absent; /* of columns that no row of the data has */
};

void preparation_begin(struct preparation *preparation, const struct model *model);
void preparation_end(struct preparation *preparation);

/* Before rows of a file are scored that was read by another table than the model's: as packs of a
 * run are. A column that is named there and is of another kind, or none, counts as missing in each
 * row, which a warning says of the first such file. ERROR_DATA if a column has another name, or if
 * there are no names. */
int preparation_check(struct preparation *preparation, const char *path, const struct table *table);

/* The same, perhaps without the warning. */
int preparation_find_absent(struct preparation *preparation, const char *path,
                            const struct table *table, bool warns);

/* These add terms to a row; `id` is a feature of the row.
 *
 * The mean of the number that the feature says is missing; false if it says something else. */
bool preparation_add_mean(const struct preparation *preparation, uint64_t id, struct terms *terms);
/* The bin of a number, if it has bins. */
void preparation_add_bin(const struct preparation *preparation, uint64_t id, double value,
                         struct terms *terms);
/* What stands for a text that training has too rarely; false if the feature is no such text. */
bool preparation_add_rare(const struct preparation *preparation, uint64_t id, struct terms *terms);

#endif
