#include "optimizer/window.h"

#include <assert.h>
#include <string.h>

#include "base/mutant.h"

void window_init(struct window *window, uint32_t directions) {
    assert(directions <= DIRECTIONS_MAX);
    memset(window, 0, sizeof *window);
    window->most = directions;
}

bool window_make_room(struct window *window) {
    assert(window->most > 0 && window->count <= window->most);
    if (window->count < window->most)
        return false;
    window->count--;
    memmove(window->slot, window->slot + 1, window->count * sizeof window->slot[0]);
    for (uint32_t i = 0; i < window->count; i++)
        memcpy(window->gram[i], window->gram[i + 1] + 1, window->count * sizeof(double));
    return true;
}

uint32_t window_slots(const struct window *window, uint16_t *slots) {
    assert(window->count < window->most);
    memcpy(slots, window->slot, window->count * sizeof slots[0]);
    slots[window->count] = window->candidate;
    return window->count + 1;
}

void window_measured(struct window *window, const double *products, const double *point) {
    uint32_t newest = window->count;
    assert(newest < window->most);
    memcpy(window->point, point, (newest + 1) * sizeof point[0]);
    for (uint32_t i = 0; i <= newest; i++)
        window->gram[newest][i] = window->gram[i][newest] = products[i];
}

static bool slot_in_use(const struct window *window, uint16_t slot) {
    for (uint32_t i = 0; i < window->count; i++)
        if (window->slot[i] == slot)
            return true;
    return false;
}

void window_enter(struct window *window) {
    uint16_t slots = (uint16_t)(window->most + 2), slot = window->candidate;
    assert(window->count < window->most && !slot_in_use(window, slot));
    window->slot[window->count++] = slot;
    window->serial[slot] = ++window->entered;
    do
        slot = (uint16_t)((slot + 1) % slots);
    while (slot_in_use(window, slot));
    window->candidate = slot;
}

/* ---- in the record of the state ---- */

/* With the candidate, which has a place as soon as it is measured. */
void window_serialize(struct codec *codec, struct window *window) {
    assert(!codec->out || window->count <= window->most);
    serialize_u32(codec, &window->most);
    serialize_u32(codec, &window->count);
    serialize_u16(codec, &window->candidate);
    if (!mutant(DIRECTIONS_NUMBERED_ANEW))
        serialize_u64(codec, &window->entered);
    serialize_fails_if(codec, window->most > DIRECTIONS_MAX || window->count > window->most ||
                                  window->candidate >= WINDOW_MAX);
    for (uint32_t i = 0; i < window->count && !codec->in.failed; i++) {
        serialize_u16(codec, &window->slot[i]);
        serialize_fails_if(codec, window->slot[i] >= WINDOW_MAX);
        if (!codec->in.failed)
            serialize_u64(codec, &window->serial[window->slot[i]]);
    }
    if (mutant(GRAM_FORGOTTEN))
        return;
    for (uint32_t i = 0; i <= window->count && i < window->most && !codec->in.failed; i++) {
        serialize_f64(codec, &window->point[i]);
        for (uint32_t j = 0; j <= i; j++) {
            serialize_f64(codec, &window->gram[i][j]);
            window->gram[j][i] = window->gram[i][j];
        }
    }
}
