/* Splits the text of a source into blocks of whole lines, or records, or its bytes into blocks of
 * any size; and reads the files of weights, offsets and exposures beside it. */
#ifndef DML_DATA_SOURCE_BLOCKS_H
#define DML_DATA_SOURCE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/batch.h"
#include "data/source/input.h"
#include "data/source/source.h"

/* ---- where the records of a CSV text end ----
 *
 * A line end inside of a quoted cell is part of the cell
 * (RFC 4180).
 *
 * A quote opens a cell where the cell begins; elsewhere it is a character like others. A cell of
 * several lines must be closed within QUOTED_BYTES_MAX, and its record go on as one does: a quote
 * that is not closed so spoils its line, and not the lines behind it. */

#define QUOTED_BYTES_MAX (1u << 20)

/* How records are written. */
struct record_rule {
    char delimiters[5]; /* what may part cells; 0-terminated. None: every line is a record */
    char comment;       /* a line that begins with this is a record, which has no cells; 0: none */
    bool plain_quotes;  /* a quote is a character like others, and every line is a record */
};

/* Whether the record that begins at `at`, where there is a byte to read, is a comment. */
static inline bool record_is_comment(const struct record_rule *rule, const char *at) {
    return rule->comment && *at == rule->comment;
}

/* The line end behind the record that begins at `at`; `end` if none is there. The text ends with a
 * record. */
char *record_end(const struct record_rule *rule, char *at, char *end);

/* Whether `delimiter` parts two cells of a record. */
bool record_has(const struct record_rule *rule, const char *record, size_t length, char delimiter);

/* How many bytes of a text, which begins with a record, are whole records. `ended`: it is the rest
 * of the file. */
size_t records_whole(const struct record_rule *rule, const char *text, size_t length, bool ended);

/* ---- blocks ---- */

/* About this much text a block, so that the parsed values stay in the cache. Nothing else decides
 * how text is split, so packs do not depend on the number of threads. */
#define BLOCK_TEXT_BYTES (256u << 10)

struct blocks {
    struct input *input;
    const char *path;
    struct record_rule rule;
    size_t block_bytes; /* about so many each */
    uint64_t next_line;
    uint64_t text_bytes;
    char *rest; /* what was read and not handed out: the beginning of a line; owned */
    size_t rest_length, rest_capacity;
    bool ended;
};

/* `input` and `path` stay the caller's. */
void blocks_init(struct blocks *blocks, struct input *input, const char *path);
void blocks_release(struct blocks *blocks);

/* Reads the next block into batch->text; text_length 0 is the end. */
int blocks_next(struct blocks *blocks, struct batch *batch);

/* From now on blocks are of whole records, and of about `bytes`; so is the first block, `batch`,
 * when this returns. */
int blocks_set_rule(struct blocks *blocks, const struct record_rule *rule, size_t bytes,
                    struct batch *batch);

/* Shows the bytes that come next without taking them: at least `least`, or fewer at the end, or
 * where a writer waits behind a line. They are valid until the next call. */
int blocks_peek(struct blocks *blocks, size_t least, const uint8_t **bytes, size_t *length);

/* Passes over bytes that were shown. */
void blocks_skip(struct blocks *blocks, size_t length);

/* Adds the next `length` bytes to batch->text, or fewer at the end. */
int blocks_take(struct blocks *blocks, struct batch *batch, size_t length);

/* ---- what rows have of their own: weights, offsets, exposures ---- */

/* How a property is called, and told. */
struct property_rule {
    const char *name;      /* "weight" */
    const char *key;       /* of the job, that names its column */
    const char *allowed;   /* which numbers it may be */
    enum column_kind kind; /* of its column */
};
extern const struct property_rule property_rules[ROW_PROPERTIES];

/* The property that a column of this kind has; ROW_PROPERTIES: none. */
enum row_property property_of(enum column_kind kind);

/* Whether a number is such a property of a row: finite, and as property_rules has it. */
bool property_is_valid(enum row_property property, double number);

/* What the property adds to an offset. */
double property_offset(enum row_property property, double number);

/* A file has one number a line, for the lines of a data file in their order, as the tools of LIBSVM
 * take weights; plain, .gz or .zst. Lines of blanks do not count, here as in the data; a malformed
 * line of the data has its number, too. */

struct property_file; /* opaque; used by one thread at a time */

/* Opens the file of a property of `data`. Both paths must outlive it. Errors as of source_read().
 */
int property_file_open(const char *path, const char *data, enum row_property property,
                       struct property_file **file);
void property_file_close(struct property_file *file); /* harmless on NULL */

/* Gives the rows of the next block of the data their numbers. ERROR_DATA if there are too few, or
 * one is not valid. */
int property_file_take(struct property_file *file, struct batch *batch);

/* Ends the reading, behind the last row: no number may be left. Notes hash and stamp. */
int property_file_end(struct property_file *file, struct source_report *report);

#endif
