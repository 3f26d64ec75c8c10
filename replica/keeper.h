/* Keeps the copy of a set that comes by messages: carries out ACTION_COPY_SET, ACTION_KEEP and
 * ACTION_LOOK. Bytes are put aside in memory until their place is complete. A thread then verifies
 * them and puts them into the copy, or looks whether that has the place: neither the loop nor those
 * that compute wait for the disk.
 *
 * All functions are for the thread of the loop. */
#ifndef DML_REPLICA_KEEPER_H
#define DML_REPLICA_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"
#include "replica/replica.h"

struct keeper; /* opaque */

/* `looked` is called by the thread: keeper_take() has an answer. */
struct keeper *keeper_new(void (*looked)(void *context), void *context);
void keeper_free(struct keeper *keeper);

/* Begins a copy of the set with this fingerprint in `folder`; NULL: in memory. ERROR_DATA if it is
 * no fingerprint. */
int keeper_begin(struct keeper *keeper, const char *folder, const char *fingerprint);

/* What replica_head_lacks() is to be told. */
struct set_range keeper_head_lacks(struct keeper *keeper);

/* Opens the set over the head, which is complete, and starts the thread. The set is the caller's,
 * and closed after keeper_stop(). */
int keeper_open(struct keeper *keeper, struct set **set);

/* Ends the thread and forgets what was put aside and asked for; harmless without a set. */
void keeper_stop(struct keeper *keeper);

/* As ACTION_KEEP. */
void keeper_put_aside(struct keeper *keeper, const struct action *action);

/* Puts the part of the head that was put aside into the copy, if it is whole. As partial_put(). */
int keeper_look_at_head(struct keeper *keeper);

/* Looks at another place; the thread answers. */
void keeper_look(struct keeper *keeper, uint32_t place);

/* The answer to a look. */
struct keeper_answer {
    uint32_t place;
    bool here;
    int error;
    char reason[1024];
};

/* The next answer; false: there is none. */
bool keeper_take(struct keeper *keeper, struct keeper_answer *answer);

#endif
