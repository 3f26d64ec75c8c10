#include "numeric/totals.h"

#include <assert.h>

void totals_init(struct totals *totals, uint32_t count) {
    assert(count <= TOTALS_MAX);
    totals->count = count;
    for (uint32_t i = 0; i < count; i++)
        exact_init(&totals->sum[i]);
}

void totals_merge(struct totals *into, const struct totals *from) {
    assert(into->count == from->count);
    for (uint32_t i = 0; i < into->count; i++)
        exact_merge(&into->sum[i], &from->sum[i]);
}

void totals_encode(const struct totals *totals, struct bytes *out) {
    for (uint32_t i = 0; i < totals->count; i++)
        exact_encode(&totals->sum[i], out);
}

bool totals_decode(struct totals *totals, uint32_t count, const void *data, size_t length) {
    struct cursor cursor = cursor_over(data, length);
    totals_init(totals, count);
    for (uint32_t i = 0; i < count; i++)
        if (!exact_decode(&totals->sum[i], &cursor))
            break;
    bool whole = !cursor.failed && cursor_left(&cursor) == 0;
    if (!whole)
        totals_init(totals, count);
    return whole;
}
