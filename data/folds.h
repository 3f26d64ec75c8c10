/* Whether every class is met in training, whichever fold of a cross-validation is left out. */
#ifndef DML_DATA_FOLDS_H
#define DML_DATA_FOLDS_H

#include "data/holdout.h"
#include "data/pack.h"

/* Looks at the labels of all rows that the share of `pick` does not hold out; its fold does not
 * count. Training without a fold lacks the classes whose rows are all in it. With `two_classes`
 * that is ERROR_DATA: no model can be trained there; else a warning names the first such classes.
 */
int folds_check(struct pack *const *packs, uint32_t count, const struct holdout_pick *pick,
                bool two_classes);

#endif
