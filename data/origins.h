/* Where the features of a pack come from: the column, the role and the text of each. */
#ifndef DML_DATA_ORIGINS_H
#define DML_DATA_ORIGINS_H

#include "base/bytes.h"
#include "data/source.h"

struct origins {
    struct origin {
        size_t text; /* in `texts` */
        uint32_t column;
        enum feature_role role;
    } * origin; /* by feature; owned */
    uint32_t count, capacity;
    struct bytes texts; /* each with a 0 behind it */
};

void origins_init(struct origins *origins);
void origins_release(struct origins *origins);

/* Notes where the value of feature `number` comes from: `number` is `count` if it is new. False if
 * the feature is known as that of something else: their hashes are the same. */
bool origins_note(struct origins *origins, uint32_t number, const struct source_origin *origin);

/* The id of a feature by TABLE_IDS_SEEDED. */
uint64_t origins_seeded_id(const struct origins *origins, uint32_t number);

/* The text of a feature. */
const char *origins_text(const struct origins *origins, uint32_t number);

#endif
