/* A shard under test: what goes in, and the answers that came out. */
#ifndef DML_TESTS_SHARD_BENCH_H
#define DML_TESTS_SHARD_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "numeric/exact.h"
#include "numeric/vector.h"
#include "shard/registers.h"
#include "shard/shard.h"
#include "tests/cluster/decoded.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/layout_fixture.h"
#include "wire/program.h"

/* More elements than a shard of these tests has. */
#define ALL_OF_IT (UINT64_C(1) << 20)

enum { COORDINATOR_LINK = 1, REPLICA_LINK = 2, TERM = 5, REPLICA_INCARNATION = 70 };

struct bench {
    struct shard *shard;
    struct outbox out;
    uint64_t number; /* of the last program */
};

/* What shards are set up on: the CPU, or a device. */
struct bench_place {
    struct device *device; /* or NULL */
    bool optional;
    const char *own_folder; /* not NULL: the shard does not see the coordinator's state folder */
};

/* Those of a test that says nothing are on the device that DML_TEST_DEVICE names, or on the CPU. */
static inline struct bench_place *bench_place(void) {
    static struct bench_place place;
    if (!place.device && getenv("DML_TEST_DEVICE"))
        place.device = test_device();
    return &place;
}

static inline int bench_find(void *context, const struct message_shard_setup *setup,
                             struct shard_place *place) {
    const struct bench_place *to = context ? context : bench_place();
    (void)setup;
    if (to->device)
        *place = (struct shard_place){.backend = &shard_on_device,
                                      .device = to->device,
                                      .name = device_name(to->device),
                                      .optional = to->optional};
    return 0;
}

static inline bool bench_shares(void *context, const char *state, const char *holder) {
    const struct bench_place *to = context;
    (void)state, (void)holder;
    return !to || !to->own_folder;
}

static inline int bench_own_folder(void *context, char **path) {
    const struct bench_place *to = context;
    *path = memory_copy_string(to->own_folder);
    return 0;
}

/* What a test reads of a shard's registers, or has written there, without a message. */
static inline void bench_pull(struct registers *registers) {
    for (uint8_t i = 0; i < REGISTERS; i++)
        if (registers_have(registers, i))
            assert_int_equal(registers_pull(registers, i, 0, registers->count), 0);
    for (uint32_t slot = 0; slot < registers->slots; slot++)
        assert_int_equal(registers_pull_pair(registers, slot), 0);
    for (uint32_t slot = 0; slot < registers->rows.slots; slot++)
        assert_int_equal(registers_pull_direction(registers, slot), 0);
}

static inline void bench_push(struct registers *registers, uint8_t number) {
    assert_int_equal(registers_push(registers, number, 0, registers->count), 0);
}

/* Hands a message over; afterwards `out` holds the answers to it alone. */
static inline void tell(struct bench *bench, uint32_t from, struct message message) {
    outbox_clear(&bench->out);
    if (!message.term)
        message.term = TERM;
    shard_step(bench->shard, from, &message, 0, &bench->out);
}

static inline struct message answer(const struct bench *bench, size_t number) {
    assert_true(number < bench->out.count);
    return decoded(&bench->out, &bench->out.envelopes[number]);
}

static inline void assert_answer(const struct bench *bench, size_t number, uint32_t to,
                                 enum message_type type) {
    assert_string_equal(message_name(answer(bench, number).type), message_name(type));
    assert_int_equal(bench->out.envelopes[number].to, to);
}

static inline struct message hello(void) {
    return (struct message){.type = MESSAGE_HELLO,
                            .hello = {.protocol = PROTOCOL_VERSION,
                                      .run = "run",
                                      .role = ROLE_SHARD,
                                      .index = 3,
                                      .incarnation = 33}};
}

static inline struct message greet(void) {
    return (struct message){
        .type = MESSAGE_GREET,
        .greet = {.protocol = PROTOCOL_VERSION, .run = "run", .incarnation = REPLICA_INCARNATION}};
}

static inline struct message setup(uint64_t parameters, uint64_t first, uint64_t count) {
    return (struct message){.type = MESSAGE_SHARD_SETUP,
                            .shard_setup = {.attempt = 1,
                                            .layout = layout_blob(parameters, 1, 0),
                                            .first = first,
                                            .count = count,
                                            .slots = 6,
                                            .history_type = HISTORY_DOUBLE,
                                            .weight_sum = 10,
                                            .folder = "",
                                            .uniform = 1,
                                            .uniform_exponent = 20}};
}

/* NULL: where all shards of the test are. `place` must outlive the bench. */
static inline void bench_init_at(struct bench *bench, struct message with,
                                 struct bench_place *place) {
    const struct shard_self self = {.host = "here",
                                    .description = "test",
                                    .proof = 9,
                                    .place = bench_find,
                                    .shares = bench_shares,
                                    .own_folder = bench_own_folder,
                                    .context = place};
    *bench = (struct bench){.shard = shard_new(&self)};
    outbox_init(&bench->out);
    tell(bench, COORDINATOR_LINK, hello());
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_WELCOME);
    tell(bench, REPLICA_LINK, greet());
    assert_answer(bench, 0, REPLICA_LINK, MESSAGE_GREETED);
    tell(bench, COORDINATOR_LINK, with);
}

static inline void bench_init(struct bench *bench, struct message with) {
    bench_init_at(bench, with, NULL);
}

static inline void bench_release(struct bench *bench) {
    shard_free(bench->shard);
    outbox_release(&bench->out);
}

static inline struct message program_message(uint64_t number, const struct bytes *program) {
    return (struct message){.type = MESSAGE_PROGRAM,
                            .program = {.attempt = 1,
                                        .number = number,
                                        .hash = program_hash(program->data, program->length),
                                        .operations = {program->data, (uint32_t)program->length}}};
}

/* Runs the operations as the next program. */
static inline void run_operations(struct bench *bench, const struct operation *operations,
                                  size_t count) {
    struct bytes program;
    bytes_init(&program);
    for (size_t i = 0; i < count; i++)
        program_add(&program, &operations[i]);
    tell(bench, COORDINATOR_LINK, program_message(++bench->number, &program));
    bytes_release(&program);
}

static inline void run_one(struct bench *bench, struct operation operation) {
    run_operations(bench, &operation, 1);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
}

static inline void begin_under(struct bench *bench, uint32_t evaluation,
                               const struct bounds *bounds) {
    run_one(bench, (struct operation){.code = OPERATION_BEGIN,
                                      .evaluation = evaluation,
                                      .sums = SUMS_PARAMETERS,
                                      .bounds = *bounds});
}

static inline void begin(struct bench *bench, uint32_t evaluation) {
    begin_under(bench, evaluation, &(struct bounds){.count = 1});
}

static inline struct flush_id flush(uint32_t evaluation, uint32_t sequence) {
    return (struct flush_id){1, evaluation, REPLICA_INCARNATION, sequence};
}

static inline struct message stage(struct flush_id id, const int64_t *slice, size_t count) {
    return (struct message){.type = MESSAGE_STAGE,
                            .stage = {.flush = id, .encoding = STAGE_DENSE, .entries = count},
                            .bulk = {.data = slice, .length = count * sizeof *slice}};
}

static inline struct message fold(struct flush_id id) {
    return (struct message){.type = MESSAGE_FOLD, .fold = {.flushes = listed_flushes(&id, 1)}};
}

static inline struct message drop(struct flush_id id) {
    return (struct message){.type = MESSAGE_DROP, .drop = {.flushes = listed_flushes(&id, 1)}};
}

/* Asks for the whole point. */
static inline struct message fetch_all(uint32_t evaluation) {
    return (struct message){.type = MESSAGE_FETCH,
                            .fetch = {.attempt = 1, .evaluation = evaluation, .count = ALL_OF_IT}};
}

/* What a register holds; valid until the next call. */
static inline const double *read_register(struct bench *bench, enum vector_register number,
                                          uint64_t first, uint64_t count) {
    tell(bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_READ,
                          .read = {.register_ = (uint8_t)number, .first = first, .count = count}});
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_SLICE);
    struct message slice = answer(bench, 0);
    assert_int_equal(slice.bulk.length, count * sizeof(double));
    return slice.bulk.data;
}

#endif
