/* Drives a shard alone: set-ups of every kind, programs of all operations, slices and questions.
 * The shard must survive every message that passes the check of its fields, and what it says must
 * pass that check, too. fuzz_roles has a coordinator beside it, and so no preconditioner, no scaled
 * columns and no limits.
 *
 * An input is a sequence of events. With files as arguments: replays those. Without: replays inputs
 * drawn from seeds, as many as DML_FUZZ in the environment says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "shard/shard.h"
#include "tests/fuzz/draw.h"
#include "wire/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

enum { COORDINATOR = 1, REPLICA = 2, TERM = 5, INCARNATION = 70 };
enum { SUMS_MOST = 1 << 16, EVENTS = 40, OPERATIONS_MOST = 6, SLOTS = 5 };

enum log_level log_level_now = LOG_ERROR;

void log_line(enum log_level level, const char *format, ...) {
    (void)level, (void)format;
}

struct course {
    struct draw draw;
    struct shard *shard;
    struct outbox out;
    struct layout layout;
    struct bytes blob; /* the layout */
    struct message_shard_setup setup;
    uint64_t program;  /* the last that was run */
    uint32_t sequence; /* of the last flush */
    struct flush_id flush;
    uint32_t evaluation;
    enum sums_layout sums;
    struct bytes bulk; /* of the next message */
};

/* Over all inputs: of each type, what the shard was given, and what it said. */
static uint64_t given[256], said[256];

static uint32_t below(struct course *course, uint32_t limit) {
    return (uint32_t)(draw_byte(&course->draw) << 8 | draw_byte(&course->draw)) % limit;
}

static bool flag(struct course *course) {
    return draw_below(&course->draw, 2);
}

/* Mostly of a usual size. */
static double number(struct course *course) {
    static const double odd[] = {0, 1, -1e300, 1e-300, 5e-324, INFINITY, NAN};
    uint32_t chosen = draw_below(&course->draw, 16);
    return chosen < sizeof odd / sizeof *odd ? odd[chosen] : below(course, 4096) / 512.0 - 4;
}

static double positive(struct course *course) {
    double value = fabs(number(course));
    return value > 0 && value < INFINITY ? value : 0.5;
}

/* ---- messages ---- */

static void look_at_answers(const struct course *course) {
    for (size_t i = 0; i < course->out.count; i++) {
        const struct envelope *envelope = &course->out.envelopes[i];
        struct message message;
        const char *why;
        said[envelope->type]++;
        if (message_decode(envelope->type, outbox_body(&course->out, envelope),
                           envelope->body_length, &message, &why))
            abort();
    }
}

/* Whether it was answered so. */
static bool give(struct course *course, uint32_t from, struct message message,
                 enum message_type answer) {
    uint64_t before = said[answer];
    message.term = TERM;
    if (message_fault(&message))
        return false;
    given[message.type]++;
    outbox_clear(&course->out);
    shard_step(course->shard, from, &message, 0, &course->out);
    look_at_answers(course);
    error_clear();
    return said[answer] > before;
}

static struct bulk bulk_of(const struct course *course) {
    return (struct bulk){.data = course->bulk.data, .length = course->bulk.length};
}

/* ---- the set-up ---- */

static void draw_layout(struct course *course) {
    static const char *const names[] = {TENSOR_WEIGHT, TENSOR_BIAS, "W1", "b1", "x"};
    struct layout *layout = &course->layout;
    uint64_t outputs = 1 + draw_below(&course->draw, 3);
    uint64_t features = 1 + below(course, flag(course) ? 40 : 9000);
    *layout = layout_linear_of(features, flag(course) ? outputs : 1,
                               flag(course) ? outputs : draw_below(&course->draw, 4));
    for (int more = 0; more < 6 && draw_below(&course->draw, 8) == 0; more++) {
        struct layout_tensor tensor = {.rows = draw_below(&course->draw, 30),
                                       .columns = 1 + draw_below(&course->draw, 4),
                                       .regularized = flag(course)};
        strcpy(tensor.name, names[draw_below(&course->draw, sizeof names / sizeof *names)]);
        if (draw_below(&course->draw, 4) == 0)
            *layout = (struct layout){0};
        layout_add(layout, &tensor);
    }
    bytes_clear(&course->blob);
    layout_encode(layout, &course->blob);
}

/* All of it, or what the first or the second of two shards may have. */
static void draw_part(struct course *course, struct message_shard_setup *setup) {
    uint64_t all = layout_parameters(&course->layout);
    uint32_t part = draw_below(&course->draw, 4);
    bool cut = part < 2 && all > BLOCK_ELEMENTS;
    setup->first = cut && part ? BLOCK_ELEMENTS : 0;
    setup->count = !cut ? all : part ? all - BLOCK_ELEMENTS : BLOCK_ELEMENTS;
}

static void draw_rows(struct course *course, struct message_shard_setup *setup) {
    static const char *const objectives[] = {"logistic", "softmax", "proportional_odds", "poisson",
                                             "tweedie",  "huber",   "multilabel",        ""};
    setup->rows.total = 1 + below(course, 2000);
    setup->rows.outputs = 1 + draw_below(&course->draw, 3);
    setup->rows.directions = draw_below(&course->draw, 4);
    setup->rows.held = flag(course) ? 0 : below(course, (uint32_t)setup->rows.total + 1);
    setup->rows.weighted = flag(course);
    setup->rows.offsets = flag(course);
    setup->rows.tiles = draw_below(&course->draw, 4) == 0;
    setup->rows.objective =
        objectives[draw_below(&course->draw, sizeof objectives / sizeof *objectives)];
}

static void draw_setup(struct course *course, uint32_t attempt) {
    static const double loss[LOSS_PARAMETERS_MAX] = {1.5, 0.1};
    const struct layout_tensor *first = &course->layout.tensor[0];
    struct message_shard_setup *setup = &course->setup;
    draw_layout(course);
    *setup = (struct message_shard_setup){
        .attempt = attempt,
        .layout = {course->blob.data, (uint32_t)course->blob.length},
        .slots = draw_below(&course->draw, SLOTS + 1),
        .history_type = (uint8_t)draw_below(&course->draw, 3),
        .weight_sum = positive(course),
        .uniform = flag(course),
        .uniform_exponent = draw_byte(&course->draw),
        .keeps_best = flag(course),
        .hessian.precondition = (uint8_t)draw_below(&course->draw, PRECONDITIONS),
        .box.used = flag(course),
        .box.limited = draw_below(&course->draw, 4) == 0,
        .adagrad = flag(course),
        .scaling.coordinates = flag(course),
        .scaling.measured = flag(course),
        .rows.objective = "",
        .rows.loss = {loss, sizeof loss},
        .folder = "",
        .machine.threads = 1,
        .machine.device = "cpu",
    };
    setup->hessian.block_columns =
        flag(course) ? (uint32_t)first->rows : below(course, (uint32_t)first->rows + 1);
    draw_part(course, setup);
    if (flag(course))
        draw_rows(course, setup);
}

static void complete_setup(struct course *course) {
    const struct message_shard_setup *setup = &course->setup;
    uint64_t columns = course->layout.tensor[0].rows;
    uint64_t exponents = layout_exponents(&course->layout);
    bytes_clear(&course->bulk);
    for (uint64_t i = 0; i < exponents; i++)
        bytes_put_u16(&course->bulk, (uint16_t)(i % 90));
    give(course, COORDINATOR,
         (struct message){.type = MESSAGE_EXPONENTS,
                          .exponents = {setup->attempt, 0, exponents},
                          .bulk = bulk_of(course)},
         MESSAGE_READY);
    bytes_clear(&course->bulk);
    for (uint64_t j = 0; j < columns; j++) {
        const struct column_scaling scaling = {(double)(j % 3), 0.5 + (double)(j % 4), j % 5 > 0, 1,
                                               0};
        bytes_append(&course->bulk, &scaling, sizeof scaling);
    }
    give(course, COORDINATOR,
         (struct message){.type = MESSAGE_COORDINATES,
                          .coordinates = {setup->attempt, 0, columns},
                          .bulk = bulk_of(course)},
         MESSAGE_READY);
    bytes_clear(&course->bulk);
    for (uint64_t j = 0; j < columns; j++)
        bytes_put_f64(&course->bulk, (double)(j % 7));
    give(course, COORDINATOR,
         (struct message){.type = MESSAGE_SQUARES,
                          .squares = {setup->attempt, 0, columns},
                          .bulk = bulk_of(course)},
         MESSAGE_READY);
    bytes_clear(&course->bulk);
    for (uint64_t j = 0; j < columns; j++) {
        const struct column_limit limit = {(double)(j % 2), j % 3 ? -INFINITY : 0,
                                           j % 5 ? INFINITY : 2};
        bytes_append(&course->bulk, &limit, sizeof limit);
    }
    give(course, COORDINATOR,
         (struct message){.type = MESSAGE_LIMITS,
                          .limits = {setup->attempt, 0, columns},
                          .bulk = bulk_of(course)},
         MESSAGE_READY);
}

/* ---- programs ---- */

static void draw_listed(struct course *course, struct operation *operation, struct bytes *list) {
    bool solves = operation->code == OPERATION_SOLVE;
    uint32_t count = draw_below(&course->draw, 6), biases = draw_below(&course->draw, 4);
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        at += 1 + draw_byte(&course->draw);
        if (solves)
            listed_put(list, &(struct listed){.number = at,
                                              .regularized = i + biases < count,
                                              .exponent = draw_byte(&course->draw),
                                              .gradient = positive(course),
                                              .mean = flag(course),
                                              .scale = positive(course),
                                              .penalty = 1,
                                              .lasso = flag(course),
                                              .low = -INFINITY,
                                              .high = INFINITY,
                                              .excess = 1});
        else
            value_put(list, at, positive(course));
    }
    operation->listed = count;
    operation->list = list->data;
}

static void add_operation(struct course *course, struct bytes *program, struct bytes *list) {
    struct draw *draw = &course->draw;
    uint32_t most = flag(course) ? REGISTERS : REGISTER_BEST; /* those that all shards have */
    struct operation operation = {
        .code = (enum operation_code)(1 + draw_below(draw, OPERATIONS - 1)),
        .a = (uint8_t)draw_below(draw, most),
        .b = (uint8_t)draw_below(draw, most),
        .c = (uint8_t)draw_below(draw, most),
        .d = (uint8_t)draw_below(draw, most),
        .e = (uint8_t)draw_below(draw, most),
        .f = (uint8_t)draw_below(draw, most),
        .alpha = flag(course) ? 1 : number(course),
        .beta = flag(course) ? 1 : number(course),
        .gamma = flag(course) ? 1 : number(course),
        .l1 = flag(course) ? 0.5 : number(course),
        .serial = 1 + draw_below(draw, 2),
        .slot = draw_below(draw, SLOTS + 1),
        .count = draw_below(draw, SLOTS),
        .tensors = course->layout.count,
        .bounds = {.count = 1},
        .vector = (enum row_vector)draw_below(draw, ROW_VECTORS),
        .limit = draw_byte(draw),
    };
    for (uint32_t i = 0; i < operation.count; i++) {
        operation.slots[i] = (uint16_t)draw_below(draw, SLOTS + 1);
        operation.u[i] = number(course);
        operation.w[i] = number(course);
    }
    if (operation.code == OPERATION_BEGIN)
        return; /* begin() does that */
    if (operation.vector != ROWS_PRODUCT && operation.code == OPERATION_ROWS_TAKE)
        operation.slot = 0;
    bytes_clear(list);
    if (operation.code == OPERATION_SOLVE || operation.code == OPERATION_SCATTER)
        draw_listed(course, &operation, list);
    program_add(program, &operation);
}

static bool run(struct course *course, const struct bytes *program) {
    const struct message message = {
        .type = MESSAGE_PROGRAM,
        .program = {.attempt = course->setup.attempt,
                    .number = course->program + 1,
                    .hash = program_hash(program->data, program->length),
                    .operations = {program->data, (uint32_t)program->length}}};
    bool ran = give(course, COORDINATOR, message, MESSAGE_RESULT);
    course->program += ran;
    return ran;
}

static void compute(struct course *course) {
    struct bytes program, list;
    bytes_init(&program);
    bytes_init(&list);
    if (flag(course)) /* else what is over rows has no point */
        program_add(&program, &(struct operation){.code = OPERATION_ROWS_AT});
    for (uint32_t i = draw_below(&course->draw, OPERATIONS_MOST) + 1; i > 0; i--)
        add_operation(course, &program, &list);
    run(course, &program);
    bytes_release(&program);
    bytes_release(&list);
}

static void begin(struct course *course) {
    struct operation operation = {.code = OPERATION_BEGIN,
                                  .evaluation = course->evaluation + 1,
                                  .sums = (enum sums_layout)draw_below(&course->draw, SUMS_LAYOUTS),
                                  .rows = draw_below(&course->draw, 4) == 0};
    bool triangle = operation.sums == SUMS_TRIANGLE;
    struct bytes program;
    operation.bounds.count = triangle ? 1 : layout_bounds(&course->layout);
    bytes_init(&program);
    program_add(&program, &operation);
    if (run(course, &program)) {
        course->evaluation++;
        course->sums = operation.sums;
    }
    bytes_release(&program);
}

/* ---- flushes, and questions ---- */

static uint64_t sums_of(const struct course *course) {
    const struct message_shard_setup *setup = &course->setup;
    struct sums_sizes sizes =
        evaluation_sums_sizes(&course->layout, (enum precondition)setup->hessian.precondition,
                              setup->hessian.block_columns);
    sizes.rows = setup->rows.total;
    sizes.outputs = setup->rows.outputs;
    return evaluation_sums_range(course->sums, &sizes, setup->first, setup->count).count;
}

static void put_slice(struct course *course, struct message_stage *stage) {
    uint64_t sums = sums_of(course), entries = draw_below(&course->draw, 16);
    bool dense = stage->encoding == STAGE_DENSE;
    stage->entries = dense ? (sums < SUMS_MOST ? sums : 0) : entries;
    if (stage->encoding == STAGE_SPARSE)
        for (uint64_t i = 0; i < entries + entries % 2; i++)
            bytes_put_u32(&course->bulk, below(course, (uint32_t)(sums % 65535) + 1));
    if (stage->encoding == STAGE_BITMAP)
        bytes_put_u64(&course->bulk, (UINT64_C(1) << entries) - 1);
    for (uint64_t i = 0; i < stage->entries; i++)
        bytes_put_u64(&course->bulk, i % 9 ? i << i % 40 : draw_u64(&course->draw));
}

static void stage(struct course *course) {
    static const struct chunk_range portion = {0, 1};
    static const uint64_t biases[4];
    const struct layout_tensor *bias = layout_input_bias(&course->layout);
    bool scaled = course->setup.scaling.coordinates && course->sums == SUMS_PARAMETERS && bias;
    struct message message = {
        .type = MESSAGE_STAGE,
        .stage = {.flush = {course->setup.attempt, course->evaluation, INCARNATION,
                            course->sequence + flag(course)},
                  .portions = {&portion, 1},
                  .encoding = (uint8_t)draw_below(&course->draw, STAGE_BITMAP + 1)}};
    bytes_clear(&course->bulk);
    if (message.stage.encoding != STAGE_NONE)
        put_slice(course, &message.stage);
    if (message.stage.encoding != STAGE_NONE && scaled && bias->columns <= 4)
        message.stage.biases = (struct u64_list){biases, (uint32_t)bias->columns};
    message.bulk = bulk_of(course);
    course->sequence = message.stage.flush.sequence;
    course->flush = message.stage.flush;
    give(course, REPLICA, message, MESSAGE_STAGED);
}

static void decide(struct course *course) {
    bytes_clear(&course->bulk);
    flush_id_encode(&course->flush, &course->bulk);
    const struct blob flushes = {course->bulk.data, (uint32_t)course->bulk.length};
    if (draw_below(&course->draw, 8))
        give(course, COORDINATOR, (struct message){.type = MESSAGE_FOLD, .fold = {flushes}},
             MESSAGE_FOLDED);
    else
        give(course, COORDINATOR, (struct message){.type = MESSAGE_DROP, .drop = {flushes}},
             MESSAGE_FOLDED);
}

static void fetch(struct course *course) {
    const struct message_fetch fetch = {.attempt = course->setup.attempt,
                                        .evaluation = course->evaluation + flag(course),
                                        .first = below(course, 100),
                                        .count = below(course, 10000),
                                        .vector =
                                            (uint8_t)draw_below(&course->draw, FETCH_VECTORS)};
    give(course, REPLICA, (struct message){.type = MESSAGE_FETCH, .fetch = fetch},
         MESSAGE_PARAMETERS);
}

static void one_event(struct course *course) {
    switch (draw_below(&course->draw, 8)) {
    case 0:
        begin(course);
        break;
    case 1:
    case 2:
        stage(course);
        break;
    case 3:
        decide(course);
        break;
    case 4:
        fetch(course);
        break;
    default:
        compute(course);
    }
}

static void one_attempt(struct course *course, uint32_t attempt) {
    draw_setup(course, attempt);
    const struct message message = {.type = MESSAGE_SHARD_SETUP, .shard_setup = course->setup};
    if (message_fault(&message))
        return;
    course->program = course->evaluation = 0;
    course->sums = SUMS_NONE;
    give(course, COORDINATOR, message, MESSAGE_READY);
    complete_setup(course);
    for (uint32_t i = 0; i < EVENTS && course->draw.left; i++)
        one_event(course);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static const struct shard_self self = {
        .host = "here", .description = "fuzzed", .proof = 9, .local = ""};
    struct course course = {.draw = {data, length}, .shard = shard_new(&self)};
    outbox_init(&course.out);
    bytes_init(&course.blob);
    bytes_init(&course.bulk);
    give(&course, COORDINATOR,
         (struct message){
             .type = MESSAGE_HELLO,
             .hello = {PROTOCOL_VERSION, "run", ROLE_SHARD, 0, INCARNATION - 1, 30, "", ""}},
         MESSAGE_WELCOME);
    give(&course, REPLICA,
         (struct message){.type = MESSAGE_GREET,
                          .greet = {PROTOCOL_VERSION, "run", INCARNATION, ""}},
         MESSAGE_GREETED);
    for (uint32_t attempt = 1; course.draw.left; attempt++)
        one_attempt(&course, attempt);
    shard_free(course.shard);
    outbox_release(&course.out);
    bytes_release(&course.blob);
    bytes_release(&course.bulk);
    return 0;
}

#ifndef LIBFUZZER
#include "tests/fuzz/corpus.h"

enum { INPUTS = 100, INPUT_BYTES = 16384 };

int main(int argc, char **argv) {
    int status;
    if (feed_named(argc, argv, &status))
        return status;
    bool wanted = getenv("DML_FUZZ");
    printf("1..1\n");
    feed_inputs(INPUTS, INPUT_BYTES);
    bool reached = said[MESSAGE_READY] && said[MESSAGE_FOLDED] && said[MESSAGE_PARAMETERS];
    printf("%s 1 - a shard survives set-ups and programs of every kind\n",
           reached || wanted ? "ok" : "not ok");
    printf("# of %llu programs %llu were run; %llu slices were staged, %llu folded\n",
           (unsigned long long)given[MESSAGE_PROGRAM], (unsigned long long)said[MESSAGE_RESULT],
           (unsigned long long)said[MESSAGE_STAGED], (unsigned long long)said[MESSAGE_FOLDED]);
    return reached || wanted ? 0 : 1;
}
#endif
