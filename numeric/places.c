#include "numeric/places.h"

#include <string.h>

#include "numeric/clones.h"

typedef uint32_t eight __attribute__((vector_size(32)));
#define EIGHT 8

/* The sign of a difference says which number is less. */
VECTOR_CLONES
static void count_less(const uint32_t *key, uint32_t count, uint32_t *place) {
    for (uint32_t i = 0; i < count; i += 2 * EIGHT) {
        eight low, high, less_low = {0}, less_high = {0};
        memcpy(&low, key + i, sizeof low);
        memcpy(&high, key + i + EIGHT, sizeof high);
        for (uint32_t k = 0; k < count; k++) {
            less_low += (key[k] - low) >> 31;
            less_high += (key[k] - high) >> 31;
        }
        memcpy(place + i, &less_low, sizeof less_low);
        memcpy(place + i + EIGHT, &less_high, sizeof less_high);
    }
}

/* Two that are the same are not in order, and one pair is missing from the sum. */
bool places_find(const uint32_t key[PLACES_MOST], uint32_t count, uint32_t place[PLACES_MOST]) {
    uint32_t sum = 0;
    count_less(key, count, place);
    for (uint32_t i = 0; i < count; i++)
        sum += place[i];
    return count < 2 || sum == count * (count - 1) / 2;
}
