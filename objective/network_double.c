/* The pass over a network in double. */
#define REAL double
#define TYPED(function) function
#define VALUE_REAL VALUE_DOUBLE
#define KERNELS network_double
#include "objective/network_pass.def"
