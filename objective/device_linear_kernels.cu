/* The kernels of linear models, as a GPU runs them. */
#include "objective/device_linear_kernels.h"

#include "objective/device_linear_kernels.def"
