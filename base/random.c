#include "base/random.h"

#include <assert.h>

uint64_t permutation_key(uint64_t seed, uint64_t number) {
    return random_mix(random_mix(seed) + (number + 1) * RANDOM_STEP);
}

/* The highest bits of a product are the best mixed ones. */
static uint64_t mixed(uint64_t right, unsigned round, unsigned half, uint64_t key) {
    return random_mix(permutation_key(key, round) + right * RANDOM_STEP) >> (64 - half);
}

static uint64_t encipher(uint64_t x, unsigned half, uint64_t key) {
    uint64_t mask = (UINT64_C(1) << half) - 1, left = x >> half, right = x & mask;
    for (unsigned round = 0; round < PERMUTATION_ROUNDS; round++) {
        uint64_t next = left ^ mixed(right, round, half, key);
        left = right;
        right = next;
    }
    return left << half | right;
}

static uint64_t decipher(uint64_t x, unsigned half, uint64_t key) {
    uint64_t mask = (UINT64_C(1) << half) - 1, left = x >> half, right = x & mask;
    for (unsigned round = PERMUTATION_ROUNDS; round-- > 0;) {
        uint64_t before = right ^ mixed(left, round, half, key);
        right = left;
        left = before;
    }
    return left << half | right;
}

typedef uint64_t cipher(uint64_t x, unsigned half, uint64_t key);

static inline uint64_t walk(uint64_t x, uint64_t count, uint64_t key, cipher *step) {
    unsigned half = 1;
    assert(x < count);
    while (half < 32 && (UINT64_C(1) << 2 * half) < count)
        half++;
    do
        x = step(x, half, key);
    while (x >= count);
    return x;
}

uint64_t permutation_at(uint64_t index, uint64_t count, uint64_t key) {
    return walk(index, count, key, encipher);
}

uint64_t permutation_inverse(uint64_t place, uint64_t count, uint64_t key) {
    return walk(place, count, key, decipher);
}
