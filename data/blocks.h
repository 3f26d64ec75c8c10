/* Splits the text of a source into blocks of whole lines, or records; or its bytes into blocks of
 * any size. */
#ifndef DML_DATA_BLOCKS_H
#define DML_DATA_BLOCKS_H

#include "data/batch.h"
#include "data/input.h"
#include "data/records.h"

/* About this much text a block, so that the parsed values stay in the cache. Nothing else decides
 * how text is split, so packs do not depend on the number of threads. */
#define BLOCK_TEXT_BYTES (256u << 10)

struct blocks {
    struct input *input;
    const char *path;
    struct record_rule rule;
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

/* From now on blocks are of whole records; so is the first block, `batch`, when this returns. */
int blocks_set_rule(struct blocks *blocks, const struct record_rule *rule, struct batch *batch);

/* Shows the bytes that come next without taking them: at least `least`, or fewer at the end. They
 * are valid until the next call. */
int blocks_peek(struct blocks *blocks, size_t least, const uint8_t **bytes, size_t *length);

/* Passes over bytes that were shown. */
void blocks_skip(struct blocks *blocks, size_t length);

/* Adds the next `length` bytes to batch->text, or fewer at the end. */
int blocks_take(struct blocks *blocks, struct batch *batch, size_t length);

#endif
