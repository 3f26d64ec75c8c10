#include "wire/links.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct link *links_add(struct links *links) {
    struct link *link = memory_new(1, sizeof *link);
    link->number = ++links->last_number;
    MEMORY_ROOM(links->items, links->count, links->capacity);
    links->items[links->count++] = link;
    return link;
}

/* The place of the link, or the place where it would be. */
static size_t place_of(const struct links *links, uint32_t number) {
    size_t low = 0, high = links->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (links->items[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct link *links_find(const struct links *links, uint32_t number) {
    size_t place = place_of(links, number);
    bool found = place < links->count && links->items[place]->number == number;
    return found ? links->items[place] : NULL;
}

struct link *links_first_stranger(const struct links *links) {
    for (size_t i = 0; i < links->count; i++)
        if (links->items[i]->stranger)
            return links->items[i];
    return NULL;
}

void links_forget(struct links *links, struct link *link) {
    size_t place = place_of(links, link->number);
    links->count--;
    memmove(links->items + place, links->items + place + 1,
            (links->count - place) * sizeof *links->items);
    free(link->run);
    free(link);
}

void links_release(struct links *links) {
    assert(!links->count);
    free(links->items);
    *links = (struct links){0};
}
