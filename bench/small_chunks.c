/* The plan of chunks as in data/set/plan.c, but with small chunks: so a set of a few megabytes has
 * as many chunks as one of terabytes. Linked with the coordinator it makes bench/scale_pack. */
#include "base/limits.h"

#undef CHUNKS_AIMED_AT
#undef CHUNK_BYTES_MIN
#define CHUNKS_AIMED_AT (1u << 20)
#define CHUNK_BYTES_MIN 256u

#include "data/set/plan.c"
