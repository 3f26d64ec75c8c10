#include "coordinator/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"

void plan_init(struct plan *plan, uint32_t chunks, uint32_t homes) {
    *plan = (struct plan){.chunks = chunks, .homes = homes};
    plan->left = memory_new(homes, sizeof *plan->left);
    plan->counted = memory_new(chunks / 64 + 1, sizeof *plan->counted);
    plan->by = memory_new(chunks, sizeof *plan->by);
}

void plan_release(struct plan *plan) {
    free(plan->left);
    free(plan->returned);
    free(plan->counted);
    free(plan->by);
    *plan = (struct plan){0};
}

static uint32_t home_start(const struct plan *plan, uint32_t home) {
    return (uint32_t)((uint64_t)plan->chunks * home / plan->homes);
}

static bool is_counted(const struct plan *plan, uint32_t chunk) {
    return plan->counted[chunk / 64] >> (chunk % 64) & 1;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static struct run take_front(struct run *from, uint32_t chunks) {
    struct run taken = {.first = from->first, .count = least(chunks, from->count)};
    from->first += taken.count;
    from->count -= taken.count;
    return taken;
}

static struct run take_back(struct run *from, uint32_t chunks) {
    struct run taken = {.count = least(chunks, from->count)};
    from->count -= taken.count;
    taken.first = from->first + from->count;
    return taken;
}

static struct run *furthest_behind(struct plan *plan) {
    struct run *most = &plan->left[0];
    for (uint32_t i = 1; i < plan->homes; i++)
        if (plan->left[i].count > most->count)
            most = &plan->left[i];
    return most;
}

/* Chunks that came back may have been counted since, from another copy: they are passed over. */
static bool take_returned(struct plan *plan, uint32_t chunks_max, struct run *run) {
    while (plan->returned_count) {
        struct run *last = &plan->returned[plan->returned_count - 1];
        struct run one = take_front(last, 1);
        plan->returned_count -= last->count == 0;
        plan->waiting--;
        if (is_counted(plan, one.first))
            continue;
        *run = one;
        while (run->count < chunks_max && last->count && !is_counted(plan, last->first)) {
            run->count += take_front(last, 1).count;
            plan->waiting--;
            plan->returned_count -= last->count == 0;
        }
        return true;
    }
    return false;
}

bool plan_take(struct plan *plan, uint32_t home, uint32_t chunks_max, struct run *run) {
    if (plan->waiting == 0)
        return false;
    assert(chunks_max > 0);
    if (take_returned(plan, chunks_max, run))
        return true;
    if (plan->waiting == 0)
        return false;
    if (plan->left[home].count) {
        *run = take_front(&plan->left[home], chunks_max);
    } else {
        *run = take_back(furthest_behind(plan), chunks_max);
    }
    plan->waiting -= run->count;
    return true;
}

static void return_run(struct plan *plan, struct run run) {
    MEMORY_ROOM(plan->returned, plan->returned_count, plan->returned_capacity);
    plan->returned[plan->returned_count++] = run;
    plan->waiting += run.count;
}

/* Adds what a home range has of a part. Two parts that touch make one run; a run apart from
 * `left` is handed out as if it had come back. */
static void want(struct plan *plan, uint32_t home, const struct evaluation_part *part) {
    uint32_t first = home_start(plan, home), end = home_start(plan, home + 1);
    uint32_t part_end = part->first + part->count;
    struct run *left = &plan->left[home];
    first = first > part->first ? first : part->first;
    end = least(end, part_end);
    if (first >= end)
        return;
    struct run run = {.first = first, .count = end - first};
    if (!left->count)
        *left = run;
    else if (left->first + left->count == first)
        left->count += run.count;
    else
        return_run(plan, run);
}

void plan_begin(struct plan *plan, const struct evaluation_parts *parts) {
    plan->wanted = *parts;
    plan->wanted_chunks = 0;
    plan->returned_count = 0;
    plan->counted_chunks = 0;
    plan->waiting = 0;
    memset(plan->counted, 0, (plan->chunks / 64 + 1) * sizeof *plan->counted);
    memset(plan->left, 0, plan->homes * sizeof *plan->left);
    for (uint32_t i = 0; i < parts->count; i++) {
        assert(parts->items[i].count <= plan->chunks - parts->items[i].first);
        plan->wanted_chunks += parts->items[i].count;
        for (uint32_t home = 0; home < plan->homes; home++)
            want(plan, home, &parts->items[i]);
    }
    plan->waiting = plan->wanted_chunks;
}

/* Whether the evaluation asks for all chunks of a run that is not empty. */
static bool run_is_valid(const struct plan *plan, struct run run) {
    if (!run.count || run.first >= plan->chunks || run.count > plan->chunks - run.first)
        return false;
    for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
        if (evaluation_part_at(&plan->wanted, chunk) == plan->wanted.count)
            return false;
    return true;
}

void plan_return(struct plan *plan, const struct run_list *runs) {
    for (uint32_t i = 0; i < runs->length; i++) {
        if (!run_is_valid(plan, runs->items[i]))
            continue;
        uint32_t end = runs->items[i].first + runs->items[i].count;
        struct run open = {.first = runs->items[i].first};
        for (uint32_t chunk = open.first; chunk < end; chunk++) {
            if (!is_counted(plan, chunk)) {
                open.count++;
                continue;
            }
            if (open.count)
                return_run(plan, open);
            open = (struct run){.first = chunk + 1};
        }
        if (open.count)
            return_run(plan, open);
    }
}

bool plan_may_count(const struct plan *plan, const struct run_list *runs) {
    for (uint32_t i = 0; i < runs->length; i++) {
        struct run run = runs->items[i];
        if (!run_is_valid(plan, run))
            return false;
        for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
            if (is_counted(plan, chunk) && !mutant(COUNT_TWICE))
                return false;
        for (uint32_t j = 0; j < i; j++) {
            struct run other = runs->items[j];
            if (run.first < other.first + other.count && other.first < run.first + run.count)
                return false;
        }
    }
    return true;
}

void plan_count(struct plan *plan, const struct run_list *runs, uint32_t replica) {
    for (uint32_t i = 0; i < runs->length; i++) {
        struct run run = runs->items[i];
        for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++) {
            plan->counted[chunk / 64] |= UINT64_C(1) << (chunk % 64);
            plan->by[chunk] = (uint16_t)replica;
        }
        plan->counted_chunks += run.count;
    }
}

bool plan_is_counted(const struct plan *plan, struct run run) {
    for (uint32_t chunk = run.first; chunk < run.first + run.count; chunk++)
        if (!is_counted(plan, chunk))
            return false;
    return true;
}

bool plan_complete(const struct plan *plan) {
    return plan->counted_chunks == plan->wanted_chunks;
}
