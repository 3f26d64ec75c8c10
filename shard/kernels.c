#include "base/limits.h"
#include "shard/sweep_kernel.h"

#include "shard/kernels.def"

_Static_assert(SWEEP_BLOCK == BLOCK_ELEMENTS, "a block of threads takes one block of the range");
