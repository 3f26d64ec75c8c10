#include "shard/sweep_kernel.h"

#include "shard/kernels.def"
