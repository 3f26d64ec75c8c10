/* The kernels of networks, as a GPU runs them. */
#include "objective/device_network_kernels.h"

#include "objective/device_network_kernels.def"
