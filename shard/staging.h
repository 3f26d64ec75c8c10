/* The slices of flushes that wait for their verdict, and the list of flushes that the sum holds. */
#ifndef DML_SHARD_STAGING_H
#define DML_SHARD_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bulk.h"
#include "wire/flush_index.h"
#include "wire/message.h"

struct staged {
    struct flush_id id;
    enum stage_encoding encoding;
    uint64_t entries; /* STAGE_SPARSE */
    struct kept_bulk bulk;
    int64_t *biases; /* as many as `struct sums` has, or NULL; owned */
};

/* What the slices of an evaluation are added to. */
struct sums {
    size_t count; /* elements of a slice */
    int64_t *elements;
    size_t biases; /* of all outputs, which every shard has if the run has coordinates; else 0 */
    int64_t *bias;
};

struct staging {
    struct staged *staged; /* owned */
    size_t staged_count, staged_capacity;
    struct flush_id *folded; /* of the evaluation at hand; owned */
    size_t folded_count, folded_capacity;
    struct flush_index index; /* into `folded` */
    uint64_t folded_hash;     /* sum of flush_id_hash() over them */
};

/* Forgets everything, for a new evaluation. */
void staging_clear(struct staging *staging);
void staging_release(struct staging *staging);

/* Keeps a slice for these sums, and takes its memory over, unless the flush is staged or folded
 * already. ERROR_DATA if a dense slice has another length or a sparse one an offset beyond the
 * sums, or if it has another number of biases. */
int staging_keep(struct staging *staging, const struct message *stage, const struct sums *sums);

enum fold_result {
    FOLD_DONE,    /* added now */
    FOLD_AGAIN,   /* was added before; nothing done */
    FOLD_UNKNOWN, /* was never staged here, or dropped */
};

/* Adds the staged slice to the sums, once for each id, and releases it. The first one since
 * staging_clear() is not added to what they hold, but replaces it. */
enum fold_result staging_fold(struct staging *staging, const struct flush_id *id,
                              const struct sums *sums);

/* Releases a staged slice; harmless if there is none. */
void staging_drop(struct staging *staging, const struct flush_id *id);

#endif
