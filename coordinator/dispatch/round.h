/* The program that the shards run: collects their results and merges the scalars exactly, so
 * that they are the same whatever the number of shards. */
#ifndef DML_COORDINATOR_DISPATCH_ROUND_H
#define DML_COORDINATOR_DISPATCH_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/message.h"

struct exact; /* numeric/exact.h */

struct round {
    uint64_t number; /* of the program, within an attempt, from 1 */
    uint64_t hash;
    bool running;
    uint32_t shards;
    uint32_t answered; /* shards that answered */
    bool has_answered[SHARDS_MAX];
    uint32_t scalars;         /* that the program yields */
    bool is_max[SCALARS_MAX]; /* a maximum, not a sum */
    struct exact *sums;       /* [SCALARS_MAX], merged; owned */
    double maxima[SCALARS_MAX];
    bool lists;            /* the program lists parameters */
    struct listed *listed; /* of the shards that answered, in any order; owned */
    uint32_t listed_count, listed_capacity;
};

void round_init(struct round *round, uint32_t shards);
void round_release(struct round *round);

/* A new program is sent: it gets the next number. `program` must be well-formed. */
void round_begin(struct round *round, const struct bytes *program);

enum round_answer {
    ROUND_WAIT,    /* others have to answer */
    ROUND_DONE,    /* all have */
    ROUND_IGNORED, /* a repeated or stale answer */
    ROUND_BROKEN,  /* the answer does not fit the program */
};
enum round_answer round_take(struct round *round, uint32_t shard, uint64_t number,
                             const struct blob *scalars);

/* The merged scalars, in program order. */
void round_scalars(const struct round *round, double *scalars);

#endif
