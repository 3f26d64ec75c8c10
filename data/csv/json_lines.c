/* JSON Lines: an object on each line is a row of a table, and its keys are the columns; those of an
 * object in it as KEY.KEY.
 *
 * A line is written anew as a record of CSV, with the cells in the order of the columns, and read
 * as one. So whatever tables can do holds for both, and the same cells give the same model. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/csv/layout.h"
#include "data/source/dictionary.h"
#include "data/text/json.h"

/* So many cells a block has at most, where lines are short and columns many. */
#define CELLS_OF_BLOCK (1u << 25)
#define BLOCK_BYTES_MIN (4u << 10)

/* So many cells are looked at to find out the kinds of columns. */
#define CELLS_LOOKED_AT (1u << 23)

struct json_columns {
    struct text_dictionary keys; /* by column */
    bool ignores;                /* other keys are passed over */
    const char *const *whole;    /* keys that are not taken apart, as they are left out; or NULL */
    bool flat;                   /* none is: columns to leave out are told by number */
    bool deep;                   /* some object was */
    struct bytes met; /* of each key, while they are found: whether a value is not null */
};

void json_columns_free(struct json_columns *columns) {
    if (columns) {
        text_dictionary_release(&columns->keys);
        bytes_release(&columns->met);
    }
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

/* The key as a text, in `batch`, after the first bytes there, which lead to the object that it is
 * in; its memory is used again for the next key. */
static const char *key_text(struct batch *batch, size_t path, const struct json_token *key) {
    batch->key.length = path;
    char *text = bytes_extend(&batch->key, key->length + 1);
    text[json_write(key, '\0', text)] = '\0';
    return (const char *)batch->key.data;
}

/* Whether the members of an object are columns, and not the object. */
static bool is_taken_apart(const struct json_columns *columns, const struct json_token *value,
                           const char *key) {
    if (value->kind != CELL_OBJECT || columns->flat)
        return false;
    const char *const *name = columns->whole;
    while (name && *name && strcmp(*name, key) != 0)
        name++;
    return !name || !*name;
}

/* Reads the object that is a value of `line`, and makes its key a path. */
static struct json_reader enter_object(struct batch *batch, const struct json_token *value,
                                       const char *line, size_t *path) {
    struct json_reader reader = json_reader_of(value->text, value->text + value->length);
    *path = strlen((const char *)batch->key.data);
    batch->key.data[(*path)++] = '.';
    reader.first = line; /* places are told in the line */
    return reader;
}

/* The column of a key, which mostly is the one after that of the key before. */
static uint32_t column_of(const struct text_dictionary *keys, uint32_t likely, const char *key) {
    if (likely < keys->count && !strcmp(text_dictionary_get(keys, likely), key))
        return likely;
    return text_dictionary_find(keys, key);
}

static bool reject_json(struct batch *batch, uint64_t number, const struct json_reader *reader,
                        const char *text, const char *end) {
    if (line_has_mark(text))
        return batch_reject(batch, number, MARK_WITHIN);
    bool whole_file = end - text < 3 || *text == '[';
    return batch_reject(batch, number, "no JSON that is read, at byte %zu: %s%s",
                        json_place(reader), reader->why,
                        number == 1 && whole_file
                            ? "; of an array or of objects of several lines jq -c '.[]', or jq -c "
                              "., makes one object a line"
                            : "");
}

/* Whether columns are members of an object of this key. */
static bool is_path(const struct text_dictionary *keys, const char *key) {
    const size_t length = strlen(key);
    for (uint32_t i = 0; i < keys->count; i++) {
        const char *other = text_dictionary_get(keys, i);
        if (!strncmp(other, key, length) && other[length] == '.')
            return true;
    }
    return false;
}

/* A line while its values are read. */
struct json_line {
    const char *text, *end;
    uint64_t number;
    uint32_t column; /* that of the next key, most likely */
};

static bool put_value(const struct json_columns *columns, struct batch *batch,
                      struct json_line *line, const char *key, const char *at,
                      const struct json_token *value) {
    struct json_token *tokens = (void *)batch->tokens.data;
    const size_t place = (size_t)(at - line->text);
    const uint32_t found = column_of(&columns->keys, line->column, key);
    if (found == DICTIONARY_NONE &&
        (columns->ignores || (value->kind == CELL_NULL && is_path(&columns->keys, key))))
        return true;
    if (found == DICTIONARY_NONE)
        return batch_reject(
            batch, line->number,
            "the key \"%.100s\", at byte %zu, is not in the first lines, which tell what the "
            "columns are; list it in csv.numbers, csv.categories, csv.text, csv.dates, csv.amounts "
            "or "
            "csv.skip",
            key, place);
    if (tokens[found].kind != CELL_ABSENT)
        return batch_reject(batch, line->number,
                            "the key \"%.100s\" stands twice, again at byte %zu", key, place);
    tokens[found] = *value;
    line->column = found + 1;
    return true;
}

static bool read_members(const struct json_columns *columns, struct batch *batch,
                         struct json_line *line, struct json_reader reader, size_t path) {
    struct json_token key, value;
    int more;
    while ((more = json_next(&reader, &key, &value)) > 0) {
        const char *text = key_text(batch, path, &key);
        size_t inner_path;
        if (!is_taken_apart(columns, &value, text)) {
            if (!put_value(columns, batch, line, text, key.text, &value))
                return false;
            continue;
        }
        struct json_reader inner = enter_object(batch, &value, line->text, &inner_path);
        if (!read_members(columns, batch, line, inner, inner_path))
            return false;
    }
    return more == 0 || reject_json(batch, line->number, &reader, line->text, line->end);
}

/* Puts the values of a line into batch->tokens, one for each column. */
static bool read_tokens(const struct json_columns *columns, struct batch *batch, const char *text,
                        const char *end, uint64_t number) {
    struct json_line line = {.text = text, .end = end, .number = number};
    memset(batch->tokens.data, 0, columns->keys.count * sizeof(struct json_token));
    return read_members(columns, batch, &line, json_reader_of(text, end), 0);
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
    for (uint32_t i = 0; i < format->own; i++) {
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
    memset(behind, 0, TEXT_END_BYTES); /* of which the next record takes the place */
    if (format->carried_count)
        memcpy(batch->copy + (record - batch->records), record, (size_t)(behind - record));
    return csv_parse_line(format, batch, record, behind, number, number);
}

/* ---- the columns of a file ---- */

/* Adds the keys of an object; an error of reading it is left in the reader. */
static int add_members(struct json_columns *columns, struct batch *batch, const char *line,
                       struct json_reader *reader, size_t path) {
    struct json_token key, value;
    int more;
    while ((more = json_next(reader, &key, &value)) > 0) {
        const char *text = key_text(batch, path, &key);
        if (is_taken_apart(columns, &value, text)) {
            size_t inner_path;
            struct json_reader inner = enter_object(batch, &value, line, &inner_path);
            columns->deep = true;
            add_members(columns, batch, line, &inner, inner_path);
        } else {
            const uint32_t column = text_dictionary_add(&columns->keys, text);
            if (column == columns->met.length)
                bytes_put_u8(&columns->met, 0);
            columns->met.data[column] |= value.kind != CELL_NULL;
        }
    }
    return more;
}

/* Adds the keys of all lines, and returns how many are read; the batch gets the reasons why others
 * are not. */
static uint64_t add_keys(struct json_columns *columns, struct batch *batch, const char *text,
                         size_t length) {
    const char *end = text + length;
    uint64_t number = 1, read = 0;
    for (const char *line = text; line < end; number++) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        line_end = line_end ? line_end : end;
        struct json_reader reader = json_reader_of(line, line_end);
        bool blank = true;
        for (const char *p = line; p < line_end && blank; p++)
            blank = is_blank(*p) || *p == '\r';
        if (!blank && add_members(columns, batch, line, &reader, 0) < 0)
            reject_json(batch, number, &reader, line, line_end);
        else
            read += !blank;
        line = line_end + 1;
    }
    if (columns->deep) {
        /* A null that stands where other lines have an object is no column. */
        struct text_dictionary all = columns->keys;
        text_dictionary_init(&columns->keys);
        for (uint32_t i = 0; i < all.count; i++) {
            const char *key = text_dictionary_get(&all, i);
            if (columns->met.data[i] || !is_path(&all, key))
                text_dictionary_add(&columns->keys, key);
        }
        text_dictionary_release(&all);
    }
    return read;
}

/* Adds the columns of one option that it names and no folder gives. */
static void add_named(struct json_columns *columns, const struct folder_options *folders,
                      const char *const *names) {
    for (; names && *names; names++)
        if (!csv_is_number(*names) && !source_has_folder(folders, *names))
            text_dictionary_add(&columns->keys, *names);
}

/* Adds columns that are known although the first lines lack them. A job that lists several files
 * may name columns of others. */
static void add_known(struct json_columns *columns, const struct source_options *options) {
    const struct table_options *named = &options->table;
    const struct table *table = named->known;
    const char *const *const lists[] = {named->numbers, named->categories, named->text,
                                        named->dates,   named->amounts,    named->skip};
    for (size_t i = 0; !table && !named->adds_columns && i < sizeof lists / sizeof *lists; i++)
        add_named(columns, &options->folders, lists[i]);
    if (!table || named->missing_columns != MISSING_COLUMNS_MISSING || !table_is_named(table))
        return;
    for (uint32_t i = 0; i < table->columns; i++)
        if (table_reads(&table->column[i]) && !table->column[i].is_part &&
            !source_has_folder(&options->folders, table->column[i].name))
            text_dictionary_add(&columns->keys, table->column[i].name);
}

/* Writes a name as a cell of CSV in quotes. */
static void write_quoted(struct bytes *sample, const char *name) {
    bytes_put_u8(sample, '"');
    for (; *name; name++) {
        if (*name == '"')
            bytes_put_u8(sample, '"');
        bytes_put_u8(sample, (uint8_t)*name);
    }
    bytes_put_u8(sample, '"');
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
        write_quoted(sample, text_dictionary_get(&columns->keys, i));
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

/* Without keys there are no columns, and none are to be made of the beginnings of lines all of
 * which are malformed, as where a program writes them in its own way. */
static int no_keys(const char *path, const struct batch *batch) {
    if (batch->bad_count)
        return error_set(ERROR_DATA, "%s:%llu: %s", path, (unsigned long long)batch->bad->line,
                         batch->bad->why);
    return error_set(ERROR_DATA, "%s: no line of the first has a key", path);
}

int json_lines_find(struct format *format, const char *path, const char *text, size_t length) {
    const struct source_options *options = format->options;
    const struct table *table = options->table.known;
    if (table && !table_is_named(table))
        return error_set(ERROR_DATA,
                         "%s: the columns of the data that was trained on have no names, which the "
                         "keys of JSON need; train on data with a header line",
                         path);
    struct json_columns *columns = format->keys = memory_new(1, sizeof *columns);
    struct batch batch;
    struct bytes sample;
    columns->whole = options->table.skip;
    for (const char *const *name = options->table.skip; name && *name; name++)
        columns->flat |= csv_is_number(*name);
    batch_init(&batch);
    bytes_init(&sample);
    text_dictionary_init(&columns->keys);
    bytes_init(&columns->met);
    const bool some = add_keys(columns, &batch, text, length) > 0;
    const bool passed = batch.bad_count <= options->bad_lines_max;
    int code = columns->keys.count && (some || passed) ? 0 : no_keys(path, &batch);
    if (!code) {
        format->keys_met = columns->keys.count;
        add_known(columns, options);
        write_sample(columns, &batch, text, length, &sample);
        bytes_put_u8(&sample, 0);
        char *first = (char *)sample.data, *end = strchr(first, '\0');
        const struct record_rule rule = {.delimiters = ","};
        char *behind = record_end(&rule, first, end);
        const struct text_line names = {first, (size_t)(behind - first)},
                               rest = {behind + 1, (size_t)(end - behind - 1)};
        code = csv_layout_find(format, path, 1, &names, &rest, &rest);
    }
    columns->ignores = table && !options->table.adds_columns;
    batch_release(&batch);
    bytes_release(&sample);
    return code;
}

size_t json_lines_block(const struct format *format) {
    size_t bytes = (size_t)3 * (CELLS_OF_BLOCK / format->columns); /* a line has 3 at least */
    return bytes < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : bytes;
}
