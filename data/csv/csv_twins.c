/* Columns of one name. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/csv/layout.h"

/* Cells of one text in the order of the line, in which they lie in memory. */
static int compare_cells(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int order = strcmp(x, y);
    return order ? order : (x > y) - (x < y);
}

/* The first two columns of one name: false if each has its own. Columns without a name do not
 * count: they can only be meant by their numbers. */
static bool find_twins(const struct csv_cells *first, uint32_t *one, uint32_t *other) {
    char **sorted = memory_new(first->count, sizeof *sorted);
    memcpy(sorted, first->cell, first->count * sizeof *sorted);
    qsort(sorted, first->count, sizeof *sorted, compare_cells);
    uint32_t i = 1;
    while (i < first->count && (!*sorted[i] || strcmp(sorted[i - 1], sorted[i]) != 0))
        i++;
    bool found = i < first->count;
    for (uint32_t k = 0; found && k < first->count; k++) {
        *one = first->cell[k] == sorted[i - 1] ? k : *one;
        *other = first->cell[k] == sorted[i] ? k : *other;
    }
    assert(!found || *one != *other);
    free(sorted);
    return found;
}

/* How many columns of the table have this name. */
static uint32_t count_of_name(const struct table *table, const char *name) {
    struct table_column wanted = {0};
    uint32_t count = 0;
    table_set_name(&wanted, name);
    for (uint32_t i = 0; table_is_named(table) && i < table->columns; i++)
        count += strcmp(table->column[i].name, wanted.name) == 0;
    free(wanted.name);
    return count;
}

/* Whether `csv.skip` leaves one of two columns of one name out by its number. By the name it leaves
 * the first out, where both may be meant. */
static bool one_is_skipped(const struct format *format, const char *name, uint32_t one,
                           uint32_t other) {
    for (const char *const *skip = format->options->table.skip; skip && *skip; skip++)
        if (!strcmp(*skip, name))
            return false;
    return format->column[one].kind == COLUMN_SKIPPED ||
           format->column[other].kind == COLUMN_SKIPPED;
}

void csv_warn_of_twins(const struct format *format, const struct csv_cells *first) {
    const struct table *known = format->options->table.known;
    uint32_t one = 0, other = 0;
    if (!format->header || !find_twins(first, &one, &other) ||
        one_is_skipped(format, first->cell[one], one, other) ||
        (known && count_of_name(known, first->cell[one]) > 1))
        return;
    log_warning(
        "%s:%llu: columns %u and %u have the same name, \"%.100s\": they are told apart by "
        "their order, and csv.label, csv.skip and the like mean the first; give each column "
        "a name of its own, or leave one out by its number with csv.skip",
        first->path, (unsigned long long)first->number, one + 1, other + 1, first->cell[one]);
}
