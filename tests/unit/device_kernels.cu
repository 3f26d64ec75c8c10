#include "device/kernel.h"
#include "tests/unit/device_kernels.h"
#include "tests/unit/device_kernels.def"
