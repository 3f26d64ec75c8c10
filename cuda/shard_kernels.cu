#include "shard/pass_kernel.h"

#include "shard/kernels.def"
