/* Inside objective/ only: which rows an evaluation of curvature draws, on any side. */
#ifndef DML_OBJECTIVE_DICE_H
#define DML_OBJECTIVE_DICE_H

#include <stdint.h>

#include "device/portable.h"

/* random_mix() of base/random.h, which devices cannot call. */
PORTABLE uint64_t dice_mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Evenly in [0, 1), and nothing but a function of the three numbers. */
PORTABLE double dice_throw(uint64_t dice, uint32_t chunk, uint32_t row) {
    uint64_t place = (uint64_t)chunk << 32 | row;
    uint64_t bits = dice_mix(dice_mix(dice) + (place + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
