/* Cells that go along with a row, as those of identifiers do beside predictions. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/csv/table_row.h"
#include "data/csv/layout.h"

int format_carries_none(const char *path) {
    return error_set(ERROR_DATA,
                     "%s: only a table (CSV, JSON Lines, Parquet) has columns that can be written "
                     "beside predictions",
                     path);
}

int csv_find_carried(struct format *format, const struct csv_cells *first) {
    const char *const *names = format->options->carried;
    uint32_t count = 0;
    while (names && names[count])
        count++;
    format->carried_count = count;
    if (!format->carried_count)
        return 0;
    format->carried = memory_new(format->carried_count, sizeof *format->carried);
    for (uint32_t i = 0; i < format->carried_count; i++) {
        format->carried[i] = csv_find_column(first, format->header, names[i]);
        if (format->carried[i] == first->count)
            return csv_no_column(first, format->header, "write beside predictions", names[i]);
    }
    return 0;
}

/* Cells are cut from the copy of the text, since parsers write into the text. Where the line is not
 * whole, its parser rejects it. */
void csv_carry(const struct format *format, struct batch *batch, const char *line,
               const char *end) {
    assert(batch->carried_count == format->carried_count && batch->copy);
    const char **carried = batch->carried + (size_t)batch->row_count * batch->carried_count;
    char *at = batch->copy + (line - batch->copied), *behind = batch->copy + (end - batch->copied);
    *behind = '\0';
    for (uint32_t i = 0; i < format->carried_count; i++) {
        carried[i] = row_folder_cell(format, batch, format->carried[i]);
        carried[i] = carried[i] ? carried[i] : "";
    }
    for (uint32_t column = 0; at && column < format->own; column++) {
        const char *cell = csv_cell(&at, behind, &format->rule);
        if (!cell)
            return;
        for (uint32_t i = 0; i < format->carried_count; i++)
            if (format->carried[i] == column)
                carried[i] = cell;
    }
}
