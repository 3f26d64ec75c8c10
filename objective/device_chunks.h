/* Inside objective/ only: chunks of rows in the memory of a device. A chunk that is asked for stays
 * there if there is room; else it is put into a buffer of the group that it is asked for in. There
 * are two groups, so that one can be loaded while the other is computed. */
#ifndef DML_OBJECTIVE_DEVICE_CHUNKS_H
#define DML_OBJECTIVE_DEVICE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows.h"
#include "device/device.h"
#include "objective/device_chunk.h"

/* Memory of a device that grows; what is in it is lost then. */
struct device_room {
    void *memory;
    uint64_t bytes;
};

/* At least so many bytes; 0, or ERROR_UNAVAILABLE. */
int device_room_reserve(struct device *device, struct device_room *room, uint64_t bytes);
void device_room_release(struct device *device, struct device_room *room);

struct device_chunks_settings {
    bool lists;    /* labels are lists */
    bool columns;  /* chunks list the columns that they have values in */
    bool arranged; /* sparse rows that stay may be arranged (objective/device_sparse.h):
                      only gradients of linear models read them then */
    uint32_t features;
    uint64_t bytes;  /* of chunks that stay */
    uint64_t spare;  /* bytes of the device that must stay free for others */
    uint64_t buffer; /* bytes of the chunks of a group that do not; one chunk may have more */

    /* As in struct objective_device_settings. */
    int (*chunk)(void *context, uint32_t number, struct rows *rows);
    void *context;
};

/* Some chunks in a row. */
struct device_group {
    struct device_chunk *chunks; /* on the host */
    struct device_room table;    /* the chunks on the device */
    struct device_room buffer;
    uint32_t first, count, capacity;
    uint32_t rows_most;    /* of a chunk */
    uint64_t rows, values; /* of all */
    uint64_t values_most;  /* of a chunk */
    uint64_t columns;      /* of networks: as in struct device_pass */
    uint32_t columns_most;
    uint32_t by_column; /* how many have their values column by column, too */
    bool dense;         /* all, or none */
};

/* What rows, chunks, and columns of networks' chunks of a group take elsewhere, and how much of
 * that there may be. A group of one chunk may have more. */
struct device_group_limit {
    uint64_t row, dense_chunk, sparse_chunk, column; /* bytes each */
    uint64_t most;
};

struct device_chunks; /* opaque */

struct device_chunks *device_chunks_new(struct device *device,
                                        const struct device_chunks_settings *settings);
void device_chunks_free(struct device_chunks *chunks); /* harmless on NULL */

/* Puts as many chunks from number `first` on into the copy queue, at most `count` and at least one,
 * as the limit allows. What computes the group's last chunks must have ended. 0, or an error code
 * with its text recorded. */
int device_chunks_load(struct device_chunks *chunks, uint32_t first, uint32_t count,
                       const struct device_group_limit *limit, struct device_group *group);
void device_group_release(struct device *device, struct device_group *group);

/* How many chunks stay in the device's memory now, and how many of those asked for did
 * not; the bytes that the former take. */
struct device_chunks_usage {
    uint32_t resident, streamed;
    uint64_t bytes;
};
struct device_chunks_usage device_chunks_usage(const struct device_chunks *chunks);

#endif
