/* Tables: the first byte gives options, the text up to a byte 1 is that of the first file, the rest
 * that of another, which is read by the table of the first, and then as a first file whose columns
 * are numbered as those. */
#include <stdlib.h>

#include "tests/fuzz/fuzz_text.h"

/* A table must come back as it was stored. */
static void check_stored(const struct table *table) {
    struct table *again;
    char *text = table_text(table);
    if (table_of_text(text, "fuzz", &again))
        abort();
    char *same = table_text(again);
    if (strcmp(text, same) != 0)
        abort();
    table_free(again);
    free(same);
    free(text);
}

/* Columns keep their numbers; those of the file have one each. */
static void check_numbered(const struct table *table, const struct table *order) {
    if (!table_is_named(table) || !table_is_named(order))
        return;
    for (uint32_t i = 0; i < order->columns; i++)
        if (i >= table->columns || strcmp(table->column[i].name, order->column[i].name) != 0)
            abort();
    for (uint32_t i = 0; i < table->columns; i++)
        for (uint32_t j = 0; j < i; j++)
            if (table->column[i].place == table->column[j].place &&
                table->column[i].place != COLUMN_NOWHERE)
                abort();
}

static struct source_options options_of(uint8_t bits) {
    static const char *const some[] = {"a", NULL}, *const others[] = {"2", NULL},
                             *const dates[] = {"b", "d", NULL}, *const words[] = {"-", "", NULL};
    return (struct source_options){.format = FORMAT_CSV,
                                   .syntax.header = (enum csv_header)(bits % 3),
                                   .table.trim = bits & 4,
                                   .table.hash_bits = bits & 8 ? 5 : 0,
                                   .table.numbers_only = (bits & 48) == 48,
                                   .table.categories = bits & 16 ? some : NULL,
                                   .table.text = bits & 4 ? others : NULL,
                                   .words.ngrams = bits & 3,
                                   .words.lowercase = bits & 8,
                                   .table.skip = bits & 32 ? others : NULL,
                                   .property.column[ROW_WEIGHT] = bits & 64 ? "w" : NULL,
                                   .table.dates = bits & 64 ? dates : NULL,
                                   .table.date_format = bits & 128 ? "epoch" : NULL,
                                   .table.missing = bits & 128 ? words : NULL,
                                   .label.optional = bits & 1,
                                   .bad_lines_max = UINT64_MAX};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct source_options options = options_of(length ? data[0] : 0);
    const uint8_t *text = data + (length > 0), *end = data + length;
    const uint8_t *behind = length > 1 ? memchr(text, 1, length - 1) : NULL;
    size_t first = (size_t)((behind ? behind : end) - text);
    struct table *table, *numbered;
    fuzz_parse(text, first, &options, &table);
    if (!table)
        return 0;
    check_stored(table);
    const uint8_t *other = behind ? behind + 1 : text;
    options.table.known = table;
    fuzz_parse(other, (size_t)(end - other), &options, NULL);
    options.table.known = NULL;
    options.table.order = table;
    fuzz_parse(other, (size_t)(end - other), &options, &numbered);
    if (numbered) {
        check_stored(numbered);
        check_numbered(numbered, table);
    }
    table_free(numbered);
    table_free(table);
    return 0;
}
