/* Dictionaries: they number ids or texts by first appearance, from 0, and know where the features
 * of a pack come from. */
#ifndef DML_DATA_SOURCE_DICTIONARY_H
#define DML_DATA_SOURCE_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "data/source/rows.h"
#include "data/source/source.h"

#define DICTIONARY_NONE UINT32_MAX

/* Ids below this have a table of their own, found without hashing: 64 MiB at most. */
#define DICTIONARY_DIRECT_MAX (UINT64_C(1) << 24)

/* Feature ids. */
struct dictionary {
    uint64_t *id; /* of each number; owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t *direct; /* small ids: number + 1, 0 for none; mapped */
    uint64_t direct_size;
    uint32_t *table; /* the others: open addressing, number + 1 */
    uint64_t table_size;
    uint64_t in_table;
};

void dictionary_init(struct dictionary *dictionary);
void dictionary_release(struct dictionary *dictionary);

/* The number of `id`, which is added if it is new; DICTIONARY_NONE when FEATURES_MAX are there. */
uint32_t dictionary_add(struct dictionary *dictionary, uint64_t id);

/* dictionary_add(), quick for a small id that is there. */
static inline uint32_t dictionary_number(struct dictionary *dictionary, uint64_t id) {
    uint32_t after = id < dictionary->direct_size ? dictionary->direct[id] : 0;
    return after ? after - 1 : dictionary_add(dictionary, id);
}

static inline uint64_t dictionary_hash(uint64_t id) {
    return id * UINT64_C(0x9e3779b97f4a7c15);
}

/* Where the search for an id that is no small one begins, in `table`, which is not empty. */
static inline uint64_t dictionary_place(const struct dictionary *dictionary, uint64_t id) {
    return dictionary_hash(id) >> 20 & (dictionary->table_size - 1);
}

/* Call it well before dictionary_number(). */
static inline void dictionary_prefetch(const struct dictionary *dictionary, uint64_t id) {
    if (id < dictionary->direct_size)
        __builtin_prefetch(&dictionary->direct[id]);
    else if (id >= DICTIONARY_DIRECT_MAX && dictionary->table_size)
        __builtin_prefetch(&dictionary->table[dictionary_place(dictionary, id)]);
}

/* Call it between the two, for an id that is no small one. */
static inline void dictionary_prefetch_id(const struct dictionary *dictionary, uint64_t id) {
    if (id < DICTIONARY_DIRECT_MAX || !dictionary->table_size)
        return;
    uint32_t after = dictionary->table[dictionary_place(dictionary, id)];
    if (after)
        __builtin_prefetch(&dictionary->id[after - 1]);
}

/* The number of `id`, or DICTIONARY_NONE. Safe from many threads while nobody adds. */
uint32_t dictionary_find(const struct dictionary *dictionary, uint64_t id);

/* Ids of which there may be more than FEATURES_MAX: those that one dictionary would not hold are
 * spread over several by a hash, each of which has half as many on average. */
struct wide_dictionary {
    struct dictionary_part {
        struct dictionary ids;
        uint64_t *number;  /* of each of its ids; owned. NULL: their own, as there is one part */
        uint32_t capacity; /* of `number` */
    } * part;              /* owned */
    unsigned part_bits;    /* there are 2^bits of them */
    uint64_t *id;          /* of each number, if there are several parts, as are the next; owned */
    uint64_t count, capacity;
};

/* For at most `most` ids, of which a part may have `part_most`, up to FEATURES_MAX. */
void wide_dictionary_init(struct wide_dictionary *dictionary, uint64_t most, uint32_t part_most);
void wide_dictionary_release(struct wide_dictionary *dictionary); /* harmless on zeroed memory */

uint64_t wide_dictionary_count(const struct wide_dictionary *dictionary);

/* The number of `id`, which is added if it is new; UINT64_MAX when COLUMNS_MAX are there. */
uint64_t wide_dictionary_add(struct wide_dictionary *dictionary, uint64_t id);

/* The number of `id`, or UINT64_MAX. */
uint64_t wide_dictionary_find(const struct wide_dictionary *dictionary, uint64_t id);

/* The ids by their numbers, once; the caller's to free. */
uint64_t *wide_dictionary_take_ids(struct wide_dictionary *dictionary);

/* Texts. */
struct text_dictionary {
    struct bytes texts; /* each with a 0 after it */
    size_t *offset;     /* of each number; owned */
    uint32_t count, capacity;
    uint32_t *table; /* number + 1 */
    uint64_t table_size;
};

void text_dictionary_init(struct text_dictionary *dictionary);
void text_dictionary_release(struct text_dictionary *dictionary);

/* The number of `text`, which is added if it is new. */
uint32_t text_dictionary_add(struct text_dictionary *dictionary, const char *text);

/* The number of `text`, or DICTIONARY_NONE. */
uint32_t text_dictionary_find(const struct text_dictionary *dictionary, const char *text);

/* Valid until the next text is added. */
const char *text_dictionary_get(const struct text_dictionary *dictionary, uint32_t number);

/* Where the features of a pack come from: the column, the role and the text of each. All
 * zero: none. */
struct origins {
    struct origin {
        size_t text; /* in `texts` */
        uint32_t column;
        enum feature_role role;
    } * origin; /* by feature; owned */
    uint32_t count, capacity;
    struct bytes texts; /* each with a 0 after it */
};

void origins_release(struct origins *origins);

/* Notes where the value of feature `number` comes from: `number` is `count` if it is new. False if
 * the feature is known as that of something else: their hashes are the same. */
bool origins_note(struct origins *origins, uint32_t number, const struct source_origin *origin);

/* Asks for what origins_note() needs of a feature, and before that for where this is. */
static inline void origins_prefetch(const struct origins *origins, uint32_t near, uint32_t far) {
    if (far < origins->count)
        __builtin_prefetch(&origins->origin[far]);
    if (near < origins->count)
        __builtin_prefetch(origins->texts.data + origins->origin[near].text);
}

/* The text of a feature. */
const char *origins_text(const struct origins *origins, uint32_t number);

#endif
