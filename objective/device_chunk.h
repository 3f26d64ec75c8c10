/* Inside objective/ only: a chunk of rows in the memory of a device. Kernels get an array of them,
 * also in that memory, and how many blocks work on each: block b works on chunk b / blocks_each, as
 * its part b % blocks_each. They go over their rows or columns with the stride that parts and
 * threads give, so that any number of blocks is right. */
#ifndef DML_OBJECTIVE_DEVICE_CHUNK_H
#define DML_OBJECTIVE_DEVICE_CHUNK_H

#include <stdint.h>

#include "device/kernel.h"

/* As in struct rows; all pointers are to memory of the device. */
struct device_chunk {
    uint32_t rows;
    uint32_t number; /* of the chunk in its set */
    uint64_t values;
    uint32_t type;     /* of the values, DEVICE_VALUE_ONES and so on: chunks of one set differ */
    uint32_t straight; /* see below */
    const uint32_t *start;   /* sparse: rows + 1 */
    const uint32_t *feature; /* sparse */
    const void *value;       /* dense: row-major */
    const double *label;
    const double *weight;       /* NULL: all are 1 */
    const double *offset;       /* NULL: all are 0 */
    const uint32_t *list_start; /* labels that are lists, else NULL: of struct label_lists */
    const uint32_t *list_class;

    /* For networks: whether a row weighs anything; and the columns in which sparse rows have
     * values: how many, the list that objective/device_arranged.h makes, and how many such columns
     * the chunks before it in the launch have. */
    uint32_t weighs, columns;
    const uint32_t *columns_list;
    uint64_t first_column;

    uint64_t first_row; /* row r is number first_row + r of the rows that a launch works on, which
                           is its place in the margins, losses and so on */

    /* Sparse rows that are arranged, as objective/device_sparse.h says: the row at each
     * position, and where its values begin; slices begin at position `straight`. NULL: as they were
     * read. */
    const uint32_t *order, *at;

    /* Sparse values once more, column by column, as it says too; NULL: they are not there. */
    const uint32_t *column, *column_row;
    const void *column_value;
};

/* Rows of a slice. */
#define SLICE_ROWS 32

/* What enum value_type is called here. */
#define DEVICE_VALUE_ONES 0
#define DEVICE_VALUE_BYTE 1
#define DEVICE_VALUE_FLOAT 2
#define DEVICE_VALUE_DOUBLE 3

/* Value `i` of an array of that type: value_at(). */
PORTABLE double device_value_at(uint32_t type, const void *value, uint64_t i) {
    if (type == DEVICE_VALUE_ONES)
        return 1;
    if (type == DEVICE_VALUE_BYTE)
        return ((const uint8_t *)value)[i];
    if (type == DEVICE_VALUE_FLOAT)
        return (double)((const float *)value)[i];
    return ((const double *)value)[i];
}

#endif
