/* Parquet files, for the code that reads them: what a footer says, pages, values. What is read of
 * the format, and where it is described: doc/FORMATS.md.
 *
 * Nothing that a file says is believed: a place must lie in the file, a number fit what is left,
 * and memory is taken only up to the limits below. Errors are ERROR_DATA, with file and column. */
#ifndef DML_DATA_PARQUET_PARQUET_H
#define DML_DATA_PARQUET_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define PARQUET_FOOTER_BYTES_MAX (256u << 20)
#define PARQUET_HEADER_BYTES_MAX (1u << 20) /* of a page, with its statistics */
#define PARQUET_PAGE_BYTES_MAX (256u << 20) /* of a page, when it is not compressed */
#define PARQUET_PAGE_ROWS_MAX (64u << 20)

/* ---- Thrift's compact protocol ---- */

/* A structure is read field by field:
 *
 *     int16_t id = 0;
 *     uint8_t type;
 *     while ((type = thrift_field(&thrift, &id)))
 *         … one of the below, or thrift_skip() …
 *
 * What is malformed ends every loop and sets `failed`: readers ask once, at the end. */
struct thrift {
    struct cursor cursor;
    unsigned depth; /* of what is skipped */
};

struct thrift thrift_over(const void *data, size_t length);
bool thrift_failed(const struct thrift *thrift);

/* The type of the next field, and its id after the one before; 0 at the end. */
uint8_t thrift_field(struct thrift *thrift, int16_t *id);

/* Fails where the field is of another type. */
int64_t thrift_integer(struct thrift *thrift, uint8_t type);
bool thrift_bool(struct thrift *thrift, uint8_t type);
const char *thrift_text(struct thrift *thrift, uint8_t type, size_t *length); /* not ended by 0 */
bool thrift_struct(struct thrift *thrift, uint8_t type);

/* The number of elements, each of which has at least a byte, and their type. */
uint32_t thrift_list(struct thrift *thrift, uint8_t type, uint8_t *of);
void thrift_skip(struct thrift *thrift, uint8_t type);

#define THRIFT_I32 5
#define THRIFT_BINARY 8
#define THRIFT_STRUCT 12

/* ---- files ---- */

enum parquet_type {
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTES,
    PARQUET_FIXED, /* texts or numbers of one length, in bytes */
    PARQUET_TYPES
};

enum parquet_meaning {
    PARQUET_PLAIN,    /* a number, a truth, or a text, by its type */
    PARQUET_UNSIGNED, /* an integer */
    PARQUET_DECIMAL,  /* an integer over 10^scale */
    PARQUET_DATE,     /* days since 1970 */
    PARQUET_TIME,     /* of a day, in `unit` a second */
    PARQUET_STAMP,    /* a time since 1970, in `unit` a second; INT96: nanoseconds of a day, and its
                         Julian number */
    PARQUET_HALF,     /* FLOAT16 */
    PARQUET_UUID,
};

struct zone;

struct parquet_column {
    char *name;
    enum parquet_type type;
    enum parquet_meaning meaning;
    uint32_t width;    /* bytes of a value; 0 of texts of any length */
    uint32_t scale;    /* of a decimal */
    uint32_t unit;     /* of a time: 1,000, 1,000,000 or 1,000,000,000 */
    bool utc;          /* times are those of UTC, and not of whatever zone */
    uint32_t shown;    /* the unit of which texts show digits, if it is another; 0: it is not */
    bool shows_zone;   /* texts show how far clocks are from UTC */
    struct zone *zone; /* whose clocks the times go by; owned. NULL: UTC */
    bool optional;     /* values may be null */
    bool is_index;     /* it names the rows of a table of pandas */
    uint32_t duration; /* of durations, the unit as above, or 1; else 0 */
    double multiplier; /* durations in the unit of the table are the numbers times this, */
    double divisor;    /* over this; 0: as they are. One of the two is 1 */
    char *refused;     /* why it is not read; owned. NULL: it is */
};

enum parquet_codec {
    PARQUET_UNCOMPRESSED = 0,
    PARQUET_SNAPPY = 1,
    PARQUET_GZIP = 2,
    PARQUET_ZSTD = 6,
    PARQUET_LZ4_RAW = 7
};

/* The values of a column in a group of rows. */
struct parquet_chunk {
    uint64_t offset, length; /* of its pages, in the file */
    enum parquet_codec codec;
};

struct parquet_group {
    uint64_t rows;
    struct parquet_chunk *chunk; /* of each column; of one that is not read of no meaning; owned */
};

struct parquet_file {
    const char *path; /* the caller's */
    int descriptor;   /* the caller's */
    uint64_t bytes, rows;
    struct parquet_column *column;
    uint32_t columns;
    struct parquet_group *group;
    uint32_t groups;
};

/* Whether a file that begins so is Parquet, or encrypted Parquet; not a text whose first letters
 * these are. */
bool parquet_begins(const uint8_t *bytes, size_t length);

/* Reads the footer. Columns of types that are not read are there, with the reason. */
int parquet_open(struct parquet_file *file, const char *path, int descriptor);
void parquet_close(struct parquet_file *file);

/* Takes what Arrow notes of the columns: data/parquet/parquet_arrow.c. */
void parquet_take_arrow(struct parquet_file *file, const char *text, size_t length);

/* Reads exactly so many bytes; ERROR_DATA if the file ends before. */
int parquet_read(const struct parquet_file *file, uint64_t offset, void *to, size_t length);

/* ERROR_DATA: this is not as it should be. */
int parquet_damaged(const struct parquet_file *file, const struct parquet_column *column,
                    const char *what);

/* ---- pages ---- */

enum parquet_encoding {
    PARQUET_ENCODED_PLAIN = 0,
    PARQUET_ENCODED_OLD_DICTIONARY = 2,
    PARQUET_ENCODED_RLE = 3,
    PARQUET_ENCODED_DELTA = 5,
    PARQUET_ENCODED_DELTA_LENGTH = 6,
    PARQUET_ENCODED_DELTA_TEXT = 7,
    PARQUET_ENCODED_DICTIONARY = 8,
    PARQUET_ENCODED_SPLIT = 9
};

enum parquet_page_kind { PARQUET_DATA, PARQUET_INDEX, PARQUET_DICTIONARY, PARQUET_DATA_2 };

struct parquet_page {
    enum parquet_page_kind kind;
    uint64_t offset;           /* of what is after its header, in the file */
    uint32_t stored, unpacked; /* bytes */
    uint32_t rows;             /* of a dictionary: entries */
    uint32_t encoding;         /* enum parquet_encoding, or whatever the file has */
    uint32_t level_encoding;   /* of the first kind */
    uint32_t level_bytes; /* of the second: of the levels that say what is null, and of those */
    uint32_t repetition_bytes; /* before them that say where lists begin: zeros of a flat column */
    bool packed;               /* compressed, if the chunk is */
    bool has_crc;
    uint32_t crc;
};

/* Reads the header at *at, which must end before `end`, as the page must; *at moves past it. */
int parquet_page_next(const struct parquet_file *file, const struct parquet_column *column,
                      uint64_t *at, uint64_t end, struct parquet_page *page);

struct parquet_text {
    uint32_t start, length;
};

/* The values of a page, or of a dictionary. */
struct parquet_values {
    uint32_t count;
    uint32_t width;            /* bytes of each; 0: texts */
    uint8_t *data;             /* count × width; or texts with a 0 after each. Owned, unless it is
                                  part of */
    uint8_t *page;             /* the bytes of the page; owned, or NULL */
    struct parquet_text *text; /* `count`, if width is 0; owned */
    uint32_t *index;           /* `count` entries of a dictionary, in place of the above; owned */
    uint8_t *present; /* `count`: 0 of a null, whose value is 0; NULL: none is null. Owned */
};
void parquet_values_release(struct parquet_values *values);

/* Reads a page. `dictionary` has the values of the column's dictionary, NULL: there is none. */
int parquet_page_read(const struct parquet_file *file, const struct parquet_column *column,
                      enum parquet_codec codec, const struct parquet_page *page,
                      const struct parquet_values *dictionary, struct parquet_values *values);

/* ---- encodings ----
 *
 * Each returns false if the data is malformed or does not have `count` values. */

/* An integer of seven bits a byte, the lowest first; and one with a sign, which is its lowest bit.
 */
bool parquet_varint(struct cursor *from, uint64_t *value);
static inline uint64_t parquet_zigzag(uint64_t value) {
    return value >> 1 ^ (0 - (value & 1));
}

/* Runs, and integers of `bits` bits, 0 to 32, which stand one after the other. */
bool parquet_runs(struct cursor *from, unsigned bits, uint32_t count, uint32_t *to);

/* Runs of integers of one bit, as bytes of 0 or 1, and how many of them are 1. */
bool parquet_levels(struct cursor *from, uint32_t count, uint8_t *to, uint32_t *set);

/* Integers by their differences: 64 bits each, of which the lower 32 count for INT32. */
bool parquet_deltas(struct cursor *from, uint32_t count, uint64_t *to);

/* Texts of the three encodings that have them. `values` gets data and text. */
bool parquet_texts(struct cursor *from, uint32_t encoding, uint32_t count,
                   struct parquet_values *values);

/* Values of one width, whose bytes stand apart: all the first ones, all the second ones, … */
bool parquet_split(struct cursor *from, uint32_t width, uint32_t count, uint8_t *to);

/* The name of an encoding, or of a codec, as the format's description has it; NULL: it has none. */
const char *parquet_encoding_name(uint32_t encoding);
const char *parquet_codec_name(uint32_t codec);

/* Whether pages of this codec are read. */
bool parquet_unpacks(uint32_t codec);

/* Decompresses into exactly `length` bytes. */
bool parquet_unpack(enum parquet_codec codec, const uint8_t *from, size_t stored, uint8_t *to,
                    size_t length);

#endif
