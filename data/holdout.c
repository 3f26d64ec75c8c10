#include "data/holdout.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

/* Odd constants that keep the kinds of hashed things apart: an id, a numeric label, a text label.
 */
#define OF_ID UINT64_C(0x9e3779b97f4a7c15)
#define OF_NUMBER UINT64_C(0xd1b54a32d192ed03)
#define OF_TEXT UINT64_C(0x8cb92ba72f3d8dd7)
#define OF_SEED UINT64_C(0xe7037ed1a0b428db)

/* The output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, 2014, with the constants of Stafford's variant 13). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t hash_label(const struct source_rows *rows, uint32_t row) {
    const char *text = rows->label_text ? rows->label_text[row] : NULL;
    if (text)
        return mix(hash64(text, strlen(text)) + OF_TEXT);
    return isnan(rows->label[row]) ? 0 : mix(bits_of(rows->label[row]) + OF_NUMBER);
}

uint64_t holdout_hash(const struct source_rows *rows, uint32_t row) {
    uint64_t sum = hash_label(rows, row), values = rows->start[row + 1] - rows->start[row];
    const uint64_t *id = source_row_seeded_ids(rows, row);
    const double *value = rows->value + rows->start[row];
    for (uint64_t i = 0; i < values; i++)
        if (value[i] != 0)
            sum += mix(mix(id[i] + OF_ID) ^ bits_of(value[i]));
    return mix(sum);
}

bool holdout_has(double share, uint64_t hash) {
    return hash < (uint64_t)ldexp(share, 64);
}

/* The hash is mixed anew, so that folds do not depend on the share: that goes by the size of the
 * hash itself. */
uint32_t holdout_fold(uint64_t hash, uint64_t seed, uint32_t folds) {
    uint64_t place = mix(hash ^ mix(seed + OF_SEED));
    return 1 + (uint32_t)(((place >> 32) * folds) >> 32);
}

bool holdout_picks(const struct holdout_pick *pick, uint64_t hash) {
    bool held_out = holdout_has(pick->share, hash);
    return pick->folds ? !held_out && holdout_fold(hash, pick->seed, pick->folds) == pick->fold
                       : held_out;
}
