#include "objective/device_columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct device_columns {
    uint32_t features;
    uint32_t *number; /* of each feature: its place among the columns, from 1; 0: not used */
    uint32_t *list;
    size_t capacity;
};

struct device_columns *device_columns_new(uint32_t features) {
    struct device_columns *columns = memory_new(1, sizeof *columns);
    columns->features = features;
    return columns;
}

void device_columns_free(struct device_columns *columns) {
    if (!columns)
        return;
    free(columns->number);
    free(columns->list);
    free(columns);
}

/* Numbers the columns by first appearance, and counts in start[c + 1] the values of column c. */
static uint32_t find_columns(uint32_t *number, const struct rows *rows, uint32_t *column,
                             uint32_t *start) {
    uint32_t columns = 0;
    for (size_t v = 0; v < rows->start[rows->count]; v++) {
        uint32_t *mine = &number[rows->feature[v]];
        if (!*mine) {
            column[columns] = rows->feature[v];
            *mine = ++columns;
            start[*mine] = 0;
        }
        start[*mine]++;
    }
    return columns;
}

/* The values of each column, in the order of rows; start[c + 1] is left at the end of column c. */
static void place_values(const uint32_t *number, const struct rows *rows, uint32_t columns,
                         uint32_t *start, uint32_t *value) {
    uint32_t before = 0;
    start[0] = 0;
    for (uint32_t c = 1; c <= columns; c++) {
        uint32_t count = start[c];
        start[c] = before;
        before += count;
    }
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t v = rows->start[i]; v < rows->start[i + 1]; v++) {
            uint32_t *to = value + 2 * (size_t)start[number[rows->feature[v]]]++;
            to[0] = i;
            to[1] = v;
        }
}

static void make_room(struct device_columns *columns, size_t values) {
    size_t most = 4 * values + 1; /* as many columns as values */
    if (!columns->number)
        columns->number = memory_new(columns->features, sizeof *columns->number);
    if (most <= columns->capacity)
        return;
    columns->list = memory_resize(columns->list, most, sizeof *columns->list);
    columns->capacity = most;
}

const void *device_columns_list(struct device_columns *columns, const struct rows *rows,
                                uint32_t *count, size_t *bytes) {
    size_t values = rows->start[rows->count];
    make_room(columns, values);
    uint32_t *column = columns->list, *start = column + values;
    *count = find_columns(columns->number, rows, column, start);
    memmove(column + *count, start, (*count + 1) * sizeof *start);
    start = column + *count;
    place_values(columns->number, rows, *count, start, start + *count + 1);
    for (uint32_t c = 0; c < *count; c++)
        columns->number[column[c]] = 0;
    *bytes = (2 * (size_t)*count + 1 + 2 * values) * sizeof *columns->list;
    return columns->list;
}
