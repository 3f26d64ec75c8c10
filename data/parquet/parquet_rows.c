/* Rows of a table from the values of Parquet. Numbers go as they are, what values of a dictionary
 * mean is found out once of each, and all else goes by its text, as a cell of CSV does. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/csv/table_row.h"
#include "data/parquet/parquet_reader.h"

/* ---- entries of dictionaries ---- */

/* A category for each value. Their texts stay where they are, since cells are not copied. */
static void make_categories(const struct format *format, uint32_t column,
                            const struct parquet_span *span, struct parquet_entries *entries) {
    uint32_t count = span->values->count;
    size_t room = 1;
    for (uint32_t i = 0; i < count; i++)
        room += parquet_text_room(span, i);
    char *at = entries->text = memory_resize(NULL, room, 1);
    entries->category = memory_new(count, sizeof *entries->category);
    for (uint32_t i = 0; i < count; i++) {
        size_t length = parquet_text_of(span, i, at);
        if (strlen(at) != length)
            entries->category[i].length = SIZE_MAX; /* it has a zero byte: as if it was too long */
        else if (category_of(format, column, at, &entries->category[i]))
            entries->category[i].origin.known = &entries->category[i].known;
        at += length + 1;
    }
}

/* A number for each value that is one, by its type or by its text. */
static void make_numbers(const struct format *format, bool amounts, const struct parquet_span *span,
                         struct parquet_entries *entries) {
    uint32_t count = span->values->count;
    entries->number = memory_new(count, sizeof *entries->number);
    entries->whole = parquet_numbers(span, 0, NULL, count, entries->number, 1);
    for (uint32_t i = 0; i < count && !entries->whole; i++) {
        if (!isnan(entries->number[i]))
            continue;
        char *text = memory_resize(NULL, parquet_text_room(span, i), 1);
        double number;
        size_t length = parquet_text_of(span, i, text);
        if (strlen(text) == length && csv_number(format, amounts, text, &number))
            entries->number[i] = number;
        free(text);
    }
}

static void make_entries_of(const struct format *format, uint32_t column, struct held_page *page) {
    const struct parquet_span span = {page->column, &page->values};
    if (format->column[column].kind == COLUMN_NUMBER)
        make_numbers(format, format->column[column].amounts, &span, &page->entries);
    else if (format->column[column].kind == COLUMN_CATEGORY)
        make_categories(format, column, &span, &page->entries);
}

/* ---- cells ---- */

/* A column of the file while its rows are made. */
struct column_rows {
    uint32_t column;
    const struct page_rows *part; /* that the row is in */
    double *number;               /* of each row, where a number is all that is asked for, NaN where
                                     there is none; or NULL */
    uint32_t place;               /* of a number or category among those of a row */
};

/* What block->odd has of a row: some of its numbers are missing, as they are null; of some the text
 * tells what they are. */
#define ODD_MISSING 1
#define ODD_TEXT 2

/* While the rows of a block are made. */
struct row_maker {
    struct parquet_reader *reader;
    const struct format *format;
    struct parquet_block *block;
    struct batch *batch;
    /* The columns that are read; owned. `filled` are the numbers, while they are; the rest is of
     * those that are neither numbers nor categories, which `others` has all. */
    struct column_rows *numbers, *filled, *others, *rest, *all;
    uint32_t number_count, other_count, rest_count, category_count, count;
    bool null_is_missing; /* and not a cell that is refused */
};

/* Where a cell is: its values, and which of them; false: it is null. */
static bool find_value(const struct page_rows *part, uint32_t row, struct parquet_span *span,
                       uint32_t *i) {
    const struct held_page *page = part->page;
    uint32_t at = part->first + row - part->at;
    bool refers = page->values.index != NULL;
    *span = (struct parquet_span){page->column, refers ? &page->dictionary->values : &page->values};
    *i = refers ? page->values.index[at] : at;
    return !page->values.present || page->values.present[at];
}

static bool is_null(const struct page_rows *part, uint32_t row) {
    const uint8_t *present = part->page->values.present;
    return present && !present[part->first + row - part->at];
}

/* The text of a cell, in memory of the block; NULL: it has a zero byte. */
static char *cell_text(struct row_maker *maker, const struct page_rows *part, uint32_t row) {
    struct parquet_span span;
    uint32_t i;
    if (!find_value(part, row, &span, &i))
        return memset(text_room_take(&maker->block->room, 1), 0, 1);
    char *text = text_room_take(&maker->block->room, parquet_text_room(&span, i));
    size_t length = parquet_text_of(&span, i, text);
    return strlen(text) == length ? text : NULL;
}

static const struct page_rows *part_of(struct column_rows *rows, uint32_t row) {
    while (rows->part->at + rows->part->count <= row)
        rows->part++;
    assert(row >= rows->part->at);
    return rows->part;
}

static bool reject_zero(const struct table_row *row, uint32_t column) {
    char name[COLUMN_TEXT];
    return batch_reject(row->batch, row->number, "%s holds a text with a zero byte",
                        row_describe_column(row->format, column, name));
}

static bool take_text(struct row_maker *maker, struct table_row *row, const struct page_rows *part,
                      uint32_t at) {
    char *text = cell_text(maker, part, at);
    return text ? row_take(row, part->column, text) : reject_zero(row, part->column);
}

static const struct category **categories_at(const struct row_maker *maker, uint32_t row) {
    return maker->block->category + (size_t)row * maker->category_count;
}

/* All categories of a row, unless the text of one must be looked at. */
static bool take_categories(struct row_maker *maker, struct table_row *row, uint32_t at) {
    const struct category *const *category = categories_at(maker, at);
    for (uint32_t i = 0; i < maker->category_count; i++)
        if (!category[i])
            return false;
    for (uint32_t i = 0; i < maker->category_count; i++)
        batch_add_text(row->batch, category[i]->id, 1, &category[i]->origin);
    return true;
}

static bool take_parquet_date(struct row_maker *maker, struct table_row *row,
                              const struct page_rows *part, uint32_t at) {
    struct parquet_span span;
    struct date date;
    uint32_t i;
    if (maker->format->table->date_format || !find_value(part, at, &span, &i) ||
        !parquet_date(&span, i, &date))
        return false;
    csv_put_date(maker->format, row->batch, part->column, &date);
    return true;
}

/* A cell of a category whose text was looked at before, or of a date or a number that needs none.
 */
static bool take_other(struct row_maker *maker, struct table_row *row, struct column_rows *of,
                       uint32_t at) {
    enum column_kind kind = maker->format->column[of->column].kind;
    if (of->number && !isnan(of->number[at]) && row_try_number(row, of->column, of->number[at]))
        return true;
    if (kind == COLUMN_CATEGORY) {
        const struct category *category = categories_at(maker, at)[of->place];
        if (category) {
            batch_add_text(row->batch, category->id, 1, &category->origin);
            return true;
        }
    }
    if (kind == COLUMN_DATE && take_parquet_date(maker, row, part_of(of, at), at))
        return true;
    return take_text(maker, row, part_of(of, at), at);
}

/* ---- numbers, column by column ---- */

/* Makes a number NaN, of which all bits are set, where it is null: nulls come at random, and a
 * branch would be for nothing. */
static inline double null_or(double number, uint8_t present) {
    uint64_t bits;
    assert(present <= 1);
    memcpy(&bits, &number, sizeof bits);
    bits |= (uint64_t)present - 1;
    memcpy(&number, &bits, sizeof bits);
    return number;
}

/* Entries of a dictionary; whether values are null is NULL or said of each. */
static void gather_numbers(const double *number, const uint32_t *index, const uint8_t *present,
                           uint32_t count, double *to, size_t stride) {
    for (uint32_t i = 0; !present && i < count; i++)
        to[i * stride] = number[index[i]];
    for (uint32_t i = 0; present && i < count; i++)
        to[i * stride] = null_or(number[index[i]], present[i]);
}

/* The values of `count` rows of a part from row `from` on, NaN for each null and for what is no
 * number; returns whether none of the others is NaN. A null names entry 0 of a dictionary, which
 * may have none. */
static bool fill_part(const struct page_rows *part, uint32_t from, uint32_t count, double *to,
                      size_t stride) {
    const struct held_page *page = part->page, *dictionary = page->dictionary;
    const struct parquet_span span = {page->column, &page->values};
    const uint8_t *present = page->values.present;
    const uint32_t *index = page->values.index;
    bool whole;
    assert(from + count <= part->count);
    present = present ? present + part->first + from : NULL;
    index = index ? index + part->first + from : NULL;
    if (index && dictionary->values.count && dictionary->entries.number) {
        gather_numbers(dictionary->entries.number, index, present, count, to, stride);
        return dictionary->entries.whole;
    }
    if (!index) {
        whole = parquet_numbers(&span, part->first + from, NULL, count, to, stride);
    } else if (dictionary->values.count) {
        const struct parquet_span entries = {page->column, &dictionary->values};
        whole = parquet_numbers(&entries, 0, index, count, to, stride);
    } else {
        whole = true; /* all are null */
        for (uint32_t i = 0; i < count; i++)
            to[i * stride] = (double)NAN;
    }
    for (uint32_t i = 0; present && i < count; i++)
        to[i * stride] = null_or(to[i * stride], present[i]);
    return whole;
}

static void fill_numbers_of(struct row_maker *maker, const struct page_rows *part, uint32_t from,
                            uint32_t count, double *to) {
    size_t stride = maker->format->numbers;
    uint8_t *odd = maker->block->odd + part->at + from;
    const uint8_t *present = part->page->values.present;
    bool whole = fill_part(part, from, count, to, stride);
    present = present ? present + part->first + from : NULL;
    if (whole && maker->null_is_missing)
        for (uint32_t i = 0; present && i < count; i++)
            odd[i] |= present[i] ? 0 : ODD_MISSING;
    else if (!whole || present)
        for (uint32_t i = 0; i < count; i++)
            odd[i] |= isnan(to[i * stride]) ? ODD_TEXT : 0;
}

/* The numbers of a row of the block. */
static double *numbers_of(const struct row_maker *maker, uint32_t row) {
    double *all = maker->format->categories ? maker->block->number : maker->batch->value;
    return maker->format->numbers ? all + (size_t)row * maker->format->numbers : NULL;
}

/* So many numbers stay in the nearest cache while each column puts its own between the others'. */
#define NEAR_NUMBERS 2048

/* The rows from `first` on of a block, up to `end`. */
static void fill_some(struct row_maker *maker, uint32_t first, uint32_t end) {
    for (uint32_t i = 0; i < maker->number_count; i++) {
        struct column_rows *of = &maker->filled[i];
        for (uint32_t row = first; row < end;) {
            const struct page_rows *part = part_of(of, row);
            uint32_t from = row - part->at, left = part->count - from;
            uint32_t count = left < end - row ? left : end - row;
            fill_numbers_of(maker, part, from, count, numbers_of(maker, row) + of->place);
            row += count;
        }
    }
}

static void fill_numbers(struct row_maker *maker) {
    uint32_t rows = maker->block->rows, step = NEAR_NUMBERS / (maker->format->numbers + 1) + 16;
    /* Numbers alone go where they stay: a row that is rejected makes room, and each number has one
     * value or the one that it is missing, so that no row reaches into the next. */
    struct parquet_block *block = maker->block;
    size_t cells = (size_t)block->rows * maker->format->numbers;
    if (!maker->format->categories)
        batch_reserve(maker->batch, cells);
    else if (block->number_capacity < cells)
        block->number =
            memory_resize(block->number, block->number_capacity = cells, sizeof *block->number);
    if (block->odd_capacity < block->rows)
        block->odd = memory_resize(block->odd, block->odd_capacity = block->rows, 1);
    memset(block->odd, 0, block->rows);
    for (uint32_t first = 0; first < rows; first += step)
        fill_some(maker, first, rows - first < step ? rows : first + step);
}

/* ---- categories, column by column ---- */

/* What the values of a part mean; NULL: their texts tell. */
static const struct category *categories_of(const struct row_maker *maker,
                                            const struct page_rows *part) {
    return part->page->values.index ? part->page->dictionary->entries.category
                                    : maker->reader->truths[part->column].category;
}

/* Puts to every `stride`-th place what a cell is; NULL: its text must be looked at. */
static void fill_categories_of(const struct row_maker *maker, const struct page_rows *part,
                               const struct category **to, size_t stride) {
    const struct parquet_values *values = &part->page->values;
    const struct category *category = categories_of(maker, part);
    const struct category *missing = &maker->reader->missing[part->column];
    for (uint32_t i = part->first; i < part->first + part->count; i++, to += stride) {
        *to = NULL;
        if (values->present && !values->present[i])
            *to = missing;
        else if (category)
            *to = category + (values->index ? values->index[i] : values->data[i]);
        if (*to && (*to)->length > CATEGORY_BYTES_MAX)
            *to = NULL;
    }
}

static void fill_categories(struct row_maker *maker) {
    struct parquet_block *block = maker->block;
    size_t stride = maker->category_count, cells = (size_t)block->rows * stride;
    if (block->category_capacity < cells)
        block->category = memory_resize(block->category, block->category_capacity = cells,
                                        sizeof *block->category);
    for (uint32_t i = 0; i < maker->other_count; i++) {
        const struct column_rows *of = &maker->others[i];
        const struct page_rows *part = of->part;
        if (maker->format->column[of->column].kind != COLUMN_CATEGORY)
            continue;
        assert(of->place < stride);
        fill_categories_of(maker, part, block->category + of->place, stride);
        for (; part->at + part->count < block->rows; part++)
            fill_categories_of(maker, part + 1, block->category + (part[1].at * stride + of->place),
                               stride);
    }
}

/* ---- labels, weights, offsets and exposures ---- */

/* The numbers of the columns that are none of the table's: they stand after those of the rows. */
static void fill_others(struct row_maker *maker) {
    struct parquet_block *block = maker->block;
    size_t cells = (size_t)block->rows * maker->other_count;
    if (block->other_capacity < cells)
        block->other =
            memory_resize(block->other, block->other_capacity = cells, sizeof *block->other);
    for (uint32_t i = 0; i < maker->other_count; i++) {
        struct column_rows *of = &maker->others[i];
        if (!(maker->format->column[of->column].kind == COLUMN_LABEL ||
              property_of(maker->format->column[of->column].kind) < ROW_NUMBERS))
            continue;
        of->number = block->other + (size_t)i * block->rows;
        const struct page_rows *part = of->part;
        fill_part(part, 0, part->count, of->number, 1);
        for (; part->at + part->count < block->rows; part++)
            fill_part(part + 1, 0, part[1].count, of->number + part[1].at, 1);
    }
}

/* ---- rows ---- */

/* Numbers that are missing, or none. */
static bool take_odd_numbers(struct row_maker *maker, struct table_row *row, uint32_t at) {
    const double *number = row_numbers(row);
    for (uint32_t i = 0; i < maker->number_count; i++) {
        if (!isnan(number[maker->numbers[i].place]))
            continue;
        const struct page_rows *part = part_of(&maker->numbers[i], at);
        if (maker->null_is_missing && is_null(part, at))
            row->missing++;
        else if (!take_text(maker, row, part, at))
            return false;
    }
    return true;
}

/* The texts of the cells that go along with a row. */
static bool carry(struct row_maker *maker, struct table_row *row, uint32_t at) {
    const struct format *format = maker->format;
    const char **carried =
        maker->batch->carried + (size_t)maker->batch->row_count * format->carried_count;
    for (uint32_t k = 0; k < format->carried_count; k++) {
        carried[k] = row_folder_cell(format, maker->batch, format->carried[k]);
        for (uint32_t i = 0; i < maker->count; i++) {
            if (maker->all[i].column != format->carried[k])
                continue;
            carried[k] = cell_text(maker, part_of(&maker->all[i], at), at);
            if (!carried[k])
                return reject_zero(row, format->carried[k]);
        }
    }
    return true;
}

static bool make_row(struct row_maker *maker, uint32_t at) {
    const struct format *format = maker->format;
    const struct parquet_block *block = maker->block;
    assert(at < block->rows);
    struct table_row row = row_begin(format, maker->batch, block->first_row + at);
    const double *number = numbers_of(maker, at);
    if (format->numbers && number != row_numbers(&row))
        memmove(row_numbers(&row), number, format->numbers * sizeof *number);
    if (format->carried_count && !carry(maker, &row, at))
        return false;
    row.missing = block->odd[at] & ODD_MISSING;
    if (block->odd[at] & ODD_TEXT && !take_odd_numbers(maker, &row, at))
        return false;
    bool known = take_categories(maker, &row, at);
    struct column_rows *left = known ? maker->rest : maker->others;
    for (uint32_t i = 0; i < (known ? maker->rest_count : maker->other_count); i++)
        if (!take_other(maker, &row, &left[i], at))
            return false;
    return row_take_folders(&row) && row_end(&row);
}

/* Where each column of the block begins. */
static void find_columns(struct row_maker *maker) {
    const struct parquet_block *block = maker->block;
    maker->all = memory_new(block->parts, sizeof *maker->all);
    maker->numbers = memory_new(block->parts, sizeof *maker->numbers);
    maker->filled = memory_new(block->parts, sizeof *maker->filled);
    maker->others = memory_new(block->parts, sizeof *maker->others);
    maker->rest = memory_new(block->parts, sizeof *maker->rest);
    for (uint32_t i = 0; i < block->parts; i++) {
        const struct page_rows *part = &block->part[i];
        enum column_kind kind = maker->format->column[part->column].kind;
        struct column_rows rows = {.column = part->column, .part = part};
        if (part->at || maker->reader->cursor[part->column].only_hashed)
            continue;
        if (kind == COLUMN_CATEGORY)
            rows.place = maker->category_count++;
        maker->all[maker->count++] = rows;
        if (kind == COLUMN_NUMBER) {
            rows.place = maker->format->column[part->column].place;
            maker->numbers[maker->number_count] = rows;
            maker->filled[maker->number_count++] = rows;
        } else if (kind != COLUMN_SKIPPED) {
            maker->others[maker->other_count++] = rows;
        }
    }
}

/* What entries of the dictionaries of a block mean. */
static void make_all_entries(struct row_maker *maker) {
    const struct parquet_block *block = maker->block;
    for (uint32_t i = 0; i < block->parts; i++)
        if (block->part[i].page->values.index &&
            !maker->reader->cursor[block->part[i].column].only_hashed)
            parquet_entries_make(maker->reader, maker->format, block->part[i].column,
                                 block->part[i].page->dictionary, make_entries_of);
}

int parquet_reader_parse(struct parquet_reader *reader, const struct format *format,
                         struct parquet_block *block, struct batch *batch) {
    struct row_maker maker = {.reader = reader,
                              .format = format,
                              .block = block,
                              .batch = batch,
                              .null_is_missing = csv_is_missing(format, "", 0)};
    int code = parquet_block_read(reader, block);
    if (code)
        return code;
    batch_clear(batch);
    batch->has_hashes = reader->options.hashes_rows;
    row_prepare_folders(format, batch);
    if (batch->has_hashes)
        parquet_hash_rows(block);
    batch->text_length = 0;
    batch->first_line = block->first_row;
    if (format->carried_count)
        batch_carry_written(batch, format->carried_count, NULL, 0);
    batch->alike = !format->categories;
    find_columns(&maker);
    make_all_entries(&maker);
    fill_numbers(&maker);
    fill_categories(&maker);
    fill_others(&maker);
    /* As the numbers of others are filled in by now, the rest has them, too. */
    for (uint32_t i = 0; i < maker.other_count; i++)
        if (maker.format->column[maker.others[i].column].kind != COLUMN_CATEGORY)
            maker.rest[maker.rest_count++] = maker.others[i];
    for (uint32_t i = 0; i < block->rows && batch->bad_count <= format->options->bad_lines_max;
         i++) {
        batch->row_line = block->first_row + i;
        batch->row_hash = batch->has_hashes ? block->hash[i] : 0;
        make_row(&maker, i);
    }
    free(maker.all);
    free(maker.numbers);
    free(maker.filled);
    free(maker.others);
    free(maker.rest);
    return 0;
}

void parquet_find_constants(struct parquet_reader *reader, const struct format *format) {
    static uint8_t both[] = {0, 1};
    static char null[] = "";
    const struct parquet_values values = {.count = 2, .width = 1, .data = both};
    reader->truths = memory_new(reader->file.columns, sizeof *reader->truths);
    reader->missing = memory_new(reader->file.columns, sizeof *reader->missing);
    for (uint32_t i = 0; i < reader->file.columns; i++) {
        const struct parquet_span span = {&reader->file.column[i], &values};
        if (span.column->refused || format->column[i].kind != COLUMN_CATEGORY)
            continue;
        category_of(format, i, null, &reader->missing[i]);
        reader->missing[i].origin.known = &reader->missing[i].known;
        if (span.column->type == PARQUET_BOOLEAN)
            make_categories(format, i, &span, &reader->truths[i]);
    }
}
