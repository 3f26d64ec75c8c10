#include "coordinator/command/need_print.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory_limit.h"

static void print_role(const char *role, uint32_t count, double bytes) {
    printf(", %u %s%s of %s", count, role, count == 1 ? "" : "s", memory_words(bytes));
}

void need_print(const struct memory_need *need, const char *before) {
    if (!(need->all > 0))
        return;
    printf("%sabout %s in all: the coordinator %s", before, memory_words(need->all),
           memory_words(need->coordinator));
    print_role("shard", need->shards, need->shard);
    print_role("replica", need->replicas, need->replica);
    char *why = memory_need_exceeds(need);
    printf("%s%s\n", why ? "; it may not suffice: " : "", why ? why : "");
    free(why);
}

void need_add(const struct memory_need *need, json_t *object) {
    if (need->all > 0)
        json_object_set_new(object, "memory_bytes",
                            json_pack("{s:f, s:f, s:f, s:f}", "all", need->all, "coordinator",
                                      need->coordinator, "shard", need->shard, "replica",
                                      need->replica));
}
