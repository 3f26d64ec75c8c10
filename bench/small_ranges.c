/* The ranges of shards as in coordinator/machine/view.c, but of few elements: so shards have ranges
 * in proportion where vectors are short. Linked with bench/efficiency in its place. */
#include "base/limits.h"

#undef BLOCK_ELEMENTS
#define BLOCK_ELEMENTS 4

#include "coordinator/machine/view.c"
