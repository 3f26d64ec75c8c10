/* Where each of some few numbers goes among them, without branches: all are compared with all. */
#ifndef DML_NUMERIC_PLACES_H
#define DML_NUMERIC_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define PLACES_MOST 32

/* place[i] = how many of the first `count` keys, at most PLACES_MOST and below 2^31, are less than
 * key[i]. Both arrays have room for PLACES_MOST, all of which is read; what follows place[count]
 * has no meaning. False if two keys are the same. */
bool places_find(const uint32_t key[PLACES_MOST], uint32_t count, uint32_t place[PLACES_MOST]);

#endif
