/* Tiles: the chunks of a wide set, cut along columns. */
#ifndef DML_DATA_SET_TILES_H
#define DML_DATA_SET_TILES_H

#include <stdint.h>

#include "data/set/chunk_fill.h"

/* Counts the values of all tiles, on up to `threads` threads, and reserves the place of each, and
 * that of each chunk's head. */
void tiles_place(const struct chunk_source *source, struct chunk_plan *plan,
                 struct container_writer *container, unsigned threads);

/* Writes head and tiles of the chunk that is in the buffer, and notes their checksums. ERROR_DATA
 * if the values of a row are too large to be added. */
int tiles_write(struct chunk_buffer *buffer, struct chunk_plan *plan, uint32_t chunk,
                const struct container_writer *container);

#endif
