/* Columns that the folders of a file's path give: they stand after its own, and each row has the
 * same cell there. What a column is and means is found by the code of all others, so rows are those
 * of the file with the column written out. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/csv/table_row.h"
#include "data/csv/layout.h"
#include "data/source/blocks.h"

/* Whether the table, as far as it says what columns are, has one of this name, or its cells go
 * along with rows. */
static bool is_wanted(const struct source_options *options, const char *name) {
    bool found = !options->table.known || options->table.adds_columns ||
                 table_has_name(options->table.known, name);
    for (const char *const *carried = options->carried; carried && *carried; carried++)
        found |= !strcmp(*carried, name);
    return found;
}

void csv_find_folders(struct format *format, struct csv_cells *first) {
    const struct source_options *options = format->options;
    const struct source_folder *folder = options->folders.column;
    uint32_t count = 0;
    assert(format->own == first->count && !format->folder);
    if (!folder || (options->table.known && !table_is_named(options->table.known)))
        return;
    while (folder[count].name)
        count++;
    format->folder = memory_new(count, sizeof(struct csv_folder));
    assert(count > 0 || !folder->name);
    first->cell = memory_resize(first->cell, first->count + (size_t)count, sizeof *first->cell);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t column = csv_find_column(first, true, folder[i].name);
        const bool own = column < first->count && !strcmp(first->cell[column], folder[i].name);
        if (!own && !is_wanted(options, folder[i].name))
            continue;
        if (!own)
            first->cell[first->count + first->folders] = folder[i].name;
        format->folder[format->folders++] = (struct csv_folder){
            .of = &folder[i], .column = own ? column : first->count + first->folders++};
    }
}

int csv_take_folders(struct format *format, struct csv_cells *first) {
    const struct source_options *options = format->options;
    if (!format->header) {
        if (format->folders && !options->table.known && !options->table.numbers_only)
            log_info("%s: the folder %.100s=%.100s is no column, since those of the file have no "
                     "names: no line names them",
                     first->path, format->folder->of->name, format->folder->of->value);
        format->folders = first->folders = 0;
    }
    if (format->folders && options->folders.differ)
        return error_set(ERROR_DATA, "%s", options->folders.differ);
    format->columns = first->count += first->folders;
    assert(format->columns >= format->own);
    return 0;
}

bool csv_folder_has_texts(const struct format *format, uint32_t column) {
    bool texts = false;
    for (uint32_t i = 0; i < format->folders && column >= format->own; i++)
        texts |= format->folder[i].column == column && format->folder[i].of->texts;
    return texts;
}

/* Where the file has the column as well, row_take_folders() compares numbers and categories alone.
 */
int csv_check_folders(struct format *format, const struct csv_cells *first) {
    for (uint32_t i = 0; i < format->folders; i++) {
        struct csv_folder *folder = &format->folder[i];
        assert(folder->column < format->columns);
        const enum column_kind kind = format->column[folder->column].kind;
        if (kind == COLUMN_CATEGORY) {
            folder->text = memory_copy_string(folder->of->value);
            category_of(format, folder->column, folder->text, &folder->category);
            folder->category.origin.known = &folder->category.known;
        }
        if (folder->column < format->own && kind != COLUMN_NUMBER && kind != COLUMN_CATEGORY &&
            kind != COLUMN_SKIPPED)
            return error_set(ERROR_DATA,
                             "%s:%llu: the column \"%.100s\" stands in the file, and its folder "
                             "%.100s=%.100s names it, too: csv.folders = none takes that of the "
                             "file",
                             first->path, (unsigned long long)first->number, folder->of->name,
                             folder->of->name, folder->of->value);
    }
    return 0;
}

void csv_tell_of_folders(const struct format *format, const char *path) {
    char *list = NULL;
    for (uint32_t i = 0; i < format->folders; i++) {
        char *before = list;
        if (format->folder[i].column < format->own)
            continue;
        list = memory_format("%s%s%.100s", before ? before : "", before ? ", " : "",
                             format->folder[i].of->name);
        free(before);
    }
    if (list)
        log_info("%s: columns of KEY=VALUE folders are taken: %.1000s; csv.folders = none takes "
                 "none",
                 path, list);
    free(list);
}

/* ---- the rows ---- */

void row_prepare_folders(const struct format *format, struct batch *batch) {
    bytes_clear(&batch->folders);
    for (uint32_t i = 0; i < format->folders; i++)
        bytes_append(&batch->folders, format->folder[i].of->value,
                     strlen(format->folder[i].of->value) + 1);
}

/* The cell of a folder; what takes it may write into it, as into a line, to no effect for the next
 * row. */
static char *cell_of(const struct batch *batch, const struct format *format, uint32_t number) {
    assert(number < format->folders);
    char *cell = (char *)batch->folders.data;
    for (uint32_t i = 0; i < number; i++)
        cell += strlen(format->folder[i].of->value) + 1;
    return cell;
}

const char *row_folder_cell(const struct format *format, const struct batch *batch,
                            uint32_t column) {
    const char *cell = NULL;
    for (uint32_t i = 0; i < format->folders && column >= format->own; i++)
        if (format->folder[i].column == column)
            cell = cell_of(batch, format, i);
    return cell;
}

/* Whether the file's own column has the folder's cell in this row, as it is read. */
static bool agrees(const struct table_row *row, const struct csv_folder *folder, char *cell) {
    const struct format *format = row->format;
    const struct csv_column *of = &format->column[folder->column];
    double number;
    if (of->kind == COLUMN_NUMBER) {
        const double here = row_numbers(row)[of->place];
        if (!csv_number(format, of->amounts, cell, &number))
            return isnan(here) && csv_is_missing(format, cell, strlen(cell));
        return here == number;
    }
    bool found = of->kind != COLUMN_CATEGORY;
    for (uint32_t i = 0; i < row->batch->text_count && !found; i++)
        found = row->batch->texts[i].id == folder->category.id;
    return found;
}

/* What a category is was found once for all rows. */
static bool take(struct table_row *row, const struct csv_folder *folder, char *cell) {
    return row->format->column[folder->column].kind == COLUMN_CATEGORY
               ? row_take_category(row, folder->column, &folder->category)
               : row_take(row, folder->column, cell);
}

bool row_take_folders(struct table_row *row) {
    const struct format *format = row->format;
    char name[COLUMN_TEXT];
    for (uint32_t i = 0; i < format->folders; i++) {
        const struct csv_folder *folder = &format->folder[i];
        char *cell = cell_of(row->batch, format, i);
        if (folder->column >= format->own && !take(row, folder, cell))
            return false;
        if (folder->column < format->own && !agrees(row, folder, cell))
            return batch_reject(row->batch, row->number,
                                "%s has another value than the folder %.100s=%.100s of the file; "
                                "csv.folders = none takes that of the row",
                                row_describe_column(format, folder->column, name), folder->of->name,
                                folder->of->value);
    }
    return true;
}
