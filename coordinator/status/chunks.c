#include "coordinator/status/chunks.h"

#include <stdlib.h>

#include "base/memory.h"

json_t *chunks_json(const struct coordinator *c) {
    uint32_t count = coordinator_view(c).evaluation.chunks;
    struct chunk_view *chunks = memory_new(count, sizeof *chunks);
    json_t *list = json_array();
    coordinator_chunks(c, chunks);
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
