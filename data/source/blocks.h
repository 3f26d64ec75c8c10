/* Splits the text of a source into blocks of whole lines, or records, or its bytes into blocks of
 * any size. */
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
 * that is not closed so spoils its line, and not the lines after it. */

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

/* The line end after the record that begins at `at`; `end` if none is there. The text ends with a
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
 * where a writer waits after a line. They are valid until the next call. */
int blocks_peek(struct blocks *blocks, size_t least, const uint8_t **bytes, size_t *length);

/* Passes over bytes that were shown. */
void blocks_skip(struct blocks *blocks, size_t length);

/* Adds the next `length` bytes to batch->text, or fewer at the end. */
int blocks_take(struct blocks *blocks, struct batch *batch, size_t length);

#endif
