/* JSON Lines: a flat object on each line is a row of a table, and its keys are the columns.
 *
 * A line is written anew as a record of CSV, with the cells in the order of the columns, and read
 * as one. So whatever tables can do holds for both, and the same cells give the same model. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dictionary.h"
#include "data/format.h"
#include "data/json.h"

/* So many cells a block has at most, where lines are short and columns many. */
#define CELLS_OF_BLOCK (1u << 25)
#define BLOCK_BYTES_MIN (4u << 10)

/* So many cells are looked at to find out the kinds of columns. */
#define CELLS_LOOKED_AT (1u << 23)

struct json_columns {
    struct text_dictionary keys; /* by column */
    bool ignores;                /* other keys are passed over */
};

void json_columns_free(struct json_columns *columns) {
    if (columns)
        text_dictionary_release(&columns->keys);
    free(columns);
}

bool json_lines_begin(const char *line, size_t length) {
    const char *p = line, *end = line + length;
    while (p < end && is_blank(*p))
        p++;
    bool list = p < end && *p == '[', object = p < end && *p == '{';
    if (!list && !object)
        return false;
    for (p++; p < end && is_blank(*p);)
        p++;
    return p == end || (object ? *p == '"' || *p == '}' : *p == '{');
}

/* ---- a line as a record ---- */

/* The key as a text, in `batch`; its memory is used again for the next key. */
static const char *key_text(struct batch *batch, const struct json_token *key) {
    bytes_clear(&batch->key);
    char *text = bytes_extend(&batch->key, key->length + 1);
    text[json_write(key, '\0', text)] = '\0';
    return text;
}

/* The column of a key, which mostly is the one behind that of the key before. */
static uint32_t column_of(const struct text_dictionary *keys, uint32_t likely, const char *key) {
    if (likely < keys->count && !strcmp(text_dictionary_get(keys, likely), key))
        return likely;
    return text_dictionary_find(keys, key);
}

static bool reject_json(struct batch *batch, uint64_t number, const struct json_reader *reader,
                        const char *text, const char *end) {
    bool whole_file = end - text < 3 || *text == '[';
    return batch_reject(batch, number, "no JSON that is read, at byte %zu: %s%s",
                        json_place(reader), reader->why,
                        number == 1 && whole_file
                            ? "; of an array or of objects of several lines jq -c '.[]', or jq -c "
                              "., makes one object a line"
                            : "");
}

/* Puts the values of a line into batch->tokens, one for each column. */
static bool read_tokens(const struct json_columns *columns, struct batch *batch, const char *line,
                        const char *end, uint64_t number) {
    struct json_token *tokens = (void *)batch->tokens.data, key, value;
    struct json_reader reader = json_reader_of(line, end);
    uint32_t count = columns->keys.count, column = 0;
    int more;
    memset(tokens, 0, count * sizeof *tokens);
    while ((more = json_next(&reader, &key, &value)) > 0) {
        const char *text = key_text(batch, &key);
        size_t place = (size_t)(key.text - line);
        uint32_t found = column_of(&columns->keys, column, text);
        if (found == DICTIONARY_NONE && columns->ignores)
            continue;
        if (found == DICTIONARY_NONE)
            return batch_reject(
                batch, number,
                "the key \"%.100s\", at byte %zu, is not in the first lines, which tell what the "
                "columns are; list it in csv.numbers, csv.categories, csv.text, csv.dates or "
                "csv.skip",
                text, place);
        if (tokens[found].kind != CELL_ABSENT)
            return batch_reject(batch, number, "the key \"%.100s\" stands twice, again at byte %zu",
                                text, place);
        tokens[found] = value;
        column = found + 1;
    }
    return more == 0 || reject_json(batch, number, &reader, line, end);
}

/* Texts are quoted: blanks at their ends count, as in CSV. Of what is nested nobody reads the cell.
 */
static char *write_cell(const struct json_token *token, char *to) {
    if (token->kind == CELL_ABSENT || token->kind == CELL_NULL || token->kind >= CELL_LIST)
        return to;
    if (token->kind != CELL_STRING) {
        memcpy(to, token->text, token->length);
        return to + token->length;
    }
    *to++ = '"';
    to += json_write(token, '"', to);
    *to++ = '"';
    return to;
}

/* The most bytes that the records of a text have. */
static size_t records_bound(const struct json_columns *columns, const char *text, size_t length) {
    size_t lines = 1;
    for (const char *p = text, *end = text + length;
         p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return length + lines * ((size_t)columns->keys.count + 4) + TEXT_END_BYTES;
}

/* An empty line would be none. */
static char *write_record(const struct json_columns *columns, const struct batch *batch, char *to) {
    const struct json_token *tokens = (const void *)batch->tokens.data;
    char *first = to;
    for (uint32_t i = 0; i < columns->keys.count; i++) {
        if (i)
            *to++ = ',';
        to = write_cell(&tokens[i], to);
    }
    if (to == first) {
        *to++ = '"';
        *to++ = '"';
    }
    return to;
}

static void reserve_tokens(const struct json_columns *columns, struct batch *batch) {
    bytes_clear(&batch->tokens);
    bytes_extend(&batch->tokens, columns->keys.count * sizeof(struct json_token));
}

void json_lines_start(const struct format *format, struct batch *batch) {
    size_t bytes = records_bound(format->keys, batch->text, batch->text_length);
    reserve_tokens(format->keys, batch);
    if (batch->records_capacity < bytes)
        batch->records = memory_resize(batch->records, batch->records_capacity = bytes, 1);
    batch->records_length = 0;
    if (format->carried_count)
        batch_carry_written(batch, format->carried_count, batch->records, bytes);
}

/* Refuses what no cell can be. */
static bool check_tokens(const struct format *format, struct batch *batch, const char *line,
                         uint64_t number) {
    const struct json_token *tokens = (const void *)batch->tokens.data;
    for (uint32_t i = 0; i < format->columns; i++) {
        const struct json_token *token = &tokens[i];
        if (token->kind >= CELL_LIST && format->column[i].kind != COLUMN_SKIPPED)
            return batch_reject(
                batch, number,
                "column %u (%.100s), at byte %zu, holds %s: a cell is a number, a text, a truth "
                "value or null; leave the column out with csv.skip",
                i + 1, format->names[i], (size_t)(token->text - line) + 1,
                token->kind == CELL_LIST ? "a list" : "an object");
    }
    return true;
}

bool json_lines_parse(const struct format *format, struct batch *batch, char *line, char *end,
                      uint64_t number) {
    if (!read_tokens(format->keys, batch, line, end, number) ||
        !check_tokens(format, batch, line, number))
        return false;
    char *record = batch->records + batch->records_length;
    char *behind = write_record(format->keys, batch, record);
    batch->records_length += (size_t)(behind - record) + 1;
    assert(batch->records_length + TEXT_END_BYTES <= batch->records_capacity + 1);
    memset(behind, 0, 1);
    if (format->carried_count)
        memcpy(batch->copy + (record - batch->records), record, (size_t)(behind - record));
    return csv_parse_line(format, batch, record, behind, number, number);
}

/* ---- the columns of a file ---- */

/* Adds the keys of all lines that are read; the reason why the first other is not goes to `why`. */
static void add_keys(struct json_columns *columns, struct batch *batch, const char *text,
                     size_t length) {
    const char *end = text + length;
    uint64_t number = 1;
    for (const char *line = text; line < end; number++) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        struct json_token key, value;
        line_end = line_end ? line_end : end;
        struct json_reader reader = json_reader_of(line, line_end);
        int more = 0;
        bool blank = true;
        for (const char *p = line; p < line_end && blank; p++)
            blank = is_blank(*p) || *p == '\r';
        while (!blank && (more = json_next(&reader, &key, &value)) > 0)
            text_dictionary_add(&columns->keys, key_text(batch, &key));
        if (more < 0)
            reject_json(batch, number, &reader, line, line_end);
        line = line_end + 1;
    }
}

static void add_names(struct json_columns *columns, const char *const *names) {
    for (; names && *names; names++)
        if (!csv_is_number(*names))
            text_dictionary_add(&columns->keys, *names);
}

/* Adds columns that are known although the first lines lack them. A job that tells of several files
 * may name columns of others. */
static void add_known(struct json_columns *columns, const struct source_options *options) {
    const struct table *table = options->table;
    if (!table && !options->adds_columns) {
        const char *const *const lists[] = {options->numbers, options->categories, options->text,
                                            options->dates, options->skip};
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            add_names(columns, lists[i]);
    }
    if (table && options->missing_columns == MISSING_COLUMNS_MISSING)
        for (uint32_t i = 0; table_is_named(table) && i < table->columns; i++)
            if (table_reads(&table->column[i]) && !table->column[i].is_part)
                text_dictionary_add(&columns->keys, table->column[i].name);
}

static void append_name(struct bytes *text, const char *name) {
    bytes_put_u8(text, '"');
    for (; *name; name++) {
        if (*name == '"')
            bytes_put_u8(text, '"');
        bytes_put_u8(text, (uint8_t)*name);
    }
    bytes_put_u8(text, '"');
}

/* Writes the keys, and below them the lines that tell what kinds the columns have. */
static void write_sample(const struct json_columns *columns, struct batch *batch, const char *text,
                         size_t length, struct bytes *sample) {
    uint32_t count = columns->keys.count;
    uint64_t left = CELLS_LOOKED_AT / count + 1;
    const char *end = text + length;
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            bytes_put_u8(sample, ',');
        append_name(sample, text_dictionary_get(&columns->keys, i));
    }
    bytes_put_u8(sample, '\n');
    reserve_tokens(columns, batch);
    for (const char *line = text; line < end && left; left--) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        line_end = line_end ? line_end : end;
        if (read_tokens(columns, batch, line, line_end, 1)) {
            size_t room = records_bound(columns, line, (size_t)(line_end - line));
            char *record = bytes_extend(sample, room);
            char *behind = write_record(columns, batch, record);
            *behind++ = '\n';
            sample->length -= room - (size_t)(behind - record);
        }
        line = line_end + 1;
    }
}

/* Without keys there are no columns. */
static int no_keys(const char *path, const struct batch *batch) {
    if (batch->bad_count)
        return error_set(ERROR_DATA, "%s:%llu: %s", path, (unsigned long long)batch->bad->line,
                         batch->bad->why);
    return error_set(ERROR_DATA, "%s: no line of the first has a key", path);
}

int json_lines_find(struct format *format, const char *path, const char *text, size_t length) {
    const struct source_options *options = format->options;
    const struct table *table = options->table;
    if (table && !table_is_named(table))
        return error_set(ERROR_DATA,
                         "%s: the columns of the data that was trained on have no names, which the "
                         "keys of JSON need; train on data with a header line",
                         path);
    struct json_columns *columns = format->keys = memory_new(1, sizeof *columns);
    struct batch batch;
    struct bytes sample;
    batch_init(&batch);
    bytes_init(&sample);
    text_dictionary_init(&columns->keys);
    add_keys(columns, &batch, text, length);
    int code = columns->keys.count ? 0 : no_keys(path, &batch);
    if (!code) {
        format->keys_met = columns->keys.count;
        add_known(columns, options);
        write_sample(columns, &batch, text, length, &sample);
        bytes_put_u8(&sample, 0);
        char *first = (char *)sample.data, *end = strchr(first, '\0');
        const struct record_rule rule = {","};
        char *behind = record_end(&rule, first, end);
        const struct text_line names = {first, (size_t)(behind - first)},
                               rest = {behind + 1, (size_t)(end - behind - 1)};
        code = csv_layout_find(format, path, 1, &names, &rest, &rest);
    }
    columns->ignores = table && !options->adds_columns;
    batch_release(&batch);
    bytes_release(&sample);
    return code;
}

size_t json_lines_block(const struct format *format) {
    size_t bytes = (size_t)3 * (CELLS_OF_BLOCK / format->columns); /* a line has 3 at least */
    return bytes < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : bytes;
}
