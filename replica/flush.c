#include "replica/flush.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "numeric/clones.h"

/* ---- what is not flushed yet ---- */

void accrual_clear(struct accrual *accrual, uint32_t totals) {
    struct chunk_range *portions = accrual->portions;
    uint32_t capacity = accrual->capacity;
    *accrual = (struct accrual){.portions = portions, .capacity = capacity};
    totals_init(&accrual->totals, totals);
}

void accrual_release(struct accrual *accrual) {
    free(accrual->portions);
    *accrual = (struct accrual){0};
}

void accrual_add(struct accrual *accrual, struct chunk_range portion,
                 const struct computed *computed, int64_t started_ns, int64_t now_ns) {
    assert(!computed->error && !computed->stopped && now_ns >= started_ns);
    assert(computed->totals.count == accrual->totals.count);
    if (!accrual->count)
        accrual->since_ns = started_ns;
    assert(portion.count && accrual->count <= accrual->capacity);
    /* Portions of the home range follow one another, so that a flush often names but one range. */
    struct chunk_range *last = accrual->count ? &accrual->portions[accrual->count - 1] : NULL;
    if (last && last->first + last->count == portion.first) {
        last->count += portion.count;
    } else {
        MEMORY_ROOM(accrual->portions, accrual->count, accrual->capacity);
        accrual->portions[accrual->count++] = portion;
    }
    totals_merge(&accrual->totals, &computed->totals);
    maxima_merge(&accrual->maxima, &computed->maxima);
    accrual->exceeded |= computed->exceeded;
    accrual->values += computed->values;
    accrual->rows = row_range_join(accrual->rows, computed->rows);
    accrual->busy_ns += now_ns - started_ns;
}

/* ---- buffers ---- */

static void give_buffer(struct flush_pool *pool, struct flush *flush) {
    assert(pool->free_count + (flush->buffer != NULL) <= pool->made);
    if (flush->buffer)
        pool->free[pool->free_count++] = flush->buffer;
    flush->buffer = NULL;
}

void flush_pool_release(struct flush_pool *pool) {
    while (pool->first)
        flush_drop(pool, pool->first);
    for (uint32_t i = 0; i < pool->free_count; i++)
        segment_free(pool->free[i]);
    *pool = (struct flush_pool){0};
}

void flush_pool_init(struct flush_pool *pool, uint32_t shards, const struct sums_sizes *sizes) {
    *pool = (struct flush_pool){
        .shards = shards, .sizes = *sizes, .sums_most = evaluation_sums_most(sizes)};
}

static struct segment *take_buffer(struct flush_pool *pool) {
    assert(pool->free_count <= pool->made && pool->made <= FLUSH_BUFFERS_MAX);
    if (pool->free_count)
        return pool->free[--pool->free_count];
    if (pool->made == FLUSH_BUFFERS_MAX)
        return NULL;
    pool->made++;
    return segment_new(pool->sums_most * sizeof(int64_t));
}

struct flush *flush_start(struct flush_pool *pool, const struct flush_id *id,
                          struct accrual *accrued, enum sums_layout sums, struct range covers) {
    struct segment *buffer = NULL;
    assert(accrued->count && pool->shards && !flush_find(pool, id));
    assert(covers.count <= pool->sums_most);
    if (sums != SUMS_NONE && !(buffer = take_buffer(pool)))
        return NULL;
    struct flush *flush = memory_new(1, sizeof *flush);
    flush->id = *id;
    flush->buffer = buffer;
    flush->sums = sums;
    flush->covers = covers;
    flush->accrued = *accrued;
    *accrued = (struct accrual){0};
    accrual_clear(accrued, flush->accrued.totals.count);
    bytes_init(&flush->totals);
    totals_encode(&flush->accrued.totals, &flush->totals);
    flush->slices = memory_new(pool->shards, sizeof *flush->slices);
    flush->staged = memory_new(pool->shards, sizeof *flush->staged);
    flush->incarnations = memory_new(pool->shards, sizeof *flush->incarnations);
    flush->next = pool->first;
    pool->first = flush;
    return flush;
}

/* ---- the slices ---- */

/* The sums of a shard that may be other than 0: all of its range, or those listed. */
struct candidates {
    const int64_t *sums;  /* `count` */
    struct range range;   /* of the shard's sums */
    const uint32_t *rise; /* which of the range they are, rising; NULL: all */
    uint64_t count;
};

static uint64_t count_nonzero(const struct candidates *c) {
    const int64_t *sums = c->sums;
    uint64_t nonzero = 0, count = c->count;
    for (uint64_t i = 0; i < count; i++) /* of vectors of the processor */
        nonzero += sums[i] != 0;
    return nonzero;
}

/* Offsets, padded to 8 bytes, or bits; then values: see STAGE_SPARSE and STAGE_BITMAP. */
static void list_entries(struct flush_slice *slice, const struct candidates *c, bool bits,
                         uint64_t entries) {
    uint64_t count = c->range.count;
    assert(bits || count <= UINT32_MAX);
    size_t values_at = bits ? stage_bitmap_values_at(count) : stage_sparse_values_at(entries);
    size_t length = bits ? stage_bitmap_bytes(count, entries) : stage_sparse_bytes(entries);
    char *made = memory_new(1, length);
    uint32_t *offset = (uint32_t *)(void *)made;
    uint64_t *word = (uint64_t *)(void *)made;
    int64_t *value = (int64_t *)(void *)(made + values_at);
    for (uint64_t i = 0; i < c->count; i++) {
        uint64_t at = c->rise ? c->rise[i] - c->range.first : i;
        if (!c->sums[i])
            continue;
        if (bits)
            word[at / 64] |= UINT64_C(1) << at % 64;
        else
            *offset++ = (uint32_t)at;
        *value++ = c->sums[i];
    }
    slice->encoding = bits ? STAGE_BITMAP : STAGE_SPARSE;
    slice->listed = made;
    slice->entries = entries;
    slice->bulk = (struct bulk){.data = made, .length = length};
}

/* Offsets that rise by eight on average are packed into about six bits each (wire/compact.h). */
enum { SPARSE_RISE = 8 };

/* Between hosts the fewest bytes count. On one host a dense slice is read where it lies, and only
 * few entries are worth a copy of their own. Offsets have 32 bits. */
static enum stage_encoding choose_encoding(uint64_t count, uint64_t entries, bool remote) {
    if (count > UINT32_MAX)
        return STAGE_DENSE;
    if (!remote)
        return entries < count / 4 ? STAGE_SPARSE : STAGE_DENSE;
    if (entries <= count / SPARSE_RISE)
        return STAGE_SPARSE;
    return stage_bitmap_bytes(count, entries) < count * sizeof(int64_t) ? STAGE_BITMAP
                                                                        : STAGE_DENSE;
}

/* `first`: which of the shard's sums come first in the slice. */
static void encode_slice(struct flush_slice *slice, const struct flush *flush, struct range range,
                         uint64_t first, bool counted, bool remote) {
    assert(range.first >= flush->covers.first);
    const int64_t *elements =
        (const int64_t *)flush->buffer->start + (range.first - flush->covers.first);
    struct candidates all = {.sums = elements, .range = range, .count = range.count};
    uint64_t entries = counted ? count_nonzero(&all) : range.count;
    enum stage_encoding encoding = choose_encoding(range.count, entries, remote);
    slice->first = first;
    if (encoding != STAGE_DENSE) {
        list_entries(slice, &all, encoding == STAGE_BITMAP, entries);
        return;
    }
    slice->encoding = STAGE_DENSE;
    slice->entries = range.count;
    slice->bulk.data = elements;
    slice->bulk.length = range.count * sizeof(int64_t);
    slice->bulk.segment = flush->buffer;
}

/* Never dense: what is not listed is nowhere. Offsets or bits, whichever are fewer bytes; beyond
 * what offsets reach, bits. */
static void encode_listed(struct flush_slice *slice, const struct sum_list *listed,
                          struct range range) {
    const struct sum_list part = sum_list_part(listed, range.first, range.count);
    struct candidates some = {
        .sums = part.value, .range = range, .rise = part.element, .count = part.count};
    uint64_t entries = count_nonzero(&some);
    bool bits =
        range.count > UINT32_MAX || choose_encoding(range.count, entries, true) == STAGE_BITMAP;
    list_entries(slice, &some, bits, entries);
}

/* Memory in the flush's buffer from *used bytes on; or, if that is full, of the slice's own. */
static char *take_room(struct flush *flush, struct flush_slice *slice, size_t length,
                       size_t *used) {
    const struct segment *buffer = flush->buffer;
    size_t at = (*used + BULK_ALIGNMENT - 1) / BULK_ALIGNMENT * BULK_ALIGNMENT;
    slice->bulk = (struct bulk){.length = length};
    if (at > buffer->length || length > buffer->length - at)
        return slice->listed = memory_new(1, length);
    *used = at + length;
    slice->bulk.segment = flush->buffer;
    return (char *)buffer->start + at;
}

VECTOR_CLONES static void copy_offsets(uint32_t *restrict offset, const uint32_t *restrict element,
                                       uint64_t count, uint32_t first) {
    for (uint64_t i = 0; i < count; i++)
        offset[i] = element[i] - first;
}

/* One list after the other: the shard adds them up. */
static void encode_lists(struct flush *flush, struct flush_slice *slice,
                         const struct sum_lists *lists, struct range range, size_t *used) {
    uint64_t entries = 0, at = 0;
    for (unsigned i = 0; i < lists->count; i++)
        entries += sum_list_part(lists->items[i], range.first, range.count).count;
    char *made = take_room(flush, slice, stage_sparse_bytes(entries), used);
    uint32_t *offset = (uint32_t *)(void *)made;
    int64_t *value = (int64_t *)(void *)(made + stage_sparse_values_at(entries));
    for (unsigned i = 0; i < lists->count; i++) {
        const struct sum_list part = sum_list_part(lists->items[i], range.first, range.count);
        copy_offsets(offset + at, part.element, part.count, (uint32_t)range.first);
        if (part.count)
            memcpy(value + at, part.value, part.count * sizeof *value);
        at += part.count;
    }
    slice->encoding = STAGE_SPARSE;
    slice->entries = entries;
    slice->bulk.data = made;
}

/* A remote shard gets each element once, in the fewest bytes. */
static void encode_all_lists(struct flush_pool *pool, struct flush *flush,
                             const struct range *ranges, const bool *remote,
                             const struct sum_lists *lists) {
    struct sum_list all = {0};
    size_t used = 0;
    for (uint32_t i = 0; i < pool->shards; i++) {
        bool alone = remote[i] || ranges[i].count > UINT32_MAX;
        if (alone && !all.capacity)
            sum_lists_add(lists, &all);
        if (alone)
            encode_listed(&flush->slices[i], &all, ranges[i]);
        else
            encode_lists(flush, &flush->slices[i], lists, ranges[i], &used);
    }
    sum_list_release(&all);
    if (!used)
        give_buffer(pool, flush);
}

void flush_keep_biases(struct flush *flush, uint64_t first, uint64_t count,
                       const struct sum_lists *listed) {
    assert(flush->buffer && !flush->biases && flush->sums == SUMS_PARAMETERS);
    assert(!flush->covers.first); /* what is scaled is not in strips */
    flush->biases = memory_new(count, sizeof *flush->biases);
    flush->biases_count = (uint32_t)count;
    if (!listed)
        memcpy(flush->biases, (const uint64_t *)flush->buffer->start + first,
               count * sizeof *flush->biases);
    for (unsigned i = 0; listed && i < listed->count; i++) {
        const struct sum_list part = sum_list_part(listed->items[i], first, count);
        for (uint64_t k = 0; k < part.count; k++)
            flush->biases[part.element[k] - first] += (uint64_t)part.value[k];
    }
}

void flush_encode(struct flush_pool *pool, struct flush *flush, const struct range *ranges,
                  const bool *remote, uint64_t outputs, const struct sum_lists *listed) {
    if (listed) {
        encode_all_lists(pool, flush, ranges, remote, listed);
        return;
    }
    /* Most of the sums may be zero where few values were seen. Each value touches `outputs`
     * elements of a gradient, and a bias adds `outputs` more. A row touches as many elements of a
     * triangle as it has pairs of values: that is not known here, so they are counted. So are those
     * of rows: a shard whose rows are not in the flush gets nothing, and others perhaps all. */
    bool sparse = flush->sums != SUMS_PARAMETERS ||
                  (flush->accrued.values + 1) * outputs < flush->covers.count / 4;
    bool dense = false;
    assert(flush->buffer && flush->sums != SUMS_NONE);
    for (uint32_t i = 0; i < pool->shards; i++) {
        struct sums_range of_shard =
            evaluation_sums_range(flush->sums, &pool->sizes, ranges[i].first, ranges[i].count);
        struct range own = {of_shard.first, of_shard.count};
        struct range range = range_intersection(own, flush->covers);
        /* Biases go to every shard, but not beside a slice without elements. */
        if (range.count || flush->biases)
            encode_slice(&flush->slices[i], flush, range.count ? range : own,
                         range.first - own.first, sparse || remote[i], remote[i]);
        dense |= flush->slices[i].encoding == STAGE_DENSE;
        heartbeat();
    }
    if (!dense)
        give_buffer(pool, flush);
}

void flush_stage(const struct flush *flush, uint32_t shard, uint32_t link, uint64_t term,
                 struct outbox *out) {
    const struct flush_slice *slice = &flush->slices[shard];
    assert(slice->encoding == STAGE_NONE || slice->bulk.data || !slice->bulk.length);
    const struct accrual *accrued = &flush->accrued;
    outbox_add(out, link,
               &(struct message){
                   .type = MESSAGE_STAGE,
                   .term = term,
                   .stage = {.flush = flush->id,
                             .portions = {accrued->portions, accrued->count},
                             .encoding = (uint8_t)slice->encoding,
                             .first = slice->first,
                             .entries = slice->entries,
                             .biases = {flush->biases, flush->biases_count}},
                   .bulk = slice->bulk,
               });
}

/* ---- afterwards ---- */

bool flush_staged(struct flush_pool *pool, struct flush *flush, uint32_t shard,
                  uint64_t incarnation) {
    assert(shard < pool->shards && flush->staged_count <= pool->shards);
    if (flush->staged[shard])
        return false;
    flush->staged[shard] = true;
    flush->incarnations[shard] = incarnation;
    flush->staged_count++;
    if (mutant(MEMORY_USED_EARLY) && flush->staged_count == pool->shards)
        give_buffer(pool, flush);
    if (mutant(ACCEPT_BEFORE_ALL_STAGED))
        return flush->staged_count == 1;
    return flush->staged_count == pool->shards;
}

void flush_report(const struct flush_pool *pool, const struct flush *flush, uint32_t link,
                  uint64_t term, struct outbox *out) {
    const struct accrual *accrued = &flush->accrued;
    outbox_add(out, link,
               &(struct message){
                   .type = MESSAGE_FLUSHED,
                   .term = term,
                   .flushed = {.flush = flush->id,
                               .portions = {accrued->portions, accrued->count},
                               .totals = {flush->totals.data, (uint32_t)flush->totals.length},
                               .maxima = accrued->maxima,
                               .exceeded = accrued->exceeded,
                               .incarnations = {flush->incarnations, pool->shards},
                               .busy_ns = (uint64_t)accrued->busy_ns},
               });
}

struct flush *flush_find(const struct flush_pool *pool, const struct flush_id *id) {
    struct flush *flush = pool->first;
    while (flush && !flush_id_equal(&flush->id, id))
        flush = flush->next;
    return flush;
}

void flush_drop(struct flush_pool *pool, struct flush *flush) {
    struct flush **place = &pool->first;
    while (*place != flush)
        place = &(*place)->next;
    assert(*place == flush);
    *place = flush->next;
    give_buffer(pool, flush);
    for (uint32_t i = 0; i < pool->shards; i++)
        free(flush->slices[i].listed);
    accrual_release(&flush->accrued);
    bytes_release(&flush->totals);
    free(flush->slices);
    free(flush->staged);
    free(flush->incarnations);
    free(flush->biases);
    free(flush);
}

void flush_pool_drop_others(struct flush_pool *pool, uint32_t attempt, uint32_t evaluation) {
    for (struct flush *flush = pool->first, *next; flush; flush = next) {
        next = flush->next;
        if (flush->id.attempt != attempt || flush->id.evaluation != evaluation)
            flush_drop(pool, flush);
    }
}

void flush_pool_forget(struct flush_pool *pool, const struct flush *kept) {
    for (struct flush *flush = pool->first, *next; flush; flush = next) {
        next = flush->next;
        if (flush == kept)
            continue;
        if (flush->buffer) {
            segment_free(flush->buffer);
            flush->buffer = NULL;
            pool->made--;
        }
        flush_drop(pool, flush);
    }
}
