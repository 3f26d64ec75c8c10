/* Flushes in flight: from the moment that accrued portions become a flush until the coordinator's
 * commit decision.
 *
 * The elements lie in a buffer: one segment of shared memory for the sums that the flush has, with
 * each shard's slice at its place among them. They are all sums, those of the rows of its chunks,
 * or those of a strip of columns; of few columns lists lie there. A shard on this host reads its
 * slice in place. So a buffer is
 * free again only after that decision, or when every shard has begun another evaluation.
 *
 * The life of a gradient, from kernel to fold: objective/ (rows), replica/compute.c (a chunk),
 * replica/workers.c (all threads), replica/evaluation.c (portions), here (slices),
 * shard/evaluation.c (staged, then folded), shard/host.c or shard/device.c (added to the sum). */
#ifndef DML_REPLICA_FLUSH_H
#define DML_REPLICA_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "replica/compute.h"
#include "replica/sum.h"
#include "wire/bulk.h"
#include "wire/message.h"

/* Buffers for flushes, one gradient each. While all of them wait for decisions, computing waits
 * too. */
#define FLUSH_BUFFERS_MAX 4

/* Elements of a vector, or of sums: those of a shard, of a strip, of a flush. */
struct range {
    uint64_t first, count;
};

static inline struct range range_intersection(struct range a, struct range b) {
    uint64_t first = a.first > b.first ? a.first : b.first;
    uint64_t a_end = a.first + a.count, b_end = b.first + b.count;
    uint64_t end = a_end < b_end ? a_end : b_end;
    return (struct range){first, first < end ? end - first : 0};
}

/* What a replica has computed and not yet flushed. */
struct accrual {
    struct chunk_range *portions;
    uint32_t count, capacity;
    struct totals totals;
    struct maxima maxima;
    bool exceeded;         /* a portion exceeded its bound: the sums are void */
    uint64_t values;       /* stored values of the portions */
    struct row_range rows; /* of sums by rows */
    int64_t busy_ns;       /* spent computing them */
    int64_t since_ns;      /* when the first portion was started */
};

/* Empties it for an evaluation with `totals` totals, and keeps its memory. Harmless on zeroed
 * memory.
 */
void accrual_clear(struct accrual *accrual, uint32_t totals);
void accrual_release(struct accrual *accrual);

/* Counts in a portion that was computed from `started_ns` to `now_ns`. */
void accrual_add(struct accrual *accrual, struct chunk_range portion,
                 const struct computed *computed, int64_t started_ns, int64_t now_ns);

/* What one shard gets of a flush. */
struct flush_slice {
    enum stage_encoding encoding;
    uint64_t first, entries;
    struct bulk bulk;
    void *listed; /* owned, or NULL */
};

struct flush {
    struct flush *next;
    struct flush_id id;
    struct accrual accrued;
    enum sums_layout sums;      /* SUMS_NONE if it has none */
    struct range covers;        /* of the sums of all shards: the buffer has these */
    struct bytes totals;        /* encoded */
    struct segment *buffer;     /* NULL if there are no sums or no slice lies in it */
    struct flush_slice *slices; /* a shard each */
    bool *staged;               /* acknowledged; a shard each */
    uint64_t *incarnations;     /* of the shards that acknowledged */
    uint64_t *biases; /* the sums of the biases as int64, if every shard needs them, or NULL */
    uint32_t biases_count;
    uint32_t staged_count;
};

struct flush_pool {
    uint32_t shards;
    struct sums_sizes sizes;
    uint64_t sums_most;  /* of any evaluation */
    struct flush *first; /* in flight, in no particular order */
    struct segment *free[FLUSH_BUFFERS_MAX];
    uint32_t free_count, made;
};

/* Zeroed memory holds no flushes. */
void flush_pool_init(struct flush_pool *pool, uint32_t shards, const struct sums_sizes *sizes);
void flush_pool_release(struct flush_pool *pool);

/* Makes a flush of what is accrued, and empties `accrued`. A flush with sums gets a buffer for
 * those that it `covers`; NULL, and nothing changes, if all buffers are in use. */
struct flush *flush_start(struct flush_pool *pool, const struct flush_id *id,
                          struct accrual *accrued, enum sums_layout sums, struct range covers);

/* Cuts a flush, whose buffer is filled, into slices; `ranges` are of the parameters. A shard that
 * has nothing of what the flush covers gets a slice without elements. A shard that is `remote`,
 * which does not read the buffer, gets its slice in the encoding with the fewest bytes. For others
 * a value of the data adds to `outputs` elements of a gradient, a row of the first tensor: so what
 * is sparse is known without a look at the sums. `listed`: as of replica_gathered(); or NULL. */
void flush_encode(struct flush_pool *pool, struct flush *flush, const struct range *ranges,
                  const bool *remote, uint64_t outputs, const struct sum_lists *listed);

/* Copies elements [first, first + count) of the flush, the biases, for every shard to get beside
 * its slice. To be called before flush_encode(), `listed` as there. */
void flush_keep_biases(struct flush *flush, uint64_t first, uint64_t count,
                       const struct sum_lists *listed);

/* Sends a shard its slice. */
void flush_stage(const struct flush *flush, uint32_t shard, uint32_t link, uint64_t term,
                 struct outbox *out);

/* Notes that a shard keeps its slice. True if now all shards do. */
bool flush_staged(struct flush_pool *pool, struct flush *flush, uint32_t shard,
                  uint64_t incarnation);

/* Tells the coordinator that every shard keeps the flush. */
void flush_report(const struct flush_pool *pool, const struct flush *flush, uint32_t link,
                  uint64_t term, struct outbox *out);

struct flush *flush_find(const struct flush_pool *pool, const struct flush_id *id);

/* Ends a flush that no shard reads any more; its buffer may be used again. */
void flush_drop(struct flush_pool *pool, struct flush *flush);

/* Drops every flush of another evaluation than this. */
void flush_pool_drop_others(struct flush_pool *pool, uint32_t attempt, uint32_t evaluation);

/* Drops every flush except `kept` (may be NULL) although shards may still read them. Their buffers
 * are not used again: a segment lives until the last shard has unmapped it. */
void flush_pool_forget(struct flush_pool *pool, const struct flush *kept);

#endif
