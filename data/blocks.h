/* Splits the text of a source into blocks of whole lines. */
#ifndef DML_DATA_BLOCKS_H
#define DML_DATA_BLOCKS_H

#include "data/batch.h"
#include "data/input.h"

/* About this much text a block, so that the parsed values stay in the cache. Nothing else decides
 * how text is split, so packs do not depend on the number of threads. */
#define BLOCK_TEXT_BYTES (256u << 10)

struct blocks {
    struct input *input;
    const char *path;
    uint64_t next_line;
    uint64_t text_bytes;
    char *rest; /* the beginning of a line that did not fit into the last block; owned */
    size_t rest_length, rest_capacity;
    bool ended;
};

/* `input` and `path` stay the caller's. */
void blocks_init(struct blocks *blocks, struct input *input, const char *path);
void blocks_release(struct blocks *blocks);

/* Reads the next block into batch->text; text_length 0 is the end. */
int blocks_next(struct blocks *blocks, struct batch *batch);

#endif
