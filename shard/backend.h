/* Where a shard keeps its registers and computes: a table of functions.
 *
 * The host keeps the vectors of struct registers where they are, and runs programs there. A device
 * (device/device.h) has registers, history and sum in its own memory; the vectors of the host are
 * then copies: of the range that was pulled last, or that is to be pushed. Memory of the host that
 * was never touched takes no room.
 *
 * Functions answer 0, or, from a device alone, ERROR_UNAVAILABLE with a text. After such an error
 * what the registers hold is undefined. One thread. */
#ifndef DML_SHARD_BACKEND_H
#define DML_SHARD_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "shard/registers.h"
#include "wire/message.h"

/* A slice as it is added to sums. */
struct slice {
    enum stage_encoding encoding;
    uint64_t entries; /* SPARSE */
    const void *data; /* values; SPARSE: offsets, then slice_values() */
};

static inline const int64_t *slice_values(const struct slice *slice) {
    const uint8_t *start = (const uint8_t *)slice->data;
    return (const int64_t *)(const void *)(start + stage_sparse_values_at(slice->entries));
}

struct operation_list; /* shard/interpreter.h */

struct shard_backend {
    /* The registers were set up: takes what memory it needs itself. All vectors are zero, but x. */
    int (*open)(struct registers *registers);
    void (*close)(struct registers *registers); /* fine if it was not opened */

    /* All that was announced with the set-up has come (registers_complete()). */
    int (*load)(struct registers *registers);

    /* Runs a program as interpreter_run() says. */
    int (*run)(const struct operation_list *list, struct registers *registers,
               const struct bounds *bounds, struct bytes *scalars);

    /* sum = 0, of this layout. */
    int (*clear_sum)(struct registers *registers, enum sums_layout layout);

    /* Adds a slice to the sum, which has `count` elements; the first one replaces what it held. */
    int (*fold)(struct registers *registers, size_t count, const struct slice *slice, bool first);

    /* Elements offset… of a register, to the host's vector and back. */
    int (*pull)(struct registers *registers, uint8_t number, size_t offset, size_t count);
    int (*push)(struct registers *registers, uint8_t number, size_t offset, size_t count);

    /* s and q of a slot. */
    int (*pull_pair)(struct registers *registers, uint32_t slot);
    int (*push_pair)(struct registers *registers, uint32_t slot);
};

extern const struct shard_backend shard_on_host;
extern const struct shard_backend shard_on_device; /* registers.device must be there */

#endif
