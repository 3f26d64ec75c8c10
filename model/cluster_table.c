#include "model/cluster_table.h"

#include <stdlib.h>

#include "base/memory.h"

static uint64_t add_cluster(struct cluster_table *table, uint64_t number, size_t width) {
    if (table->count == table->capacity) {
        uint64_t more = table->capacity ? 2 * table->capacity : 64;
        table->number = memory_resize(table->number, more, sizeof *table->number);
        table->rows = memory_resize(table->rows, more, sizeof *table->rows);
        if (width)
            table->sums = memory_resize(table->sums, more * width, sizeof *table->sums);
        table->capacity = more;
    }
    uint64_t added = table->count++;
    table->number[added] = number;
    table->rows[added] = 0;
    for (size_t i = 0; i < width; i++)
        table->sums[added * width + i] = 0;
    return added;
}

uint64_t cluster_table_find(struct cluster_table *table, uint64_t number, size_t width) {
    if (2 * (table->count + 1) > table->slots) {
        table->slots = table->slots ? 2 * table->slots : 1024;
        free(table->slot);
        table->slot = memory_new(table->slots, sizeof *table->slot);
        for (uint64_t i = 0; i < table->count; i++) {
            uint64_t at = table->number[i] & (table->slots - 1);
            while (table->slot[at])
                at = (at + 1) & (table->slots - 1);
            table->slot[at] = (uint32_t)i + 1;
        }
    }
    uint64_t at = number & (table->slots - 1);
    while (table->slot[at] && table->number[table->slot[at] - 1] != number)
        at = (at + 1) & (table->slots - 1);
    if (!table->slot[at])
        table->slot[at] = (uint32_t)add_cluster(table, number, width) + 1;
    return table->slot[at] - 1;
}

void cluster_table_release(struct cluster_table *table) {
    free(table->number);
    free(table->rows);
    free(table->sums);
    free(table->slot);
}
