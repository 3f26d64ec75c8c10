/* What messages may say, with ranges of shards as in bench/small_ranges.c. */
#include "base/limits.h"

#undef BLOCK_ELEMENTS
#define BLOCK_ELEMENTS 4

#include "wire/validity.c"
