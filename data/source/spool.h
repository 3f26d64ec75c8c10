/* Files that are read at several places at once, or from their end. */
#ifndef DML_DATA_SOURCE_SPOOL_H
#define DML_DATA_SOURCE_SPOOL_H

#include <stdbool.h>

#include "data/source/blocks.h"

struct spool {
    int descriptor; /* to read at any place of the text; -1: none is open */
    bool copied;    /* it is a temporary file's, and owned */
};
#define SPOOL_NONE                                                                                 \
    { .descriptor = -1 }

/* Opens the text of a source of which nothing was taken. What is compressed or no regular file is
 * copied to a temporary file, which has no name. */
int spool_open(struct spool *spool, struct blocks *blocks);
void spool_close(struct spool *spool); /* harmless on SPOOL_NONE */

/* Reads what is left of the source, for its hash. */
int spool_rest(struct blocks *blocks);

#endif
