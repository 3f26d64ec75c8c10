/* Inside numeric/ only: functions of arrays from kernels over lanes, after an instance of
 * numeric/exp_lanes.def. Arrays may be the same. An element's bits do not depend on its place. */
#ifndef DML_NUMERIC_OVER_LANES_H
#define DML_NUMERIC_OVER_LANES_H

#define COUNT (VECTOR_BYTES / sizeof(NUMBER))

#define OVER_LANES(name, kernel)                                                                   \
    VECTOR_CLONES void name(size_t n, NUMBER *out, const NUMBER *x) {                              \
        size_t i = 0;                                                                              \
        NUMBERS v;                                                                                 \
        for (; i + COUNT <= n; i += COUNT) {                                                       \
            memcpy(&v, x + i, sizeof v);                                                           \
            kernel(&v, &v);                                                                        \
            memcpy(out + i, &v, sizeof v);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            v = ALL(0);                                                                            \
            memcpy(&v, x + i, (n - i) * sizeof *x);                                                \
            kernel(&v, &v);                                                                        \
            memcpy(out + i, &v, (n - i) * sizeof *x);                                              \
        }                                                                                          \
    }

/* The same of a gradient and what its derivative is computed from. */
#define BACK_OVER_LANES(name, kernel)                                                              \
    VECTOR_CLONES void name(size_t n, NUMBER *out, const NUMBER *gradient, const NUMBER *x) {      \
        size_t i = 0;                                                                              \
        NUMBERS g, v;                                                                              \
        for (; i + COUNT <= n; i += COUNT) {                                                       \
            memcpy(&g, gradient + i, sizeof g);                                                    \
            memcpy(&v, x + i, sizeof v);                                                           \
            kernel(&v, &g, &v);                                                                    \
            memcpy(out + i, &v, sizeof v);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            g = v = ALL(0);                                                                        \
            memcpy(&g, gradient + i, (n - i) * sizeof *x);                                         \
            memcpy(&v, x + i, (n - i) * sizeof *x);                                                \
            kernel(&v, &g, &v);                                                                    \
            memcpy(out + i, &v, (n - i) * sizeof *x);                                              \
        }                                                                                          \
    }

#endif
