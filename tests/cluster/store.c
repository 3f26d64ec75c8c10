#include "tests/cluster/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/random.h"
#include "coordinator/machine/coordinator.h"

enum store_kind { STORE_EPOCH, STORE_ATTEMPT, STORE_JOURNAL, STORE_DURABLE, STORE_ROLL_BACK };

struct store_operation {
    enum store_kind kind;
    bool flag;      /* a journal entry begins; a roll-back is to the start */
    uint64_t value; /* term, attempt or step */
    void *data;     /* owned, or NULL */
    size_t length;
    uint64_t *digests; /* owned, or NULL */
};

static void forget_from(struct virtual_store *store, uint32_t first) {
    for (uint32_t i = first; i < store->count; i++) {
        free(store->operations[i].data);
        free(store->operations[i].digests);
    }
    store->count = first;
}

void virtual_store_release(struct virtual_store *store) {
    forget_from(store, 0);
    free(store->operations);
    *store = (struct virtual_store){0};
}

static struct store_operation *add(struct virtual_store *store, enum store_kind kind, bool flag,
                                   uint64_t value) {
    MEMORY_ROOM(store->operations, store->count, store->capacity);
    struct store_operation *operation = &store->operations[store->count++];
    *operation = (struct store_operation){.kind = kind, .flag = flag, .value = value};
    return operation;
}

static void add_data(struct store_operation *operation, const void *data, size_t length) {
    operation->data = memory_new(1, length);
    operation->length = length;
    memcpy(operation->data, data, length);
}

int virtual_store_flush(struct virtual_store *store) {
    if (store->count > store->committed && store->full) {
        forget_from(store, store->committed);
        return error_set(ERROR_IO, "the database's disk is full");
    }
    store->committed = store->count;
    return 0;
}

static int commit_full(struct virtual_store *store) {
    int code = virtual_store_flush(store);
    store->synced = store->committed;
    return code;
}

uint64_t virtual_store_term(struct virtual_store *store) {
    uint64_t term = 1;
    bool full = store->full;
    for (uint32_t i = 0; i < store->committed; i++)
        term += store->operations[i].kind == STORE_EPOCH;
    if (mutant(TERM_NOT_RENEWED))
        return 1;
    store->term = term;
    add(store, STORE_EPOCH, false, term);
    store->full = false;
    commit_full(store);
    store->full = full;
    return term;
}

static int add_durable(struct virtual_store *store, const struct record *record,
                       const uint8_t *blobs, uint32_t shards) {
    const uint64_t *digests = record->durable.digests;
    struct store_operation *operation = add(store, STORE_DURABLE, false, record->durable.step);
    add_data(operation, blobs + record->durable.offset, record->durable.length);
    operation->digests = memory_new(shards, sizeof *digests);
    memcpy(operation->digests, digests, shards * sizeof *digests);
    return commit_full(store);
}

int virtual_store_record(struct virtual_store *store, const struct record *record,
                         const uint8_t *blobs, uint32_t shards) {
    switch (record->kind) {
    case RECORD_ATTEMPT:
        add(store, STORE_ATTEMPT, false, record->attempt);
        return commit_full(store);
    case RECORD_JOURNAL:
        add_data(add(store, STORE_JOURNAL, record->journal.begins, 0),
                 blobs + record->journal.offset, record->journal.length);
        return 0;
    case RECORD_DURABLE_STEP:
        return add_durable(store, record, blobs, shards);
    case RECORD_ROLL_BACK:
        add(store, STORE_ROLL_BACK, record->roll_back.to_start, record->roll_back.checkpoint);
        return 0;
    default:
        return 0;
    }
}

void virtual_store_crash(struct virtual_store *store) {
    forget_from(store, store->committed);
}

void virtual_store_power_cut(struct virtual_store *store, struct random *random) {
    uint32_t unsafe = store->committed - store->synced;
    store->committed = store->synced + (uint32_t)random_below(random, unsafe + 1);
    forget_from(store, store->committed);
}

/* ---- reading ---- */

static void add_step(struct store_saved *saved, const struct store_operation *operation) {
    saved->steps[1] = saved->steps[0];
    saved->steps[0].step = operation->value;
    saved->steps[0].digests = operation->digests;
    saved->steps[0].state =
        (struct store_blob){.data = operation->data, .length = operation->length};
    saved->step_count += saved->step_count < 2;
    saved->journal_count = 0;
}

static void undo_steps(struct store_saved *saved, const struct store_operation *operation) {
    while (saved->step_count && (operation->flag || saved->steps[0].step > operation->value)) {
        saved->steps[0] = saved->steps[1];
        saved->step_count--;
    }
}

static void replay(struct store_saved *saved, const struct store_operation *operation,
                   struct store_blob *journal) {
    switch (operation->kind) {
    case STORE_EPOCH:
        break;
    case STORE_ATTEMPT:
        saved->attempt = (uint32_t)operation->value;
        break;
    case STORE_JOURNAL:
        if (operation->flag)
            saved->journal_count = 0;
        journal[saved->journal_count++] =
            (struct store_blob){.data = operation->data, .length = operation->length};
        break;
    case STORE_DURABLE:
        add_step(saved, operation);
        break;
    case STORE_ROLL_BACK:
        undo_steps(saved, operation);
        break;
    }
}

void virtual_store_read(const struct virtual_store *store, struct store_saved *saved,
                        struct store_blob **journal) {
    *saved = (struct store_saved){0};
    *journal = memory_new(store->committed, sizeof **journal);
    for (uint32_t i = 0; i < store->committed; i++)
        replay(saved, &store->operations[i], *journal);
    saved->journal = *journal;
}
