#include "bench/measure.h"

#include <math.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"

double thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void least_ns(unsigned turns, size_t ways, void (*run)(void *context, size_t way), void *context,
              double *least) {
    for (size_t way = 0; way < ways; way++)
        least[way] = INFINITY;
    for (unsigned turn = 0; turn < turns; turn++)
        for (size_t way = 0; way < ways; way++) {
            double start = thread_ns();
            run(context, way);
            least[way] = fmin(least[way], thread_ns() - start);
        }
}

double *random_numbers(size_t count) {
    double *numbers = memory_new_aligned(count, sizeof *numbers);
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < count; i++)
        numbers[i] = random_unit(&random) - 0.5;
    return numbers;
}

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
