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

/* A slice as it is added to sums. */
struct slice {
    enum stage_encoding encoding;
    uint64_t entries;      /* SPARSE */
    const void *data;      /* values; SPARSE: offsets, then slice_values() */
    const int64_t *biases; /* or NULL */
};

static inline const int64_t *slice_values(const struct slice *slice) {
    const uint8_t *start = (const uint8_t *)slice->data;
    return (const int64_t *)(const void *)(start + stage_sparse_values_at(slice->entries));
}

/* What the slices of an evaluation are added to. */
struct sums {
    size_t count;  /* elements of a slice */
    size_t biases; /* of all outputs, which every shard has if the run has coordinates; else 0 */
    /* Adds a slice; the first one replaces what the sums held. 0, or an error with its text. */
    int (*add)(void *context, const struct slice *slice, bool first);
    void *context;
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
    FOLD_FAILED,  /* with an error that is recorded: ERROR_UNAVAILABLE */
};

/* Adds the staged slice to the sums, once for each id, and releases it. The first one since
 * staging_clear() is not added to what they hold, but replaces it. */
enum fold_result staging_fold(struct staging *staging, const struct flush_id *id,
                              const struct sums *sums);

/* Releases a staged slice; harmless if there is none. */
void staging_drop(struct staging *staging, const struct flush_id *id);

#endif
