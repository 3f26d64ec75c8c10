/* The plan of one evaluation: which chunks are handed out, which are counted.
 *
 * Every replica has a home range of consecutive chunks, the same in every evaluation, or of tiles
 * in every one of its kind, so that what it computed last time is still in its cache. It is given
 * what the evaluation asks for of its home range, in sequence; when that is handed out, it takes
 * from the end of the range that is furthest behind. */
#ifndef DML_COORDINATOR_DISPATCH_PLAN_H
#define DML_COORDINATOR_DISPATCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/evaluation.h"

struct plan {
    uint32_t chunks; /* that evaluations may cover */
    uint32_t shared; /* by the homes: all, or of tiles those up to the last that is covered */
    uint32_t strip;  /* so many are a strip: what is handed out at once lies in one */
    uint32_t homes;  /* replicas that the home ranges are divided among */
    uint32_t most;   /* of them that there may be */
    struct evaluation_parts wanted; /* what the evaluation covers */
    uint32_t wanted_chunks;
    uint64_t *open;   /* bit set of the chunks that wait: to be handed out, each once */
    uint32_t waiting; /* how many these are */
    /* The ranges that are searched for waiting chunks; others may have been counted meanwhile. */
    struct chunk_range *left; /* [most]: what of each home range is not handed out */
    struct chunk_range
        *returned; /* ranges handed out before `left`: they came back, or lie apart from it */
    uint32_t returned_count, returned_capacity;
    uint64_t *counted; /* bit set of chunks */
    uint16_t *by;      /* [chunks]: the replica that a counted chunk came from */
    uint32_t counted_chunks;
};

/* A plan for evaluations within the first `chunks` chunks, with nothing to hand out. Of a tiled set
 * these are tiles, by strips of `strip` each; else `strip` is `chunks`. */
void plan_init(struct plan *plan, uint32_t chunks, uint32_t strip, uint32_t homes);
void plan_release(struct plan *plan);

/* From the next evaluation on the home ranges are those of so many replicas, at most as many as
 * plan_init() was told. No chunk of an evaluation may wait. */
void plan_divide(struct plan *plan, uint32_t homes);

/* A new evaluation, whose parts lie within those: nothing is handed out, nothing counted. */
void plan_begin(struct plan *plan, const struct evaluation_parts *parts);

/* The replica whose home range the chunk lies in. */
uint32_t plan_home(const struct plan *plan, uint32_t chunk);

/* Hands out up to `chunks_max` chunks to replica `home`; false if none is waiting. */
bool plan_take(struct plan *plan, uint32_t home, uint32_t chunks_max, struct chunk_range *range);

/* Gives back those chunks of the ranges that are neither counted nor waiting. No chunk may wait
 * twice: a replica that got it twice would send a flush that is dropped, its chunks would come back
 * twice, and so on for ever. */
void plan_return(struct plan *plan, const struct chunk_ranges *ranges);

/* True if the evaluation asks for all chunks of the ranges, the ranges do not overlap, lie in one
 * strip, of whose sums alone a flush is, and none of their chunks is counted. */
bool plan_may_count(const struct plan *plan, const struct chunk_ranges *ranges);

/* Counts the chunks of the ranges, which plan_may_count() must have allowed. The replica that they
 * come from may be one of a former coordinator, beyond `homes`. */
void plan_count(struct plan *plan, const struct chunk_ranges *ranges, uint32_t replica);

/* True if all chunks of the range are counted. */
bool plan_is_counted(const struct plan *plan, struct chunk_range range);

bool plan_complete(const struct plan *plan);

/* Whether one of the ranges has all chunks of this one. */
bool chunk_ranges_cover(const struct chunk_ranges *ranges, struct chunk_range range);

/* How many chunks of a short evaluation one replica is given at once, so that it ends as early as
 * can be expected. */
struct share {
    double chunks_per_ns; /* of the replica; more than 0 */
    uint32_t chunks;      /* found: how many it should be given */
};

/* Shares `chunks` out among `count` > 0 replicas, and returns after how many nanoseconds they end.
 *
 * Each flush costs `flush_ns`, one after the other: so few chunks go to few replicas, the first of
 * the list. A replica that is so slow that it would end after the others have done all gets none.
 */
double shares_divide(struct share *shares, uint32_t count, uint32_t chunks, double flush_ns);

#endif
