/* Which columns of a sparse set the chunks have that a replica has computed so far. A shard on
 * another host then sends what the point has in these columns alone (wire/wanted.h): a replica
 * computes about the same chunks in every evaluation, and those of wide data use a share of the
 * columns each. Of a set in tiles the tiles are what is known, and columns are those of their
 * strip.
 *
 * It is learnt on the way: a chunk that is not known is computed at a whole point, and is known
 * from then on, until a replica knows far more chunks than it computes. Of tiles the columns of a
 * strip's first portion are noted before any are fetched, and the whole strip is where another is
 * not known. An evaluation over few chunks, such as a minibatch, has needs of its own: the columns
 * of each portion are noted before the point is fetched. A set has the same chunks in every
 * attempt. */
#ifndef DML_REPLICA_NEEDS_H
#define DML_REPLICA_NEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows.h"

struct needs {
    uint32_t column_count; /* of a strip, or of a set without tiles */
    uint32_t strip_count;  /* 1 without tiles */
    uint32_t chunk_count;  /* or of tiles; 0: nothing is learnt */
    uint64_t *columns;     /* a bit each, each strip's from a word on; owned */
    uint64_t *chunks;      /* a bit each, each strip's from a word on; owned */
    uint64_t *computed;    /* chunks of each strip, in the evaluation under way; owned */
};

/* `columns` of each strip; `chunks` in all, or tiles. */
void needs_init(struct needs *needs, uint32_t columns, uint32_t strips, uint32_t chunks);
void needs_release(struct needs *needs); /* harmless on a zeroed one; leaves a zeroed one */

void needs_clear(struct needs *needs); /* nothing is known any more */

/* Adds the columns of sparse rows to `columns`, a bit each. Many threads may do so at once. */
void needs_note(const struct rows *rows, uint64_t *columns);

/* The bits of the columns of a strip. */
uint64_t *needs_strip(const struct needs *needs, uint32_t strip);

void needs_add_column(struct needs *needs, uint32_t column); /* without tiles */

/* Chunks [first, first + count), whose columns were noted. */
void needs_learn(struct needs *needs, uint32_t first, uint32_t count);

/* Whether all of them are known. */
bool needs_knows(const struct needs *needs, uint32_t first, uint32_t count);

/* How many of them are. */
uint32_t needs_known(const struct needs *needs, uint32_t first, uint32_t count);

/* Notes that so many chunks of a strip were computed; of an evaluation that begins, none. What has
 * no columns, as that of upper layers, is not counted. */
void needs_count(struct needs *needs, uint32_t strip, uint32_t chunks);
void needs_count_anew(struct needs *needs);

/* Nothing of a strip is known any more. */
void needs_forget(struct needs *needs, uint32_t strip);

/* Whether something is known, and so few columns of the strip that it pays to ask for these alone.
 */
bool needs_are_few(const struct needs *needs, uint32_t strip);

#endif
