/* How the emulated device runs kernels. */
#ifndef DML_DEVICE_EMULATED_KERNELS_H
#define DML_DEVICE_EMULATED_KERNELS_H

#include <stdbool.h>

#include "device/kernel.h"

#define EMULATED_FRESH 0xa5 /* memory at first: bytes that no kernel takes for its own */

/* How threads of a kernel share the processor. */
enum emulated_sides {
    SIDES_ONE,     /* one after the other */
    SIDES_BLOCKS,  /* half of the blocks beside the other half, in two threads of the processor */
    SIDES_THREADS, /* half of the threads of each phase of a block beside the other half */
};

/* `seed` decides the order of blocks, and of the threads of a phase; 0: rising. */
void emulated_run(const struct kernel *kernel, uint32_t blocks, const void *arguments,
                  uint64_t seed, enum emulated_sides sides);

#endif
