/* Fills the training chunks of a shuffled set, as many at a time as fit in memory beside the packs:
 * for each such window the packs are read once, in order. So a set that is larger than memory takes
 * some passes over them, and no read at a random place of the disk for every row. */
#ifndef DML_DATA_WINDOW_H
#define DML_DATA_WINDOW_H

#include "data/chunk_fill.h"

/* Bytes of a window, which is part of a mapped file: a share of the memory of this machine. What is
 * written does not depend on it. */
uint64_t window_bytes(void);

/* The end of the window that begins with chunk `first`: a chunk at least, and no more than `bytes`
 * of them. */
uint32_t window_end(const struct chunk_plan *plan, uint32_t first, uint64_t bytes);

/* Fills a window of zeros on up to `threads` threads. */
void window_fill(const struct chunk_source *source, const struct chunk_window *window,
                 unsigned threads);

#endif
