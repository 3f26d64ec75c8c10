/* Sparse rows arranged for a device, and their values once more column by column.
 *
 * Arranged, the rows of a chunk are in order of falling length. From position `straight` on they
 * are in slices of SLICE_ROWS: the first values of all rows of a slice, then their second ones, and
 * so on, each slice as long as its longest row. Rows so much longer than others that their slice
 * would be mostly empty come before, each by itself.
 *
 * Column by column, the values of a chunk are sorted by column, and cut into runs of COLUMN_RUN.
 * COLUMN_LANES runs lie beside each other: the first values of all, then their second ones, and so
 * on. */
#ifndef DML_OBJECTIVE_DEVICE_ARRANGE_H
#define DML_OBJECTIVE_DEVICE_ARRANGE_H

#include <stdint.h>

#include "device/kernel.h"
#include "objective/device_chunk.h"

#define COLUMN_RUN 32
#define COLUMN_LANES 32

/* Where the first value of a run is; the next ones are COLUMN_LANES apart. */
PORTABLE uint64_t column_run_at(uint64_t run) {
    return run / COLUMN_LANES * (COLUMN_LANES * COLUMN_RUN) + run % COLUMN_LANES;
}

/* Where value `i` in the order of columns is. */
PORTABLE uint64_t column_value_at(uint64_t i) {
    return column_run_at(i / COLUMN_RUN) + i % COLUMN_RUN * COLUMN_LANES;
}

/* For how many values there must be room. */
PORTABLE uint64_t column_values_room(uint64_t values) {
    const uint64_t together = COLUMN_LANES * COLUMN_RUN;
    return (values + together - 1) / together * together;
}

PORTABLE void device_value_copy(uint32_t type, void *to, uint64_t at, const void *from,
                                uint64_t i) {
    if (type == DEVICE_VALUE_BYTE)
        ((uint8_t *)to)[at] = ((const uint8_t *)from)[i];
    else if (type == DEVICE_VALUE_FLOAT)
        ((float *)to)[at] = ((const float *)from)[i];
    else if (type == DEVICE_VALUE_DOUBLE)
        ((double *)to)[at] = ((const double *)from)[i];
}

/* ---- rows ---- */

/* From a chunk as it was read to one that is arranged: `to` has `order`, `at` and `straight`, and
 * room for features and values. A thread a row. */
struct arrange_rows_arguments {
    struct device_chunk from, to;
    uint32_t *feature; /* those of `to` */
    void *value;
};

PORTABLE void arrange_rows_body(const struct place *place,
                                const struct arrange_rows_arguments *arguments, void *shared,
                                uint32_t phase) {
    const struct device_chunk *from = &arguments->from, *to = &arguments->to;
    const uint64_t step = (uint64_t)place->blocks * place->threads;
    (void)shared, (void)phase;
    for (uint64_t p = (uint64_t)place->block * place->threads + place->thread; p < from->rows;
         p += step) {
        const uint64_t stride = p < to->straight ? 1 : SLICE_ROWS;
        const uint32_t row = to->order[p], end = from->start[row + 1];
        uint64_t at = to->at[p];
        for (uint32_t i = from->start[row]; i < end; i++, at += stride) {
            arguments->feature[at] = from->feature[i];
            device_value_copy(from->type, arguments->value, at, from->value, i);
        }
    }
}

/* ---- columns ---- */

/* From a chunk as it was read. One block: it counts the values of each column, finds where each
 * begins, and puts every value to the next place of its column, so that their order within a column
 * is any. */
struct arrange_columns_arguments {
    struct device_chunk from;
    uint32_t features;
    uint32_t *next;   /* features; scratch memory */
    uint32_t *column; /* of each value */
    uint32_t *row;
    void *value;
};

#define ARRANGE_THREADS 1024
#define ARRANGE_PHASES 6

/* The first column of a thread's share, which ends where the next one's begins. */
PORTABLE uint64_t arrange_share(const struct arrange_columns_arguments *arguments, uint32_t threads,
                                uint32_t thread) {
    return (uint64_t)arguments->features * thread / threads;
}

/* next[j] = what stands before column j, of a thread's share; answers what follows. */
PORTABLE uint32_t arrange_begin(const struct arrange_columns_arguments *arguments, uint64_t j,
                                uint64_t end, uint32_t before) {
    for (; j < end; j++) {
        const uint32_t count = arguments->next[j];
        arguments->next[j] = before;
        before += count;
    }
    return before;
}

PORTABLE void arrange_place(const struct arrange_columns_arguments *arguments, uint32_t row) {
    const struct device_chunk *from = &arguments->from;
    for (uint32_t i = from->start[row]; i < from->start[row + 1]; i++) {
        const uint32_t column = from->feature[i];
        const uint64_t at = column_value_at(device_count_u32(&arguments->next[column], 1));
        arguments->column[at] = column;
        arguments->row[at] = row;
        device_value_copy(from->type, arguments->value, at, from->value, i);
    }
}

/* The phases: no counts; counts of columns; what each thread's columns have, to `shared`; sums of
 * that; where each column begins; and the values. */
PORTABLE void arrange_columns_body(const struct place *place,
                                   const struct arrange_columns_arguments *arguments, void *shared,
                                   uint32_t phase) {
    const struct device_chunk *from = &arguments->from;
    const uint32_t t = place->thread, threads = place->threads;
    const uint64_t first = arrange_share(arguments, threads, t);
    const uint64_t end = arrange_share(arguments, threads, t + 1);
    uint32_t *before = (uint32_t *)shared;
    if (phase == 0) {
        for (uint64_t j = first; j < end; j++)
            arguments->next[j] = 0;
    } else if (phase == 1) {
        for (uint64_t i = t; i < from->values; i += threads)
            device_count_u32(&arguments->next[from->feature[i]], 1);
    } else if (phase == 2) {
        before[t] = 0;
        for (uint64_t j = first; j < end; j++)
            before[t] += arguments->next[j];
    } else if (phase == 3 && t == 0) {
        uint32_t total = 0;
        for (uint32_t other = 0; other < threads; other++) {
            const uint32_t count = before[other];
            before[other] = total;
            total += count;
        }
    } else if (phase == 4) {
        arrange_begin(arguments, first, end, before[t]);
    } else if (phase == 5) {
        for (uint32_t row = t; row < from->rows; row += threads)
            arrange_place(arguments, row);
    }
}

#endif
