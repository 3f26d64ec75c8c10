/* The coordinator's database as a log of transactions: what was collected and not committed is lost
 * with the process; what was committed with synchronous = NORMAL outlives it, but a power cut may
 * take the last of it; what was committed with FULL stays. */
#ifndef DML_TESTS_CLUSTER_STORE_H
#define DML_TESTS_CLUSTER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record;
struct store_saved;
struct store_blob;
struct random;
struct store_operation; /* opaque */

struct virtual_store {
    struct store_operation *operations;
    uint32_t count, capacity;
    uint32_t committed, synced; /* of them */
    bool full;                  /* the disk is: nothing more is committed */
    uint64_t term;              /* whose database it is */
};

void virtual_store_release(struct virtual_store *store);

/* Commits the next term, FULL. */
uint64_t virtual_store_term(struct virtual_store *store);

/* A record with what it says of `blobs`, those of its output, if a later coordinator goes on from
 * it; others are not kept. 0 or ERROR_IO. */
int virtual_store_record(struct virtual_store *store, const struct record *record,
                         const uint8_t *blobs, uint32_t shards);

/* Commits what was collected, NORMAL. */
int virtual_store_flush(struct virtual_store *store);

/* The process is gone, or the power: the operations from `committed` on, or from some number
 * between `synced` and that on, never were. */
void virtual_store_crash(struct virtual_store *store);
void virtual_store_power_cut(struct virtual_store *store, struct random *random);

/* What is there. The journal's items are owned by the caller, what they point to by the store,
 * until the next change. */
void virtual_store_read(const struct virtual_store *store, struct store_saved *saved,
                        struct store_blob **journal);

#endif
