/* The kernels as a GPU runs them. */
#include "objective/device_curvature_kernels.h"
#include "objective/device_linear_kernels.h"
#include "objective/device_losses_kernels.h"
#include "objective/device_network_kernels.h"

#include "objective/device_kernels.def"
