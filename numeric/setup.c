#include "numeric/setup.h"

#include <assert.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/steps.h"
#include "numeric/dense.h"
#include "numeric/fixed.h"
#include "numeric/vector.h"

void numeric_setup(void) {
    fesetround(FE_TONEAREST);
    assert(fegetround() == FE_TONEAREST);
#ifdef __SSE2__
    _mm_setcsr(_mm_getcsr() & ~0x8040u); /* neither flush denormals to zero nor read them as zero */
#endif
}

static const char *vector_instructions(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return "x86-64 with AVX-512";
    if (__builtin_cpu_supports("avx2"))
        return "x86-64 with AVX2";
    return "x86-64";
#else
    return "not x86-64";
#endif
}

const char *numeric_description(void) {
    static _Thread_local char text[256];
#ifdef __clang__
    const char *compiler = __VERSION__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    snprintf(text, sizeof text, "%s; %s", compiler, vector_instructions());
    return text;
}

/* Numbers of mixed sign and size, the same on every machine. */
static void fill(struct random *random, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        double magnitude = random_unit(random) * fixed_power((int)random_below(random, 40) - 20);
        out[i] = random_next(random) & 1 ? magnitude : -magnitude;
    }
}

enum { PROOF_ELEMENTS = 1003, PROOF_ORDER = 21 };

struct proof {
    double a[PROOF_ELEMENTS], b[PROOF_ELEMENTS], out[PROOF_ELEMENTS], rounded[PROOF_ELEMENTS];
    float stored[PROOF_ELEMENTS];
    int64_t sum[PROOF_ELEMENTS];
    double scalars[8];
    double triangle[400], solution[PROOF_ORDER];
    double adagrad[PROOF_ELEMENTS], sums[PROOF_ELEMENTS];
};

uint64_t numeric_proof_vectors(void) {
    struct proof *proof = memory_new(1, sizeof *proof);
    struct random random;
    random_init(&random, 1);
    fill(&random, PROOF_ELEMENTS, proof->a);
    fill(&random, PROOF_ELEMENTS, proof->b);
    for (size_t i = 0; i < PROOF_ELEMENTS; i++)
        fixed_add(&proof->sum[i], proof->a[i] * 0x1p30);
    fixed_merge(PROOF_ELEMENTS, proof->sum, proof->sum);
    vector_from_fixed(PROOF_ELEMENTS, proof->out, proof->sum, 30, 7);
    vector_add(PROOF_ELEMENTS, proof->out, proof->out, 0.3, proof->b);
    history_store(HISTORY_FLOAT, PROOF_ELEMENTS, proof->stored, proof->rounded, proof->a, proof->b);
    history_add(HISTORY_FLOAT, PROOF_ELEMENTS, proof->out, 0.7, proof->stored, 1.1, proof->stored);
    proof->scalars[0] = vector_dot(PROOF_ELEMENTS, proof->a, proof->b);
    proof->scalars[1] = vector_max_abs(PROOF_ELEMENTS, proof->out);
    history_dots(HISTORY_FLOAT, PROOF_ELEMENTS, proof->stored, proof->a, proof->b,
                 &proof->scalars[2]);
    orthant_descent(PROOF_ELEMENTS, proof->a, proof->b, proof->rounded, proof->out, 0.25,
                    &proof->scalars[4]);
    proof->scalars[7] = orthant_excess(PROOF_ELEMENTS, proof->a, 0.5, proof->b, 0.25);
    /* A factor of a matrix with a diagonal of 1, and a solution with it. */
    assert(triangle_row(PROOF_ORDER) <= sizeof proof->triangle / sizeof *proof->triangle);
    for (size_t r = 0; r < PROOF_ORDER; r++) {
        double *row = proof->triangle + triangle_row(r);
        for (size_t k = 0; k < r; k++)
            row[k] = (random_unit(&random) - 0.5) / PROOF_ORDER;
        row[r] = 1;
    }
    fill(&random, PROOF_ORDER, proof->solution);
    bool factored = cholesky_factor(PROOF_ORDER, proof->triangle);
    assert(factored);
    cholesky_solve(PROOF_ORDER, proof->triangle, proof->solution);
    memcpy(proof->adagrad, proof->a, sizeof proof->a);
    for (int times = 0; times < 2; times++)
        adagrad_step(PROOF_ELEMENTS, proof->adagrad, proof->sums, proof->b, 0.3, 1e-10);
    adagrad_shrink(PROOF_ELEMENTS, proof->adagrad, proof->sums, proof->sums, 0.1, 1e-10);
    adagrad_diagonal(PROOF_ELEMENTS, proof->sums, 0.3, 0.7);
    uint64_t hash = hash64(proof, sizeof *proof);
    free(proof);
    return hash;
}
