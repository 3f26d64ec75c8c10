/* Columns that name the rows of a table and are no part of it: an index, as pandas writes it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/csv/layout.h"

/* Whether a name is one that pandas gives an index without a name: in Parquet, or where it has read
 * a CSV file that it had written with one. A second round trip makes "Unnamed: 0.1" of it. */
static bool is_name_of_index(const char *name) {
    static const char *const begin[] = {"__index_level_", "Unnamed: 0"};
    static const char *const end[] = {"__", ""};
    bool found = false;
    for (size_t i = 0; i < sizeof begin / sizeof *begin && !found; i++) {
        const size_t length = strlen(begin[i]);
        found = !strncmp(name, begin[i], length);
        name += found ? length : 0;
        found = found && !strcmp(name + strspn(name, "0123456789."), end[i]);
    }
    return found;
}

/* A first column without a name, before others that have one: pandas and R write an index so. */
static bool is_nameless_first(const struct csv_cells *first, uint32_t column) {
    bool named = column == 0 && first->count > 1 && !*first->cell[0];
    for (uint32_t i = 1; i < first->count && named; i++)
        named = *first->cell[i] != 0;
    return named;
}

bool csv_is_index(const struct format *format, const struct csv_cells *first, uint32_t column) {
    return format->header && !format->options->table.numbers_only &&
           ((format->is_index && column < format->own && format->is_index[column]) ||
            is_name_of_index(first->cell[column]) || is_nameless_first(first, column));
}

void csv_leave_out_index(struct format *format, const struct csv_cells *first, bool *known) {
    assert(first->count <= format->table->columns);
    char *list = NULL;
    bool said = true; /* by the file itself */
    for (uint32_t i = 0; i < first->count; i++) {
        if (known[i] || !csv_is_index(format, first, i))
            continue;
        char *before = list;
        list =
            memory_format("%s%s%u%s%.100s%s", before ? before : "", before ? ", " : "", i + 1,
                          *first->cell[i] ? " (" : "", first->cell[i], *first->cell[i] ? ")" : "");
        free(before);
        said &= format->is_index && i < format->own && format->is_index[i];
        format->table->column[i].kind = COLUMN_SKIPPED;
        known[i] = true;
    }
    if (list)
        log_at(said ? LOG_INFO : LOG_WARNING,
               "%s: column %.1000s is left out: it is an index, which names the rows and says "
               "nothing about them; csv.skip says the same, csv.numbers or csv.categories takes "
               "it nonetheless",
               first->path, list);
    free(list);
}
