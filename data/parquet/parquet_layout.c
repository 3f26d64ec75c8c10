/* What the columns of a Parquet file are: found out as of CSV, from its first rows, written as CSV.
 * So kinds and names, labels and keys go by one code, and a table has the same kinds in both. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/parquet/parquet_block.h"

#define ROWS_AT_ONCE 64
#define FEW_BYTES 256 /* of most texts */

/* A cell between quotes, as of CSV. */
static void put_quoted(struct bytes *text, const char *cell, size_t length) {
    bytes_put_u8(text, '"');
    for (size_t i = 0; i < length; i++) {
        if (cell[i] == '"')
            bytes_put_u8(text, '"');
        bytes_put_u8(text, (uint8_t)cell[i]);
    }
    bytes_put_u8(text, '"');
}

/* Where numbers have a comma for their point, those of texts alone do: others are as such texts. */
static void put_value(struct bytes *text, const struct parquet_span *span, uint32_t i,
                      bool decimal_comma) {
    char few[FEW_BYTES], *cell = few, *point = NULL;
    size_t room = parquet_text_room(span, i);
    if (room > sizeof few)
        cell = memory_resize(NULL, room, 1);
    size_t length = parquet_text_of(span, i, cell);
    double number = (double)NAN;
    if (decimal_comma)
        parquet_numbers(span, i, NULL, 1, &number, 1);
    if (!isnan(number))
        point = memchr(cell, '.', length);
    if (point)
        *point = ',';
    if (point || parquet_is_quoted(span->column))
        put_quoted(text, cell, length);
    else
        bytes_append(text, cell, length);
    if (cell != few)
        free(cell);
}

/* The cell of a row that is `row` rows after the first of the part. */
static void put_cell(struct bytes *text, const struct page_rows *part, uint32_t row, bool comma) {
    const struct held_page *page = part->page;
    uint32_t i = part->first + row;
    if (page->values.present && !page->values.present[i])
        return;
    bool refers = page->values.index != NULL;
    const struct parquet_span span = {page->column,
                                      refers ? &page->dictionary->values : &page->values};
    put_value(text, &span, refers ? page->values.index[i] : i, comma);
}

/* The part of a column that a row of the block is in. */
static const struct page_rows *find_part(const struct page_rows *part, uint32_t row) {
    while (part->at + part->count <= row)
        part++;
    return part;
}

/* Writes rows until there are BLOCK_TEXT_BYTES, as blocks of CSV have. Returns whether more fit. */
static bool put_rows(const struct parquet_reader *reader, const struct parquet_block *block,
                     bool comma, struct bytes *text) {
    uint32_t columns = reader->file.columns;
    const struct page_rows **part = memory_new(columns, sizeof *part);
    for (uint32_t i = 0; i < block->parts; i++)
        if (!block->part[i].at)
            part[block->part[i].column] = &block->part[i];
    bool fits = true;
    for (uint32_t row = 0; row < block->rows && fits; row++) {
        size_t before = text->length;
        for (uint32_t i = 0; i < columns; i++) {
            if (i)
                bytes_put_u8(text, ',');
            if (!part[i])
                continue;
            part[i] = find_part(part[i], row);
            put_cell(text, part[i], row - part[i]->at, comma);
        }
        bytes_put_u8(text, '\n');
        fits = text->length <= BLOCK_TEXT_BYTES;
        if (!fits)
            text->length = before;
    }
    free(part);
    return fits;
}

/* Writes the first rows; none where the columns are known. */
static int put_head(struct parquet_reader *reader, struct bytes *text) {
    const struct source_options *options = &reader->options;
    bool comma = options->syntax.decimal && !strcmp(options->syntax.decimal, ","), more = true;
    struct parquet_block *block = parquet_block_new();
    int code = 0;
    while (!code && more && (!options->table.known || options->table.adds_columns)) {
        code = parquet_block_take(reader, block, ROWS_AT_ONCE);
        more = block->rows > 0;
        if (!code && more)
            code = parquet_block_read(reader, block);
        if (!code && more)
            more = put_rows(reader, block, comma, text);
    }
    parquet_first_keep(reader, block);
    parquet_block_free(reader, block);
    parquet_rewind(reader);
    return code;
}

/* Which columns are read from now on; each must be one that can be. */
static int choose_columns(struct parquet_reader *reader, const struct format *format) {
    for (uint32_t i = 0; i < reader->file.columns; i++) {
        const struct parquet_column *column = &reader->file.column[i];
        bool used = format->column[i].kind != COLUMN_SKIPPED;
        for (uint32_t k = 0; k < format->carried_count; k++)
            used |= format->carried[k] == i;
        if (used && column->refused)
            return error_set(
                ERROR_DATA,
                "%s: column \"%.100s\" is not read: %s; leave it out with csv.skip, or "
                "write the file anew without that",
                reader->file.path, column->name, column->refused);
        reader->cursor[i].used =
            used || (reader->options.hashes_rows && !reader->file.column[i].refused);
        reader->cursor[i].only_hashed = !used;
    }
    return 0;
}

/* A table has the unit of durations that its first file has, and durations of other files are
 * brought to it: numbers alone do not say what they count. */
static void take_durations(struct parquet_reader *reader, const struct format *format) {
    const struct source_options *options = &reader->options;
    for (uint32_t i = 0; i < reader->file.columns; i++) {
        struct parquet_column *column = &reader->file.column[i];
        if (!column->duration || format->column[i].kind == COLUMN_SKIPPED)
            continue;
        const uint32_t number = format->column[i].number;
        const bool is_new = !options->table.known || number >= options->table.known->columns;
        /* The unit that the table of other files, or of the model before, has for a column; 0:
         * none. */
        const struct table *known =
            options->table.known ? options->table.known : options->table.order;
        uint32_t unit = known && number < known->columns ? known->column[number].unit : 0;
        if (is_new)
            format->table->column[number].unit = unit = unit ? unit : column->duration;
        if (!unit || unit == column->duration)
            continue;
        column->multiplier = unit > column->duration ? unit / column->duration : 1;
        column->divisor = unit < column->duration ? column->duration / unit : 1;
    }
}

int parquet_layout_find(struct parquet_reader *reader, struct format *format) {
    struct bytes text;
    bool *is_index = memory_new(reader->file.columns, sizeof *is_index);
    bytes_init(&text);
    for (uint32_t i = 0; i < reader->file.columns; i++) {
        is_index[i] = reader->file.column[i].is_index;
        reader->cursor[i].used = !reader->file.column[i].refused;
        if (i)
            bytes_put_u8(&text, ',');
        put_quoted(&text, reader->file.column[i].name, strlen(reader->file.column[i].name));
    }
    size_t first = text.length;
    bytes_put_u8(&text, '\n');
    int code = put_head(reader, &text);
    if (!code) {
        bytes_put_u8(&text, '\0');
        const char *all = (const char *)text.data;
        const struct text_line line = {all, first}, none = {all + first + 1, 0},
                               behind = {all + first + 1, text.length - first - 2};
        *format =
            (struct format){.options = &reader->options, .kind = FORMAT_CSV, .is_index = is_index};
        code = csv_layout_find(format, reader->file.path, 1, &line, &none, &behind);
        format->is_index = NULL;
    }
    if (!code)
        code = choose_columns(reader, format);
    if (!code)
        take_durations(reader, format);
    bytes_release(&text);
    free(is_index);
    return code;
}
