/* Packs: one source file, read once, in a form that is mapped into memory.
 *
 * A pack is named by a fingerprint of the source's bytes and of the options that shaped it, and
 * contains everything that a merge needs: rows in the file's order with the pack's own feature
 * numbers, its dictionary (own number → original id), counts, labels, the source's path, size,
 * times and hash, and the rejected lines with reasons. Format: see doc/FORMATS.md. */
#ifndef DML_DATA_PACK_PACK_H
#define DML_DATA_PACK_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "data/source/source.h"

struct pack; /* opaque; a mapped file */

/* The pack of `source` in folder `packs`: an existing one if the source is unchanged (same size,
 * times and inode, else same content), else a new one. *made says whether it is new. The file is
 * published whole or not at all. *pack is NULL for a source without rows, if the options allow one.
 */
int pack_of_source(const char *packs, const char *source, const struct source_options *options,
                   unsigned threads, struct pack **pack, bool *made);

/* Maps a pack and checks header and checksums. */
int pack_open(const char *path, struct pack **pack);
void pack_close(struct pack *pack);

/* The range of the labels that are numbers, of rows whose weight is not 0; least > most if there
 * are none. */
void pack_labels(const struct pack *pack, double *least, double *most);

const char *pack_source(const struct pack *pack);
const char *pack_fingerprint(const struct pack *pack);

/* The report of source_read() for the file, without reasons; columns that are not features have the
 * name "". Release it. */
void pack_report(const struct pack *pack, struct source_report *report);

/* Hands out the rows as source_read() would: original ids, values and labels as the text had them,
 * in the file's order. But rows are not lines: `first_line` counts rows, from 1. A result of
 * `take` other than 0 ends the reading with that code. Safe from many threads. */
int pack_read(const struct pack *pack, source_take *take, void *context);

/* Reads a pack as pack_read() does, and the rows have the texts of categories as their origins. */
int pack_read_with_texts(const struct pack *pack, source_take *take, void *context);

#endif
