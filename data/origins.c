#include "data/origins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define HASH_TEXT 16 /* of a hash in decimal */

void origins_init(struct origins *origins) {
    *origins = (struct origins){0};
    bytes_init(&origins->texts);
}

void origins_release(struct origins *origins) {
    free(origins->origin);
    bytes_release(&origins->texts);
    *origins = (struct origins){0};
}

const char *origins_text(const struct origins *origins, uint32_t number) {
    return (const char *)origins->texts.data + origins->origin[number].text;
}

uint64_t origins_seeded_id(const struct origins *origins, uint32_t number) {
    const struct origin *origin = &origins->origin[number];
    const char *text = origins_text(origins, number);
    if (origin->role == ROLE_HASHED)
        return table_hashed_feature(TABLE_IDS_SEEDED, origin->column,
                                    (uint32_t)strtoul(text, NULL, 10));
    return table_feature(TABLE_IDS_SEEDED, origin->column, origin->role, text, strlen(text));
}

static const char *text_of(const struct source_origin *origin, char hash[HASH_TEXT]) {
    if (origin->role != ROLE_HASHED)
        return origin->text ? origin->text : "";
    snprintf(hash, HASH_TEXT, "%u", origin->hash);
    return hash;
}

bool origins_note(struct origins *origins, uint32_t number, const struct source_origin *origin) {
    char hash[HASH_TEXT];
    if (number < origins->count) {
        const struct origin *known = &origins->origin[number];
        return known->column == origin->column && known->role == origin->role &&
               (origin->role == ROLE_HASHED ||
                !strcmp(origins_text(origins, number), text_of(origin, hash)));
    }
    const char *text = text_of(origin, hash);
    MEMORY_ROOM(origins->origin, origins->count, origins->capacity);
    origins->origin[origins->count++] =
        (struct origin){origins->texts.length, origin->column, origin->role};
    bytes_append(&origins->texts, text, strlen(text) + 1);
    return true;
}
