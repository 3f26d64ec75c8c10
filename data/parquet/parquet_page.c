/* Pages of Parquet: their headers, and their values. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/parquet/parquet.h"
#include "numeric/clones.h"

typedef uint32_t short_words __attribute__((vector_size(32)));

/* ---- headers ---- */

static uint32_t as_u32(struct thrift *thrift, int64_t value) {
    if (value < 0 || value > INT32_MAX)
        thrift->cursor.failed = true;
    return (uint32_t)value;
}

/* The header of a page of one kind. */
static void read_details(struct thrift *thrift, struct parquet_page *page, bool second) {
    int16_t id = 0;
    uint8_t type;
    uint32_t rows = UINT32_MAX;
    while ((type = thrift_field(thrift, &id)))
        if (id == 1)
            page->rows = as_u32(thrift, thrift_integer(thrift, type));
        else if (id == (second ? 4 : 2))
            page->encoding = as_u32(thrift, thrift_integer(thrift, type));
        else if (id == 3 && page->kind != PARQUET_DICTIONARY)
            rows = page->level_encoding = as_u32(thrift, thrift_integer(thrift, type));
        else if (second && id == 5)
            page->level_bytes = as_u32(thrift, thrift_integer(thrift, type));
        else if (second && id == 6)
            page->repetition_bytes = as_u32(thrift, thrift_integer(thrift, type));
        else if (second && id == 7)
            page->packed = thrift_bool(thrift, type);
        else
            thrift_skip(thrift, type);
    if (second && rows != page->rows) /* of a flat column they are the values */
        thrift->cursor.failed = true;
}

static bool read_header(struct thrift *thrift, struct parquet_page *page) {
    int16_t id = 0;
    uint8_t type;
    int64_t kind = -1;
    *page = (struct parquet_page){
        .packed = true, .encoding = UINT32_MAX, .level_encoding = PARQUET_ENCODED_RLE};
    while ((type = thrift_field(thrift, &id)))
        if (id == 1) {
            kind = thrift_integer(thrift, type);
            thrift->cursor.failed |= kind < 0 || kind > PARQUET_DATA_2;
            page->kind = thrift->cursor.failed ? PARQUET_INDEX : (enum parquet_page_kind)kind;
        } else if (id == 2) {
            page->unpacked = as_u32(thrift, thrift_integer(thrift, type));
        } else if (id == 3) {
            page->stored = as_u32(thrift, thrift_integer(thrift, type));
        } else if (id == 4) {
            page->crc = (uint32_t)thrift_integer(thrift, type);
            page->has_crc = true;
        } else {
            /* Field 5, 7 or 8, whose kind need not be the page's. */
            static const int16_t field[] = {[PARQUET_DATA] = 5,
                                            [PARQUET_INDEX] = 6,
                                            [PARQUET_DICTIONARY] = 7,
                                            [PARQUET_DATA_2] = 8};
            if (field[page->kind] == id && id != 6 && thrift_struct(thrift, type))
                read_details(thrift, page, page->kind == PARQUET_DATA_2);
            else
                thrift_skip(thrift, type);
        }
    return !thrift_failed(thrift) && kind >= 0;
}

static int check_limits(const struct parquet_file *file, const struct parquet_column *column,
                        const struct parquet_page *page) {
    if (page->unpacked > PARQUET_PAGE_BYTES_MAX || page->stored > PARQUET_PAGE_BYTES_MAX)
        return error_set(ERROR_DATA,
                         "%s: column \"%.100s\" has a page of %u bytes; up to %u are read: write "
                         "the file with smaller pages",
                         file->path, column->name,
                         page->unpacked > page->stored ? page->unpacked : page->stored,
                         PARQUET_PAGE_BYTES_MAX);
    if (page->rows > PARQUET_PAGE_ROWS_MAX)
        return error_set(ERROR_DATA,
                         "%s: column \"%.100s\" has a page of %u values; up to %u are read: write "
                         "the file with smaller groups of rows",
                         file->path, column->name, page->rows, PARQUET_PAGE_ROWS_MAX);
    return 0;
}

/* Most headers are short: one that is not is read again. */
#define HEADER_BYTES 256

int parquet_page_next(const struct parquet_file *file, const struct parquet_column *column,
                      uint64_t *at, uint64_t end, struct parquet_page *page) {
    uint8_t few[HEADER_BYTES], *bytes = few;
    assert(*at <= end && end <= file->bytes);
    uint64_t length = end - *at < HEADER_BYTES ? end - *at : HEADER_BYTES;
    int code = parquet_read(file, *at, few, length);
    if (code)
        return code;
    struct thrift thrift = thrift_over(bytes, length);
    bool read = read_header(&thrift, page);
    if (!read && end - *at > HEADER_BYTES) {
        length = end - *at < PARQUET_HEADER_BYTES_MAX ? end - *at : PARQUET_HEADER_BYTES_MAX;
        bytes = memory_new(length, 1);
        code = parquet_read(file, *at, bytes, length);
        thrift = thrift_over(bytes, length);
        read = !code && read_header(&thrift, page);
    }
    uint64_t header = (uint64_t)(thrift.cursor.at - bytes);
    if (bytes != few)
        free(bytes);
    if (code)
        return code;
    if (!read)
        return parquet_damaged(file, column, "the header of a page is malformed or ends early");
    page->offset = *at + header;
    code = check_limits(file, column, page);
    if (code)
        return code;
    if (page->stored > end - page->offset)
        return parquet_damaged(file, column, "a page is longer than what is left of its column");
    *at = page->offset + page->stored;
    assert(*at <= end);
    return 0;
}

/* ---- the bytes of a page ---- */

static int check_crc(const struct parquet_file *file, const struct parquet_column *column,
                     const struct parquet_page *page, const uint8_t *bytes) {
    if (!page->has_crc || crc32(0, bytes, page->stored) == page->crc)
        return 0;
    return parquet_damaged(file, column, "the checksum of a page is wrong");
}

/* Reads a page and decompresses it: *bytes has page->unpacked of them, to be freed. */
static int fetch(const struct parquet_file *file, const struct parquet_column *column,
                 enum parquet_codec codec, const struct parquet_page *page, uint8_t **bytes) {
    const uint64_t levels = (uint64_t)page->level_bytes + page->repetition_bytes;
    if (levels > page->unpacked || levels > page->stored)
        return parquet_damaged(file, column, "the levels of a page are longer than the page");
    uint8_t *stored = memory_resize(NULL, page->stored + 1u, 1);
    int code = parquet_read(file, page->offset, stored, page->stored);
    if (!code)
        code = check_crc(file, column, page, stored);
    bool packed = codec != PARQUET_UNCOMPRESSED && page->packed;
    if (!code && !packed && page->stored != page->unpacked)
        code = parquet_damaged(file, column, "a page does not have the length that it says");
    if (code || !packed) {
        *bytes = stored;
        return code;
    }
    *bytes = memory_resize(NULL, page->unpacked + 1u, 1);
    /* Levels stand before what is compressed in pages of the second kind. */
    uint8_t *unpacked = *bytes;
    uint32_t plain = page->level_bytes + page->repetition_bytes;
    uint32_t left = page->unpacked - plain;
    assert(plain <= page->stored && plain <= page->unpacked);
    memcpy(unpacked, stored, plain);
    /* some writers do not compress nothing at all */
    if (!((!left && page->stored == plain) ||
          parquet_unpack(codec, stored + plain, page->stored - plain, unpacked + plain, left)))
        code = parquet_damaged(file, column, "a page cannot be decompressed");
    free(stored);
    return code;
}

/* ---- values ---- */

void parquet_values_release(struct parquet_values *values) {
    free(values->page ? values->page : values->data);
    free(values->text);
    free(values->index);
    free(values->present);
    *values = (struct parquet_values){0};
}

/* While a page is read. */
struct page_reader {
    const struct parquet_file *file;
    const struct parquet_column *column;
    const struct parquet_page *page;
    const struct parquet_values *dictionary;
    uint8_t *bytes; /* of the page */
    struct cursor from;
    uint32_t count; /* of the values that are not null */
};

static int refuse_encoding(const struct page_reader *reader, uint32_t encoding, const char *what) {
    const char *name = parquet_encoding_name(encoding);
    return error_set(
        ERROR_DATA,
        "%s: column \"%.100s\" has %s in the encoding %s, which is not read: write the "
        "file anew without it, or leave the column out with csv.skip",
        reader->file->path, reader->column->name, what, name ? name : "of a new kind");
}

static int malformed(const struct page_reader *reader, const char *what) {
    return parquet_damaged(reader->file, reader->column, what);
}

/* Finds out which values are null. */
static int read_levels(struct page_reader *reader, struct parquet_values *values) {
    const struct parquet_page *page = reader->page;
    struct cursor *from = &reader->from, levels;
    reader->count = page->rows;
    if (page->kind == PARQUET_DICTIONARY)
        return 0;
    /* Some writers give a page of the second version levels where they say nothing, in no bits
     * each: no list begins in a flat column, or no value can be null. */
    const bool silent = !reader->column->optional;
    cursor_take(from, page->repetition_bytes + (silent ? page->level_bytes : 0));
    if (silent)
        return from->failed ? malformed(reader, "the levels of a page end early") : 0;
    if (page->kind == PARQUET_DATA && page->level_encoding != PARQUET_ENCODED_RLE)
        return refuse_encoding(reader, page->level_encoding, "levels");
    size_t length = page->kind == PARQUET_DATA ? cursor_u32(from) : page->level_bytes;
    const uint8_t *bytes = cursor_take(from, length);
    if (from->failed)
        return malformed(reader, "the levels of a page end early");
    levels = cursor_over(bytes, length);
    values->present = memory_resize(NULL, page->rows + 1u, 1);
    if (!parquet_levels(&levels, page->rows, values->present, &reader->count))
        return malformed(reader, "the levels of a page are malformed");
    assert(reader->count <= page->rows);
    if (reader->count == page->rows) {
        free(values->present);
        values->present = NULL;
    }
    return 0;
}

static bool read_booleans(struct page_reader *reader, uint8_t *to) {
    struct cursor *from = &reader->from;
    if (reader->page->encoding == PARQUET_ENCODED_PLAIN) {
        const uint8_t *bytes = cursor_take(from, (reader->count + 7u) / 8);
        for (uint32_t i = 0; !from->failed && i < reader->count; i++)
            to[i] = bytes[i / 8] >> i % 8 & 1;
        return !from->failed;
    }
    size_t length = cursor_u32(from);
    const uint8_t *bytes = cursor_take(from, length);
    if (from->failed)
        return false;
    struct cursor runs = cursor_over(bytes, length);
    uint32_t set;
    return parquet_levels(&runs, reader->count, to, &set);
}

static bool read_differences(struct page_reader *reader, uint32_t width, uint8_t *to) {
    uint64_t *value = memory_resize(NULL, reader->count + 1u, sizeof *value);
    bool sound = parquet_deltas(&reader->from, reader->count, value);
    for (uint32_t i = 0; sound && i < reader->count; i++)
        memcpy(to + (size_t)i * width, &value[i], width);
    free(value);
    return sound;
}

/* Texts of one length that are written as those of any. */
static bool read_fixed_texts(struct page_reader *reader, uint32_t width, uint8_t *to) {
    struct parquet_values texts = {0};
    bool sound = parquet_texts(&reader->from, reader->page->encoding, reader->count, &texts);
    for (uint32_t i = 0; sound && i < reader->count; i++) {
        sound = texts.text[i].length == width;
        if (sound)
            memcpy(to + (size_t)i * width, texts.data + texts.text[i].start, width);
    }
    parquet_values_release(&texts);
    return sound;
}

/* Whether values of this type may be written so. */
static bool can_be(enum parquet_type type, uint32_t encoding) {
    bool text = type == PARQUET_BYTES;
    switch (encoding) {
    case PARQUET_ENCODED_PLAIN:
        return true;
    case PARQUET_ENCODED_RLE:
        return type == PARQUET_BOOLEAN;
    case PARQUET_ENCODED_DELTA:
        return type == PARQUET_INT32 || type == PARQUET_INT64;
    case PARQUET_ENCODED_DELTA_LENGTH:
        return text;
    case PARQUET_ENCODED_DELTA_TEXT:
        return text || type == PARQUET_FIXED;
    case PARQUET_ENCODED_SPLIT:
        return !text && type != PARQUET_BOOLEAN && type != PARQUET_INT96;
    default:
        return false;
    }
}

static bool read_wide(struct page_reader *reader, uint32_t width, uint8_t *to) {
    const uint8_t *bytes;
    switch (reader->page->encoding) {
    case PARQUET_ENCODED_DELTA:
        return read_differences(reader, width, to);
    case PARQUET_ENCODED_DELTA_TEXT:
        return read_fixed_texts(reader, width, to);
    case PARQUET_ENCODED_SPLIT:
        return parquet_split(&reader->from, width, reader->count, to);
    default:
        bytes = cursor_take(&reader->from, (size_t)width * reader->count);
        if (bytes && reader->count)
            memcpy(to, bytes, (size_t)width * reader->count);
        return !reader->from.failed;
    }
}

/* Moves values of up to eight bytes to the rows that have one, the last first; the others become 0.
 * Nulls come at random: so there is no branch, and what a null has before is any value that is
 * there. The size is a constant for the compiler. */
__attribute__((always_inline)) static inline void
spread_values(uint8_t *data, size_t size, const uint8_t *present, uint32_t rows, uint32_t count) {
    for (uint32_t i = rows; i-- > 0;) {
        uint64_t here = present[i], value = 0;
        count -= (uint32_t)here;
        memcpy(&value, data + count * size, size); /* this machine's order is the file's */
        value &= 0 - here;
        memcpy(data + i * size, &value, size);
    }
}

static void spread(void *values, size_t size, const uint8_t *present, uint32_t rows,
                   uint32_t count) {
    uint8_t *data = values;
    if (size == sizeof(uint32_t))
        spread_values(data, sizeof(uint32_t), present, rows, count);
    else if (size == sizeof(uint64_t))
        spread_values(data, sizeof(uint64_t), present, rows, count);
    else
        for (uint32_t i = rows; i-- > 0;)
            if (present[i])
                memmove(data + i * size, data + --count * size, size);
            else
                memset(data + i * size, 0, size);
}

static int read_values(struct page_reader *reader, struct parquet_values *values) {
    uint32_t encoding = reader->page->encoding, rows = reader->page->rows;
    uint32_t width = values->width = reader->column->width;
    if (!can_be(reader->column->type, encoding))
        return refuse_encoding(reader, encoding, "values");
    if (width && (uint64_t)width * rows > PARQUET_PAGE_BYTES_MAX * UINT64_C(8))
        return malformed(reader, "a page has more values than it can hold");
    bool sound;
    /* Whether values are in the page as they are wanted. */
    if (reader->page->encoding == PARQUET_ENCODED_PLAIN && values->width && !values->present &&
        reader->column->type != PARQUET_BOOLEAN) {
        values->data = (uint8_t *)cursor_take(&reader->from, (size_t)width * rows);
        values->page = reader->from.failed ? NULL : reader->bytes;
        sound = !reader->from.failed;
    } else if (!width) {
        sound = parquet_texts(&reader->from, encoding, reader->count, values);
        values->text = memory_resize(values->text, rows + 1u, sizeof *values->text);
    } else {
        values->data = memory_resize(NULL, (size_t)width * rows + 1, 1);
        sound = reader->column->type == PARQUET_BOOLEAN ? read_booleans(reader, values->data)
                                                        : read_wide(reader, width, values->data);
    }
    if (!sound)
        return malformed(reader, "the values of a page are malformed, or fewer than it says");
    if (values->present)
        spread(width ? (void *)values->data : (void *)values->text,
               width ? width : sizeof *values->text, values->present, rows, reader->count);
    return 0;
}

/* Whether some entry is not there. Both terms are below 2^31 for each that is. */
VECTOR_CLONES
static bool any_beyond(const uint32_t *index, uint32_t count, uint32_t entries) {
    static_assert(PARQUET_PAGE_ROWS_MAX <= 1u << 31, "and so are entries");
    short_words beyond = {0};
    uint32_t i = 0, rest = 0;
    for (; count - i >= sizeof beyond / sizeof *index; i += sizeof beyond / sizeof *index) {
        short_words some;
        memcpy(&some, index + i, sizeof some);
        beyond |= some | (entries - 1 - some);
    }
    for (; i < count; i++)
        rest |= index[i] | (entries - 1 - index[i]);
    for (uint32_t k = 0; k < sizeof beyond / sizeof *index; k++)
        rest |= beyond[k];
    return rest >> 31;
}

static int read_indices(struct page_reader *reader, struct parquet_values *values) {
    uint32_t rows = reader->page->rows, entries;
    if (!reader->dictionary)
        return malformed(reader, "a page refers to a dictionary that is not there");
    entries = reader->dictionary->count;
    values->index = memory_resize(NULL, rows + 1u, sizeof *values->index);
    uint8_t bits = reader->count ? cursor_u8(&reader->from) : 0;
    if (bits > 32 || !parquet_runs(&reader->from, bits, reader->count, values->index))
        return malformed(reader, "the values of a page are malformed, or fewer than it says");
    if (any_beyond(values->index, reader->count, entries))
        return malformed(reader, "a page refers to more entries than its dictionary has");
    if (values->present)
        spread(values->index, sizeof *values->index, values->present, rows, reader->count);
    return 0;
}

int parquet_page_read(const struct parquet_file *file, const struct parquet_column *column,
                      enum parquet_codec codec, const struct parquet_page *page,
                      const struct parquet_values *dictionary, struct parquet_values *values) {
    struct page_reader reader = {file, column, page, dictionary, NULL, {0}, 0};
    struct parquet_page of_dictionary = *page;
    *values = (struct parquet_values){.count = page->rows};
    if (page->kind == PARQUET_DICTIONARY && page->encoding == PARQUET_ENCODED_OLD_DICTIONARY) {
        of_dictionary.encoding = PARQUET_ENCODED_PLAIN; /* as it was called */
        reader.page = &of_dictionary;
    }
    int code = fetch(file, column, codec, page, &reader.bytes);
    bool refers = reader.page->encoding == PARQUET_ENCODED_DICTIONARY ||
                  reader.page->encoding == PARQUET_ENCODED_OLD_DICTIONARY;
    if (!code) {
        reader.from = cursor_over(reader.bytes, page->unpacked);
        code = read_levels(&reader, values);
    }
    if (!code)
        code = refers && page->kind != PARQUET_DICTIONARY ? read_indices(&reader, values)
                                                          : read_values(&reader, values);
    if (!values->page)
        free(reader.bytes);
    if (code)
        parquet_values_release(values);
    return code;
}
