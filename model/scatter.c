#include "model/scatter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

struct waiting_number {
    uint64_t at;
    double value;
};

struct scatter {
    double *into;
    uint64_t count, each; /* numbers of the array, and of a part but the last */
    uint32_t most;        /* that wait for a part */
    uint32_t waiting[SCATTER_PARTS];
    struct waiting_number *number; /* SCATTER_PARTS × most */
};

static size_t number_bytes(const struct scatter *scatter) {
    return (size_t)SCATTER_PARTS * scatter->most * sizeof *scatter->number;
}

struct scatter *scatter_new(double *into, uint64_t count, uint32_t waiting) {
    assert(waiting > 0);
    struct scatter *scatter = memory_new(1, sizeof *scatter);
    scatter->into = into;
    scatter->count = count;
    scatter->each = count / SCATTER_PARTS + 1;
    scatter->most = waiting;
    scatter->number = memory_map(number_bytes(scatter));
    return scatter;
}

void scatter_free(struct scatter *scatter) {
    if (!scatter)
        return;
    memory_unmap(scatter->number, number_bytes(scatter));
    free(scatter);
}

static void settle_part(struct scatter *scatter, uint64_t part) {
    const struct waiting_number *number = scatter->number + part * scatter->most;
    for (uint32_t i = 0; i < scatter->waiting[part]; i++)
        scatter->into[number[i].at] = number[i].value;
    scatter->waiting[part] = 0;
}

void scatter_put(struct scatter *scatter, uint64_t at, double value) {
    assert(at < scatter->count);
    uint64_t part = at / scatter->each;
    uint32_t place = scatter->waiting[part]++;
    scatter->number[part * scatter->most + place] = (struct waiting_number){at, value};
    if (place + 1 == scatter->most)
        settle_part(scatter, part);
}

void scatter_settle(struct scatter *scatter) {
    for (uint64_t part = 0; part < SCATTER_PARTS; part++)
        settle_part(scatter, part);
}
