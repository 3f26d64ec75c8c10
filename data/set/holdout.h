/* The holdout by share: whether a row is held out, and which fold of a cross-validation it
 * belongs to, follow from the row alone.
 *
 * The hash is that of the raw row, as it stands in its file. So a row is on the same side wherever
 * it stands, whatever other rows there are, and whatever a job reads of it: a column that is left
 * out, or read otherwise, draws the same rows. Rows that stand alike are on the same side. The hash
 * must never change: see doc/FORMATS.md. */
#ifndef DML_DATA_SET_HOLDOUT_H
#define DML_DATA_SET_HOLDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/pack/pack.h"
#include "data/source/rows.h"
#include "data/source/source.h"

/* The hash of raw row `row` of `rows`, which have hashes, as those of packs do. */
uint64_t holdout_hash(const struct source_rows *rows, uint32_t row);

/* Hashes of the raw row, of its label and of the values that are read. The rows are those of a
 * pack, or have no texts. Values of 0 are ignored, as if they were not stored. */
struct row_hashes {
    uint64_t row, label, values;
};
struct row_hashes holdout_hashes(const struct source_rows *rows, uint32_t row);

/* Where rows have few different values, and the same ones have several labels: those that are alike
 * stay on one side, so the other side lacks a label where the values are the same, and figures are
 * those of a model that never met it. Zeroed memory has seen no rows. */
#define TWINS_MAX 512u /* with more different values sides hardly differ */
struct twins {
    struct twin {
        uint64_t values, label[2]; /* hashes; two different labels, */
        uint64_t row[2];           /* and the first raw row of each, of which */
        uint64_t rows, of_label[2];
    } twin[TWINS_MAX]; /* by rising hash of the values */
    uint32_t count;
    bool many; /* there are more */
};
void twins_note(struct twins *twins, const struct row_hashes *hashes);

/* The share of rows that have an equal row, and whose values a row of another label has; 0 if there
 * are many different values. */
double twins_share(const struct twins *twins);

/* Whether a row with this hash is held out at a `share` in (0, 1); at a share of 0 no row is. */
bool holdout_has(double share, uint64_t hash);

/* The fold of a row with this hash, from 1 to `folds`. Another seed gives other folds. */
uint32_t holdout_fold(uint64_t hash, uint64_t seed, uint32_t folds);

/* A part of the rows: those that the share holds out, or, if there are folds, of all others those
 * of one fold. */
struct holdout_pick {
    double share;
    uint32_t folds; /* 0: none */
    uint32_t fold;  /* from 1 */
    uint64_t seed;
};
bool holdout_picks(const struct holdout_pick *pick, uint64_t hash);

/* What tells one choice of rows from another, whatever their order: of the rows of packs that are
 * picked, or of all where `pick` is NULL. */
uint64_t holdout_rows_id(struct pack *const *packs, uint32_t count,
                         const struct holdout_pick *pick);

/* Checks that every class is met in training, whichever fold of a cross-validation is left out.
 * Looks at the labels of all rows that the share of `pick` does not hold out; its fold does not
 * count. Training without a fold lacks the classes whose rows are all in it. With `two_classes`
 * that is ERROR_DATA: no model can be trained there; else a warning names the first such classes.
 */
int folds_check(struct pack *const *packs, uint32_t count, const struct holdout_pick *pick,
                bool two_classes);

#endif
