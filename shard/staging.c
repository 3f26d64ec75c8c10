#include "shard/staging.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static void release(struct staged *staged) {
    kept_bulk_release(&staged->bulk);
    free(staged->biases);
}

void staging_clear(struct staging *staging) {
    for (size_t i = 0; i < staging->staged_count; i++)
        release(&staging->staged[i]);
    staging->staged_count = 0;
    flush_index_clear(&staging->index);
    staging->folded_count = 0;
    staging->folded_hash = 0;
}

void staging_release(struct staging *staging) {
    staging_clear(staging);
    free(staging->staged);
    free(staging->folded);
    flush_index_release(&staging->index);
    *staging = (struct staging){0};
}

static struct staged *find_staged(const struct staging *staging, const struct flush_id *id) {
    for (size_t i = 0; i < staging->staged_count; i++)
        if (flush_id_equal(&staging->staged[i].id, id))
            return &staging->staged[i];
    return NULL;
}

static bool is_folded(const struct staging *staging, const struct flush_id *id) {
    return flush_index_find(&staging->index, id, NULL);
}

/* ---- whether a slice fits the range ---- */

static int check_sparse(const struct message *message, size_t count) {
    const uint32_t *offsets = message->bulk.data;
    for (uint64_t i = 0; i < message->stage.entries; i++)
        if (offsets[i] >= count)
            return error_set(ERROR_DATA, "a sparse slice with an offset outside of the sums");
    return 0;
}

static int check_slice(const struct message *message, const struct sums *sums) {
    uint8_t encoding = message->stage.encoding;
    if (encoding == STAGE_DENSE && message->bulk.length != sums->count * sizeof(int64_t))
        return error_set(ERROR_DATA, "a dense slice that is not as long as the sums");
    if (message->stage.biases.length != (encoding == STAGE_NONE ? 0 : sums->biases))
        return error_set(ERROR_DATA, "a slice with the sums of %u biases, of %zu",
                         message->stage.biases.length, sums->biases);
    return encoding == STAGE_SPARSE ? check_sparse(message, sums->count) : 0;
}

/* The first slice of an evaluation replaces what the sum held of the one before. */
static int add_slice(const struct staged *staged, const struct sums *sums, bool first) {
    const struct slice slice = {.encoding = staged->encoding,
                                .entries = staged->entries,
                                .data = staged->bulk.data,
                                .biases = staged->biases};
    return sums->add(sums->context, &slice, first);
}

/* ---- verdicts ---- */

/* A replica sends a STAGE again if the answer was lost with a connection or a coordinator. A flush
 * that is folded already must not be staged again: nobody would fold or drop that slice. */
int staging_keep(struct staging *staging, const struct message *stage, const struct sums *sums) {
    const struct u64_list *biases = &stage->stage.biases;
    if (find_staged(staging, &stage->stage.flush) || is_folded(staging, &stage->stage.flush))
        return 0;
    int code = check_slice(stage, sums);
    if (code)
        return code;
    MEMORY_ROOM(staging->staged, staging->staged_count, staging->staged_capacity);
    struct staged *staged = &staging->staged[staging->staged_count++];
    *staged = (struct staged){.id = stage->stage.flush,
                              .encoding = stage->stage.encoding,
                              .entries = stage->stage.entries};
    bulk_keep(&stage->bulk, &staged->bulk);
    if (biases->length) {
        staged->biases = memory_new(biases->length, sizeof *staged->biases);
        memcpy(staged->biases, biases->items, biases->length * sizeof *staged->biases);
    }
    return 0;
}

static void forget(struct staging *staging, struct staged *staged) {
    release(staged);
    *staged = staging->staged[--staging->staged_count];
}

static void note_folded(struct staging *staging, const struct flush_id *id) {
    MEMORY_ROOM(staging->folded, staging->folded_count, staging->folded_capacity);
    flush_index_add(&staging->index, id, (uint32_t)staging->folded_count);
    staging->folded[staging->folded_count++] = *id;
    staging->folded_hash += flush_id_hash(id);
}

/* Exactly once: the next coordinator repeats FOLD for every verdict in its journal, and cannot know
 * which of them this shard has carried out. So the list of folded flushes is asked first. The list,
 * the sum and its hash are for one evaluation; BEGIN clears them together. */
enum fold_result staging_fold(struct staging *staging, const struct flush_id *id,
                              const struct sums *sums) {
    if (is_folded(staging, id))
        return FOLD_AGAIN;
    struct staged *staged = find_staged(staging, id);
    if (!staged)
        return FOLD_UNKNOWN;
    if (add_slice(staged, sums, !staging->folded_count))
        return FOLD_FAILED;
    forget(staging, staged);
    note_folded(staging, id);
    return FOLD_DONE;
}

void staging_drop(struct staging *staging, const struct flush_id *id) {
    struct staged *staged = find_staged(staging, id);
    if (staged)
        forget(staging, staged);
}
