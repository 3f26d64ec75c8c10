/* The footer of a Parquet file: its columns, and where their values are in each group of rows. */
#define _GNU_SOURCE
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/parquet/parquet.h"
#include "data/text/zone.h"

#define MAGIC_BYTES 4
#define ELEMENT_BYTES_MIN 4 /* of the schema: a name, a type or children, and the end */
#define TAIL_BYTES 8        /* how long the footer before is, and the magic again */

bool parquet_begins(const uint8_t *bytes, size_t length) {
    bool text = true; /* whose first line may begin with any letters */
    if (length < MAGIC_BYTES || (memcmp(bytes, "PAR1", 4) != 0 && memcmp(bytes, "PARE", 4) != 0))
        return false;
    for (size_t i = MAGIC_BYTES; i < length && text; i++)
        text = bytes[i] >= ' ' || memchr("\t\r\n", bytes[i], 3);
    return !text;
}

int parquet_damaged(const struct parquet_file *file, const struct parquet_column *column,
                    const char *what) {
    if (!column)
        return error_set(ERROR_DATA, "%s: the Parquet file is damaged: %s", file->path, what);
    return error_set(ERROR_DATA, "%s: the Parquet file is damaged: column \"%.100s\": %s",
                     file->path, column->name, what);
}

int parquet_read(const struct parquet_file *file, uint64_t offset, void *to, size_t length) {
    uint8_t *at = to;
    while (length) {
        ssize_t got = pread(file->descriptor, at, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(ERROR_IO, "cannot read %s", file->path);
        if (got == 0)
            return error_set(ERROR_DATA,
                             "%s became shorter while it was read: start again when it "
                             "is complete",
                             file->path);
        assert((size_t)got <= length);
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return 0;
}

/* ---- the schema ---- */

/* An element of the schema: a tree, in the order in which it is walked from its root on. */
struct element {
    int64_t type, repetition, children, length, converted, scale;
    const char *name;
    size_t name_length;
    /* The logical type, which is told by which field of a union is there. */
    int64_t logical, unit, bits; /* -1: none */
    bool utc, is_signed;
};

enum { LOGICAL_TEXT = 1, LOGICAL_ENUM = 4, LOGICAL_DECIMAL, LOGICAL_DATE, LOGICAL_TIME };
enum { LOGICAL_STAMP = 8, LOGICAL_INTEGER = 10, LOGICAL_NULL, LOGICAL_JSON, LOGICAL_BSON };
enum { LOGICAL_UUID = 14, LOGICAL_HALF };
enum { CONVERTED_TEXT, CONVERTED_ENUM = 4, CONVERTED_DECIMAL, CONVERTED_DATE, CONVERTED_TIME };
enum { CONVERTED_TIME_US = 8, CONVERTED_STAMP, CONVERTED_STAMP_US, CONVERTED_UNSIGNED = 11 };
enum { CONVERTED_SIGNED = 15, CONVERTED_JSON = 19, CONVERTED_BSON, CONVERTED_INTERVAL };

static void read_unit(struct thrift *thrift, uint8_t type, struct element *element) {
    int16_t id = 0;
    uint8_t of;
    if (!thrift_struct(thrift, type))
        return;
    while ((of = thrift_field(thrift, &id))) {
        element->unit = id;
        thrift_skip(thrift, of);
    }
}

/* What the logical types have in them: fields of all do not collide in what they mean here. */
static void read_logical_details(struct thrift *thrift, struct element *element) {
    int16_t id = 0;
    uint8_t type;
    bool timed = element->logical == LOGICAL_TIME || element->logical == LOGICAL_STAMP;
    while ((type = thrift_field(thrift, &id)))
        if (timed && id == 1)
            element->utc = thrift_bool(thrift, type);
        else if (timed && id == 2)
            read_unit(thrift, type, element);
        else if (element->logical == LOGICAL_DECIMAL && id == 1)
            element->scale = thrift_integer(thrift, type);
        else if (element->logical == LOGICAL_INTEGER && id == 1)
            element->bits = thrift_integer(thrift, type);
        else if (element->logical == LOGICAL_INTEGER && id == 2)
            element->is_signed = thrift_bool(thrift, type);
        else
            thrift_skip(thrift, type);
}

static void read_logical(struct thrift *thrift, uint8_t type, struct element *element) {
    int16_t id = 0;
    uint8_t of;
    if (!thrift_struct(thrift, type))
        return;
    while ((of = thrift_field(thrift, &id))) {
        element->logical = id;
        if (thrift_struct(thrift, of))
            read_logical_details(thrift, element);
    }
}

static void read_element(struct thrift *thrift, struct element *element) {
    int64_t *const integers[] = {
        NULL, &element->type,     &element->length,    &element->repetition,
        NULL, &element->children, &element->converted, &element->scale};
    int16_t id = 0;
    uint8_t type;
    *element = (struct element){.type = -1, .converted = -1, .logical = -1, .name = ""};
    while ((type = thrift_field(thrift, &id)))
        if (id == 4)
            element->name = thrift_text(thrift, type, &element->name_length);
        else if (id > 0 && id < (int16_t)(sizeof integers / sizeof *integers))
            *integers[id] = thrift_integer(thrift, type);
        else if (id == 10)
            read_logical(thrift, type, element);
        else
            thrift_skip(thrift, type);
}

/* ---- what a column means ---- */

static void refuse(struct parquet_column *column, const char *why) {
    if (!column->refused)
        column->refused = memory_copy_string(why);
}

static bool holds_integers(const struct parquet_column *column) {
    return column->type == PARQUET_INT32 || column->type == PARQUET_INT64;
}

/* Means this, if it is of a type that can. */
static void set_meaning(struct parquet_column *column, bool can, enum parquet_meaning meaning) {
    column->meaning = meaning;
    if (!can)
        refuse(column, "its logical type does not go with its physical one");
}

static void set_decimal(struct parquet_column *column, const struct element *element) {
    bool bytes = column->type == PARQUET_BYTES || column->type == PARQUET_FIXED;
    set_meaning(column, holds_integers(column) || bytes, PARQUET_DECIMAL);
    if (element->scale < 0 || element->scale > 76)
        refuse(column, "a decimal of a scale that is not 0 to 76");
    else if (column->type == PARQUET_FIXED && column->width > 32)
        refuse(column, "a decimal of more than 32 bytes");
    else
        column->scale = (uint32_t)element->scale;
}

static void set_time(struct parquet_column *column, enum parquet_meaning meaning, int64_t unit,
                     bool utc) {
    static const uint32_t units[] = {0, 1000, 1000000, 1000000000};
    set_meaning(column, holds_integers(column) && (meaning != PARQUET_STAMP || column->width == 8),
                meaning);
    if (unit < 1 || unit > 3)
        refuse(column, "times of a unit that is not known");
    else
        column->unit = units[unit];
    column->utc = utc;
}

static void read_meaning(struct parquet_column *column, const struct element *element) {
    bool bytes = column->type == PARQUET_BYTES || column->type == PARQUET_FIXED;
    switch (element->logical) {
    case LOGICAL_TEXT:
    case LOGICAL_ENUM:
    case LOGICAL_JSON:
        set_meaning(column, bytes, PARQUET_PLAIN);
        break;
    case LOGICAL_DECIMAL:
        set_decimal(column, element);
        break;
    case LOGICAL_DATE:
        set_meaning(column, column->type == PARQUET_INT32, PARQUET_DATE);
        break;
    case LOGICAL_TIME:
        set_time(column, PARQUET_TIME, element->unit, false);
        break;
    case LOGICAL_STAMP:
        set_time(column, PARQUET_STAMP, element->unit, element->utc);
        break;
    case LOGICAL_INTEGER:
        set_meaning(column, holds_integers(column),
                    element->is_signed ? PARQUET_PLAIN : PARQUET_UNSIGNED);
        break;
    case LOGICAL_NULL: /* all are null */
        break;
    case LOGICAL_UUID:
        set_meaning(column, column->type == PARQUET_FIXED && column->width == 16, PARQUET_UUID);
        break;
    case LOGICAL_HALF:
        set_meaning(column, column->type == PARQUET_FIXED && column->width == 2, PARQUET_HALF);
        break;
    default:
        refuse(column, element->logical == LOGICAL_BSON ? "it holds BSON"
                                                        : "its logical type is none that is known");
    }
}

/* Reads the type of a column in files that give it in the older way, as a converted type. */
static void read_converted(struct parquet_column *column, const struct element *element) {
    bool bytes = column->type == PARQUET_BYTES || column->type == PARQUET_FIXED;
    int64_t converted = element->converted;
    if (converted == -1 && column->type == PARQUET_INT96)
        column->meaning = PARQUET_STAMP; /* nothing else was ever kept so */
    else if (converted == -1)
        return;
    else if (converted == CONVERTED_TEXT || converted == CONVERTED_ENUM ||
             converted == CONVERTED_JSON)
        set_meaning(column, bytes, PARQUET_PLAIN);
    else if (converted == CONVERTED_DECIMAL)
        set_decimal(column, element);
    else if (converted == CONVERTED_DATE)
        set_meaning(column, column->type == PARQUET_INT32, PARQUET_DATE);
    else if (converted == CONVERTED_TIME || converted == CONVERTED_TIME_US)
        set_time(column, PARQUET_TIME, converted - CONVERTED_TIME + 1, false);
    else if (converted == CONVERTED_STAMP || converted == CONVERTED_STAMP_US)
        set_time(column, PARQUET_STAMP, converted - CONVERTED_STAMP + 1, true);
    else if (converted >= CONVERTED_UNSIGNED && converted < CONVERTED_SIGNED)
        set_meaning(column, holds_integers(column), PARQUET_UNSIGNED);
    else if (converted >= CONVERTED_SIGNED && converted < CONVERTED_JSON)
        set_meaning(column, holds_integers(column), PARQUET_PLAIN);
    else
        refuse(column, converted == CONVERTED_INTERVAL ? "it holds intervals of time"
                       : converted == CONVERTED_BSON   ? "it holds BSON"
                                                       : "its type is none that is known");
}

static void read_type(struct parquet_column *column, const struct element *element) {
    static const uint32_t widths[PARQUET_TYPES] = {
        [PARQUET_BOOLEAN] = 1, [PARQUET_INT32] = 4, [PARQUET_INT64] = 8,
        [PARQUET_INT96] = 12,  [PARQUET_FLOAT] = 4, [PARQUET_DOUBLE] = 8};
    if (element->type < 0 || element->type >= PARQUET_TYPES) {
        refuse(column, "its physical type is none that is known");
        return;
    }
    column->type = (enum parquet_type)element->type;
    column->width = widths[column->type];
    if (column->type == PARQUET_FIXED) {
        if (element->length < 1 || element->length > (int64_t)PARQUET_PAGE_BYTES_MAX)
            refuse(column, "its values have no length that can be");
        column->width = (uint32_t)element->length;
    }
    column->optional = element->repetition == 1;
    if (element->repetition == 2)
        refuse(column, "it is repeated: a row has a list of values");
    if (element->logical >= 0)
        read_meaning(column, element);
    else
        read_converted(column, element);
}

/* ---- the metadata ---- */

/* While a footer is read. */
struct footer {
    struct parquet_file *file;
    struct thrift thrift;
    struct element *element; /* owned */
    uint32_t elements;
    uint32_t *column; /* of each leaf of the schema; owned */
    uint32_t leaves;
    uint64_t said_rows;
    const char *pandas; /* what pandas notes about its table, as JSON; in the footer, or NULL */
    size_t pandas_length;
    const char *arrow; /* what Arrow notes about its schema, in base64; or NULL */
    size_t arrow_length;
    bool encrypted;
};

static void read_schema(struct footer *footer, uint8_t type) {
    uint8_t of;
    uint32_t count = thrift_list(&footer->thrift, type, &of);
    bool can_be = count <= cursor_left(&footer->thrift.cursor) / ELEMENT_BYTES_MIN;
    if (footer->element || !can_be || !thrift_struct(&footer->thrift, of))
        count = 0; /* it is missed later */
    free(footer->element);
    footer->element = memory_new(count, sizeof *footer->element);
    footer->elements = count;
    for (uint32_t i = 0; i < count && !thrift_failed(&footer->thrift); i++)
        read_element(&footer->thrift, &footer->element[i]);
}

/* The element after `i` and all that is below it; its leaves belong to column `column`. */
static uint32_t pass_element(struct footer *footer, uint32_t i, uint32_t column) {
    uint64_t open = 1; /* elements that are still to come */
    for (; open && i < footer->elements; i++) {
        int64_t children = footer->element[i].children;
        if (children > 0)
            open += (uint64_t)(children < footer->elements ? children : footer->elements);
        else
            footer->column[footer->leaves++] = column;
        open--;
    }
    assert(footer->leaves <= footer->elements);
    return i;
}

/* A column for each element right below the root. */
static int make_columns(struct footer *footer) {
    struct parquet_file *file = footer->file;
    if (!footer->elements || !footer->element[0].children)
        return error_set(ERROR_DATA, "%s: the Parquet file has no columns", file->path);
    footer->column = memory_new(footer->elements, sizeof *footer->column);
    file->column = memory_new(footer->elements, sizeof *file->column);
    for (uint32_t i = 1; i < footer->elements;) {
        const struct element *element = &footer->element[i];
        assert(file->columns < i); /* the root is none */
        struct parquet_column *column = &file->column[file->columns++];
        column->name = memory_new(element->name_length + 1, 1);
        memcpy(column->name, element->name, element->name_length);
        if (strlen(column->name) != element->name_length)
            return parquet_damaged(file, NULL, "the name of a column has a zero byte");
        if (element->children > 0)
            refuse(column, "it is nested: a list, a map or a struct");
        else
            read_type(column, element);
        i = pass_element(footer, i, file->columns - 1);
    }
    return 0;
}

struct chunk_facts {
    int64_t type, codec, values, length, data, dictionary;
    bool elsewhere, encrypted;
};

static void read_chunk_facts(struct thrift *thrift, uint8_t type, struct chunk_facts *facts) {
    int16_t id = 0;
    if (!thrift_struct(thrift, type))
        return;
    while ((type = thrift_field(thrift, &id)))
        if (id == 1)
            facts->type = thrift_integer(thrift, type);
        else if (id == 4)
            facts->codec = thrift_integer(thrift, type);
        else if (id == 5)
            facts->values = thrift_integer(thrift, type);
        else if (id == 7)
            facts->length = thrift_integer(thrift, type);
        else if (id == 9)
            facts->data = thrift_integer(thrift, type);
        else if (id == 11)
            facts->dictionary = thrift_integer(thrift, type);
        else
            thrift_skip(thrift, type);
}

static struct chunk_facts read_chunk(struct thrift *thrift) {
    struct chunk_facts facts = {.type = -1, .values = -1};
    int16_t id = 0;
    uint8_t type;
    size_t length;
    while ((type = thrift_field(thrift, &id)))
        if (id == 1) {
            thrift_text(thrift, type, &length);
            facts.elsewhere = length > 0;
        } else if (id == 3) {
            read_chunk_facts(thrift, type, &facts);
        } else {
            facts.encrypted |= id == 8;
            thrift_skip(thrift, type);
        }
    return facts;
}

/* Where the pages of a column are: they must lie in the file, before its footer. Writers put any
 * place where there are no values; whether rows lack some is found when pages are read. */
static int place_chunk(const struct parquet_file *file, struct parquet_column *column,
                       const struct chunk_facts *facts, struct parquet_chunk *chunk) {
    int64_t first = facts->data, end = (int64_t)(file->bytes - TAIL_BYTES);
    if (facts->dictionary > 0 && (facts->dictionary < first || first <= 0))
        first = facts->dictionary;
    if (facts->encrypted)
        refuse(column, "it is encrypted");
    if (facts->elsewhere)
        refuse(column, "its values are in another file");
    if (facts->codec < 0 || facts->codec >= 32 || !parquet_unpacks((uint32_t)facts->codec)) {
        const char *name = facts->codec >= 0 && facts->codec < 32
                               ? parquet_codec_name((uint32_t)facts->codec)
                               : NULL;
        char *why = memory_format("it is compressed by %s", name ? name : "an unknown codec");
        refuse(column, why);
        free(why);
    }
    if (column->refused || !facts->values)
        return 0;
    if (facts->type != (int64_t)column->type)
        return parquet_damaged(file, column, "its type is not that of the schema");
    if (first < MAGIC_BYTES || facts->length < 0 || first > end || facts->length > end - first)
        return parquet_damaged(file, column, "its pages lie outside of the file");
    *chunk = (struct parquet_chunk){.offset = (uint64_t)first,
                                    .length = (uint64_t)facts->length,
                                    .codec = (enum parquet_codec)facts->codec};
    return 0;
}

static int read_chunks(struct footer *footer, uint8_t type, struct parquet_group *group) {
    uint8_t of;
    struct parquet_file *file = footer->file;
    uint32_t count = thrift_list(&footer->thrift, type, &of);
    if (!count) /* a group without rows may have none */
        return 0;
    if (!thrift_struct(&footer->thrift, of) || count != footer->leaves || group->chunk)
        return parquet_damaged(file, NULL,
                               "a group of rows does not have the columns of the schema");
    group->chunk = memory_new(file->columns, sizeof *group->chunk);
    int code = 0;
    for (uint32_t i = 0; i < count && !code; i++) {
        struct chunk_facts facts = read_chunk(&footer->thrift);
        uint32_t column = footer->column[i];
        assert(column < file->columns);
        if (!thrift_failed(&footer->thrift))
            code = place_chunk(file, &file->column[column], &facts, &group->chunk[column]);
    }
    return code;
}

static int read_group(struct footer *footer, struct parquet_group *group) {
    int16_t id = 0;
    uint8_t type;
    int64_t rows = -1;
    int code = 0;
    while (!code && (type = thrift_field(&footer->thrift, &id)))
        if (id == 1)
            code = read_chunks(footer, type, group);
        else if (id == 3)
            rows = thrift_integer(&footer->thrift, type);
        else
            thrift_skip(&footer->thrift, type);
    group->rows = (uint64_t)rows;
    if (code || thrift_failed(&footer->thrift))
        return code;
    if ((!group->chunk && rows) || rows < 0 || rows > INT64_MAX / 2 - (int64_t)footer->file->rows)
        return parquet_damaged(footer->file, NULL, "a group of rows has no columns or no rows");
    footer->file->rows += group->rows;
    return 0;
}

static int read_groups(struct footer *footer, uint8_t type) {
    uint8_t of;
    struct parquet_file *file = footer->file;
    uint32_t count = thrift_list(&footer->thrift, type, &of);
    if (!footer->element || file->column)
        return parquet_damaged(file, NULL, "its footer is out of order");
    int code = make_columns(footer);
    if (code || !count || !thrift_struct(&footer->thrift, of))
        return code;
    file->group = memory_new(count, sizeof *file->group);
    for (; file->groups < count && !code && !thrift_failed(&footer->thrift); file->groups++)
        code = read_group(footer, &file->group[file->groups]);
    return code;
}

/* A pair of texts that the writer of the file noted. */
static void read_note(struct footer *footer) {
    struct thrift *thrift = &footer->thrift;
    const char *key = "", *value = NULL;
    size_t key_length = 0, value_length = 0;
    int16_t id = 0;
    uint8_t type;
    while ((type = thrift_field(thrift, &id)))
        if (id == 1)
            key = thrift_text(thrift, type, &key_length);
        else if (id == 2)
            value = thrift_text(thrift, type, &value_length);
        else
            thrift_skip(thrift, type);
    static const char arrow[] = "ARROW:schema";
    if (thrift_failed(thrift) || !value)
        return;
    if (key_length == 6 && !memcmp(key, "pandas", 6)) {
        footer->pandas = value;
        footer->pandas_length = value_length;
    } else if (key_length == sizeof arrow - 1 && !memcmp(key, arrow, key_length)) {
        footer->arrow = value;
        footer->arrow_length = value_length;
    }
}

static void read_notes(struct footer *footer, uint8_t type) {
    uint8_t of;
    uint32_t count = thrift_list(&footer->thrift, type, &of);
    if (count && !thrift_struct(&footer->thrift, of))
        return;
    for (uint32_t i = 0; i < count && !thrift_failed(&footer->thrift); i++)
        read_note(footer);
}

/* Marks the columns that hold the index of a table of pandas. An index that only counts the rows is
 * noted as an object and has no column. Notes that cannot be understood mark nothing: they are not
 * part of the format. */
static void mark_index(struct parquet_file *file, const char *pandas, size_t length) {
    json_t *notes = json_loadb(pandas, length, 0, NULL), *name;
    size_t i;
    json_array_foreach(json_object_get(notes, "index_columns"), i,
                       name) for (uint32_t k = 0; json_is_string(name) && k < file->columns; k++)
        file->column[k]
            .is_index |= !strcmp(file->column[k].name, json_string_value(name));
    json_decref(notes);
}

static int read_footer(struct footer *footer) {
    struct thrift *thrift = &footer->thrift;
    int16_t id = 0;
    uint8_t type;
    int code = 0;
    while (!code && (type = thrift_field(thrift, &id)))
        if (id == 2)
            read_schema(footer, type);
        else if (id == 3)
            footer->said_rows = (uint64_t)thrift_integer(thrift, type);
        else if (id == 4)
            code = read_groups(footer, type);
        else if (id == 5)
            read_notes(footer, type);
        else {
            footer->encrypted |= id == 8;
            thrift_skip(thrift, type);
        }
    if (code)
        return code;
    if (thrift_failed(thrift) || !footer->file->columns)
        return parquet_damaged(footer->file, NULL, "its footer ends early or is malformed");
    if (footer->said_rows != footer->file->rows)
        return parquet_damaged(footer->file, NULL,
                               "its groups do not have as many rows as its footer says");
    if (footer->pandas)
        mark_index(footer->file, footer->pandas, footer->pandas_length);
    if (footer->arrow)
        parquet_take_arrow(footer->file, footer->arrow, footer->arrow_length);
    return 0;
}

/* ---- opening ---- */

static int encrypted(const struct parquet_file *file) {
    return error_set(ERROR_DATA, "%s is encrypted Parquet, which is not read: decrypt it first",
                     file->path);
}

/* Reads the bytes of the footer. */
static int fetch_footer(struct parquet_file *file, uint8_t **footer, uint32_t *length) {
    uint8_t tail[TAIL_BYTES];
    struct stat status;
    if (fstat(file->descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", file->path);
    file->bytes = (uint64_t)status.st_size;
    if (file->bytes < MAGIC_BYTES + TAIL_BYTES)
        return parquet_damaged(file, NULL, "it is shorter than any");
    int code = parquet_read(file, file->bytes - TAIL_BYTES, tail, TAIL_BYTES);
    if (code)
        return code;
    if (!memcmp(tail + 4, "PARE", MAGIC_BYTES))
        return encrypted(file);
    if (memcmp(tail + 4, "PAR1", MAGIC_BYTES) != 0)
        return error_set(ERROR_DATA,
                         "%s is truncated: it begins as Parquet, but does not end as it",
                         file->path);
    struct cursor cursor = cursor_over(tail, TAIL_BYTES);
    *length = cursor_u32(&cursor);
    if (*length > file->bytes - MAGIC_BYTES - TAIL_BYTES)
        return parquet_damaged(file, NULL, "its footer is longer than the file");
    if (*length > PARQUET_FOOTER_BYTES_MAX)
        return error_set(ERROR_DATA,
                         "%s: the footer of the Parquet file has %u bytes; up to %u are read",
                         file->path, *length, PARQUET_FOOTER_BYTES_MAX);
    *footer = memory_new(*length, 1);
    return parquet_read(file, file->bytes - TAIL_BYTES - *length, *footer, *length);
}

int parquet_open(struct parquet_file *file, const char *path, int descriptor) {
    uint8_t *bytes = NULL;
    uint32_t length = 0;
    *file = (struct parquet_file){.path = path, .descriptor = descriptor};
    int code = fetch_footer(file, &bytes, &length);
    if (!code) {
        struct footer footer = {.file = file, .thrift = thrift_over(bytes, length)};
        code = read_footer(&footer);
        if (footer.encrypted && !code)
            code = encrypted(file);
        free(footer.element);
        free(footer.column);
    }
    free(bytes);
    return code;
}

void parquet_close(struct parquet_file *file) {
    for (uint32_t i = 0; i < file->columns; i++) {
        free(file->column[i].name);
        free(file->column[i].refused);
        zone_free(file->column[i].zone);
    }
    for (uint32_t i = 0; i < file->groups; i++)
        free(file->group[i].chunk);
    free(file->column);
    free(file->group);
    *file = (struct parquet_file){0};
}
