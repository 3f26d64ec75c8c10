/* Lays rows out as a block of a pack (data/pack_file.h). */
#ifndef DML_DATA_PACK_BLOCK_H
#define DML_DATA_PACK_BLOCK_H

#include "data/pack_file.h"

/* The narrowest type that holds all values. */
enum value_type pack_block_type(const struct source_rows *rows);

/* What is put into a block. */
struct pack_block_content {
    const struct source_rows *rows;
    bool alike;                 /* every row has the features of the first */
    const uint32_t *feature;    /* numbers of the values' features; with `alike` of one row */
    const uint32_t *label_text; /* by row: the number of the text + 1, or 0 */
};

/* Fills `data`, of pack_block_layout().bytes. */
void pack_block_fill(const struct pack_block *block, const struct pack_block_content *content,
                     uint8_t *data);

#endif
