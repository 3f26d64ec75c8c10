#include "coordinator/dispatch/plan.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"

void plan_init(struct plan *plan, uint32_t chunks, uint32_t strip, uint32_t homes) {
    assert(chunks > 0 && homes > 0 && homes <= UINT16_MAX); /* plan->by */
    assert(strip > 0 && strip <= chunks);
    *plan = (struct plan){
        .chunks = chunks, .shared = chunks, .strip = strip, .homes = homes, .most = homes};
    plan->left = memory_new(homes, sizeof *plan->left);
    plan->open = memory_new(chunks / 64 + 1, sizeof *plan->open);
    plan->counted = memory_new(chunks / 64 + 1, sizeof *plan->counted);
    plan->by = memory_new(chunks, sizeof *plan->by);
}

void plan_release(struct plan *plan) {
    free(plan->open);
    free(plan->left);
    free(plan->returned);
    free(plan->counted);
    free(plan->by);
    *plan = (struct plan){0};
}

void plan_divide(struct plan *plan, uint32_t homes) {
    assert(homes > 0 && homes <= plan->most);
    plan->homes = homes;
}

static uint32_t home_start(const struct plan *plan, uint32_t home) {
    assert(home <= plan->homes);
    return (uint32_t)((uint64_t)plan->shared * home / plan->homes);
}

uint32_t plan_home(const struct plan *plan, uint32_t chunk) {
    assert(chunk < plan->shared);
    uint32_t home = (uint32_t)(((uint64_t)(chunk + 1) * plan->homes - 1) / plan->shared);
    assert(home_start(plan, home) <= chunk && chunk < home_start(plan, home + 1));
    return home;
}

static bool is_counted(const struct plan *plan, uint32_t chunk) {
    return plan->counted[chunk / 64] >> (chunk % 64) & 1;
}

/* ---- chunks that wait ---- */

static bool is_waiting(const struct plan *plan, uint32_t chunk) {
    return plan->open[chunk / 64] >> (chunk % 64) & 1;
}

static void let_wait(struct plan *plan, uint32_t chunk) {
    assert(!is_waiting(plan, chunk) && plan->waiting < plan->chunks);
    plan->open[chunk / 64] |= UINT64_C(1) << (chunk % 64);
    plan->waiting++;
}

static void wait_no_more(struct plan *plan, uint32_t chunk) {
    assert(is_waiting(plan, chunk) && plan->waiting > 0);
    plan->open[chunk / 64] &= ~(UINT64_C(1) << (chunk % 64));
    plan->waiting--;
}

/* Whether a strip begins with this chunk: a replica has the columns of one at a time. */
static bool begins_strip(const struct plan *plan, uint32_t chunk) {
    return chunk % plan->strip == 0 && !mutant(PORTION_ACROSS_STRIPS);
}

/* Takes the first chunks of `from` that wait, as far as they are neighbours in a strip; none if
 * none waits.
 */
static struct chunk_range take_front(struct plan *plan, struct chunk_range *from,
                                     uint32_t chunks_max) {
    for (; from->count && !is_waiting(plan, from->first); from->count--)
        from->first++;
    struct chunk_range taken = {.first = from->first};
    for (; from->count && taken.count < chunks_max && is_waiting(plan, from->first);
         from->count--) {
        if (taken.count && begins_strip(plan, from->first))
            break;
        wait_no_more(plan, from->first++);
        taken.count++;
    }
    assert(taken.count <= chunks_max);
    return taken;
}

/* Takes the last chunks of `from` that wait, as far as they are neighbours in a strip; none if none
 * waits. */
static struct chunk_range take_back(struct plan *plan, struct chunk_range *from,
                                    uint32_t chunks_max) {
    while (from->count && !is_waiting(plan, from->first + from->count - 1))
        from->count--;
    struct chunk_range taken = {.first = from->first + from->count};
    while (from->count && taken.count < chunks_max && is_waiting(plan, taken.first - 1)) {
        if (taken.count && begins_strip(plan, taken.first))
            break;
        wait_no_more(plan, --taken.first);
        from->count--;
        taken.count++;
    }
    assert(taken.count <= chunks_max);
    return taken;
}

/* Looks in one place: in what came back, else in the home range, else in that which is furthest
 * behind. The range is empty if no chunk of that place waits any more. */
static struct chunk_range take_once(struct plan *plan, uint32_t home, uint32_t chunks_max) {
    assert(plan->waiting > 0 && home < plan->homes);
    if (plan->returned_count) {
        struct chunk_range *last = &plan->returned[plan->returned_count - 1];
        struct chunk_range taken = take_front(plan, last, chunks_max);
        plan->returned_count -= last->count == 0;
        return taken;
    }
    if (plan->left[home].count)
        return take_front(plan, &plan->left[home], chunks_max);
    struct chunk_range *most = &plan->left[0];
    for (uint32_t i = 1; i < plan->homes; i++)
        if (plan->left[i].count > most->count)
            most = &plan->left[i];
    assert(most->count > 0);
    return take_back(plan, most, chunks_max);
}

bool plan_take(struct plan *plan, uint32_t home, uint32_t chunks_max, struct chunk_range *range) {
    *range = (struct chunk_range){0};
    assert(home < plan->homes && chunks_max > 0);
    while (plan->waiting && !range->count)
        *range = take_once(plan, home, chunks_max);
    assert(range->count <= chunks_max);
    return range->count;
}

static void add_returned(struct plan *plan, struct chunk_range range) {
    assert(range.count > 0 && range.count <= plan->chunks - range.first);
    MEMORY_ROOM(plan->returned, plan->returned_count, plan->returned_capacity);
    plan->returned[plan->returned_count++] = range;
}

/* Adds what a home range has of a part. Two parts that touch make one range; a range apart from
 * `left` is handed out as if it had come back. */
static void add_wanted(struct plan *plan, uint32_t home, const struct evaluation_part *part) {
    uint32_t first = home_start(plan, home), end = home_start(plan, home + 1);
    uint32_t part_end = part->first + part->count;
    struct chunk_range *left = &plan->left[home];
    assert(first <= end && part_end <= plan->chunks);
    first = first > part->first ? first : part->first;
    end = end < part_end ? end : part_end;
    if (first >= end)
        return;
    struct chunk_range range = {.first = first, .count = end - first};
    if (!left->count)
        *left = range;
    else if (left->first + left->count == first)
        left->count += range.count;
    else
        add_returned(plan, range);
}

void plan_begin(struct plan *plan, const struct evaluation_parts *parts) {
    assert(parts->count > 0 && parts->count <= EVALUATION_PARTS_MAX);
    /* Kinds of tiles cover one strip, all of them, or one more for networks. A kind always covers
     * the same. */
    const struct evaluation_part *last = &parts->items[parts->count - 1];
    plan->shared = plan->strip < plan->chunks ? last->first + last->count : plan->chunks;
    plan->wanted = *parts;
    plan->wanted_chunks = 0;
    plan->returned_count = 0;
    plan->counted_chunks = 0;
    plan->waiting = 0;
    memset(plan->open, 0, (plan->chunks / 64 + 1) * sizeof *plan->open);
    memset(plan->counted, 0, (plan->chunks / 64 + 1) * sizeof *plan->counted);
    memset(plan->left, 0, plan->homes * sizeof *plan->left);
    for (uint32_t i = 0; i < parts->count; i++) {
        plan->wanted_chunks += parts->items[i].count;
        for (uint32_t j = 0; j < parts->items[i].count; j++)
            let_wait(plan, parts->items[i].first + j);
        for (uint32_t home = 0; home < plan->homes; home++)
            add_wanted(plan, home, &parts->items[i]);
    }
    assert(plan->waiting == plan->wanted_chunks && plan->wanted_chunks <= plan->chunks);
}

/* Whether the evaluation asks for all chunks of a range that is not empty. */
static bool range_is_valid(const struct plan *plan, struct chunk_range range) {
    if (!range.count || range.first >= plan->chunks || range.count > plan->chunks - range.first)
        return false;
    for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++)
        if (evaluation_part_at(&plan->wanted, chunk) == plan->wanted.count)
            return false;
    return true;
}

static void return_range(struct plan *plan, struct chunk_range range) {
    assert(range.count > 0 && range.count <= plan->chunks - range.first);
    struct chunk_range open = {.first = range.first};
    for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++) {
        if (!is_counted(plan, chunk) && !is_waiting(plan, chunk)) {
            let_wait(plan, chunk);
            open.count++;
            continue;
        }
        if (open.count)
            add_returned(plan, open);
        open = (struct chunk_range){.first = chunk + 1};
    }
    if (open.count)
        add_returned(plan, open);
    assert(plan->waiting <= plan->wanted_chunks);
}

void plan_return(struct plan *plan, const struct chunk_ranges *ranges) {
    for (uint32_t i = 0; i < ranges->length; i++)
        if (range_is_valid(plan, ranges->items[i]))
            return_range(plan, ranges->items[i]);
    assert(plan->counted_chunks + plan->waiting <= plan->wanted_chunks);
}

bool plan_may_count(const struct plan *plan, const struct chunk_ranges *ranges) {
    for (uint32_t i = 0; i < ranges->length; i++) {
        struct chunk_range range = ranges->items[i];
        if (!range_is_valid(plan, range))
            return false;
        /* All ranges lie in one strip: that in which the first begins. */
        const uint32_t strip = ranges->items[0].first / plan->strip;
        const uint32_t end = range.first + range.count - 1;
        if (range.first / plan->strip != strip || end / plan->strip != strip)
            return false;
        for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++)
            if (is_counted(plan, chunk) && !mutant(COUNT_TWICE))
                return false;
        for (uint32_t j = 0; j < i; j++) {
            struct chunk_range other = ranges->items[j];
            if (range.first < other.first + other.count && other.first < range.first + range.count)
                return false;
        }
    }
    return true;
}

void plan_count(struct plan *plan, const struct chunk_ranges *ranges, uint32_t replica) {
    assert(replica <= UINT16_MAX);
    for (uint32_t i = 0; i < ranges->length; i++) {
        struct chunk_range range = ranges->items[i];
        for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++) {
            plan->counted[chunk / 64] |= UINT64_C(1) << (chunk % 64);
            if (is_waiting(plan, chunk))
                wait_no_more(plan, chunk);
            plan->by[chunk] = (uint16_t)replica;
        }
        plan->counted_chunks += range.count;
    }
    assert(plan->counted_chunks + plan->waiting <= plan->wanted_chunks);
}

bool plan_is_counted(const struct plan *plan, struct chunk_range range) {
    assert(range.count > 0 && range.count <= plan->chunks - range.first);
    for (uint32_t chunk = range.first; chunk < range.first + range.count; chunk++)
        if (!is_counted(plan, chunk))
            return false;
    return true;
}

bool chunk_ranges_cover(const struct chunk_ranges *ranges, struct chunk_range range) {
    assert(range.count > 0);
    for (uint32_t i = 0; i < ranges->length; i++) {
        struct chunk_range one = ranges->items[i];
        if (one.first <= range.first && range.first + range.count <= one.first + one.count)
            return true;
    }
    return false;
}

bool plan_complete(const struct plan *plan) {
    assert(plan->counted_chunks <= plan->wanted_chunks);
    return plan->counted_chunks == plan->wanted_chunks;
}

/* ---- shares ---- */

/* The end is found to 1/2^BISECTIONS of itself. */
#define BISECTIONS 12

/* Gives each replica as many chunks as it can do within `ns`. False if some chunks are left over.
 */
static bool fill_shares(struct share *shares, uint32_t count, uint32_t chunks, double flush_ns,
                        double ns) {
    assert(ns >= 0 && flush_ns >= 0);
    uint32_t flushes = 0;
    for (uint32_t i = 0; i < count; i++) {
        double able = (ns - flush_ns * (flushes + 1)) * shares[i].chunks_per_ns;
        shares[i].chunks = able >= chunks ? chunks : able >= 1 ? (uint32_t)able : 0;
        chunks -= shares[i].chunks;
        flushes += shares[i].chunks > 0;
    }
    return chunks == 0;
}

double shares_divide(struct share *shares, uint32_t count, uint32_t chunks, double flush_ns) {
    double fastest = 0, least = 0;
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++)
        fastest = fmax(fastest, shares[i].chunks_per_ns);
    /* Half a chunk more, so that rounding leaves nothing over for the fastest alone. */
    double enough = flush_ns * count + (chunks + 0.5) / fastest;
    assert(fastest > 0 && enough > 0);
    for (unsigned i = 0; i < BISECTIONS; i++) {
        double middle = (least + enough) / 2;
        if (fill_shares(shares, count, chunks, flush_ns, middle))
            enough = middle;
        else
            least = middle;
    }
    fill_shares(shares, count, chunks, flush_ns, enough);
    return enough;
}
