/* Columns whose values are far from 0, and the centres that are taken off them. */
#ifndef DML_DATA_SET_CENTRE_H
#define DML_DATA_SET_CENTRE_H

#include <stdint.h>

#include "data/set/columns.h"
#include "data/set/row_walk.h"

/* What is taken off a value of a column. */
static inline double columns_centre(const struct columns *columns, uint64_t column) {
    return columns->centre ? columns->centre[column] : 0;
}

/* Finds the columns that are far from 0, and their centres, from some of the rows that are trained
 * on. */
void columns_find_centres(struct columns *columns, const struct split *split,
                          const struct plan_part *trained);

/* How many far columns a row has no value of: the set has a value for each, 0 less the centre. */
uint32_t columns_lacking(const struct columns *columns, uint32_t p, const struct pack_rows *rows,
                         uint32_t row, struct bytes *workspace);

#endif
