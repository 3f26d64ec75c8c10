/* What cannot be in a message, checked where the message is defined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/layout.h"
#include "tests/unit/layout_fixture.h"
#include "base/step_files.h"
#include "wire/evaluation.h"
#include "wire/message.h"
#include "wire/program.h"

static const double elements[4];
static const uint64_t two_words[2] = {1, 32};
static const struct chunk_range ranges[] = {{3, 4}, {9, 1}};
static const struct evaluation_part parts[] = {{1, 0, 7}, {2, 7, 1}};
static const uint64_t slots[] = {5, 2}, serials[] = {7, 8}, incarnations[] = {33, 34};
static const uint8_t ids[2 * FLUSH_ID_BYTES];
/* Of evaluation 2 in attempt 1, by incarnations 70 and 71. */
static const uint8_t listed[2 * FLUSH_ID_BYTES] = {1, 0, 0, 0, 2, 0, 0, 0, 70, [FLUSH_ID_BYTES] = 1,
                                                   0, 0, 0, 2, 0, 0, 0, 71};

/* One tensor "w" of 3 blocks in a row, and one whose rows times columns wrap. */
static const uint8_t layouts[2][4 + 8 + 4 + 2 + 8 + 8 + 3 + 8] = {
    {LAYOUT_VERSION,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     1,
     0,
     0,
     0,
     1,
     'w',
     1,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     3 * BLOCK_ELEMENTS / 256},
    {LAYOUT_VERSION,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     1,
     0,
     0,
     0,
     1,
     'w',
     1,
     0,
     0,
     0,
     0,
     0,
     0,
     128,
     2},
};

#define A_FLUSH                                                                                    \
    { .attempt = 1, .evaluation = 2, .incarnation = 70, .sequence = 1 }
#define RANGE .first = 4, .count = 4

static const struct column_scaling column = {-3, 0.5, 2, 1, 4};
static const double squares[4] = {0, 1, 4, 0.5};

/* A message of each type as its sender would make it. */
static const struct message samples[] = {
    {.type = MESSAGE_HELLO, .hello = {.run = "run", .role = ROLE_SHARD, .incarnation = 33}},
    {.type = MESSAGE_WELCOME, .welcome = {.role = ROLE_REPLICA, .incarnation = 33}},
    {.type = MESSAGE_REFUSED, .refused = {.reason = ""}},
    {.type = MESSAGE_BYE, .bye = {.reason = ""}},
    {.type = MESSAGE_FAILED, .failed = {74, "the disk is full", 0}},
    {.type = MESSAGE_PING},
    {.type = MESSAGE_PONG},
    {.type = MESSAGE_SHARD_SETUP,
     .shard_setup = {.attempt = 1,
                     .layout = {layouts[0], sizeof layouts[0]},
                     .first = BLOCK_ELEMENTS,
                     .count = BLOCK_ELEMENTS,
                     .slots = SLOTS_MAX,
                     .weight_sum = 10,
                     .folder = "",
                     .machine.device = "cuda:1"}},
    {.type = MESSAGE_EXPONENTS,
     .exponents = {.attempt = 1, .first = 2, .count = 16},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_COORDINATES,
     .coordinates = {.attempt = 1, .first = 2, .count = 1},
     .bulk = {.data = &column, .length = sizeof column}},
    {.type = MESSAGE_SQUARES,
     .squares = {.attempt = 1, .first = 2, .count = 4},
     .bulk = {.data = squares, .length = sizeof squares}},
    {.type = MESSAGE_LIMITS, .limits = {1, 2, 1}, .bulk = {.data = squares, .length = 24}},
    {.type = MESSAGE_FACTORS,
     .factors = {.attempt = 1},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_START,
     .start = {.attempt = 1, .program = 1, .register_ = REGISTER_BEST, RANGE},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_REPLICA_SETUP,
     .replica_setup = {.attempt = 1,
                       .set = "data.set",
                       .fingerprint = "f00",
                       .objective = "logistic",
                       .loss = {elements, LOSS_PARAMETERS_MAX * sizeof(double)},
                       .layout = {layouts[0], sizeof layouts[0]},
                       .shards = 2,
                       .machine.device = "auto"}},
    {.type = MESSAGE_SHARD_AT,
     .shard_at = {.attempt = 1, .incarnation = 33, .address = "unix:/s", RANGE}},
    {.type = MESSAGE_READY, .ready = {1, "cpu"}},
    {.type = MESSAGE_GREET, .greet = {.run = "run", .incarnation = 70}},
    {.type = MESSAGE_GREETED, .greeted = {.incarnation = 33}},
    {.type = MESSAGE_PROGRAM, .program = {.attempt = 1, .number = 1}},
    {.type = MESSAGE_RESULT, .result = {.attempt = 1, .number = 1}},
    {.type = MESSAGE_EVALUATE, .evaluate = {1, 2, {2, {-40, 3}}, {parts, 2}, 8, 0.25, 7, {0}}},
    {.type = MESSAGE_PORTION, .portion = {1, 2, 0, 1, PORTION_SOLO | PORTION_LAST}},
    {.type = MESSAGE_WANT, .want = {1, 2}},
    {.type = MESSAGE_REST, .rest = {1, 2}},
    {.type = MESSAGE_FETCH,
     .fetch = {1, 2, 3, 4, .column = 64, .columns = 70, .width = 3, .hash = 0x5148b81e5bf1976b},
     .bulk = {.data = two_words, .length = sizeof two_words}},
    {.type = MESSAGE_PARAMETERS,
     .parameters = {.attempt = 1, .evaluation = 2, RANGE},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_STAGE,
     .stage = {.flush = A_FLUSH,
               .portions = {ranges, 2},
               .encoding = STAGE_DENSE,
               .entries = sizeof elements / 8},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_STAGED, .staged = {.flush = A_FLUSH, .incarnation = 33}},
    {.type = MESSAGE_FLUSHED,
     .flushed = {.flush = A_FLUSH,
                 .portions = {ranges, 2},
                 .maxima = {2, {INFINITY, 0}},
                 .incarnations = {incarnations, 2}}},
    {.type = MESSAGE_VERDICT, .verdict = {.flush = A_FLUSH, .accepted = 1}},
    {.type = MESSAGE_FOLD, .fold = {{listed, sizeof listed}}},
    {.type = MESSAGE_DROP, .drop = {{listed, sizeof listed}}},
    {.type = MESSAGE_FOLDED, .folded = {{listed, sizeof listed}}},
    {.type = MESSAGE_READ, .read = {.register_ = REGISTER_X, RANGE}},
    {.type = MESSAGE_SLICE,
     .slice = {.register_ = REGISTER_X, RANGE},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_CHECKPOINT,
     .checkpoint = {.attempt = 1, .best = 1, .slots = {slots, 2}, .serials = {serials, 2}}},
    {.type = MESSAGE_CHECKPOINTED, .checkpointed = {.attempt = 1, .reason = ""}},
    {.type = MESSAGE_RESTORE, .restore = {.attempt = 1}},
    {.type = MESSAGE_RESTORED, .restored = {.attempt = 1, .status = 65, .reason = "damaged"}},
    {.type = MESSAGE_RETAIN, .retain = {3, 3}},
    {.type = MESSAGE_READ_FILE, .read_file = {.attempt = 1, .bytes = 1}},
    {.type = MESSAGE_FILE_BYTES,
     .file_bytes = {.attempt = 1, .offset = 8, .length = 8 + sizeof elements, .reason = ""},
     .bulk = {.data = elements, .length = sizeof elements}},
    {.type = MESSAGE_NEEDED, .needed = {.steps = {slots, 2}}},
    {.type = MESSAGE_HOLDING, .holding = {.folded = {ids, sizeof ids}}},
    {.type = MESSAGE_READ_SET, .read_set = {"0123", .bytes = SET_PIECE_BYTES_MAX}},
    {.type = MESSAGE_SET_BYTES,
     .set_bytes = {"0123", .reason = ""},
     .bulk = {.data = elements, .length = sizeof elements}},
};

static struct message sound(enum message_type type) {
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (samples[i].type == type) {
            struct message message = samples[i];
            if (type == MESSAGE_PROGRAM)
                message.program.hash = program_hash(NULL, 0);
            return message;
        }
    fail_msg("there is no sample of %s", message_name(type));
    return (struct message){0};
}

/* A sound message with something changed is refused for this reason. */
#define REFUSES(NAME, change, reason)                                                              \
    do {                                                                                           \
        struct message message = sound(MESSAGE_##NAME);                                            \
        message.change;                                                                            \
        const char *fault = message_fault(&message);                                               \
        if (!fault || !strstr(fault, reason))                                                      \
            fail_msg(#NAME " with " #change ": %s, not " reason, fault ? fault : "taken");         \
    } while (0)

static void what_senders_say_is_taken(void **state) {
    (void)state;
    size_t count;
    const uint16_t *types = message_types(&count);
    for (size_t i = 0; i < count; i++) {
        struct message message = sound(types[i]);
        const char *fault = message_fault(&message);
        if (fault)
            fail_msg("%s: %s", message_name(types[i]), fault);
    }
}

static void a_list_of_flushes_has_some_and_all_of_one_evaluation(void **state) {
    (void)state;
    static const uint8_t many[(FOLD_FLUSHES_MAX + 1) * FLUSH_ID_BYTES];
    uint8_t wrong[sizeof listed];
    REFUSES(FOLD, fold.flushes.length = 0, "no flushes");
    REFUSES(FOLD, fold.flushes.length -= 1, "part");
    REFUSES(FOLD, fold.flushes = ((struct blob){many, sizeof many}), "too many");
    for (size_t at = FLUSH_ID_BYTES; at <= FLUSH_ID_BYTES + 4; at += 4) {
        memcpy(wrong, listed, sizeof wrong);
        wrong[at]++;
        REFUSES(FOLD, fold.flushes.data = wrong, "several");
    }
    memcpy(wrong, listed, sizeof wrong);
    wrong[FLUSH_ID_BYTES + 8] = 0;
    REFUSES(FOLDED, folded.flushes.data = wrong, "incarnation");
}

static void numbers_that_nobody_is_given_are_refused(void **state) {
    (void)state;
    REFUSES(HELLO, hello.role = ROLE_COORDINATOR, "role");
    REFUSES(HELLO, hello.role = 3, "role");
    REFUSES(HELLO, hello.index = SHARDS_MAX, "index"); /* of a shard */
    REFUSES(HELLO, hello.incarnation = 0, "incarnation");
    REFUSES(HELLO, hello.run = "", "name");
    REFUSES(HELLO, hello.holder = "1 here 7\n", "holder of no lock");
    REFUSES(HELLO, hello.state = "here", "relative");
    REFUSES(HELLO, hello.state = "/here", "without a holder");
    REFUSES(WELCOME, welcome.role = 9, "role");
    REFUSES(WELCOME, welcome.shares = 2, "flag");
    REFUSES(WELCOME, welcome.incarnation = 0, "incarnation");
    REFUSES(GREET, greet.run = "", "name");
    REFUSES(GREET, greet.incarnation = 0, "incarnation");
    REFUSES(GREETED, greeted.index = SHARDS_MAX, "index");
    REFUSES(SHARD_AT, shard_at.index = SHARDS_MAX, "index");
    REFUSES(SHARD_AT, shard_at.address = "", "address");
    REFUSES(GREET, greet.local = "0123456789abcdefg123456789abcdef", "secret");
    REFUSES(STAGED, staged.index = SHARDS_MAX, "index");
    REFUSES(STAGED, staged.incarnation = 0, "incarnation");
    REFUSES(READY, ready.attempt = 0, "attempts");
    REFUSES(RESTORE, restore.attempt = 0, "attempts");
    REFUSES(RESTORED, restored.attempt = 0, "attempts");
    REFUSES(CHECKPOINT, checkpoint.attempt = 0, "attempts");
    REFUSES(CHECKPOINTED, checkpointed.attempt = 0, "attempts");
    REFUSES(RESULT, result.number = 0, "programs");
    REFUSES(RESULT, result.attempt = 0, "attempts");
    REFUSES(EVALUATE, evaluate.evaluation = 0, "evaluations");
    REFUSES(WANT, want.evaluation = 0, "evaluations");
    REFUSES(REST, rest.attempt = 0, "attempts");
    REFUSES(FETCH, fetch.evaluation = 0, "evaluations");
    REFUSES(DROP, drop.flushes.length = 0, "no flushes");
    REFUSES(VERDICT, verdict.flush.attempt = 0, "attempts");
    REFUSES(VERDICT, verdict.accepted = 2, "flag");
    REFUSES(FAILED, failed.status = 0, "exit status");
    REFUSES(FAILED, failed.status = UINT32_MAX, "exit status");
    REFUSES(FAILED, failed.device = 2, "flag");
    REFUSES(CHECKPOINTED, checkpointed.status = 1, "exit status");
    REFUSES(RESTORED, restored.status = 79, "exit status");
    REFUSES(RETAIN, retain.older = 4, "older");
    REFUSES(READ_FILE, read_file.bytes = 0, "no bytes");
    REFUSES(READ_FILE, read_file.bytes = FILE_PIECE_BYTES + 1, "too many");
    REFUSES(READ_FILE, read_file.attempt = 0, "attempts");
    REFUSES(FILE_BYTES, file_bytes.offset = 9, "beyond");
    REFUSES(FILE_BYTES, file_bytes.offset = UINT64_MAX, "beyond");
    REFUSES(FILE_BYTES, file_bytes.status = 1, "exit status");
}

static void a_set_up_that_makes_no_sense_is_refused(void **state) {
    (void)state;
    REFUSES(SHARD_SETUP, shard_setup.count = BLOCK_ELEMENTS - 1, "blocks");
    REFUSES(SHARD_SETUP, shard_setup.first = 1, "blocks");
    REFUSES(SHARD_SETUP, shard_setup.count = UINT64_MAX, "beyond the end");
    REFUSES(SHARD_SETUP, shard_setup.first = 4 * BLOCK_ELEMENTS, "beyond the end");
    REFUSES(SHARD_SETUP, shard_setup.layout.length--, "layout");
    REFUSES(SHARD_SETUP, shard_setup.layout.data = layouts[1], "layout");
    REFUSES(SHARD_SETUP, shard_setup.slots = SLOTS_MAX + 1, "history");
    REFUSES(SHARD_SETUP, shard_setup.weight_sum = 0, "weight");
    REFUSES(SHARD_SETUP, shard_setup.weight_sum = -1, "weight");
    REFUSES(SHARD_SETUP, shard_setup.weight_sum = NAN, "weight");
    REFUSES(SHARD_SETUP, shard_setup.weight_sum = INFINITY, "weight");
    REFUSES(SHARD_SETUP, shard_setup.uniform = 2, "flag");
    REFUSES(SHARD_SETUP, shard_setup.uniform_exponent = INT16_MAX + 1, "exponent");
    REFUSES(SHARD_SETUP, shard_setup.machine.device = "gpu", "device");
    REFUSES(REPLICA_SETUP, replica_setup.machine.device = "cuda:", "device");
    REFUSES(SHARD_SETUP, shard_setup.start = 2, "flag");
    REFUSES(SHARD_SETUP, shard_setup.keeps_best = 255, "flag");
    REFUSES(SHARD_SETUP, shard_setup.box.used = 2, "flag");
    REFUSES(SHARD_SETUP, shard_setup.adagrad = 2, "flag");
    REFUSES(SHARD_SETUP, shard_setup.rows.directions = 5, "but no rows");
    REFUSES(SHARD_SETUP, shard_setup.rows.tiles = 2, "flag");
    REFUSES(SHARD_SETUP, shard_setup.rows.tiles = 1, "tiles without");
    REFUSES(SHARD_SETUP, shard_setup.hessian.precondition = PRECONDITIONS, "preconditioner");
    REFUSES(SHARD_SETUP, shard_setup.hessian.precondition = PRECONDITION_FULL,
            "leaves parameters out");
    REFUSES(REPLICA_SETUP, replica_setup.hessian.precondition = PRECONDITIONS, "preconditioner");
    REFUSES(REPLICA_SETUP, replica_setup.hessian.precondition = PRECONDITION_FULL,
            "leaves parameters out");
    REFUSES(REPLICA_SETUP, replica_setup.shards = 0, "shards");
    REFUSES(REPLICA_SETUP, replica_setup.shards = SHARDS_MAX + 1, "shards");
    REFUSES(REPLICA_SETUP, replica_setup.machine.threads = THREADS_MAX + 1, "threads");
    REFUSES(REPLICA_SETUP, replica_setup.layout.length = 0, "layout");
    REFUSES(REPLICA_SETUP, replica_setup.layout.data = layouts[1], "layout");
    REFUSES(REPLICA_SETUP, replica_setup.objective = "", "name");
    REFUSES(REPLICA_SETUP, replica_setup.loss.length = 8, "parameters of the loss");
    REFUSES(REPLICA_SETUP, replica_setup.set = "", "name");
}

/* What a shard or a replica says of a block of a model's first columns; NULL: it takes it. */
static const char *fault_of_block(bool shard, const struct layout *layout,
                                  enum precondition precondition, uint32_t columns, bool scaled) {
    struct message message = sound(shard ? MESSAGE_SHARD_SETUP : MESSAGE_REPLICA_SETUP);
    struct blob blob = blob_of_layout(layout);
    if (shard) {
        message.shard_setup.layout = blob;
        message.shard_setup.first = 0;
        message.shard_setup.count = layout_parameters(layout);
        message.shard_setup.hessian.precondition = (uint8_t)precondition;
        message.shard_setup.hessian.block_columns = columns;
        message.shard_setup.scaling.coordinates = scaled;
    } else {
        message.replica_setup.layout = blob;
        message.replica_setup.hessian.precondition = (uint8_t)precondition;
        message.replica_setup.hessian.block_columns = columns;
        message.replica_setup.coordinates = scaled;
    }
    return message_fault(&message);
}

static void assert_says(const char *fault, const char *reason) {
    if (!fault || !strstr(fault, reason))
        fail_msg("%s, not %s", fault ? fault : "taken", reason);
}

static void a_block_is_of_columns_that_are_there_scaled_and_few(void **state) {
    (void)state;
    const struct layout wide = layout_linear(3 * BLOCK_ELEMENTS, 2, true);
    const struct layout small = layout_linear(20, 3, true);
    const uint32_t most = PRECONDITION_PARAMETERS_MAX - 1; /* beside the biases */
    for (int shard = 0; shard < 2; shard++) {
        assert_null(fault_of_block(shard, &wide, PRECONDITION_LEADING, 1, true));
        assert_null(fault_of_block(shard, &wide, PRECONDITION_LEADING, most, true));
        assert_null(fault_of_block(shard, &small, PRECONDITION_LEADING, 20, true));
        assert_null(fault_of_block(shard, &small, PRECONDITION_FULL, 20, false));
        assert_null(fault_of_block(shard, &small, PRECONDITION_FULL, 20, true));
        assert_says(fault_of_block(shard, &wide, PRECONDITION_LEADING, most + 1, true), "more");
        assert_says(fault_of_block(shard, &wide, PRECONDITION_FULL, 3 * BLOCK_ELEMENTS, true),
                    "more");
        assert_says(fault_of_block(shard, &wide, PRECONDITION_LEADING, 1, false), "not scaled");
        assert_says(fault_of_block(shard, &small, PRECONDITION_LEADING, 21, true), "none");
        assert_says(fault_of_block(shard, &small, PRECONDITION_LEADING, UINT32_MAX, true), "none");
        assert_says(fault_of_block(shard, &small, PRECONDITION_FULL, 19, true), "leaves");
    }
    REFUSES(SHARD_SETUP, shard_setup.scaling.block_bias_exponent = INT16_MAX + 1, "exponent");
    REFUSES(SHARD_SETUP, shard_setup.scaling.block_bias_exponent = INT16_MIN - 1, "exponent");
}

static void elements_of_another_number_than_a_message_says_are_refused(void **state) {
    (void)state;
    const uint64_t wraps = (UINT64_MAX >> 3) + 1 + 4; /* 8 times this is 32 */
    REFUSES(COORDINATES, coordinates.count = 2, "another number");
    static const struct column_scaling odd[] = {
        {NAN, 1, 1, 0, 0}, {0, 0, 1, 0, 0},   {0, -1, 1, 0, 0},
        {0, 1, 1, -1, 0},  {0, 1, -1, 0, 0},  {0, INFINITY, 1, 0, 0},
        {0, 1, NAN, 0, 0}, {0, 1, 1, NAN, 0}, {0, 1, 1, 0, -INFINITY}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        REFUSES(COORDINATES, bulk.data = &odd[i], "coordinates that are none");
    REFUSES(SQUARES, squares.count = 3, "another number");
    static const double none[][4] = {{0, 1, -1, 0}, {0, NAN, 1, 0}, {0, 1, 1, INFINITY}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        REFUSES(SQUARES, bulk.data = none[i], "squares that are none");
    REFUSES(SHARD_SETUP, shard_setup.scaling.coordinates = 2, "a flag");
    REFUSES(SHARD_SETUP, shard_setup.scaling.bias_exponent = 40000, "exponent");
    REFUSES(REPLICA_SETUP, replica_setup.unit = INFINITY, "unit");
    REFUSES(REPLICA_SETUP, replica_setup.l2 = -1, "l2");
    REFUSES(REPLICA_SETUP, replica_setup.l2 = NAN, "l2");
    REFUSES(REPLICA_SETUP, replica_setup.rows = UINT64_MAX, "rows");
    REFUSES(FACTORS, bulk.length = 3, "no numbers");
    REFUSES(REPLICA_SETUP, replica_setup.coordinates = 1, "can have none");
    REFUSES(EXPONENTS, bulk.length--, "another number");
    REFUSES(EXPONENTS, exponents.count = 15, "another number");
    REFUSES(EXPONENTS, exponents.first = UINT64_MAX, "beyond the end");
    REFUSES(START, start.count = 3, "another number");
    REFUSES(START, start.count = wraps, "beyond the end");
    REFUSES(START, start.first = UINT64_MAX - 1, "beyond the end");
    REFUSES(START, start.register_ = REGISTERS, "register");
    REFUSES(START, start.program = 0, "programs");
    REFUSES(PARAMETERS, bulk.length += 8, "more elements");
    REFUSES(PARAMETERS, parameters.count = wraps, "beyond the end");
    REFUSES(SLICE, slice.count = 5, "another number");
    REFUSES(SLICE, slice.register_ = REGISTERS, "register");
    REFUSES(READ, read.register_ = REGISTERS, "register");
    REFUSES(READ, read.count = UINT64_MAX, "beyond the end");
    REFUSES(SHARD_AT, shard_at.count = UINT64_MAX, "beyond the end");
}

static void bits_of_columns_are_whole_words(void **state) {
    (void)state;
    REFUSES(FETCH, fetch.columns = 0, "no columns");
    REFUSES(FETCH, fetch.hash++, "the hash");
    REFUSES(FETCH, bulk.length = 8, "another number");
    REFUSES(FETCH, fetch.width = 0, "beyond the last");
    REFUSES(FETCH, fetch.column = UINT64_MAX, "beyond the last");
    REFUSES(FETCH, fetch.columns = UINT64_MAX, "beyond the last");
}

static void malformed_flushes_are_refused(void **state) {
    (void)state;
    static const struct chunk_range none[] = {{3, 0}}, beyond[] = {{UINT32_MAX, 2}};
    static const struct evaluation_part overlapping[] = {{1, 0, 4}, {2, 3, 1}};
    REFUSES(STAGE, stage.encoding = 9, "encoding");
    REFUSES(STAGE, bulk.length--, "another length");
    REFUSES(STAGE, stage.encoding = STAGE_NONE, "with elements");
    REFUSES(STAGE, stage.encoding = STAGE_SPARSE, "sparse");
    REFUSES(STAGE, stage.portions.items = none, "no chunks");
    REFUSES(STAGE, stage.portions.items = beyond, "beyond the last");
    REFUSES(FLUSHED, flushed.portions.length = 0, "no chunks");
    REFUSES(FLUSHED, flushed.maxima.value[0] = NAN, "maximum");
    REFUSES(FLUSHED, flushed.maxima.value[1] = -1, "maximum");
    REFUSES(FLUSHED, flushed.maxima.count = TENSORS_MAX + 1, "more maxima");
    REFUSES(FLUSHED, flushed.exceeded = 2, "flag");
    REFUSES(FLUSHED, flushed.incarnations.length = SHARDS_MAX + 1, "shards");
    REFUSES(PORTION, portion.count = 0, "no chunks");
    REFUSES(PORTION, portion.first = UINT32_MAX, "beyond the last");
    REFUSES(PORTION, portion.flags = 4, "flags");
    REFUSES(EVALUATE, evaluate.bounds.exponent[0] = INT32_MIN, "exponent");
    REFUSES(EVALUATE, evaluate.bounds.exponent[1] = 1023, "exponent");
    REFUSES(EVALUATE, evaluate.bounds.count = 0, "no bounds");
    REFUSES(EVALUATE, evaluate.bounds.count = TENSORS_MAX + 1, "more than");
    REFUSES(EVALUATE, evaluate.parts.length = 0, "no part");
    REFUSES(EVALUATE, evaluate.parts.items = overlapping, "do not rise");
    REFUSES(EVALUATE, evaluate.rate = -1, "rate");
    REFUSES(EVALUATE, evaluate.rate = INFINITY, "rate");
    REFUSES(EVALUATE, evaluate.rate = NAN, "rate");
    REFUSES(EVALUATE, evaluate.floor = 0, "floor");
    REFUSES(EVALUATE, evaluate.floor = 1.5, "floor");
    REFUSES(EVALUATE, evaluate.floor = NAN, "floor");
    REFUSES(HOLDING, holding.staged.length = FLUSH_ID_BYTES - 1, "ends within");
    REFUSES(HOLDING, holding.folded.length = FLUSH_ID_BYTES + 1, "ends within");
}

static void a_sparse_slice_is_as_long_as_its_entries(void **state) {
    (void)state;
    struct message message = sound(MESSAGE_STAGE);
    message.stage.encoding = STAGE_SPARSE;
    message.stage.entries = 2; /* offsets in 8 bytes, values in 16 */
    message.bulk.length = 24;
    assert_null(message_fault(&message));
    message.stage.entries = UINT64_MAX;
    assert_non_null(message_fault(&message));
}

static void a_slice_by_bits_is_whole_words_and_not_shorter_than_its_values(void **state) {
    (void)state;
    struct message message = sound(MESSAGE_STAGE);
    message.stage.encoding = STAGE_BITMAP;
    message.stage.entries = 2; /* a word, and two values */
    message.bulk.length = 24;
    assert_null(message_fault(&message));
    message.bulk.length = 23;
    assert_non_null(message_fault(&message));
    message.bulk.length = 8;
    assert_non_null(message_fault(&message));
    message.bulk.length = 24;
    message.stage.entries = UINT64_MAX;
    assert_non_null(message_fault(&message));
}

static void a_checkpoint_of_pairs_that_cannot_be_is_refused(void **state) {
    (void)state;
    static const uint64_t beyond[] = {1, SLOTS_MAX}, twice[] = {4, 4};
    REFUSES(CHECKPOINT, checkpoint.serials.length = 1, "serial");
    REFUSES(CHECKPOINT, checkpoint.slots.items = beyond, "beyond the last");
    REFUSES(CHECKPOINT, checkpoint.slots.items = twice, "twice");
    REFUSES(CHECKPOINT, checkpoint.best = 2, "flag");
    REFUSES(CHECKPOINT, checkpoint.sums = 2, "flag");
}

/* ---- programs ---- */

static const char *fault_of_program(const struct operation *operations, size_t count) {
    static struct bytes program;
    bytes_clear(&program);
    for (size_t i = 0; i < count; i++)
        program_add(&program, &operations[i]);
    struct message message = {.type = MESSAGE_PROGRAM};
    message.program =
        (struct message_program){.attempt = 1,
                                 .number = 1,
                                 .hash = program_hash(program.data, program.length),
                                 .operations = {program.data, (uint32_t)program.length}};
    return message_fault(&message);
}

static void a_program_with_another_hash_or_no_number_is_refused(void **state) {
    (void)state;
    REFUSES(PROGRAM, program.hash++, "hash");
    REFUSES(PROGRAM, program.number = 0, "programs");
    REFUSES(PROGRAM, program.attempt = 0, "attempts");
}

static void malformed_programs_are_refused(void **state) {
    (void)state;
    const struct operation bad[] = {
        {.code = OPERATION_PAIR, .slot = SLOTS_MAX},
        {.code = OPERATION_DIRECTION, .count = 1, .slots = {SLOTS_MAX}},
        {.code = OPERATION_HISTORY_DOTS, .slot = 2, .count = 1, .slots = {2}},
        {.code = OPERATION_DOT, .a = REGISTERS},
        {.code = OPERATION_ZERO, .a = REGISTER_BEST},
        {.code = OPERATION_DOT, .b = REGISTER_BEST},
        {.code = OPERATION_ADD, .c = REGISTER_BEST},
        {.code = OPERATION_PAIR, .d = REGISTER_BEST},
        {.code = OPERATION_PAIR, .f = REGISTER_BEST},
        {.code = OPERATION_MASK, .slot = 2},
        {.code = OPERATION_FACTOR},
        {.code = OPERATION_PRECONDITION, .a = REGISTER_PG, .b = REGISTER_G},
        {.code = OPERATION_PRECONDITION, .a = REGISTER_G, .b = REGISTER_G, .serial = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(fault_of_program(&bad[i], 1));
    const struct operation sound_one[] = {
        {.code = OPERATION_SWAP, .a = REGISTER_T, .b = REGISTER_BEST},
        {.code = OPERATION_PAIR, .slot = 2},
        {.code = OPERATION_HISTORY_DOTS, .slot = 2, .count = 1, .slots = {2}}};
    assert_null(fault_of_program(sound_one, 3));
}

#define PAIR_OF_2                                                                                  \
    { .code = OPERATION_PAIR, .slot = 2 }
#define DOTS_OF_2                                                                                  \
    {                                                                                              \
        .code = OPERATION_HISTORY_DOTS, .slot = 2, .count = 1, .slots = { 2 }                      \
    }
#define PRECONDITION_BY_1                                                                          \
    { .code = OPERATION_PRECONDITION, .a = REGISTER_PH, .b = REGISTER_H, .serial = 1 }
#define FACTOR_AS_1                                                                                \
    { .code = OPERATION_FACTOR, .serial = 1 }

static void products_are_taken_in_the_sweep_that_forms_the_pair(void **state) {
    (void)state;
    const struct operation sound[] = {PRECONDITION_BY_1, PAIR_OF_2, DOTS_OF_2};
    assert_null(fault_of_program(sound, 3));
    const struct operation apart[] = {PAIR_OF_2, PRECONDITION_BY_1, DOTS_OF_2};
    assert_non_null(strstr(fault_of_program(apart, 3), "products"));
}

static void a_program_that_factors_does_so_once_and_neither_clears_nor_applies(void **state) {
    (void)state;
    const struct operation sound[] = {{.code = OPERATION_CHECK}, FACTOR_AS_1};
    assert_null(fault_of_program(sound, 2));
    const struct operation twice[] = {FACTOR_AS_1, FACTOR_AS_1};
    assert_non_null(strstr(fault_of_program(twice, 2), "factors twice"));
    const struct operation used[] = {FACTOR_AS_1, PRECONDITION_BY_1};
    assert_non_null(strstr(fault_of_program(used, 2), "also preconditions"));
    const struct operation after[] = {PRECONDITION_BY_1, FACTOR_AS_1};
    assert_non_null(strstr(fault_of_program(after, 2), "also preconditions"));
    const struct operation cleared[] = {
        {.code = OPERATION_BEGIN, .evaluation = 1, .bounds.count = 1}, FACTOR_AS_1};
    assert_non_null(strstr(fault_of_program(cleared, 2), "clears them"));
    const struct operation lost[] = {FACTOR_AS_1,
                                     {.code = OPERATION_BEGIN, .evaluation = 1, .bounds.count = 1}};
    assert_non_null(strstr(fault_of_program(lost, 2), "clears them"));
}

static void programs_are_bounded_in_operations_and_scalars(void **state) {
    (void)state;
    enum { FIT = SCALARS_MAX / (4 * SLOTS_MAX) }; /* products with all of the history */
    static struct operation operations[OPERATIONS_MAX + 1];
    for (size_t i = 0; i <= OPERATIONS_MAX; i++)
        operations[i] = (struct operation){.code = OPERATION_DOT};
    assert_null(fault_of_program(operations, OPERATIONS_MAX));
    assert_string_equal(fault_of_program(operations, OPERATIONS_MAX + 1),
                        "a program that is too long");
    operations[0] = (struct operation){.code = OPERATION_PAIR};
    for (size_t i = 1; i <= FIT + 1; i++)
        operations[i] = (struct operation){.code = OPERATION_HISTORY_DOTS, .count = SLOTS_MAX};
    assert_null(fault_of_program(operations, 1 + FIT));
    assert_string_equal(fault_of_program(operations, 2 + FIT), "a program that is too long");
}

SUITE(validity) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_senders_say_is_taken),
        cmocka_unit_test(a_list_of_flushes_has_some_and_all_of_one_evaluation),
        cmocka_unit_test(numbers_that_nobody_is_given_are_refused),
        cmocka_unit_test(a_set_up_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_block_is_of_columns_that_are_there_scaled_and_few),
        cmocka_unit_test(elements_of_another_number_than_a_message_says_are_refused),
        cmocka_unit_test(bits_of_columns_are_whole_words),
        cmocka_unit_test(malformed_flushes_are_refused),
        cmocka_unit_test(a_sparse_slice_is_as_long_as_its_entries),
        cmocka_unit_test(a_slice_by_bits_is_whole_words_and_not_shorter_than_its_values),
        cmocka_unit_test(a_checkpoint_of_pairs_that_cannot_be_is_refused),
        cmocka_unit_test(a_program_with_another_hash_or_no_number_is_refused),
        cmocka_unit_test(malformed_programs_are_refused),
        cmocka_unit_test(products_are_taken_in_the_sweep_that_forms_the_pair),
        cmocka_unit_test(a_program_that_factors_does_so_once_and_neither_clears_nor_applies),
        cmocka_unit_test(programs_are_bounded_in_operations_and_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
