#include "shard/placing.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "device/find.h"
#include "numeric/fixed.h"
#include "shard/programs.h"

/* ---- the proof ---- */

/* A block and a part of one. */
enum { ELEMENTS = BLOCK_ELEMENTS + 1003, SLOTS = 2, DIRECTIONS = 1, BIASES = 51 };

/* One of the two runs that are compared: registers on the CPU or on the device, and the scalars of
 * the program. */
struct proof_side {
    struct registers registers;
    struct bytes scalars;
};

/* Numbers of similar sizes, so that every order of additions rounds in its own way. */
static double canned(struct random *random) {
    double magnitude = random_unit(random) * fixed_power((int)random_below(random, 6) - 3);
    return random_next(random) & 1 ? magnitude : -magnitude;
}

/* Fills registers, sums and exponents with arbitrary numbers, the same for both sides. */
static int fill(struct registers *registers) {
    struct random random;
    int16_t exponents[ELEMENTS];
    int64_t sums[ELEMENTS];
    double squares[ELEMENTS - BIASES];
    random_init(&random, 1);
    for (size_t i = 0; i < ELEMENTS; i++) {
        exponents[i] = (int16_t)(random_below(&random, 90) - 20);
        sums[i] = fixed_round(canned(&random) * 0x1p30);
    }
    for (size_t i = 0; i < ELEMENTS - BIASES; i++)
        squares[i] = i % 5 ? random_unit(&random) : 0;
    int code = registers_set_exponents(registers, 0, exponents, ELEMENTS);
    if (!code)
        code = scaling_set_squares(&registers->scaling, 0, squares, ELEMENTS - BIASES);
    if (!code)
        code = registers_load(registers);
    const struct slice slice = {.entries = ELEMENTS, .values = sums};
    for (int times = 0; times < 2 && !code; times++)
        code = registers->backend->fold(registers, ELEMENTS, &slice, !times);
    for (uint8_t i = 0; i < REGISTERS && !code; i++) {
        for (size_t k = 0; registers_have(registers, i) && k < ELEMENTS; k++) {
            /* Sums of squares are not below 0. */
            double value = random_below(&random, 5) ? canned(&random) : 0;
            registers->vector[i].elements[k] = i == REGISTER_A ? fabs(value) : value;
        }
        if (registers_have(registers, i))
            code = registers_push(registers, i, 0, ELEMENTS);
    }
    return code;
}

static int begin(struct proof_side *side, struct device *device) {
    struct layout layout = layout_linear(ELEMENTS - BIASES, 1, false);
    const struct layout_tensor bias = {.name = TENSOR_BIAS, .rows = 1, .columns = BIASES};
    layout_add(&layout, &bias);
    const double loss[LOSS_PARAMETERS_MAX] = {0};
    struct bytes blob;
    bytes_init(&blob);
    bytes_init(&side->scalars);
    layout_encode(&layout, &blob);
    const struct message_shard_setup setup = {.layout = {blob.data, (uint32_t)blob.length},
                                              .count = ELEMENTS,
                                              .slots = SLOTS,
                                              .history_type = HISTORY_FLOAT,
                                              .weight_sum = 7,
                                              .box.used = 1,
                                              .scaling.measured = 1,
                                              .adagrad = 1,
                                              .rows.directions = DIRECTIONS,
                                              .rows.total = 1,
                                              .rows.outputs = 1,
                                              .rows.objective = "squared",
                                              .rows.loss = {loss, sizeof loss}};
    registers_use(&side->registers, device ? &shard_on_device : &shard_on_host, device);
    int code = registers_set_up(&side->registers, &setup);
    bytes_release(&blob);
    return code ? code : fill(&side->registers);
}

static void end(struct proof_side *side) {
    bytes_release(&side->scalars);
    registers_release(&side->registers);
}

/* ---- the program ---- */

static const struct operation operations[] = {
    {.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 7},
    {.code = OPERATION_REGULARIZE, .a = REGISTER_H, .b = REGISTER_T, .alpha = 0.3},
    {.code = OPERATION_ADD, .a = REGISTER_G, .b = REGISTER_H, .c = REGISTER_D, .alpha = 0.7},
    {.code = OPERATION_PAIR,
     .slot = 0,
     .a = REGISTER_T,
     .b = REGISTER_X,
     .c = REGISTER_G,
     .d = REGISTER_D,
     .e = REGISTER_G,
     .f = REGISTER_D,
     .beta = 0.25},
    {.code = OPERATION_PAIR,
     .slot = 1,
     .a = REGISTER_H,
     .b = REGISTER_X,
     .c = REGISTER_H,
     .d = REGISTER_G,
     .e = REGISTER_H,
     .f = REGISTER_G,
     .beta = 0.25},
    {.code = OPERATION_MASK, .slot = 1, .a = REGISTER_T, .b = REGISTER_X},
    {.code = OPERATION_HISTORY_DOTS, .a = REGISTER_H, .slot = 1, .count = 2, .slots = {1, 0}},
    {.code = OPERATION_DIRECTION,
     .a = REGISTER_D,
     .b = REGISTER_H,
     .alpha = 1.1,
     .beta = 0.25,
     .count = 2,
     .slots = {0, 1},
     .u = {0.7, -0.2},
     .w = {0.4, 1.3}},
    {.code = OPERATION_PSEUDO_GRADIENT,
     .a = REGISTER_QH,
     .b = REGISTER_T,
     .c = REGISTER_H,
     .l1 = 0.25},
    {.code = OPERATION_ALIGN, .a = REGISTER_D, .b = REGISTER_T, .c = REGISTER_QH},
    {.code = OPERATION_PROJECT, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_QH},
    {.code = OPERATION_DOT, .a = REGISTER_H, .b = REGISTER_D},
    {.code = OPERATION_DOT_REGULARIZED, .a = REGISTER_T, .b = REGISTER_T},
    {.code = OPERATION_MAX_ABS, .a = REGISTER_QH},
    {.code = OPERATION_GAP, .a = REGISTER_H, .alpha = 0.25, .gamma = 1},
    {.code = OPERATION_METRIC, .a = REGISTER_T, .b = REGISTER_X, .alpha = 0.25, .gamma = 1},
    {.code = OPERATION_TENSOR_SQUARES, .a = REGISTER_H, .tensors = 2},
    {.code = OPERATION_NORM_1, .a = REGISTER_T},
    {.code = OPERATION_DESCENT,
     .a = REGISTER_T,
     .b = REGISTER_X,
     .c = REGISTER_QH,
     .d = REGISTER_H,
     .l1 = 0.25},
    {.code = OPERATION_EXCESS, .a = REGISTER_H, .b = REGISTER_X, .alpha = 0.5, .l1 = 0.25},
    {.code = OPERATION_KEEP, .a = REGISTER_QH, .slot = 0},
    {.code = OPERATION_KEEP, .a = REGISTER_D, .slot = 2},
    {.code = OPERATION_COMBINE,
     .a = REGISTER_T,
     .b = REGISTER_H,
     .count = 2,
     .slots = {2, 0},
     .u = {0.7, -0.2}},
    {.code = OPERATION_WINDOW_DOTS, .a = REGISTER_T, .count = 2, .slots = {0, 2}},
    {.code = OPERATION_ADAGRAD,
     .a = REGISTER_X,
     .b = REGISTER_A,
     .c = REGISTER_H,
     .alpha = 0.3,
     .beta = 1e-10,
     .l1 = 0.5},
    {.code = OPERATION_DIAGONAL, .a = REGISTER_A, .alpha = 0.3, .beta = 0.7},
    {.code = OPERATION_PAIR,
     .slot = 0,
     .a = REGISTER_T,
     .b = REGISTER_X,
     .c = REGISTER_H,
     .d = REGISTER_G,
     .e = REGISTER_H,
     .f = REGISTER_G,
     .beta = 1,
     .scaled = true},
    {.code = OPERATION_DIRECTION,
     .a = REGISTER_G,
     .b = REGISTER_H,
     .alpha = 0.6,
     .beta = 1,
     .count = 1,
     .slots = {0},
     .u = {0.4},
     .w = {0.2},
     .scaled = true},
};

static int run(struct proof_side *side) {
    struct operation items[sizeof operations / sizeof *operations];
    memcpy(items, operations, sizeof items);
    const struct operation_list list = {.items = items, .count = sizeof items / sizeof *items};
    const struct bounds bounds = bounds_of_one(3);
    struct registers *registers = &side->registers;
    int code = operation_list_run(&list, registers, &bounds, &side->scalars);
    for (uint8_t i = 0; i < REGISTERS && !code; i++)
        if (registers_have(registers, i))
            code = registers_pull(registers, i, 0, ELEMENTS);
    for (uint32_t slot = 0; slot < SLOTS && !code; slot++)
        code = registers_pull_pair(registers, slot);
    return code;
}

static bool agree(const struct proof_side *one, const struct proof_side *other) {
    bool same = one->scalars.length == other->scalars.length &&
                !memcmp(one->scalars.data, other->scalars.data, one->scalars.length);
    size_t stored = ELEMENTS * history_size(HISTORY_FLOAT);
    for (uint8_t i = 0; i < REGISTERS; i++)
        same &= !registers_have(&one->registers, i) ||
                !memcmp(one->registers.vector[i].elements, other->registers.vector[i].elements,
                        ELEMENTS * sizeof(double));
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        same &= !memcmp(registers_s(&one->registers, slot), registers_s(&other->registers, slot),
                        stored) &&
                !memcmp(registers_q(&one->registers, slot), registers_q(&other->registers, slot),
                        stored);
    return same;
}

int shard_proof_of_device(struct device *device) {
    struct proof_side *sides = memory_new(2, sizeof *sides); /* the CPU, the device */
    int code = begin(&sides[0], NULL);
    if (!code)
        code = run(&sides[0]);
    if (!code)
        code = begin(&sides[1], device);
    if (!code)
        code = run(&sides[1]);
    if (!code && !agree(&sides[0], &sides[1]))
        code = error_set(ERROR_CONFIG,
                         "%s does not compute the bits that the CPU computes: update its driver, "
                         "or set `device = cpu`",
                         device_name(device));
    end(&sides[0]);
    end(&sides[1]);
    free(sides);
    return code;
}

/* ---- the place ---- */

void shard_placing_release(struct shard_placing *placing) {
    device_close(placing->device);
    placing->device = NULL;
}

int shard_placing_find(void *context, const struct message_shard_setup *setup,
                       struct shard_place *place) {
    struct shard_placing *placing = context;
    const struct device_wish wish = {
        .asked = setup->machine.device,
        .own = placing->own,
        .index = setup->machine.on_host,
        .pays = setup->count >= DEVICE_ELEMENTS_MIN,
        .prove = shard_proof_of_device,
    };
    *place =
        (struct shard_place){.backend = &shard_on_host, .optional = device_wish_is_free(&wish)};
    int code = device_choose(&wish, &placing->device);
    if (code || !placing->device)
        return code;
    assert(*device_name(placing->device));
    place->backend = &shard_on_device;
    place->device = placing->device;
    place->name = device_name(placing->device);
    return 0;
}
