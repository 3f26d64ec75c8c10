#include "bench/peak.h"

#ifdef __x86_64__
#include <immintrin.h>

/* So many sums hide the latency of an fma on all processors we know. */
enum { SUMS = 12 };

__attribute__((target("avx2,fma"))) static double peak_256(long rounds) {
    __m256d sum[SUMS], factor = _mm256_set1_pd(0.999), term = _mm256_set1_pd(0.001);
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm256_set1_pd(i);
    for (long round = 0; round < rounds; round++)
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm256_fmadd_pd(sum[i], factor, term);
    volatile double used = 0;
    for (int i = 0; i < SUMS; i++)
        used = used + sum[i][0];
    return (double)rounds * SUMS * 4 * 2;
}

__attribute__((target("avx512f"))) static double peak_512(long rounds) {
    __m512d sum[SUMS], factor = _mm512_set1_pd(0.999), term = _mm512_set1_pd(0.001);
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_set1_pd(i);
    for (long round = 0; round < rounds; round++)
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_fmadd_pd(sum[i], factor, term);
    volatile double used = 0;
    for (int i = 0; i < SUMS; i++)
        used = used + sum[i][0];
    return (double)rounds * SUMS * 8 * 2;
}

double peak_operations(long rounds) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return peak_512(rounds);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return peak_256(rounds);
    return 0;
}
#else
double peak_operations(long rounds) {
    (void)rounds;
    return 0;
}
#endif
