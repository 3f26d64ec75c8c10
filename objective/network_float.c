/* The pass over a network in float: but for losses and their derivatives, which are double. */
#define REAL float
#define TYPED(function) function##_float
#define VALUE_REAL VALUE_FLOAT
#define KERNELS network_float
#include "objective/network_pass.def"
