/* The columns that a sparse chunk has values in, and the values of each in the order of rows: for
 * gradients of its columns alone, each added up row by row. */
#ifndef DML_OBJECTIVE_DEVICE_COLUMNS_H
#define DML_OBJECTIVE_DEVICE_COLUMNS_H

#include "base/rows.h"

struct device_columns; /* opaque: memory for making lists */

struct device_columns *device_columns_new(uint32_t features);
void device_columns_free(struct device_columns *columns); /* NULL is fine */

/* The list of the chunk's columns, valid until the next call, in this order, all uint32_t:
 *
 *   column[count]       by first appearance
 *   start[count + 1]    which values are column c's: from start[c] to start[c + 1]
 *   value[2·values]     of each its row, and its number among the chunk's values */
const void *device_columns_list(struct device_columns *columns, const struct rows *rows,
                                uint32_t *count, size_t *bytes);

#endif
