/* Sums by cluster. */
#ifndef DML_MODEL_CLUSTER_TABLE_H
#define DML_MODEL_CLUSTER_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Clusters by their number, in an open table; those that are there come by first appearance. Zeroed
 * memory is a table without any. */
struct cluster_table {
    uint64_t *number; /* by cluster; owned */
    uint64_t *rows;   /* the rows of each cluster; owned */
    double *sums;     /* clusters × width; owned */
    uint32_t *slot;   /* cluster + 1, or 0; owned */
    uint64_t slots, count, capacity;
};

/* The place of a cluster, which is added if it is new, with `width` sums of 0: the same width in
 * all calls. */
uint64_t cluster_table_find(struct cluster_table *table, uint64_t number, size_t width);
void cluster_table_release(struct cluster_table *table);

#endif
