/* Shards on a device against shards on the CPU: the same bits, whatever programs do. */
#include "tests/unit/suites.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/shard_bench.h"

#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "shard/programs.h"
#include "shard/placing.h"
#include "shard/state.h"

enum { SEVERAL_PARTS = (2 << 20) + 99 };
enum { MOST = 2 * BLOCK_ELEMENTS + 700, SLOTS = 20, LENGTH_MOST = 24 };

/* Which numbers are among those of a case: TAME ones have sums that are rounded, of the others some
 * overflow. */
enum special { TAME, FINITE, INFINITE, NOT_NUMBERS };

/* What a case is made of. */
struct shape {
    struct layout layout;
    uint64_t first, count;
    enum history_type type;
    bool uniform, scaled;
    enum special special;
    struct bounds bounds;
};

struct side {
    struct registers registers;
    struct bytes scalars;
};

/* ---- random cases ---- */

static int between(struct random *random, int least, int most) {
    return least + (int)random_below(random, (uint64_t)(most - least) + 1);
}

static struct layout random_layout(struct random *random, bool scaled) {
    uint64_t outputs = 1 + random_below(random, 3);
    if (scaled)
        return layout_linear(random_below(random, MOST / outputs - 1), outputs,
                             random_below(random, 4) > 0);
    struct layout layout = {.seed = 1};
    int tensors = between(random, 1, 6);
    for (int i = 0; i < tensors; i++) {
        struct layout_tensor tensor = {
            .rows = random_below(random, MOST / (uint64_t)tensors / 7),
            .columns = 1 + random_below(random, 7),
            .regularized = random_below(random, 3) > 0,
            .exponents = random_below(random, 2) ? LAYOUT_ONE_EXPONENT : LAYOUT_EXPONENT_A_ROW};
        snprintf(tensor.name, sizeof tensor.name, "T%d", i);
        assert_true(layout_add(&layout, &tensor));
    }
    return layout;
}

static struct shape random_shape(struct random *random) {
    struct shape shape = {.scaled = random_below(random, 3) == 0,
                          .type = random_below(random, 2) ? HISTORY_FLOAT : HISTORY_DOUBLE,
                          .uniform = random_below(random, 2)};
    if (random_below(random, 2) == 0)
        shape.special = (enum special)between(random, FINITE, NOT_NUMBERS);
    shape.layout = random_layout(random, shape.scaled);
    uint64_t all = layout_parameters(&shape.layout);
    shape.first = random_below(random, 2) ? 0 : random_below(random, all + 1);
    shape.count =
        random_below(random, 4) ? all - shape.first : random_below(random, all - shape.first + 1);
    shape.bounds.count = layout_bounds(&shape.layout);
    for (uint32_t i = 0; i < shape.bounds.count; i++)
        shape.bounds.exponent[i] = between(random, -60, 60);
    return shape;
}

/* From 1e-300 to 1e300, zeros of both signs, and those that are no numbers. */
static double random_number(struct random *random, enum special special) {
    const double rare[] = {0, -0.0, 1e-300, 5e-324, 1e300, -1e300, INFINITY, -INFINITY, NAN};
    static const size_t kinds[] = {[TAME] = 2, [FINITE] = 6, [INFINITE] = 8, [NOT_NUMBERS] = 9};
    if (random_below(random, special <= FINITE ? 8 : 40) == 0)
        return rare[random_below(random, kinds[special])];
    double value = ldexp(random_unit(random) - 0.5, between(random, -8, 8));
    if (special == TAME)
        return value;
    return random_below(random, 50) ? value : ldexp(value, between(random, -900, 900));
}

static uint8_t a_register(struct random *random) {
    static const uint8_t numbers[] = {REGISTER_X,  REGISTER_T,  REGISTER_G,  REGISTER_H, REGISTER_D,
                                      REGISTER_PG, REGISTER_PH, REGISTER_QG, REGISTER_QH};
    return numbers[random_below(random, sizeof numbers)];
}

/* Of Adagrad's sums, with numbers as programs have them. */
static void take_sums(struct operation *operation) {
    operation->alpha = fabs(operation->alpha);
    if (operation->code == OPERATION_DIAGONAL)
        operation->a = REGISTER_A;
    else
        operation->b = REGISTER_A;
}

static bool can_be_scaled(const struct operation *operation) {
    return operation->code == OPERATION_PAIR || operation->code == OPERATION_DIRECTION;
}

static struct operation random_operation(struct random *random, const struct layout *layout) {
    static const enum operation_code codes[] = {OPERATION_ZERO,
                                                OPERATION_ADD,
                                                OPERATION_GRADIENT,
                                                OPERATION_REGULARIZE,
                                                OPERATION_PAIR,
                                                OPERATION_DIRECTION,
                                                OPERATION_DOT,
                                                OPERATION_DOT_REGULARIZED,
                                                OPERATION_MAX_ABS,
                                                OPERATION_HISTORY_DOTS,
                                                OPERATION_PSEUDO_GRADIENT,
                                                OPERATION_PROJECT,
                                                OPERATION_ALIGN,
                                                OPERATION_MASK,
                                                OPERATION_NORM_1,
                                                OPERATION_DESCENT,
                                                OPERATION_EXCESS,
                                                OPERATION_TENSOR_SQUARES,
                                                OPERATION_ADAGRAD,
                                                OPERATION_DIAGONAL,
                                                OPERATION_GAP,
                                                OPERATION_KEEP,
                                                OPERATION_COMBINE,
                                                OPERATION_WINDOW_DOTS,
                                                OPERATION_METRIC};
    struct operation operation = {.code = codes[random_below(random, sizeof codes / sizeof *codes)],
                                  .a = a_register(random),
                                  .b = a_register(random),
                                  .c = a_register(random),
                                  .d = a_register(random),
                                  .alpha = ldexp(random_unit(random) - 0.5, between(random, -9, 9)),
                                  .beta = ldexp(1, between(random, -9, 9)),
                                  .l1 = random_below(random, 4) ? random_unit(random) : 0,
                                  .count = (uint32_t)random_below(random, SLOTS + 1),
                                  .tensors = layout->count};
    if (operation.code == OPERATION_GRADIENT)
        operation.alpha = 13;
    if (operation.code == OPERATION_GAP || operation.code == OPERATION_METRIC) {
        operation.alpha = fabs(operation.alpha) + 1e-9;
        operation.gamma = (1 + random_unit(random)) / 2;
    }
    if (operation.code == OPERATION_ADAGRAD || operation.code == OPERATION_DIAGONAL)
        take_sums(&operation);
    operation.scaled = random_below(random, 2) && can_be_scaled(&operation);
    bool stored = random_below(random, 2);
    operation.e = stored ? operation.c : a_register(random);
    operation.f = stored ? operation.d : a_register(random);
    for (uint32_t i = 0; i < operation.count; i++) {
        operation.slots[i] = (uint16_t)random_below(random, SLOTS);
        operation.u[i] = random_unit(random) - 0.5;
        operation.w[i] = random_unit(random) - 0.5;
    }
    return operation;
}

/* MASK and HISTORY_DOTS are of the last pair, so without one there are none. */
static struct operation_list random_program(struct random *random, const struct shape *shape) {
    struct operation_list list = {0};
    int length = between(random, 1, LENGTH_MOST), pair = -1;
    while ((int)list.count < length) {
        struct operation operation = random_operation(random, &shape->layout);
        if (operation.code == OPERATION_PAIR)
            operation.slot = (uint32_t)(pair = between(random, 0, SLOTS - 1));
        if (pair < 0 &&
            (operation.code == OPERATION_MASK || operation.code == OPERATION_HISTORY_DOTS))
            continue;
        if (operation.code == OPERATION_KEEP)
            operation.slot = (uint32_t)between(random, 0, SLOTS - 1);
        else if (operation.code != OPERATION_PAIR)
            operation.slot = (uint32_t)pair;
        MEMORY_ROOM(list.items, list.count, list.capacity);
        list.items[list.count++] = operation;
    }
    return list;
}

/* ---- two sides ---- */

static void take_columns(struct registers *registers, struct random *random) {
    const struct layout_tensor *weights = &registers->layout.tensor[0];
    struct column_scaling *columns = memory_new(weights->rows, sizeof *columns);
    double *squares = memory_new(weights->rows, sizeof *squares);
    for (uint64_t i = 0; i < weights->rows; i++)
        columns[i] = (struct column_scaling){
            .mean = random_unit(random) - 0.5,
            .scale = ldexp(random_unit(random) + 0.5, between(random, -9, 9)),
            .penalty = ldexp(random_unit(random) + 0.5, between(random, -9, 9)),
            .square = random_below(random, 5) ? random_unit(random) : 0};
    for (uint64_t i = 0; i < weights->rows; i++)
        squares[i] = columns[i].square;
    assert_int_equal(registers->scaling.used
                         ? scaling_set_columns(&registers->scaling, 0, columns, weights->rows)
                         : scaling_set_squares(&registers->scaling, 0, squares, weights->rows),
                     0);
    free(squares);
    for (size_t k = 0; k < registers->scaling.biases; k++)
        registers->scaling.bias_sum[k] = (int64_t)random_next(random) >> between(random, 2, 40);
    free(columns);
}

static void take_exponents(struct registers *registers, struct random *random, int most) {
    uint64_t count = layout_exponents(&registers->layout);
    int16_t *exponents = memory_new(count, sizeof *exponents);
    for (uint64_t i = 0; i < count; i++)
        exponents[i] = (int16_t)between(random, -most, most);
    assert_int_equal(registers_set_exponents(registers, 0, exponents, count), 0);
    free(exponents);
}

static void fill_vectors(struct registers *registers, struct random *random, enum special special) {
    for (uint8_t i = 0; i < REGISTERS; i++) {
        for (size_t k = 0; registers_have(registers, i) && k < registers->count; k++)
            registers->vector[i].elements[k] = i == REGISTER_A
                                                   ? fabs(random_number(random, special))
                                                   : random_number(random, special);
        if (registers_have(registers, i))
            assert_int_equal(registers_push(registers, i, 0, registers->count), 0);
    }
    size_t wide = registers->history_type == HISTORY_DOUBLE ? 1 : 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        void *stored[] = {registers_s(registers, slot), registers_q(registers, slot)};
        for (size_t part = 0; part < 2; part++)
            for (size_t k = 0; k < registers->count; k++) {
                double number = random_number(random, special);
                if (wide)
                    ((double *)stored[part])[k] = number;
                else
                    ((float *)stored[part])[k] = (float)number;
            }
        memcpy(registers_direction(registers, slot), stored[1],
               registers->count * history_size(registers->history_type));
        assert_int_equal(registers_push_pair(registers, slot), 0);
        assert_int_equal(registers_push_direction(registers, slot), 0);
    }
}

/* Offsets of a sparse slice may repeat. */
static void fold_slice(struct registers *registers, struct random *random,
                       enum stage_encoding encoding, bool first) {
    size_t count = registers->count, many = count;
    uint8_t *data = memory_new(stage_sparse_bytes(count + 3), 1);
    struct slice slice = {0};
    if (encoding == STAGE_DENSE) {
        slice.first = count && random_below(random, 2) ? random_below(random, count) : 0;
        slice.entries = many = count - slice.first;
    }
    int64_t *values = (int64_t *)(void *)data;
    if (encoding == STAGE_SPARSE) {
        slice.entries = many = count ? random_below(random, count + 3) : 0;
        for (size_t k = 0; k < many; k++)
            ((uint32_t *)(void *)data)[k] = (uint32_t)random_below(random, count - slice.first);
        slice.offsets = (const uint32_t *)(void *)data;
        values = (int64_t *)(void *)(data + stage_sparse_values_at(many));
    }
    for (size_t k = 0; k < many; k++)
        values[k] = (int64_t)random_next(random) >> between(random, 3, 62);
    slice.values = values;
    assert_int_equal(registers->backend->fold(registers, count, &slice, first), 0);
    free(data);
}

/* The first slice replaces the sum. */
static void fold_slices(struct registers *registers, struct random *random) {
    int slices = between(random, 1, 3);
    for (int i = 0; i < slices; i++)
        fold_slice(registers, random, random_below(random, 2) ? STAGE_DENSE : STAGE_SPARSE, i == 0);
}

/* Set up on the device, or on the CPU; nothing has come yet. */
static void begin_side_bare(struct side *side, const struct shape *shape, struct device *device) {
    struct bytes blob;
    bytes_init(&blob);
    bytes_init(&side->scalars);
    layout_encode(&shape->layout, &blob);
    const struct message_shard_setup setup = {.layout = {blob.data, (uint32_t)blob.length},
                                              .first = shape->first,
                                              .count = shape->count,
                                              .slots = shape->count < SEVERAL_PARTS ? SLOTS : 1,
                                              .history_type = (uint8_t)shape->type,
                                              .weight_sum = 13,
                                              .uniform = shape->uniform,
                                              .uniform_exponent = 20,
                                              .keeps_best = 1,
                                              .hessian.precondition = shape->count < 100,
                                              .box.used = 1,
                                              .adagrad = 1,
                                              .scaling.coordinates = shape->scaled,
                                              .scaling.measured = 1,
                                              .scaling.bias_exponent = 7,
                                              .rows.directions =
                                                  shape->count < SEVERAL_PARTS ? SLOTS - 2 : 1,
                                              .rows.total = 1,
                                              .rows.outputs = 1,
                                              .rows.objective = "squared",
                                              .rows.loss = loss_blob()};
    registers_use(&side->registers, device ? &shard_on_device : &shard_on_host, device);
    assert_int_equal(registers_set_up(&side->registers, &setup), 0);
    bytes_release(&blob);
}

static void begin_side(struct side *side, const struct shape *shape, struct device *device,
                       uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    begin_side_bare(side, shape, device);
    if (side->registers.exponents)
        take_exponents(&side->registers, &random, shape->special == TAME ? 8 : 300);
    take_columns(&side->registers, &random);
    assert_true(registers_complete(&side->registers));
    assert_int_equal(registers_load(&side->registers), 0);
    fill_vectors(&side->registers, &random, shape->special);
    fold_slices(&side->registers, &random);
}

static void end_side(struct side *side) {
    bytes_release(&side->scalars);
    registers_release(&side->registers);
}

/* The same bits, or no numbers both: what a NaN is made of differs between instructions. */
static void assert_same(const double *a, const double *b, size_t count, const char *what,
                        uint64_t seed) {
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("case %llu: %s, element %zu: %a and %a", (unsigned long long)seed, what, i,
                     a[i], b[i]);
}

static void assert_same_history(struct side *sides, uint32_t slot, uint64_t seed) {
    static const char *const names[] = {"s", "q", "the direction"};
    for (uint32_t part = 0; part < 3; part++) {
        double *stored[2];
        size_t count = sides[0].registers.count;
        for (int side = 0; side < 2; side++) {
            struct registers *registers = &sides[side].registers;
            const void *from = part == 2 ? registers_direction(registers, slot)
                               : part    ? registers_q(registers, slot)
                                         : registers_s(registers, slot);
            stored[side] = memory_new(count, sizeof(double));
            for (size_t k = 0; k < count; k++)
                stored[side][k] = registers->history_type == HISTORY_DOUBLE
                                      ? ((const double *)from)[k]
                                      : (double)((const float *)from)[k];
        }
        assert_same(stored[0], stored[1], count, names[part], seed);
        free(stored[0]);
        free(stored[1]);
    }
}

static void assert_agree(struct side *sides, uint64_t seed) {
    static const char *const names[] = {"x",  "t",  "g",  "h",  "d", "best",
                                        "pg", "ph", "qg", "qh", "a"};
    struct registers *here = &sides[0].registers, *there = &sides[1].registers;
    bench_pull(there);
    for (uint8_t i = 0; i < REGISTERS; i++)
        if (registers_have(here, i))
            assert_same(here->vector[i].elements, there->vector[i].elements, here->count, names[i],
                        seed);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_same_history(sides, slot, seed);
    assert_int_equal(sides[0].scalars.length, sides[1].scalars.length);
    if (sides[0].scalars.length &&
        memcmp(sides[0].scalars.data, sides[1].scalars.data, sides[0].scalars.length))
        fail_msg("case %llu: other scalars", (unsigned long long)seed);
}

/* A program names only what is there. */
static void keep_to_registers(struct operation_list *list, const struct registers *registers) {
    for (size_t i = 0; i < list->count; i++) {
        struct operation *o = &list->items[i];
        uint8_t *named[] = {&o->a, &o->b, &o->c, &o->d, &o->e, &o->f};
        for (size_t k = 0; k < sizeof named / sizeof *named; k++)
            if (!registers_have(registers, *named[k]))
                *named[k] = REGISTER_D;
    }
}

static void run_case(struct device *device, uint64_t seed) {
    struct random random;
    struct side sides[2] = {0};
    random_init(&random, seed);
    struct shape shape = random_shape(&random);
    begin_side(&sides[0], &shape, NULL, seed);
    begin_side(&sides[1], &shape, device, seed);
    for (int i = between(&random, 1, 3); i--;) {
        struct operation_list list = random_program(&random, &shape);
        keep_to_registers(&list, &sides[0].registers);
        for (int side = 0; side < 2; side++) {
            struct registers *registers = &sides[side].registers;
            bytes_clear(&sides[side].scalars);
            registers_swap(registers, REGISTER_X, REGISTER_T);
            assert_int_equal(
                operation_list_run(&list, registers, &shape.bounds, &sides[side].scalars), 0);
        }
        operation_list_release(&list);
        assert_agree(sides, seed);
    }
    end_side(&sides[0]);
    end_side(&sides[1]);
}

static void programs_leave_and_yield_what_they_do_on_the_cpu(void **state) {
    (void)state;
    const char *cases = getenv("CASES");
    struct device *device = test_device();
    for (uint64_t seed = 1; seed <= (cases ? strtoull(cases, NULL, 10) : 60); seed++)
        run_case(device, seed);
    device_close(device);
}

/* Slices come to the device in parts, so that of large ones less memory is needed. */
static void slices_of_several_parts_are_added_whole(void **state) {
    (void)state;
    struct device *device = test_device();
    struct side sides[2] = {0};
    struct random random;
    struct shape shape = {.layout = layout_linear(SEVERAL_PARTS, 1, false),
                          .count = SEVERAL_PARTS,
                          .uniform = true,
                          .bounds = {.count = 1}};
    for (int side = 0; side < 2; side++) {
        random_init(&random, 9);
        begin_side_bare(&sides[side], &shape, side ? device : NULL);
        take_columns(&sides[side].registers, &random);
        for (int i = 0; i < 3; i++)
            fold_slice(&sides[side].registers, &random, i < 2 ? STAGE_DENSE : STAGE_SPARSE, i == 0);
        struct operation gradient = {.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 13};
        const struct operation_list list = {.items = &gradient, .count = 1};
        struct registers *registers = &sides[side].registers;
        assert_int_equal(operation_list_run(&list, registers, &shape.bounds, &sides[side].scalars),
                         0);
        assert_int_equal(registers_pull(registers, REGISTER_H, 0, registers->count), 0);
    }
    assert_same(sides[0].registers.vector[REGISTER_H].elements,
                sides[1].registers.vector[REGISTER_H].elements, shape.count, "h", 0);
    end_side(&sides[0]);
    end_side(&sides[1]);
    device_close(device);
}

static void the_proof_holds_on_a_sound_device(void **state) {
    (void)state;
    struct device *device = test_device();
    assert_int_equal(shard_proof_of_device(device), 0);
    device_close(device);
}

SUITE(shard_device) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_leave_and_yield_what_they_do_on_the_cpu),
        cmocka_unit_test(slices_of_several_parts_are_added_whole),
        cmocka_unit_test(the_proof_holds_on_a_sound_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
