/* A shard with a preconditioner under test: a model of four parameters, sums of second derivatives
 * for it, and programs that make a preconditioner of them and apply it. */
#ifndef DML_TESTS_SHARD_FACTOR_H
#define DML_TESTS_SHARD_FACTOR_H

#include "tests/unit/shard_saving.h"

/* Three features and an intercept. The sums have b = 0 and, with exponents of 31 for all, no
 * exponent: H is the sums over the examples, of which there are 10. */
enum { N = 4, TRIANGLE = N * (N + 1) / 2 };

static const int16_t exponents[N] = {31, 31, 31, 31};
static const int64_t triangle[TRIANGLE] = {40, 10, 30, 0, 5, 20, 10, 0, 5, 50};
static const double matrix[N][N] = {{4, 1, 0, 1}, {1, 3, .5, 0}, {0, .5, 2, .5}, {1, 0, .5, 5}};

static inline struct message preconditioned(uint64_t first, uint64_t count) {
    struct message message = setup(0, first, count);
    message.shard_setup.layout = layout_blob(N - 1, 1, 1);
    message.shard_setup.hessian.precondition = PRECONDITION_FULL;
    message.shard_setup.hessian.block_columns = N - 1;
    return message;
}

static inline struct message all_exponents(uint32_t attempt) {
    return (struct message){.type = MESSAGE_EXPONENTS,
                            .exponents = {.attempt = attempt, .first = 0, .count = N},
                            .bulk = {.data = exponents, .length = sizeof exponents}};
}

static inline void bench_of_all(struct bench *bench) {
    bench_init(bench, preconditioned(0, N));
    assert_int_equal(bench->out.count, 0); /* the exponents are awaited, though they are uniform */
    tell(bench, COORDINATOR_LINK, all_exponents(1));
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static inline struct operation begin_triangle(uint32_t evaluation) {
    return (struct operation){.code = OPERATION_BEGIN,
                              .evaluation = evaluation,
                              .sums = SUMS_TRIANGLE,
                              .bounds.count = 1};
}

static inline struct operation factor_as(uint64_t serial) {
    return (struct operation){.code = OPERATION_FACTOR, .serial = serial};
}

static inline struct operation precondition(uint8_t a, uint8_t b, uint64_t serial) {
    return (struct operation){.code = OPERATION_PRECONDITION, .a = a, .b = b, .serial = serial};
}

static inline void add_up(struct bench *bench, uint32_t evaluation) {
    run_one(bench, begin_triangle(evaluation));
    tell(bench, REPLICA_LINK, stage(flush(evaluation, 1), triangle, TRIANGLE));
    assert_answer(bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(bench, COORDINATOR_LINK, fold(flush(evaluation, 1)));
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
}

/* The one maximum that the last program yielded. */
static inline double yielded(const struct bench *bench) {
    struct message result = answer(bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    double value = cursor_f64(&cursor);
    assert_int_equal(cursor_left(&cursor), 0);
    return value;
}

static inline void refresh(struct bench *bench, uint32_t evaluation, uint64_t serial) {
    add_up(bench, evaluation);
    run_one(bench, factor_as(serial));
    assert_true(yielded(bench) == 0);
}

static inline void put(struct bench *bench, enum vector_register number, const double *elements) {
    memcpy(bench->shard->registers.vector[number].elements, elements, N * sizeof *elements);
    bench_push(&bench->shard->registers, (uint8_t)number);
}

static inline void assert_refused_program(struct bench *bench, struct operation operation,
                                          const char *why) {
    run_operations(bench, &operation, 1);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    assert_non_null(strstr(answer(bench, 0).failed.reason, why));
    bench->number--;
}

#endif
