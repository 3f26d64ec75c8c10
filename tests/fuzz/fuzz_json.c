/* JSON Lines: the first byte gives options, the text up to a byte 1 is that of the first file, the
 * rest that of another, which is read by the table of the first. What the strict reader takes,
 * jansson takes, too. */
#include <jansson.h>
#include <stdlib.h>

#include "data/text/json.h"
#include "tests/fuzz/fuzz_text.h"

static void check_value(const struct json_token *token, const json_t *value) {
    const bool fits[] = {[CELL_ABSENT] = false,
                         [CELL_NULL] = json_is_null(value),
                         [CELL_FALSE] = json_is_false(value),
                         [CELL_TRUE] = json_is_true(value),
                         [CELL_NUMBER] = json_is_number(value),
                         [CELL_STRING] = json_is_string(value),
                         [CELL_LIST] = json_is_array(value),
                         [CELL_OBJECT] = json_is_object(value)};
    if (!fits[token->kind])
        abort();
    if (token->kind != CELL_STRING)
        return;
    char *text = memory_new(token->length + 1, 1);
    size_t length = json_write(token, '\0', text);
    if (length > token->length || strlen(text) != length ||
        strcmp(text, json_string_value(value)) != 0)
        abort();
    free(text);
}

/* Of a key that stands twice jansson keeps the last; it refuses numbers beyond its range. */
static void check_object(const char *line, const char *end) {
    struct json_reader reader = json_reader_of(line, end);
    struct json_token key, value;
    int more;
    while ((more = json_next(&reader, &key, &value)) > 0)
        ;
    json_error_t error;
    json_t *object = json_loadb(line, (size_t)(end - line), 0, &error);
    enum json_error_code why = object ? json_error_unknown : json_error_code(&error);
    if (!object && !more && why != json_error_numeric_overflow)
        abort();
    reader = json_reader_of(line, end);
    while (object && !more && json_next(&reader, &key, &value) > 0) {
        char *text = memory_new(key.length + 1, 1);
        json_write(&key, '\0', text);
        struct json_reader again = reader;
        struct json_token other, ignored;
        bool last = true;
        while (last && json_next(&again, &other, &ignored) > 0) {
            char *next = memory_new(other.length + 1, 1);
            json_write(&other, '\0', next);
            last = strcmp(next, text) != 0;
            free(next);
        }
        if (last)
            check_value(&value, json_object_get(object, text));
        free(text);
    }
    json_decref(object);
}

static struct source_options options_of(uint8_t bits) {
    static const char *const some[] = {"a", NULL}, *const others[] = {"2", NULL},
                             *const dates[] = {"b", NULL};
    return (struct source_options){.format = bits & 1 ? FORMAT_JSONL : FORMAT_AUTO,
                                   .table.trim = bits & 2,
                                   .table.hash_bits = bits & 4 ? 5 : 0,
                                   .table.numbers_only = (bits & 48) == 48,
                                   .table.categories = bits & 16 ? some : NULL,
                                   .table.text = bits & 8 ? others : NULL,
                                   .table.skip = bits & 32 ? others : NULL,
                                   .property.column[ROW_WEIGHT] = bits & 64 ? "w" : NULL,
                                   .table.dates = bits & 128 ? dates : NULL,
                                   .carried = bits & 2 ? others : NULL,
                                   .table.missing_columns =
                                       bits & 4 ? MISSING_COLUMNS_MISSING : MISSING_COLUMNS_ERROR,
                                   .label.optional = bits & 8,
                                   .bad_lines_max = UINT64_MAX};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct source_options options = options_of(length ? data[0] : 0);
    const uint8_t *text = data + (length > 0), *end = data + length;
    const uint8_t *behind = length > 1 ? memchr(text, 1, length - 1) : NULL;
    struct table *table = NULL;
    check_object((const char *)text, (const char *)(behind ? behind : end));
    fuzz_parse(text, (size_t)((behind ? behind : end) - text), &options, &table);
    if (behind && table) {
        options.table.known = table;
        fuzz_parse(behind + 1, (size_t)(end - behind - 1), &options, NULL);
    }
    table_free(table);
    return 0;
}
