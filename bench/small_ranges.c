/* The ranges of shards as in coordinator/machine/view.c, and what messages may say of them, but
 * with blocks of few elements: so shards have ranges in proportion where vectors are short. Linked
 * with bench/efficiency in place of both. */
#include "base/limits.h"

#undef BLOCK_ELEMENTS
#define BLOCK_ELEMENTS 4

#include "coordinator/machine/view.c"
#include "wire/validity.c"
