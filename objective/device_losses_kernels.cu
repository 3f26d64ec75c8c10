/* The kernels of losses, for GPUs. */
#include "objective/device_losses_kernels.h"

#include "objective/device_losses_kernels.def"
