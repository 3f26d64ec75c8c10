#include "optimizer/pairs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/dense.h"

/* Least reciprocal condition number of the scaled R: half the digits of the direction are good. */
#define CONDITION_LEAST 1e-8

void pairs_init(struct pairs *history, uint32_t memory, bool rough) {
    assert(memory >= 1 && memory <= HISTORY_MAX);
    memset(history, 0, sizeof *history);
    history->memory = memory;
    history->rough = rough;
    history->gamma = 1;
}

void pairs_reset(struct pairs *history, bool preconditioned) {
    assert(history->memory >= 1 && history->memory <= HISTORY_MAX);
    history->pairs = 0;
    history->preconditioned = preconditioned;
    history->gamma = 1;
}

static void drop_oldest(struct pairs *history) {
    assert(history->pairs > 0);
    history->pairs--;
    memmove(history->slot, history->slot + 1, history->pairs * sizeof history->slot[0]);
}

static bool slot_in_use(const struct pairs *history, uint16_t slot) {
    assert(history->pairs <= history->memory);
    for (uint32_t i = 0; i < history->pairs; i++)
        if (history->slot[i] == slot)
            return true;
    return false;
}

/* The next slot round the ring that holds no pair: the one written longest ago. */
static uint16_t free_slot(const struct pairs *history, uint16_t after) {
    uint16_t slots = (uint16_t)(history->memory + 2);
    assert(history->pairs < slots); /* so there is one */
    uint16_t slot = after;
    do
        slot = (uint16_t)((slot + 1) % slots);
    while (slot_in_use(history, slot));
    assert(slot < slots);
    return slot;
}

void pairs_accept(struct pairs *history, const struct pairs_products *products, bool keep,
                  uint64_t step) {
    uint16_t new_slot = history->candidate;
    uint32_t pairs = history->pairs;
    assert(pairs <= history->memory && new_slot < history->memory + 2);
    assert(!slot_in_use(history, new_slot));
    for (uint32_t i = 0; i <= pairs; i++) {
        uint16_t slot = i < pairs ? history->slot[i] : new_slot;
        history->sg[slot] = products[i].sh;
        history->yg[slot] = products[i].yh;
        if (!keep)
            continue;
        history->sy[slot][new_slot] = products[i].sy;
        history->yy[slot][new_slot] = products[i].yy;
        history->yy[new_slot][slot] = products[i].yy;
    }
    if (!keep)
        return;
    if (!history->preconditioned || history->rough)
        history->gamma = products[pairs].sy / products[pairs].yy;
    if (history->pairs == history->memory)
        drop_oldest(history);
    history->slot[history->pairs++] = new_slot;
    history->serial[new_slot] = step;
    history->candidate = free_slot(history, new_slot);
    assert(history->pairs <= history->memory && !slot_in_use(history, history->candidate));
}

/* 1/√(s_i·y_i) for each pair. */
static void scales(const struct pairs *history, double *scale) {
    for (uint32_t i = 0; i < history->pairs; i++) {
        uint16_t slot = history->slot[i];
        assert(history->sy[slot][slot] > 0); /* pairs without curvature are not kept */
        scale[i] = 1 / sqrt(history->sy[slot][slot]);
    }
}

/* R scaled on both sides, column-major with leading dimension `pairs`; free it. */
static double *scaled_triangle(const struct pairs *history, const double *scale) {
    uint32_t n = history->pairs;
    double *r = memory_new((size_t)n * n, sizeof *r);
    assert(n > 0 && n <= HISTORY_MAX);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i <= j; i++)
            r[i + (size_t)j * n] =
                scale[i] * history->sy[history->slot[i]][history->slot[j]] * scale[j];
    return r;
}

uint32_t pairs_condition(struct pairs *history) {
    uint32_t n = history->pairs;
    if (n == 0)
        return 0;
    double scale[HISTORY_MAX];
    scales(history, scale);
    double *r = scaled_triangle(history, scale);
    /* The triangle without its oldest pairs is its lower right corner. */
    uint32_t dropped = n - (uint32_t)dense_upper_corner(n, r, n, CONDITION_LEAST);
    assert(dropped <= n);
    for (uint32_t i = 0; i < dropped; i++)
        drop_oldest(history);
    free(r);
    assert(history->pairs == n - dropped);
    return dropped;
}

void pairs_direction(const struct pairs *history, double *u, double *w) {
    uint32_t n = history->pairs;
    assert(n <= history->memory);
    if (n == 0)
        return;
    double scale[HISTORY_MAX];
    scales(history, scale);
    double *r = scaled_triangle(history, scale);
    for (uint32_t i = 0; i < n; i++)
        w[i] = scale[i] * history->sg[history->slot[i]];
    dense_upper_solve(n, r, n, false, w);
    for (uint32_t i = 0; i < n; i++)
        w[i] *= scale[i];

    for (uint32_t i = 0; i < n; i++) {
        uint16_t slot = history->slot[i];
        double product = 0; /* (YᵀY w − Yᵀg)_i */
        for (uint32_t j = 0; j < n; j++)
            product += history->yy[slot][history->slot[j]] * w[j];
        product -= history->yg[slot];
        u[i] = scale[i] * (history->sy[slot][slot] * w[i] + history->gamma * product);
    }
    dense_upper_solve(n, r, n, true, u);
    for (uint32_t i = 0; i < n; i++)
        u[i] *= scale[i];
    free(r);
}

/* ---- in the record of the state ---- */

void pairs_serialize(struct codec *codec, struct pairs *history) {
    assert(!codec->out || history->pairs <= history->memory);
    serialize_u32(codec, &history->memory);
    serialize_u32(codec, &history->pairs);
    serialize_u16(codec, &history->candidate);
    serialize_bool(codec, &history->preconditioned);
    serialize_f64(codec, &history->gamma);
    serialize_fails_if(codec, history->memory > HISTORY_MAX || history->pairs > history->memory ||
                                  history->candidate >= SLOTS_MAX);
    for (uint32_t i = 0; i < history->pairs && !codec->in.failed; i++) {
        serialize_u16(codec, &history->slot[i]);
        uint16_t slot = history->slot[i];
        serialize_fails_if(codec, slot >= SLOTS_MAX);
        if (codec->in.failed)
            return;
        serialize_u64(codec, &history->serial[slot]);
        serialize_f64(codec, &history->sg[slot]);
        serialize_f64(codec, &history->yg[slot]);
        for (uint32_t j = 0; j <= i; j++) {
            uint16_t older = history->slot[j];
            serialize_f64(codec, &history->sy[older][slot]);
            serialize_f64(codec, &history->yy[older][slot]);
            history->yy[slot][older] = history->yy[older][slot];
        }
    }
}
