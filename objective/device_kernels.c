/* The kernels as the processor runs them, and what launches them on a GPU. */
#include "objective/device_curvature_kernels.h"
#include "objective/device_linear_kernels.h"
#include "objective/device_losses_kernels.h"
#include "objective/device_network_kernels.h"

#include "objective/device_kernels.def"
