#include "coordinator/status/chunks.h"

#include <stdlib.h>

#include "base/memory.h"

struct chunk {
    enum chunk_state state;
    int replica;
};

static void take_counted(const struct plan *plan, struct chunk *chunks) {
    for (uint32_t i = 0; i < plan->chunks; i++) {
        bool counted = plan_is_counted(plan, (struct run){.first = i, .count = 1});
        chunks[i] = counted ? (struct chunk){CHUNK_COUNTED, plan->by[i]}
                            : (struct chunk){CHUNK_WAITING, -1};
    }
}

/* Who was backed up had the chunks first; the copy itself is not marked as such. */
static void take_handed(const struct worker *replica, struct chunk *chunks) {
    for (uint32_t i = 0; i < replica->handed_count; i++) {
        const struct handed *handed = &replica->handed[i];
        for (uint32_t j = handed->run.first; j < handed->run.first + handed->run.count; j++) {
            if (chunks[j].state == CHUNK_COUNTED)
                continue;
            if (handed->backed_up)
                chunks[j] = (struct chunk){CHUNK_BACKED_UP, (int)replica->index};
            else if (chunks[j].state == CHUNK_WAITING)
                chunks[j] = (struct chunk){CHUNK_RUNNING, (int)replica->index};
        }
    }
}

json_t *chunks_json(const struct coordinator *c) {
    uint32_t count = c->plan.chunks;
    struct chunk *chunks = memory_new(count, sizeof *chunks);
    json_t *list = json_array();
    take_counted(&c->plan, chunks);
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++)
        take_handed(&c->workers[i], chunks);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i + 1 < count && chunks[i + 1].state == chunks[i].state &&
            chunks[i + 1].replica == chunks[i].replica)
            continue;
        json_array_append_new(list, json_pack("[i, i, i]", (int)(i + 1 - first),
                                              (int)chunks[i].state, chunks[i].replica));
        first = i + 1;
    }
    free(chunks);
    return list;
}
