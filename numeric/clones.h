/* Vectors of eight lanes, and kernels compiled once for each instruction set that matters.
 *
 * Sums over lanes are written out in a fixed order and nothing is contracted to fma, so every clone
 * computes the same bits; they differ in speed only. */
#ifndef DML_NUMERIC_CLONES_H
#define DML_NUMERIC_CLONES_H

#include <stdint.h>
#include <string.h>

/* clang 14 gives clones names that no other file can link to, and the resolvers of gcc run before
 * the sanitizers are set up: both get the baseline. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                \
    !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

typedef double lanes __attribute__((vector_size(64)));
typedef int64_t long_lanes __attribute__((vector_size(64)));
typedef uint64_t word_lanes __attribute__((vector_size(64)));

#define LANES 8

/* Half as many lanes, for the hottest loops: with AVX2 a vector of whole lanes is two registers,
 * and gcc often keeps it in memory. Sums of many values or of integers stay in registers like this.
 */
typedef double half_lanes __attribute__((vector_size(32)));
typedef float half_float_lanes __attribute__((vector_size(16)));
typedef uint64_t half_words __attribute__((vector_size(32)));

#define HALF 4

/* Innermost loops over sums must be unrolled: only then do the sums stay in registers, of which
 * AVX2 has sixteen. A product and its addition use one more each. */
#define UNROLL _Pragma("GCC unroll 8")

/* For functions that take lanes: they become part of the clone that calls them. Lanes go by
 * pointer, since how they are passed by value depends on the instruction set. */
#define LANES_INLINE static inline __attribute__((always_inline))

LANES_INLINE void lanes_load(lanes *out, const double *from) {
    memcpy(out, from, sizeof *out);
}

LANES_INLINE void lanes_store(double *to, const lanes *from) {
    memcpy(to, from, sizeof *from);
}

/* The sum of the lanes, folded in halves: 8 → 4 → 2 → 1. */
LANES_INLINE double lanes_sum(const lanes *a) {
    lanes v = *a;
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* The sum of all lanes where lanes 0 to 3 and 4 to 7 are separate vectors. */
LANES_INLINE double half_lanes_sum(const half_lanes *low, const half_lanes *high) {
    half_lanes v = *low + *high;
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* mask = all bits where a > b, else 0; either where one is a NaN, or both are zeros or the same
 * infinity. It is the sign of the difference, because gcc 12 compares such vectors number by
 * number. */
LANES_INLINE void lanes_above(word_lanes *mask, const lanes *a, const lanes *b) {
    lanes difference = *b - *a;
    memcpy(mask, &difference, sizeof *mask);
    *mask = 0 - (*mask >> 63);
}

/* out = a where the mask is set, else b. */
LANES_INLINE void lanes_choose(lanes *out, const word_lanes *mask, const lanes *a, const lanes *b) {
    word_lanes x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    x = (x & *mask) | (y & ~*mask);
    memcpy(out, &x, sizeof x);
}

/* ---- the same for half as many ---- */

LANES_INLINE void half_load_floats(half_lanes *out, const float *from) {
    half_float_lanes narrow;
    memcpy(&narrow, from, sizeof narrow);
    *out = __builtin_convertvector(narrow, half_lanes);
}

LANES_INLINE void half_abs(half_lanes *value) {
    half_words bits;
    memcpy(&bits, value, sizeof bits);
    bits &= UINT64_MAX >> 1;
    memcpy(value, &bits, sizeof bits);
}

/* out = a where the mask is set, else b. */
LANES_INLINE void half_choose(half_lanes *out, const half_words *mask, const half_lanes *a,
                              const half_lanes *b) {
    half_words x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    x = (x & *mask) | (y & ~*mask);
    memcpy(out, &x, sizeof x);
}

#endif
