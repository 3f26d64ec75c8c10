/* Checkpoints of a shard with a preconditioner. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_factor.h"

#include <math.h>

/* A process for the folder of `saved`, with a preconditioner over a range of the model. */
static void start_with(struct saved *saved, uint32_t attempt, uint64_t first, uint64_t count) {
    struct message message = preconditioned(first, count);
    message.shard_setup.attempt = attempt;
    message.shard_setup.folder = saved->folder;
    bench_init(&saved->bench, message);
    if (count)
        tell(&saved->bench, COORDINATOR_LINK, all_exponents(attempt));
    carry_out(&saved->bench, &files_disk);
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static void begin_attempt(struct saved *saved, uint32_t attempt) {
    struct message message = preconditioned(0, N);
    message.shard_setup.attempt = attempt;
    message.shard_setup.folder = saved->folder;
    order(&saved->bench, message);
    order(&saved->bench, all_exponents(attempt));
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    saved->bench.number = 0;
}

static void begin_saving(struct saved *saved, uint64_t step, uint64_t factor) {
    order(&saved->bench,
          (struct message){.type = MESSAGE_CHECKPOINT,
                           .checkpoint = {.attempt = 1, .step = step, .factor = factor}});
}

static uint64_t save_with(struct saved *saved, uint64_t step, uint64_t factor) {
    begin_saving(saved, step, factor);
    finish_writing(&saved->bench, &files_disk);
    return assert_checkpointed(&saved->bench);
}

static const double probe[N] = {1, -2, 3, 4};

/* P·probe, and the program that finds it is of `attempt`. */
static void apply(struct saved *saved, uint64_t serial, double *found) {
    put(&saved->bench, REGISTER_D, probe);
    struct operation operation = precondition(REGISTER_PH, REGISTER_D, serial);
    struct bytes program;
    bytes_init(&program);
    program_add(&program, &operation);
    struct message message = program_message(++saved->bench.number, &program);
    message.program.attempt = saved->bench.shard->attempt;
    tell(&saved->bench, COORDINATOR_LINK, message);
    bytes_release(&program);
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    memcpy(found, read_register(&saved->bench, REGISTER_PH, 0, N), N * sizeof *found);
}

/* The serial number of the preconditioner in force. */
static uint64_t serial_now(const struct saved *saved) {
    return registers_factor_serial(&saved->bench.shard->registers);
}

static void refresh_with(struct saved *saved, uint32_t evaluation, uint64_t serial, double lambda) {
    struct operation operation = factor_as(serial);
    operation.alpha = lambda;
    add_up(&saved->bench, evaluation);
    run_one(&saved->bench, operation);
}

static void saved_with(struct saved *saved) {
    *saved = (struct saved){0};
    random_init(&saved->random, 1);
    folder_new(saved);
    start_with(saved, 1, 0, N);
}

static void a_restored_preconditioner_has_the_same_bits(void **state) {
    (void)state;
    struct saved saved;
    double before[N], after[N];
    saved_with(&saved);
    refresh_with(&saved, 1, 9, 0.1);
    apply(&saved, 9, before);
    uint64_t digest = save_with(&saved, 5, 9);
    bench_release(&saved.bench);
    start_with(&saved, 2, 0, N);
    assert_int_equal(serial_now(&saved), 0);
    assert_int_equal(restore(&saved, 2, 5, digest).status, 0);
    apply(&saved, 9, after);
    assert_memory_equal(before, after, sizeof before);
    saved_release(&saved);
}

static void going_back_brings_the_preconditioner_of_the_step_or_none(void **state) {
    (void)state;
    struct saved saved;
    double first[N], second[N], again[N];
    saved_with(&saved);
    uint64_t none = save_with(&saved, 1, 0);
    refresh_with(&saved, 1, 1, 0.1);
    apply(&saved, 1, first);
    uint64_t one = save_with(&saved, 2, 1);
    refresh_with(&saved, 2, 2, 0.2);
    apply(&saved, 2, second);
    assert_memory_not_equal(first, second, sizeof first);
    begin_attempt(&saved, 2);
    assert_int_equal(restore(&saved, 2, 2, one).status, 0);
    apply(&saved, 1, again);
    assert_memory_equal(first, again, sizeof first);
    begin_attempt(&saved, 3);
    assert_int_equal(restore(&saved, 3, 2, one).status, 0);
    assert_int_equal(restore(&saved, 3, 1, none).status, 0); /* another shard could not */
    assert_int_equal(serial_now(&saved), 0);
    saved_release(&saved);
}

static void one_that_is_being_written_stays_as_it_is(void **state) {
    (void)state;
    struct saved saved;
    double before[N], after[N];
    saved_with(&saved);
    refresh_with(&saved, 1, 1, 0.1);
    apply(&saved, 1, before);
    begin_saving(&saved, 4, 1);
    refresh_with(&saved, 2, 2, 0.7); /* it does not wait */
    finish_writing(&saved.bench, &files_disk);
    uint64_t digest = assert_checkpointed(&saved.bench);
    apply(&saved, 2, after);
    begin_attempt(&saved, 2);
    assert_int_equal(restore(&saved, 2, 4, digest).status, 0);
    apply(&saved, 1, after);
    assert_memory_equal(before, after, sizeof before);
    saved_release(&saved);
}

static void a_checkpoint_of_another_one_is_refused(void **state) {
    (void)state;
    struct saved saved;
    saved_with(&saved);
    refresh_with(&saved, 1, 1, 0);
    begin_saving(&saved, 4, 2);
    assert_answer(&saved.bench, 0, COORDINATOR_LINK, MESSAGE_CHECKPOINTED);
    assert_non_null(strstr(answer(&saved.bench, 0).checkpointed.reason, "but this shard has 1"));
    assert_false(is_there(&saved, "step-4"));
    saved_release(&saved);
}

/* While the coordinator goes without it, or is about to have another one. */
static void one_that_is_not_asked_for_is_not_saved(void **state) {
    (void)state;
    struct saved saved;
    saved_with(&saved);
    refresh_with(&saved, 1, 1, 0);
    uint64_t digest = save_with(&saved, 4, 0);
    assert_int_equal(size_of(&saved, "step-4"), 256 + 2 * N * sizeof(double));
    assert_int_equal(serial_now(&saved), 1);
    begin_attempt(&saved, 2);
    assert_int_equal(restore(&saved, 2, 4, digest).status, 0);
    assert_int_equal(serial_now(&saved), 0);
    saved_release(&saved);
}

static void a_flipped_bit_of_it_is_found_and_leaves_none(void **state) {
    (void)state;
    struct saved saved;
    saved_with(&saved);
    refresh_with(&saved, 1, 1, 0.1);
    uint64_t digest = save_with(&saved, 3, 1);
    size_t begin = 256 + 2 * N * sizeof(double), end = size_of(&saved, "step-3");
    assert_int_equal(end - begin, (8 + 8 + N * 8) * sizeof(double)); /* numbers, roots, rows */
    bench_release(&saved.bench);
    start_with(&saved, 2, 0, N);
    for (size_t offset = begin; offset < end; offset += 7) {
        flip(&saved, "step-3", offset);
        assert_refused(&saved, 3, digest, 65, "step-3", "damaged");
        assert_int_equal(serial_now(&saved), 0);
        flip(&saved, "step-3", offset);
    }
    assert_int_equal(restore(&saved, 2, 3, digest).status, 0);
    assert_int_equal(serial_now(&saved), 1);
    saved_release(&saved);
}

static void a_shard_without_one_does_not_restore_one(void **state) {
    (void)state;
    struct saved saved;
    saved_with(&saved);
    refresh_with(&saved, 1, 1, 0.1);
    uint64_t digest = save_with(&saved, 3, 1);
    bench_release(&saved.bench);
    struct message message = preconditioned(0, N);
    message.shard_setup.attempt = 2;
    message.shard_setup.hessian.precondition = PRECONDITION_NONE;
    message.shard_setup.folder = saved.folder;
    bench_init(&saved.bench, message);
    carry_out(&saved.bench, &files_disk);
    assert_refused(&saved, 3, digest, 65, "step-3", "holds a preconditioner");
    saved_release(&saved);
}

static void a_shard_without_parameters_keeps_its_serial_number(void **state) {
    (void)state;
    struct saved saved = {0};
    folder_new(&saved);
    start_with(&saved, 1, N, 0);
    run_one(&saved.bench, begin_triangle(1));
    run_one(&saved.bench, factor_as(8));
    uint64_t digest = save_with(&saved, 2, 8);
    bench_release(&saved.bench);
    start_with(&saved, 2, N, 0);
    assert_int_equal(restore(&saved, 2, 2, digest).status, 0);
    assert_int_equal(serial_now(&saved), 8);
    saved_release(&saved);
}

SUITE(checkpoint_factor) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_preconditioner_has_the_same_bits),
        cmocka_unit_test(going_back_brings_the_preconditioner_of_the_step_or_none),
        cmocka_unit_test(one_that_is_being_written_stays_as_it_is),
        cmocka_unit_test(a_checkpoint_of_another_one_is_refused),
        cmocka_unit_test(one_that_is_not_asked_for_is_not_saved),
        cmocka_unit_test(a_flipped_bit_of_it_is_found_and_leaves_none),
        cmocka_unit_test(a_shard_without_one_does_not_restore_one),
        cmocka_unit_test(a_shard_without_parameters_keeps_its_serial_number),
    };
    return cmocka_run_group_tests_name("checkpoint_factor", tests, NULL, NULL);
}
