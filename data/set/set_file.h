/* The inside of a set. The layout is that of doc/FORMATS.md. */
#ifndef DML_DATA_SET_SET_FILE_H
#define DML_DATA_SET_SET_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rows.h"
#include "data/pack/container.h"
#include "data/set/set.h"

/* Raise it whenever a file of the old version would be read wrongly or lacks something, or the
 * same packs would give another set: sets are made again from packs. */
#define SET_VERSION 1
extern const struct container_kind set_kind;

enum set_section {
    SET_FACTS,
    SET_CHUNKS,    /* struct set_chunk × chunks */
    SET_IDS,       /* u64 × features: original id of each column */
    SET_ORDER,     /* u32 × features: columns by rising original id; u64 if there are more than
                      FEATURES_MAX */
    SET_COUNTS,    /* u64 × features: values the text had of each column; and after them, if words
                      are weighed, f64 × features: what they weigh, 0 of others; and after them,
                      if columns have centres, f64 × features: these */
    SET_EXPONENTS, /* i16 × features+1 */
    SET_NAMES,     /* texts × features, if named */
    SET_CLASSES,   /* texts × classes */
    SET_SOURCES,   /* texts × 2·sources: path and pack fingerprint of each */
    SET_WEIGHTS,   /* struct set_weights, if rows have weights */
    SET_TARGETS,   /* struct label_summary, if labels are targets */
    SET_TABLE,     /* CSV: one text, as of table_text() */
    SET_LISTS,     /* u32 × lists + 1: where the classes of each list begin, */
    SET_LISTED,    /* and u32: all of these; both if labels are lists */
    SET_TILES,     /* struct set_tile × tiles, if the set is in tiles */
    SET_OF_CLASS,  /* f64 × classes: the weight of each, if classes have weights */
};

struct set_facts {
    uint64_t rows, values, text_values; /* stored, and as the text had them */
    uint64_t rejected;
    double label_max_abs;
    uint64_t features;
    uint32_t chunks, classes, sources, strip_columns;
    uint32_t type, labels;                     /* enum value_type, enum label_kind */
    uint8_t dense, named, uniform, block_rows; /* the last as in struct set_info */
    int32_t uniform_exponent;
    double holdout; /* as in struct set_info, as what follows is */
    uint64_t rows_held_out, holdout_rows, holdout_unseen;
    uint32_t holdout_chunks, fold;
    char fingerprint[40]; /* HASH128_TEXT, padded with 0 */
};
_Static_assert(sizeof(struct set_facts) == 160, "no padding");

/* The section: facts, and after them, only if rows have offsets, what these are like. */
struct set_facts_stored {
    struct set_facts facts;
    struct offset_summary offsets;
};
_Static_assert(sizeof(struct set_facts_stored) == 192, "no padding");

struct set_weights {
    double sum, holdout_sum; /* as in struct set_info, as what follows is */
    int32_t exponent;
    uint32_t unused;
};

/* A chunk; its first row is counted among those of training, or of the holdout. At `offset`, each
 * array aligned: start u32 × rows+1 and feature u32 × values (sparse only), value as `type` says ×
 * values, label f64 × rows; and, each only if all chunks have it: weight f64 × rows, offset f64 ×
 * rows, cluster u64 × rows.
 *
 * A chunk of a set in tiles is its head alone, what its rows have besides values: label, weight,
 * size i16 × rows, offset. */
struct set_chunk {
    uint64_t offset, bytes, checksum;
    uint64_t first_row;
    uint32_t rows;
    uint8_t type, weighted, shifted, clustered; /* enum value_type; whether rows have those */
    uint64_t values;
};
_Static_assert(sizeof(struct set_chunk) == 48, "no padding");

struct set_chunk_layout {
    /* Places within the chunk: */
    uint64_t start, feature, value, label, weight, offset, cluster, bytes;
};
struct set_chunk_layout set_chunk_layout(const struct set_chunk *chunk, bool dense);

struct set_head_layout {
    uint64_t label, weight, size, offset, bytes; /* places within the head */
};
struct set_head_layout set_head_layout(const struct set_chunk *chunk);

/* A tile. At `offset`, each array aligned: start u32 × rows+1, feature u32 × values, counted from
 * the first column of the strip, value as the chunk's type says × values. Tiles are stored in the
 * order of their numbers, strip by strip: what reads one strip reads on. */
struct set_tile {
    uint64_t offset, bytes, checksum, values;
};
_Static_assert(sizeof(struct set_tile) == 32, "no padding");

struct set_tile_layout {
    uint64_t start, feature, value, bytes; /* offsets within the tile */
};
struct set_tile_layout set_tile_layout(const struct set_chunk *chunk, uint64_t values);

/* Opens a set over the file of a partial one, which it takes over, of so many bytes: see
 * data/set/partial.c. */
struct chunk_cache;
int set_open_partial(struct chunk_cache *file, uint64_t bytes, struct set **set);

/* Merges packs into the new file `path`. As set_of_packs(). */
int set_write(const char *path, struct pack *const *packs, uint32_t count,
              const struct set_options *options);

/* ---- a copy of a set's chunks on a local disk ----
 *
 * For sets that lie where reading is slow. It has those chunks that were asked for, at their places
 * in the set; between them the file has holes. Nothing says which are there: a chunk counts if its
 * checksum is that of the set. So it does not matter who wrote it, whether that process was killed
 * meanwhile, or what the disk made of it; and the replicas of one host share the file, which any of
 * them may write to at any time. */

struct chunk_cache; /* opaque */

/* Opens or makes FOLDER/dml-FINGERPRINT.scratch for a set of `bytes`, and the folder. Removes the
 * copies of other sets that no process has open. Without a folder the file is in memory, for this
 * process alone. ERROR_CREATE, ERROR_IO, ERROR_PERMISSION, ERROR_UNAVAILABLE. */
int chunk_cache_open(const char *folder, const char *fingerprint, uint64_t bytes,
                     struct chunk_cache **cache);

/* Leaves the file for the next run. Harmless on NULL. */
void chunk_cache_close(struct chunk_cache *cache);

/* What the file has at this place: `length` bytes that may be anything. From any thread. */
const uint8_t *chunk_cache_at(const struct chunk_cache *cache, uint64_t offset);

/* Removes the file unless another process uses it, and gives up the lock. To be called before
 * chunk_cache_close(). */
void chunk_cache_remove(struct chunk_cache *cache);

const char *chunk_cache_path(const struct chunk_cache *cache); /* "memory" */
int chunk_cache_descriptor(const struct chunk_cache *cache);

/* Whether nothing was ever put there: then it need not be read. From any thread. */
bool chunk_cache_is_hole(const struct chunk_cache *cache, uint64_t offset, size_t length);

/* Puts a chunk into the file; false after a failure. After the first (a full disk) nothing is
 * written any more; the log has one line. From any thread. */
bool chunk_cache_put(struct chunk_cache *cache, uint64_t offset, const void *data, size_t length);

#endif
