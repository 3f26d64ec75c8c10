/* The kernels of networks, as the emulated device runs them. */
#include "objective/device_network_kernels.h"

#include "objective/device_network_kernels.def"
