/* Flushes in flight: from the moment that accrued portions become one until its verdict.
 *
 * The elements lie in a buffer, one segment for the whole gradient, each shard's slice at its
 * range. A shard on this host reads its slice in place, so a buffer is free again only after the
 * verdict, or when every shard has begun another evaluation. */
#ifndef DML_REPLICA_FLUSH_H
#define DML_REPLICA_FLUSH_H

#include "replica/accrual.h"
#include "replica/replica.h"
#include "wire/segment.h"

/* A shard's range of every vector. */
struct range {
    uint64_t first, count;
};

/* What one shard gets of a flush. */
struct slice {
    enum stage_encoding encoding;
    uint64_t entries;
    struct bulk bulk;
    void *sparse; /* owned, or NULL */
};

struct flush {
    struct flush *next;
    struct flush_id id;
    struct accrual accrued;
    struct bytes totals;    /* encoded */
    struct segment *buffer; /* NULL if there are no sums or every slice is sparse */
    struct slice *slices;   /* a shard each */
    bool *staged;           /* acknowledged; a shard each */
    uint64_t *incarnations; /* of the shards that acknowledged */
    uint32_t staged_count;
};

struct flush_pool {
    uint32_t shards;
    uint64_t parameters;
    struct flush *first; /* in flight, in no particular order */
    struct segment *free[FLUSH_BUFFERS_MAX];
    uint32_t free_count, made;
};

/* Zeroed memory holds no flushes. */
void flush_pool_init(struct flush_pool *pool, uint32_t shards, uint64_t parameters);
void flush_pool_release(struct flush_pool *pool);

/* Starts a flush of what is accrued, which becomes empty. It gets a buffer if it has `sums`; NULL
 * if there is none to be had now. */
struct flush *flush_start(struct flush_pool *pool, const struct flush_id *id,
                          struct accrual *accrued, bool sums);

/* Cuts a flush, its buffer filled, into slices. A value of the data adds to
 * `outputs` elements, which is a row of the first tensor. */
void flush_encode(struct flush_pool *pool, struct flush *flush, const struct range *ranges,
                  uint64_t outputs);

/* Sends a shard its slice. */
void flush_stage(const struct flush *flush, uint32_t shard, uint32_t link, uint64_t epoch,
                 struct outbox *out);

/* A shard keeps its slice. True if it was the last that had to say so. */
bool flush_staged(struct flush_pool *pool, struct flush *flush, uint32_t shard,
                  uint64_t incarnation);

/* Tells the coordinator that every shard keeps the flush. */
void flush_report(const struct flush_pool *pool, const struct flush *flush, uint32_t link,
                  uint64_t epoch, struct outbox *out);

struct flush *flush_find(const struct flush_pool *pool, const struct flush_id *id);

/* Nobody reads it any more: its memory is free. */
void flush_drop(struct flush_pool *pool, struct flush *flush);

/* The same for every flush of another evaluation than this. */
void flush_pool_drop_others(struct flush_pool *pool, uint32_t attempt, uint32_t evaluation);

/* Drops every flush but `kept`, which may be NULL, though shards may still read them: their memory
 * is given up rather than used again, and lasts for as long as a shard needs it. */
void flush_pool_forget(struct flush_pool *pool, const struct flush *kept);

#endif
