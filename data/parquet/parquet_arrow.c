/* What Arrow notes about the table of a Parquet file that Parquet itself has no place for: the
 * zones whose clocks its times go by, units of seconds, and durations. The note "ARROW:schema" is
 * in base64 a message of Arrow's interprocess format, a FlatBuffer. What cannot be understood in it
 * says nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/parquet/parquet.h"
#include "data/text/zone.h"

#define ZONE_NAME_BYTES 64
enum { MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER = 2, HEADER_IS_SCHEMA = 1, SCHEMA_FIELDS = 1 };
enum {
    FIELD_NAME = 0,
    FIELD_TYPE_TYPE = 2,
    FIELD_TYPE = 3,
    TYPE_TIME = 9,
    TYPE_TIMESTAMP = 10,
    TYPE_DURATION = 18
};
enum { TIME_UNIT = 0, TIMESTAMP_ZONE = 1 }; /* the unit is the first member of all three */

/* Returns how many bytes there are. */
static size_t decode_base64(const char *text, size_t length, uint8_t *to) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t value[256];
    uint32_t bits = 0, count = 0;
    size_t bytes = 0;
    memset(value, 64, sizeof value);
    for (uint8_t i = 0; i < 64; i++)
        value[(unsigned char)letters[i]] = i;
    for (size_t i = 0; i < length && value[(unsigned char)text[i]] < 64; i++) {
        bits = bits << 6 | value[(unsigned char)text[i]];
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        to[bytes++] = (uint8_t)(bits >> count);
    }
    return bytes;
}

/* ---- FlatBuffers: a table is at a place, and a member that it lacks at place 0 ---- */

struct flat {
    const uint8_t *data;
    uint64_t length;
};

static uint64_t number_at(const struct flat *flat, uint64_t at, unsigned bytes) {
    uint64_t number = 0;
    if (at > flat->length || flat->length - at < bytes)
        return 0;
    for (unsigned i = bytes; i-- > 0;)
        number = number << 8 | flat->data[at + i];
    return number;
}

/* The place that is noted at a place. */
static uint64_t follow(const struct flat *flat, uint64_t at) {
    return at ? at + number_at(flat, at, 4) : 0;
}

static uint64_t member_of(const struct flat *flat, uint64_t table, unsigned member) {
    if (!table)
        return 0;
    uint64_t fields = table - (uint64_t)(int64_t)(int32_t)number_at(flat, table, 4);
    if (4 + 2 * member >= number_at(flat, fields, 2))
        return 0;
    uint64_t offset = number_at(flat, fields + 4 + 2 * (uint64_t)member, 2);
    return offset ? table + offset : 0;
}

/* A text; NULL if it is not there. */
static const char *text_at(const struct flat *flat, uint64_t member, size_t *length) {
    uint64_t at = follow(flat, member);
    *length = number_at(flat, at, 4);
    return at && at + 4 <= flat->length && *length <= flat->length - at - 4
               ? (const char *)flat->data + at + 4
               : NULL;
}

/* ---- columns ---- */

/* How many units a second has; 0: it is not known. */
static uint32_t unit_of(const struct flat *flat, uint64_t type, uint64_t usual) {
    static const uint32_t units[] = {1, 1000, 1000000, 1000000000};
    uint64_t at = member_of(flat, type, TIME_UNIT), unit = at ? number_at(flat, at, 2) : usual;
    return unit < sizeof units / sizeof *units ? units[unit] : 0;
}

/* Parquet has no unit of seconds. */
static void take_unit(const struct flat *flat, uint64_t type, uint64_t usual,
                      struct parquet_column *column) {
    uint32_t unit = unit_of(flat, type, usual);
    if (unit && unit < column->unit)
        column->shown = unit;
}

static void take_zone(const struct flat *flat, uint64_t type, struct parquet_column *column) {
    char name[ZONE_NAME_BYTES];
    size_t length;
    const char *zone = text_at(flat, member_of(flat, type, TIMESTAMP_ZONE), &length);
    if (!zone || !column->utc || !length || length >= sizeof name)
        return;
    memcpy(name, zone, length);
    name[length] = '\0';
    column->zone = zone_open(name);
    column->shows_zone = strcmp(name, "UTC") != 0;
    if (!column->zone) {
        column->refused = memory_format("its times are those of the zone \"%s\", which is not in "
                                        "/usr/share/zoneinfo: install tzdata",
                                        name);
    }
}

static void take_field(const struct flat *flat, uint64_t field, struct parquet_column *column) {
    size_t length;
    const char *name = text_at(flat, member_of(flat, field, FIELD_NAME), &length);
    uint64_t kind = member_of(flat, field, FIELD_TYPE_TYPE);
    bool same = name && length == strlen(column->name) && !memcmp(name, column->name, length);
    uint64_t of = kind ? number_at(flat, kind, 1) : 0;
    uint64_t type = follow(flat, member_of(flat, field, FIELD_TYPE));
    if (!same || column->refused)
        return;
    if (of == TYPE_DURATION && column->meaning == PARQUET_PLAIN && column->type == PARQUET_INT64)
        column->duration = unit_of(flat, type, 1);
    if (of == TYPE_TIME && column->meaning == PARQUET_TIME)
        take_unit(flat, type, 1, column);
    if (of == TYPE_TIMESTAMP && column->meaning == PARQUET_STAMP && column->type == PARQUET_INT64) {
        take_unit(flat, type, 0, column);
        take_zone(flat, type, column);
    }
}

void parquet_take_arrow(struct parquet_file *file, const char *text, size_t length) {
    uint8_t *bytes = memory_new(length + 1, 1);
    struct flat flat = {.data = bytes, .length = decode_base64(text, length, bytes)};
    unsigned before =
        number_at(&flat, 0, 4) == UINT32_MAX ? 8 : 4; /* bytes: a mark, and a length */
    if (flat.length > before) {
        flat.data += before;
        flat.length -= before;
        uint64_t message = number_at(&flat, 0, 4);
        uint64_t kind = member_of(&flat, message, MESSAGE_HEADER_TYPE);
        uint64_t schema = kind && number_at(&flat, kind, 1) == HEADER_IS_SCHEMA
                              ? follow(&flat, member_of(&flat, message, MESSAGE_HEADER))
                              : 0;
        uint64_t fields = follow(&flat, member_of(&flat, schema, SCHEMA_FIELDS));
        if (fields && number_at(&flat, fields, 4) == file->columns)
            for (uint32_t i = 0; i < file->columns; i++)
                take_field(&flat, follow(&flat, fields + 4 + 4 * (uint64_t)i), &file->column[i]);
    }
    free(bytes);
}
