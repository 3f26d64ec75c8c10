/* The kernels of second derivatives, for GPUs. */
#include "objective/device_curvature_kernels.h"

#include "objective/device_curvature_kernels.def"
