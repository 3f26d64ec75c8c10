#include "data/source/dictionary.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"

void dictionary_init(struct dictionary *dictionary) {
    *dictionary = (struct dictionary){0};
}

void dictionary_release(struct dictionary *dictionary) {
    free(dictionary->id);
    memory_unmap(dictionary->direct, dictionary->direct_size * sizeof *dictionary->direct);
    free(dictionary->table);
    *dictionary = (struct dictionary){0};
}

/* The place of `id` in the table, or the free one where it belongs. */
static uint32_t *find_place(const struct dictionary *dictionary, uint64_t id) {
    uint64_t mask = dictionary->table_size - 1;
    uint64_t i = dictionary_place(dictionary, id);
    while (dictionary->table[i] && dictionary->id[dictionary->table[i] - 1] != id)
        i = (i + 1) & mask;
    return &dictionary->table[i];
}

static uint32_t *place_of(struct dictionary *dictionary, uint64_t id) {
    if (id < DICTIONARY_DIRECT_MAX) {
        if (id >= dictionary->direct_size) {
            uint64_t old_size = dictionary->direct_size, size = old_size ? old_size : 4096;
            while (size <= id)
                size *= 2;
            uint32_t *larger = memory_map(size * sizeof *larger);
            if (old_size)
                memcpy(larger, dictionary->direct, old_size * sizeof *larger);
            memory_unmap(dictionary->direct, old_size * sizeof *larger);
            dictionary->direct = larger;
            dictionary->direct_size = size;
        }
        return &dictionary->direct[id];
    }
    if (2 * (dictionary->in_table + 1) > dictionary->table_size) {
        uint32_t *old = dictionary->table;
        uint64_t old_size = dictionary->table_size;
        dictionary->table_size = old_size ? 2 * old_size : 4096;
        assert(!(dictionary->table_size & (dictionary->table_size - 1))); /* places are masked */
        dictionary->table = memory_new(dictionary->table_size, sizeof *dictionary->table);
        for (uint64_t i = 0; i < old_size; i++)
            if (old[i])
                *find_place(dictionary, dictionary->id[old[i] - 1]) = old[i];
        free(old);
    }
    return find_place(dictionary, id);
}

uint32_t dictionary_add(struct dictionary *dictionary, uint64_t id) {
    uint32_t *place = place_of(dictionary, id);
    if (*place)
        return *place - 1;
    if (dictionary->count == FEATURES_MAX)
        return DICTIONARY_NONE;
    if (dictionary->count == dictionary->capacity) {
        dictionary->capacity = 2 * dictionary->capacity + 1024;
        dictionary->id = memory_resize(dictionary->id, dictionary->capacity, sizeof(uint64_t));
    }
    assert(dictionary->count < dictionary->capacity);
    dictionary->id[dictionary->count] = id;
    dictionary->in_table += id >= DICTIONARY_DIRECT_MAX;
    *place = ++dictionary->count;
    return dictionary->count - 1;
}

uint32_t dictionary_find(const struct dictionary *dictionary, uint64_t id) {
    uint32_t after = 0;
    if (id < DICTIONARY_DIRECT_MAX)
        after = id < dictionary->direct_size ? dictionary->direct[id] : 0;
    else if (dictionary->table_size)
        after = *find_place(dictionary, id);
    return after ? after - 1 : DICTIONARY_NONE;
}

/* ---- more ids than one holds ---- */

void wide_dictionary_init(struct wide_dictionary *dictionary, uint64_t most, uint32_t part_most) {
    unsigned bits = 0;
    assert(part_most > 1 && part_most <= FEATURES_MAX);
    while (most > part_most && most >> bits > part_most / 2)
        bits++;
    *dictionary = (struct wide_dictionary){.part_bits = bits};
    dictionary->part = memory_new((size_t)1 << bits, sizeof *dictionary->part);
    for (size_t i = 0; i < (size_t)1 << bits; i++)
        dictionary_init(&dictionary->part[i].ids);
}

void wide_dictionary_release(struct wide_dictionary *dictionary) {
    for (size_t i = 0; dictionary->part && i < (size_t)1 << dictionary->part_bits; i++) {
        dictionary_release(&dictionary->part[i].ids);
        free(dictionary->part[i].number);
    }
    free(dictionary->part);
    free(dictionary->id);
    *dictionary = (struct wide_dictionary){0};
}

/* By the highest bits of the hash: a table takes lower ones. */
static struct dictionary_part *part_of(const struct wide_dictionary *dictionary, uint64_t id) {
    unsigned bits = dictionary->part_bits;
    return &dictionary->part[bits ? dictionary_hash(id) >> (64 - bits) : 0];
}

uint64_t wide_dictionary_count(const struct wide_dictionary *dictionary) {
    return dictionary->part_bits ? dictionary->count : dictionary->part->ids.count;
}

uint64_t wide_dictionary_add(struct wide_dictionary *dictionary, uint64_t id) {
    struct dictionary_part *part = part_of(dictionary, id);
    uint32_t known = part->ids.count, number = dictionary_add(&part->ids, id);
    if (number == DICTIONARY_NONE)
        return UINT64_MAX;
    if (!dictionary->part_bits)
        return number;
    if (number < known)
        return part->number[number];
    if (dictionary->count == COLUMNS_MAX)
        return UINT64_MAX;
    assert(number == known); /* new ids are numbered in order */
    MEMORY_ROOM(part->number, number, part->capacity);
    MEMORY_ROOM(dictionary->id, dictionary->count, dictionary->capacity);
    dictionary->id[dictionary->count] = id;
    return part->number[number] = dictionary->count++;
}

uint64_t wide_dictionary_find(const struct wide_dictionary *dictionary, uint64_t id) {
    const struct dictionary_part *part = part_of(dictionary, id);
    uint32_t number = dictionary_find(&part->ids, id);
    if (number == DICTIONARY_NONE)
        return UINT64_MAX;
    return dictionary->part_bits ? part->number[number] : number;
}

uint64_t *wide_dictionary_take_ids(struct wide_dictionary *dictionary) {
    uint64_t *id = dictionary->id;
    dictionary->id = NULL;
    if (dictionary->part_bits)
        return id;
    const struct dictionary *ids = &dictionary->part->ids;
    id = memory_new(ids->count, sizeof *id);
    if (ids->count)
        memcpy(id, ids->id, ids->count * sizeof *id);
    return id;
}

/* ---- texts ---- */

void text_dictionary_init(struct text_dictionary *dictionary) {
    *dictionary = (struct text_dictionary){0};
}

void text_dictionary_release(struct text_dictionary *dictionary) {
    bytes_release(&dictionary->texts);
    free(dictionary->offset);
    free(dictionary->table);
    *dictionary = (struct text_dictionary){0};
}

const char *text_dictionary_get(const struct text_dictionary *dictionary, uint32_t number) {
    assert(number < dictionary->count);
    return (const char *)dictionary->texts.data + dictionary->offset[number];
}

static uint32_t *find_text(const struct text_dictionary *dictionary, const char *text) {
    uint64_t mask = dictionary->table_size - 1;
    uint64_t i = hash64(text, strlen(text)) & mask;
    while (dictionary->table[i] &&
           strcmp(text_dictionary_get(dictionary, dictionary->table[i] - 1), text))
        i = (i + 1) & mask;
    return &dictionary->table[i];
}

uint32_t text_dictionary_add(struct text_dictionary *dictionary, const char *text) {
    if (dictionary->count == dictionary->capacity) {
        dictionary->capacity = dictionary->capacity ? 2 * dictionary->capacity : 64;
        dictionary->offset =
            memory_resize(dictionary->offset, dictionary->capacity, sizeof *dictionary->offset);
        free(dictionary->table);
        dictionary->table_size = 2 * (uint64_t)dictionary->capacity;
        dictionary->table = memory_new(dictionary->table_size, sizeof *dictionary->table);
        for (uint32_t i = 0; i < dictionary->count; i++)
            *find_text(dictionary, text_dictionary_get(dictionary, i)) = i + 1;
    }
    assert(dictionary->count < dictionary->table_size); /* the search ends at a free place */
    uint32_t *place = find_text(dictionary, text);
    if (!*place) {
        dictionary->offset[dictionary->count] = dictionary->texts.length;
        bytes_append(&dictionary->texts, text, strlen(text) + 1);
        *place = ++dictionary->count;
    }
    return *place - 1;
}

uint32_t text_dictionary_find(const struct text_dictionary *dictionary, const char *text) {
    uint32_t after = dictionary->table_size ? *find_text(dictionary, text) : 0;
    return after ? after - 1 : DICTIONARY_NONE;
}

/* ---- origins ---- */

#define HASH_TEXT 16 /* of a hash in decimal */

void origins_release(struct origins *origins) {
    free(origins->origin);
    bytes_release(&origins->texts);
    *origins = (struct origins){0};
}

const char *origins_text(const struct origins *origins, uint32_t number) {
    assert(number < origins->count);
    return (const char *)origins->texts.data + origins->origin[number].text;
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
    assert(number == origins->count);
    const char *text = text_of(origin, hash);
    MEMORY_ROOM(origins->origin, origins->count, origins->capacity);
    origins->origin[origins->count++] =
        (struct origin){origins->texts.length, origin->column, origin->role};
    bytes_append(&origins->texts, text, strlen(text) + 1);
    return true;
}
