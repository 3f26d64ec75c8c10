#include "wire/program.h"

#include <assert.h>
#include <math.h>

#include "base/hash.h"

/* The operands of an operation, in the order in which they follow its code. */
enum part {
    PART_A = 1 << 0,
    PART_B = 1 << 1,
    PART_C = 1 << 2,
    PART_D = 1 << 3,
    PART_E = 1 << 4,
    PART_F = 1 << 5,
    PART_ALPHA = 1 << 6,
    PART_SLOT = 1 << 7,
    PART_SLOTS = 1 << 8,       /* count and slots */
    PART_WEIGHTS = 1 << 9,     /* u and w, one for each slot */
    PART_FOLDS = 1 << 10,      /* hash and folds */
    PART_EVALUATION = 1 << 11, /* its sums and its bounds */
    PART_SERIAL = 1 << 12,
    PART_BETA = 1 << 13,
    PART_L1 = 1 << 14,
    PART_TENSORS = 1 << 15,
    PART_SCALED = 1 << 16,
    PART_GAMMA = 1 << 17,
    PART_U = 1 << 18, /* u, one for each slot */
    PART_ROWS = 1 << 19,
    PART_NOTHING = 1 << 20, /* an operation without operands */
    PART_LIMIT = 1 << 21,
    PART_LISTED = 1 << 22, /* listed parameters */
    PART_VALUES = 1 << 23, /* listed values */
};

enum { OPERANDS = 6 }; /* registers that an operation can have */

static const unsigned parts[] = {
    [OPERATION_CHECK] = PART_FOLDS,
    [OPERATION_SWAP] = PART_A | PART_B,
    [OPERATION_BEGIN] = PART_EVALUATION,
    [OPERATION_ZERO] = PART_A,
    [OPERATION_ADD] = PART_A | PART_B | PART_C | PART_ALPHA,
    [OPERATION_GRADIENT] = PART_A | PART_ALPHA,
    [OPERATION_REGULARIZE] = PART_A | PART_B | PART_ALPHA,
    [OPERATION_PAIR] =
        PART_A | PART_B | PART_C | PART_D | PART_E | PART_F | PART_SLOT | PART_BETA | PART_SCALED,
    [OPERATION_DIRECTION] =
        PART_A | PART_B | PART_ALPHA | PART_BETA | PART_SLOTS | PART_WEIGHTS | PART_SCALED,
    [OPERATION_DOT] = PART_A | PART_B,
    [OPERATION_DOT_REGULARIZED] = PART_A | PART_B,
    [OPERATION_MAX_ABS] = PART_A,
    [OPERATION_HISTORY_DOTS] = PART_A | PART_SLOT | PART_SLOTS,
    [OPERATION_FACTOR] = PART_ALPHA | PART_BETA | PART_GAMMA | PART_SERIAL,
    [OPERATION_PRECONDITION] = PART_A | PART_B | PART_SERIAL,
    [OPERATION_PSEUDO_GRADIENT] = PART_A | PART_B | PART_C | PART_L1,
    [OPERATION_PROJECT] = PART_A | PART_B | PART_C,
    [OPERATION_ALIGN] = PART_A | PART_B | PART_C,
    [OPERATION_MASK] = PART_A | PART_B | PART_SLOT,
    [OPERATION_NORM_1] = PART_A,
    [OPERATION_DESCENT] = PART_A | PART_B | PART_C | PART_D | PART_L1,
    [OPERATION_EXCESS] = PART_A | PART_B | PART_ALPHA | PART_L1,
    [OPERATION_TENSOR_SQUARES] = PART_A | PART_TENSORS,
    [OPERATION_ADAGRAD] = PART_A | PART_B | PART_C | PART_ALPHA | PART_BETA | PART_L1,
    [OPERATION_DIAGONAL] = PART_A | PART_ALPHA | PART_BETA,
    [OPERATION_GAP] = PART_A | PART_ALPHA | PART_BETA | PART_GAMMA,
    [OPERATION_KEEP] = PART_A | PART_SLOT,
    [OPERATION_COMBINE] = PART_A | PART_B | PART_SLOTS | PART_U,
    [OPERATION_WINDOW_DOTS] = PART_A | PART_SLOTS,
    [OPERATION_ROWS_TAKE] = PART_ROWS | PART_SLOT,
    [OPERATION_ROWS_AT] = PART_SLOTS | PART_U,
    [OPERATION_ROWS_LOSS] = PART_NOTHING,
    [OPERATION_ROWS_DERIVATIVE] = PART_NOTHING,
    [OPERATION_ROWS_SLOPES] = PART_SLOTS,
    [OPERATION_ROWS_SECOND] = PART_SLOTS | PART_ALPHA | PART_SERIAL,
    [OPERATION_ROWS_ADVANCE] = PART_NOTHING,
    [OPERATION_METRIC] = PART_A | PART_B | PART_ALPHA | PART_BETA | PART_GAMMA,
    [OPERATION_LIST] = PART_A | PART_B | PART_L1 | PART_LIMIT,
    [OPERATION_SOLVE] = PART_ALPHA | PART_BETA | PART_L1 | PART_LISTED,
    [OPERATION_SCATTER] = PART_A | PART_VALUES,
    [OPERATION_COVARIANCE] = PART_A | PART_B | PART_C | PART_ALPHA,
    [OPERATION_SANDWICH] = PART_A,
    [OPERATION_CLIP] = PART_A | PART_B,
    [OPERATION_HELD] = PART_A | PART_L1,
    [OPERATION_ROWS_HELD] = PART_NOTHING,
    [OPERATION_ROWS_HESSIAN_PRODUCT] = PART_SLOT | PART_SLOTS | PART_ALPHA | PART_SERIAL,
    [OPERATION_HIDDEN] = PART_NOTHING,
};

static_assert(sizeof parts / sizeof *parts == OPERATIONS, "every operation has its operands");
static_assert(PART_F == PART_A << (OPERANDS - 1), "the registers come first, in their order");
static_assert(4 * HISTORY_MAX <= SCALARS_MAX && TENSORS_MAX <= SCALARS_MAX,
              "a program may hold any one operation");
static_assert(REGISTERS <= UINT8_MAX && OPERATIONS <= UINT8_MAX && SLOTS_MAX <= UINT16_MAX,
              "registers and codes are sent as a byte, slots as two");

/* Bytes of an element of a list. */
static size_t listed_bytes(unsigned has) {
    return has & PART_LISTED ? LISTED_BYTES : VALUE_BYTES;
}

static unsigned parts_of(unsigned code) {
    return code < sizeof parts / sizeof *parts ? parts[code] : 0;
}

uint32_t operation_scalars(const struct operation *operation) {
    assert(operation->count <= SLOTS_MAX && operation->tensors <= TENSORS_MAX);
    switch (operation->code) {
    case OPERATION_DOT:
    case OPERATION_DOT_REGULARIZED:
    case OPERATION_MAX_ABS:
    case OPERATION_FACTOR:
    case OPERATION_EXCESS:
    case OPERATION_GAP:
    case OPERATION_METRIC:
    case OPERATION_HIDDEN:
        return 1;
    case OPERATION_NORM_1:
    case OPERATION_LIST:
    case OPERATION_COVARIANCE:
    case OPERATION_HELD:
    case OPERATION_ROWS_HELD:
        return 2;
    case OPERATION_SOLVE:
        return operation->listed;
    case OPERATION_DESCENT:
        return 3;
    case OPERATION_ROWS_LOSS:
    case OPERATION_ROWS_DERIVATIVE:
        return 1;
    case OPERATION_WINDOW_DOTS:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
        return operation->count;
    case OPERATION_ROWS_SECOND:
        return operation->count * (operation->count + 1) / 2;
    case OPERATION_HISTORY_DOTS:
        return 4 * operation->count;
    case OPERATION_TENSOR_SQUARES:
        return operation->tensors;
    default:
        return 0;
    }
}

bool operation_yields_max(const struct operation *operation) {
    return operation->code == OPERATION_MAX_ABS || operation->code == OPERATION_FACTOR ||
           operation->code == OPERATION_ROWS_DERIVATIVE;
}

bool operation_writes(const struct operation *operation, uint8_t number) {
    switch (operation->code) {
    case OPERATION_SWAP:
    case OPERATION_ADAGRAD:
    case OPERATION_COVARIANCE:
        return operation->a == number || operation->b == number;
    case OPERATION_ZERO:
    case OPERATION_ADD:
    case OPERATION_GRADIENT:
    case OPERATION_REGULARIZE:
    case OPERATION_DIRECTION:
    case OPERATION_PRECONDITION:
    case OPERATION_PSEUDO_GRADIENT:
    case OPERATION_PROJECT:
    case OPERATION_ALIGN:
    case OPERATION_DIAGONAL:
    case OPERATION_KEEP:
    case OPERATION_COMBINE:
    case OPERATION_SCATTER:
    case OPERATION_SANDWICH:
    case OPERATION_CLIP:
        return operation->a == number;
    default:
        return false;
    }
}

void program_add(struct bytes *program, const struct operation *operation) {
    unsigned has = parts_of(operation->code);
    const uint8_t registers[OPERANDS] = {operation->a, operation->b, operation->c,
                                         operation->d, operation->e, operation->f};
    assert(operation->count <= SLOTS_MAX);
    bytes_put_u8(program, (uint8_t)operation->code);
    for (unsigned i = 0; i < OPERANDS; i++)
        if (has & ((unsigned)PART_A << i))
            bytes_put_u8(program, registers[i]);
    if (has & PART_ALPHA)
        bytes_put_f64(program, operation->alpha);
    if (has & PART_BETA)
        bytes_put_f64(program, operation->beta);
    if (has & PART_GAMMA)
        bytes_put_f64(program, operation->gamma);
    if (has & PART_L1)
        bytes_put_f64(program, operation->l1);
    if (has & PART_SLOT)
        bytes_put_u32(program, operation->slot);
    if (has & PART_SLOTS) {
        bytes_put_u32(program, operation->count);
        for (uint32_t i = 0; i < operation->count; i++)
            bytes_put_u16(program, operation->slots[i]);
    }
    if (has & (PART_WEIGHTS | PART_U))
        bytes_append(program, operation->u, operation->count * sizeof *operation->u);
    if (has & PART_WEIGHTS)
        bytes_append(program, operation->w, operation->count * sizeof *operation->w);
    if (has & PART_FOLDS) {
        bytes_put_u64(program, operation->hash);
        bytes_put_u64(program, operation->folds);
    }
    if (has & PART_EVALUATION) {
        assert(operation->bounds.count <= TENSORS_MAX);
        bytes_put_u32(program, operation->evaluation);
        bytes_put_u8(program, (uint8_t)operation->sums);
        bounds_encode(&operation->bounds, program);
        bytes_put_u8(program, operation->rows);
    }
    if (has & PART_SERIAL)
        bytes_put_u64(program, operation->serial);
    if (has & PART_TENSORS)
        bytes_put_u32(program, operation->tensors);
    if (has & PART_SCALED)
        bytes_put_u8(program, operation->scaled);
    if (has & PART_ROWS)
        bytes_put_u8(program, (uint8_t)operation->vector);
    if (has & PART_LIMIT)
        bytes_put_u32(program, operation->limit);
    if (has & (PART_LISTED | PART_VALUES)) {
        assert(operation->listed <= WORKING_SET_MAX);
        bytes_put_u32(program, operation->listed);
        bytes_append(program, operation->list, operation->listed * listed_bytes(has));
    }
}

/* What lists have: they stay where they are. */
static void read_list(struct cursor *program, unsigned has, struct operation *operation) {
    if (has & PART_LIMIT)
        operation->limit = cursor_u32(program);
    if (!(has & (PART_LISTED | PART_VALUES)))
        return;
    uint32_t count = cursor_u32(program);
    if (count > WORKING_SET_MAX)
        program->failed = true;
    operation->list = program->failed ? NULL : cursor_take(program, count * listed_bytes(has));
    operation->listed = operation->list ? count : 0;
}

static void read_slots(struct cursor *program, struct operation *operation) {
    operation->count = cursor_u32(program);
    if (operation->count > SLOTS_MAX) {
        operation->count = 0;
        program->failed = true;
    }
    for (uint32_t i = 0; i < operation->count; i++) {
        operation->slots[i] = cursor_u16(program);
        if (operation->slots[i] >= SLOTS_MAX)
            program->failed = true;
    }
}

static void read_registers(struct cursor *program, unsigned has, struct operation *operation) {
    uint8_t *registers[OPERANDS] = {&operation->a, &operation->b, &operation->c,
                                    &operation->d, &operation->e, &operation->f};
    for (unsigned i = 0; i < OPERANDS; i++)
        *registers[i] = has & ((unsigned)PART_A << i) ? cursor_u8(program) : 0;
    for (unsigned i = 0; i < OPERANDS; i++)
        program->failed |= *registers[i] >= REGISTERS;
}

bool program_next(struct cursor *program, struct operation *operation) {
    if (program->failed || !cursor_left(program))
        return false;
    operation->code = cursor_u8(program);
    operation->count = operation->tensors = operation->listed = operation->limit = 0;
    unsigned has = parts_of(operation->code);
    if (!has)
        program->failed = true;
    read_registers(program, has, operation);
    if (has & PART_ALPHA)
        operation->alpha = cursor_f64(program);
    if (has & PART_BETA)
        operation->beta = cursor_f64(program);
    if (has & PART_GAMMA)
        operation->gamma = cursor_f64(program);
    if (has & PART_L1)
        operation->l1 = cursor_f64(program);
    if (has & PART_SLOT) {
        operation->slot = cursor_u32(program);
        if (operation->slot >= SLOTS_MAX)
            program->failed = true;
    }
    if (has & PART_SLOTS)
        read_slots(program, operation);
    for (uint32_t i = 0; has & (PART_WEIGHTS | PART_U) && i < operation->count; i++)
        operation->u[i] = cursor_f64(program);
    for (uint32_t i = 0; has & PART_WEIGHTS && i < operation->count; i++)
        operation->w[i] = cursor_f64(program);
    if (has & PART_FOLDS) {
        operation->hash = cursor_u64(program);
        operation->folds = cursor_u64(program);
    }
    if (has & PART_EVALUATION) {
        operation->evaluation = cursor_u32(program);
        uint8_t sums = cursor_u8(program);
        operation->bounds = bounds_decode(program);
        operation->rows = cursor_u8(program) == 1;
        if (sums >= SUMS_LAYOUTS || bounds_fault(&operation->bounds))
            program->failed = true;
        operation->sums = program->failed ? SUMS_NONE : (enum sums_layout)sums;
    }
    if (has & PART_SERIAL)
        operation->serial = cursor_u64(program);
    if (has & PART_TENSORS)
        operation->tensors = cursor_u32(program);
    if (operation->tensors > TENSORS_MAX || (has & PART_TENSORS && !operation->tensors)) {
        operation->tensors = 0;
        program->failed = true;
    }
    uint8_t scaled = has & PART_SCALED ? cursor_u8(program) : 0;
    program->failed |= scaled > 1;
    operation->scaled = scaled;
    uint8_t vector = has & PART_ROWS ? cursor_u8(program) : 0;
    program->failed |= vector >= ROW_VECTORS;
    operation->vector = program->failed ? ROWS_LABELS : (enum row_vector)vector;
    read_list(program, has, operation);
    assert(operation->count <= SLOTS_MAX && operation->tensors <= TENSORS_MAX);
    return !program->failed;
}

/* ---- what a program may hold ---- */

/* What the operations up to now have done. */
struct progress {
    uint32_t operations, scalars;
    double weight; /* of the gradient; 0: none was taken */
    int64_t pair;  /* slot of the last PAIR of the pass; −1: none */
    bool begun, factored, preconditioned;
    bool at_rows; /* ROWS_AT has named v */
};

static const char *fault_of_preconditioner(const struct progress *now,
                                           const struct operation *operation) {
    bool applies = operation->code == OPERATION_PRECONDITION;
    if (operation->code == OPERATION_BEGIN && now->factored)
        return "a program that factors sums and clears them";
    if (!applies && operation->code != OPERATION_FACTOR)
        return NULL;
    if (!operation->serial)
        return "a preconditioner without a serial number";
    if (applies && operation->a == operation->b)
        return "a program that preconditions a vector in place";
    if (now->factored || (!applies && now->preconditioned))
        return "a program that factors twice, or also preconditions";
    if (!applies && now->begun)
        return "a program that factors sums and clears them";
    return NULL;
}

static bool is_positive(double number) {
    return number > 0 && number < INFINITY;
}

static bool is_penalty(double number) {
    return number >= 0 && number < INFINITY;
}

static const char *fault_of_adagrad(const struct operation *o) {
    bool apart = o->a != o->b && o->a != o->c && o->b != o->c;
    bool steps = o->code == OPERATION_ADAGRAD, inverts = o->code == OPERATION_DIAGONAL;
    if (steps && !apart)
        return "a program that makes a step of Adagrad with fewer than three registers";
    if (steps && !(is_positive(o->alpha) && o->l1 >= 0 && o->l1 < INFINITY))
        return "a program that makes a step of Adagrad at a rate or an l1 that is none";
    if (steps && !is_positive(o->beta))
        return "a program that makes a step of Adagrad that may not be finite";
    if (inverts && !(is_positive(o->alpha) && is_positive(o->beta)))
        return "a program that makes a diagonal that may not be finite";
    bool by_curvature = o->code == OPERATION_GAP || o->code == OPERATION_METRIC;
    if (by_curvature && !(is_positive(o->alpha) && o->beta >= 0 && o->beta < INFINITY))
        return "a program with a curvature of columns that is none";
    if (by_curvature && !(o->gamma > 0 && o->gamma <= 1))
        return "a program with a curvature of biases that is none";
    if (o->scaled && o->beta != 1)
        return "a program that scales biases twice";
    return NULL;
}

/* Operations over rows at a point v, which ROWS_AT names. */
static const char *fault_of_rows(const struct progress *now, const struct operation *operation) {
    switch (operation->code) {
    case OPERATION_ROWS_TAKE:
        if (operation->slot && operation->vector != ROWS_PRODUCT)
            return "a program that takes a vector of rows which is in no window into a slot of one";
        return NULL;
    case OPERATION_ROWS_SECOND:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
        if (!(operation->alpha > 0 && operation->alpha <= 1))
            return "a program that draws rows at a rate that is none";
        return now->at_rows ? NULL : "a program that measures rows before it says where";
    case OPERATION_ROWS_LOSS:
    case OPERATION_ROWS_HELD:
    case OPERATION_ROWS_DERIVATIVE:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_ADVANCE:
        return now->at_rows ? NULL : "a program that measures rows before it says where";
    default:
        return NULL;
    }
}

/* Sums of second derivatives are read before they are cleared, and their numbers are in order. */
static const char *fault_of_lists(const struct progress *now, const struct operation *o) {
    if (o->code == OPERATION_LIST && !(is_penalty(o->l1) && o->limit <= WORKING_SET_MAX))
        return "a program that lists parameters beyond a limit or an l1 that is none";
    if (o->code == OPERATION_SCATTER && !values_rise(o->list, o->listed))
        return "a program that scatters values which do not rise";
    if (o->code != OPERATION_SOLVE)
        return NULL;
    if (!is_penalty(o->alpha) || !is_penalty(o->beta) || !is_penalty(o->l1))
        return "a program that solves for a step under a penalty that is none";
    if (now->begun || !listed_rise(o->list, o->listed))
        return "a program that solves for parameters which do not rise, or clears sums first";
    return NULL;
}

/* Their sums are read before they are cleared. What SANDWICH needs of COVARIANCE a shard keeps. */
static const char *fault_of_covariance(const struct progress *now, const struct operation *o) {
    if (o->code != OPERATION_COVARIANCE && o->code != OPERATION_SANDWICH)
        return NULL;
    if (now->begun || now->factored)
        return "a program that takes errors of estimates from sums which it has used or cleared";
    bool sound = o->code == OPERATION_SANDWICH || (o->alpha >= 0 && o->alpha < INFINITY);
    return sound ? NULL : "a program that takes errors of estimates under a penalty that is none";
}

static const char *fault_of_numbers(const struct progress *now, const struct operation *operation) {
    bool takes_gradient = operation->code == OPERATION_GRADIENT;
    if (takes_gradient && !is_positive(operation->alpha))
        return "a program that takes a gradient without a weight";
    if (takes_gradient && now->weight > 0 && now->weight != operation->alpha)
        return "a program that takes gradients under two weights";
    const char *fault = fault_of_rows(now, operation);
    fault = fault ? fault : fault_of_lists(now, operation);
    fault = fault ? fault : fault_of_covariance(now, operation);
    return fault ? fault : fault_of_adagrad(operation);
}

static const char *fault_of_next(const struct progress *now, const struct operation *operation) {
    if (now->operations > OPERATIONS_MAX || now->scalars > SCALARS_MAX)
        return "a program that is too long";
    /* The best point may only be swapped; no other operation may use it. */
    if (operation->code != OPERATION_SWAP &&
        (operation->a == REGISTER_BEST || operation->b == REGISTER_BEST ||
         operation->c == REGISTER_BEST || operation->d == REGISTER_BEST ||
         operation->e == REGISTER_BEST || operation->f == REGISTER_BEST))
        return "a program that works on the best point";
    if (operation->code == OPERATION_HISTORY_DOTS && now->pair != operation->slot)
        return "a program that takes products with a pair before forming it";
    if (operation->code == OPERATION_MASK && now->pair != operation->slot)
        return "a program that masks a pair before forming it";
    if (operation->code == OPERATION_HIDDEN && !now->preconditioned)
        return "a program that asks what a preconditioner hides before it applies one";
    const char *fault = fault_of_numbers(now, operation);
    return fault ? fault : fault_of_preconditioner(now, operation);
}

/* After fault_of_next() has found nothing. */
static void advance(struct progress *now, const struct operation *operation) {
    assert(now->operations <= OPERATIONS_MAX && now->scalars <= SCALARS_MAX);
    if (operation->code == OPERATION_PAIR)
        now->pair = operation->slot;
    if (operation->code == OPERATION_PRECONDITION) {
        now->pair = -1;
        now->preconditioned = true;
    }
    if (operation->code == OPERATION_GRADIENT)
        now->weight = operation->alpha;
    now->at_rows |= operation->code == OPERATION_ROWS_AT;
    now->begun |= operation->code == OPERATION_BEGIN;
    now->factored |= operation->code == OPERATION_FACTOR;
}

const char *program_fault(const void *program, size_t length) {
    struct cursor cursor = cursor_over(program, length);
    struct operation operation;
    struct progress now = {.pair = -1};
    while (program_next(&cursor, &operation)) {
        now.operations++;
        now.scalars += operation_scalars(&operation);
        const char *fault = fault_of_next(&now, &operation);
        if (fault)
            return fault;
        advance(&now, &operation);
    }
    assert(cursor.failed || !cursor_left(&cursor));
    return cursor.failed ? "a malformed program" : NULL;
}

uint64_t program_hash(const void *program, size_t length) {
    return hash64(program, length);
}
