#include "numeric/special.h"

#include <string.h>

#include "numeric/clones.h"
#include "numeric/over_lanes.h"

#define WIDE 1
#define NAME(function) function##_lanes
#define FUNCTION LANES_INLINE
#define VECTOR_BYTES 64
#include "numeric/exp_lanes.def"
#include "numeric/log_lanes.def"

OVER_LANES(special_exp, exp_lanes)
OVER_LANES(special_log1p, log1p_lanes)
OVER_LANES(special_log, log_lanes)
OVER_LANES(special_exp_excess, exp_excess_lanes)
