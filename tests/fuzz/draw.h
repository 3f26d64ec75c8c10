/* Decisions of a fuzzed test, drawn from its input: the same input gives the same decisions. */
#ifndef DML_TESTS_FUZZ_DRAW_H
#define DML_TESTS_FUZZ_DRAW_H

#include <stddef.h>
#include <stdint.h>

struct draw {
    const uint8_t *data;
    size_t left; /* bytes; at the end everything drawn is 0 */
};

static inline uint8_t draw_byte(struct draw *draw) {
    if (!draw->left)
        return 0;
    draw->left--;
    return *draw->data++;
}

static inline uint64_t draw_u64(struct draw *draw) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | draw_byte(draw);
    return value;
}

/* In [0, limit), limit from 1 to 256. */
static inline uint32_t draw_below(struct draw *draw, uint32_t limit) {
    return draw_byte(draw) % limit;
}

#endif
