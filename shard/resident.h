/* What a device holds of a shard: for the files that bring it there and work with it. Pointers are
 * to memory of the device. The registers are where their vectors say (struct vector). */
#ifndef DML_SHARD_RESIDENT_H
#define DML_SHARD_RESIDENT_H

#include "device/device.h"
#include "shard/registers.h"
#include "shard/sweep_step.h"

struct resident {
    void *memory;     /* all but the program, in one piece */
    uint8_t *history; /* laid out as that of the registers */
    int64_t *sum;
    int16_t *exponents;                    /* or NULL */
    double *mean, *scale, *penalty, *root; /* of the frame: see shard/frame.h, or NULL */
    double *bias_gradient;
    struct sweep_yield *yields; /* of a program: SCALARS_MAX */
    uint8_t *slice;             /* room for a part of a slice: SLICE_BYTES */
    void *program;              /* the plan of the last one, or NULL */
    size_t program_bytes;
};

/* s or q (`part` 0 or 1) of a slot. */
static inline uint8_t *resident_pair(const struct registers *registers, uint32_t slot,
                                     uint32_t part) {
    return registers->resident->history + (2 * (size_t)slot + part) * registers->history_stride;
}

/* Runs a program as struct shard_backend says (shard/sweep.c). */
struct operation_list;
int resident_run(const struct operation_list *list, struct registers *registers,
                 const struct bounds *bounds, struct bytes *scalars);

#endif
