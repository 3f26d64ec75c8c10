/* A few training rows of a set, both as their file has them and as the set stores them: for
 * checking a model against the rows that it was trained on. */
#ifndef DML_DATA_SAMPLE_H
#define DML_DATA_SAMPLE_H

#include <stdint.h>

#include "data/set.h"
#include "data/table.h"

struct sample {
    uint32_t count;      /* rows */
    uint64_t *row;       /* the number of each in its file, from 1 */
    char *file;          /* its path */
    struct table *table; /* CSV: the columns of that file; else NULL */

    /* As struct source_rows has them. */
    uint64_t *start, *id;
    double *value;

    /* As the set has them, without zeros. */
    uint64_t *stored_start; /* count + 1 */
    uint32_t *column;
    uint64_t *column_id; /* its original id */
    double *stored;
};

/* What a set does not say of itself: its folds, if it lacks one of them, and the seed of its order,
 * if it is shuffled. */
struct sample_options {
    uint32_t folds;
    uint64_t fold_seed, shuffle_seed;
};

/* Takes the first rows of the first file, which has its pack in folder `packs`. There may be none.
 * ERROR_DATA or ERROR_IO if pack or set cannot be read. Release it with sample_release(). */
int sample_take(struct set *set, const char *packs, const struct sample_options *options,
                struct sample *sample);
void sample_release(struct sample *sample); /* harmless on zeroed memory */

#endif
