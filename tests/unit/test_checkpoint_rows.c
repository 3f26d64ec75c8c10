/* Margins of rows and directions of the window in checkpoints. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_saving.h"

#include "base/error.h"

enum {
    ALL_ROWS = 9 * ROW_BLOCK + 5,
    OUTPUTS = 2,
    WINDOW = 3,       /* directions in use */
    ALL = WINDOW + 2, /* slots */
    NUMBERS_MOST = ALL_ROWS * OUTPUTS,
};

/* What a step leaves of the window and of the rows: as struct point. */
struct window {
    uint64_t step;
    uint32_t count;
    uint64_t slots[WINDOW], serials[WINDOW];
    size_t numbers;
    float directions[ALL][ELEMENTS];
    float products[ALL][NUMBERS_MOST];
    double margins[NUMBERS_MOST];
};

static struct message setup_rows(const char *folder, uint32_t attempt) {
    struct message message = setup_saving(folder, attempt);
    struct message_shard_setup *body = &message.shard_setup;
    body->rows.directions = WINDOW;
    body->rows.total = ALL_ROWS;
    body->rows.outputs = OUTPUTS;
    body->rows.objective = "softmax";
    body->rows.loss = loss_blob();
    return message;
}

static void begin_attempt(struct saved *saved, uint32_t attempt) {
    order(&saved->bench, setup_rows(saved->folder, attempt));
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static void saved_rows(struct saved *saved) {
    saved_init(saved);
    begin_attempt(saved, 2);
}

/* Another process for the folder, which is in `attempt`. */
static void restart_rows(struct saved *saved, uint32_t attempt) {
    bench_release(&saved->bench);
    start_shard(saved, 1);
    begin_attempt(saved, attempt);
}

static void run_in(struct saved *saved, uint32_t attempt, struct operation operation) {
    struct bytes program;
    bytes_init(&program);
    program_add(&program, &operation);
    struct message message = program_message(saved->bench.shard->last.number + 1, &program);
    message.program.attempt = attempt;
    tell(&saved->bench, COORDINATOR_LINK, message);
    bytes_release(&program);
}

static uint32_t slot_in_window(uint64_t step) {
    return (uint32_t)(step % ALL);
}

static struct operation keep(uint64_t step) {
    return (struct operation){
        .code = OPERATION_KEEP, .a = REGISTER_D, .slot = slot_in_window(step)};
}

static void randomize_numbers(struct saved *saved, double *numbers) {
    for (size_t i = 0; i < rows_numbers(&registers_of(saved)->rows); i++)
        numbers[i] = random_unit(&saved->random) - 0.5;
}

/* The next step: a direction in the slot whose turn it is, its margins, and those of the point. */
static void take_direction(struct saved *saved, uint32_t attempt) {
    struct row_vectors *rows = &registers_of(saved)->rows;
    saved->step++;
    randomize(saved, REGISTER_D);
    run_in(saved, attempt, keep(saved->step));
    assert_answer(&saved->bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    randomize_numbers(saved, rows->margins);
    for (size_t i = 0; i < rows_numbers(rows); i++)
        history_round(HISTORY_FLOAT, 1, rows_product(rows, slot_in_window(saved->step), i),
                      &rows->margins[i]);
    randomize_numbers(saved, rows->margins);
}

static struct window *window_now(struct saved *saved) {
    struct window *window = memory_new(1, sizeof *window);
    struct registers *registers = registers_of(saved);
    size_t bytes = rows_numbers(&registers->rows) * sizeof(double);
    bench_pull(registers);
    window->step = saved->step;
    window->numbers = rows_numbers(&registers->rows);
    assert_true(window->numbers > ROW_BLOCK && window->numbers < NUMBERS_MOST);
    window->count = saved->step < WINDOW ? (uint32_t)saved->step : WINDOW;
    memcpy(window->margins, registers->rows.margins, bytes);
    for (uint32_t i = 0; i < window->count; i++) {
        uint64_t serial = saved->step - window->count + 1 + i;
        uint32_t slot = slot_in_window(serial);
        window->serials[i] = serial;
        window->slots[i] = slot;
        memcpy(window->directions[slot], registers_direction(registers, slot),
               sizeof *window->directions);
        memcpy(window->products[slot], rows_product(&registers->rows, slot, 0),
               window->numbers * sizeof(float));
    }
    return window;
}

static struct message checkpoint_of_window(const struct window *window, uint32_t attempt) {
    return (struct message){.type = MESSAGE_CHECKPOINT,
                            .checkpoint = {.attempt = attempt,
                                           .step = window->step,
                                           .window = {window->slots, window->count},
                                           .window_serials = {window->serials, window->count},
                                           .margins = 1}};
}

static struct window *begin_window(struct saved *saved, uint32_t attempt) {
    struct window *window = window_now(saved);
    order(&saved->bench, checkpoint_of_window(window, attempt));
    assert_int_equal(saved->bench.out.count, 0);
    return window;
}

static struct window *save_window(struct saved *saved, uint32_t attempt, uint64_t *digest) {
    struct window *window = begin_window(saved, attempt);
    finish_writing(&saved->bench, &files_disk);
    *digest = assert_checkpointed(&saved->bench);
    return window;
}

static void assert_brings_back(struct saved *saved, uint32_t attempt, const struct window *window,
                               uint64_t digest) {
    struct message_restored restored = restore(saved, attempt, window->step, digest);
    struct registers *registers = registers_of(saved);
    size_t bytes = window->numbers * sizeof(double);
    assert_string_equal(restored.reason, "");
    bench_pull(registers);
    assert_memory_equal(window->margins, registers->rows.margins, bytes);
    for (uint32_t i = 0; i < window->count; i++) {
        uint32_t slot = (uint32_t)window->slots[i];
        assert_memory_equal(window->directions[slot], registers_direction(registers, slot),
                            sizeof *window->directions);
        assert_memory_equal(window->products[slot], rows_product(&registers->rows, slot, 0),
                            window->numbers * sizeof(float));
    }
}

/* ---- tests ---- */

static void directions_and_margins_come_back_after_slots_were_used_again(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digests[4];
    struct window *windows[4];
    saved_rows(&saved);
    for (size_t i = 0; i < 4; i++) { /* after steps 2, 4, 6, 8 of 5 slots */
        take_direction(&saved, 2);
        take_direction(&saved, 2);
        windows[i] = save_window(&saved, 2, &digests[i]);
    }
    take_direction(&saved, 2);
    for (uint32_t i = 0; i < 4; i++) {
        restart_rows(&saved, 3 + i);
        assert_brings_back(&saved, 3 + i, windows[i], digests[i]);
        free(windows[i]);
    }
    saved_release(&saved);
}

static void only_directions_that_no_earlier_file_holds_are_written(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_rows(&saved);
    for (int i = 0; i < WINDOW; i++)
        take_direction(&saved, 2);
    struct window *window = save_window(&saved, 2, &digest);
    size_t points = 384 + (2 * ELEMENTS + window->numbers) * sizeof(double);
    size_t direction = (ELEMENTS + window->numbers) * sizeof(float);
    assert_int_equal(size_of(&saved, "step-3"), points + WINDOW * direction);
    free(window);
    take_direction(&saved, 2);
    free(save_window(&saved, 2, &digest));
    assert_int_equal(size_of(&saved, "step-4"), points + direction);
    saved_release(&saved);
}

static void a_file_stays_as_long_as_its_directions_are_needed(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_rows(&saved);
    for (int i = 0; i < WINDOW; i++) {
        take_direction(&saved, 2);
        free(save_window(&saved, 2, &digest));
    }
    retain(&saved, 0, 3);
    assert_true(is_there(&saved, "step-1") && is_there(&saved, "step-2"));
    take_direction(&saved, 2);
    struct window *last = save_window(&saved, 2, &digest);
    retain(&saved, 0, 4);
    assert_false(is_there(&saved, "step-1"));
    assert_true(is_there(&saved, "step-2"));
    restart_rows(&saved, 3);
    assert_brings_back(&saved, 3, last, digest);
    free(last);
    saved_release(&saved);
}

/* By a program in attempt 2, with sums of rows to be taken. */
static void assert_waits(struct saved *saved, struct operation operation, bool waits) {
    run_in(saved, 2, operation);
    assert_int_equal(saved->bench.out.count, waits ? 0 : 1);
}

static void programs_wait_only_while_the_slot_they_write_is_read(void **state) {
    (void)state;
    const struct operation begin = {
        .code = OPERATION_BEGIN, .evaluation = 1, .sums = SUMS_ROWS, .bounds = {.count = 1}};
    for (int takes = 0; takes < 2; takes++) {
        struct saved saved;
        uint64_t digest;
        saved_rows(&saved);
        for (int i = 0; i < 2; i++)
            take_direction(&saved, 2);
        free(save_window(&saved, 2, &digest));
        take_direction(&saved, 2);
        run_in(&saved, 2, begin);
        struct window *window = begin_window(&saved, 2);
        struct operation operation = {.code = OPERATION_ROWS_TAKE, .vector = ROWS_MARGINS};
        assert_waits(&saved, operation, false); /* they were copied */
        operation.vector = ROWS_PRODUCT;
        operation.slot = slot_in_window(2); /* in the earlier file */
        assert_waits(&saved, operation, false);
        operation.slot = slot_in_window(3);
        assert_waits(&saved, takes ? operation : keep(3), true);
        finish_writing(&saved.bench, &files_disk);
        digest = assert_checkpointed(&saved.bench);
        assert_answer(&saved.bench, 1, COORDINATOR_LINK, MESSAGE_RESULT);
        restart_rows(&saved, 3);
        assert_brings_back(&saved, 3, window, digest);
        free(window);
        saved_release(&saved);
    }
}

static void flipped_bits_of_rows_are_found(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_rows(&saved);
    take_direction(&saved, 2);
    struct window *window = save_window(&saved, 2, &digest);
    const size_t end = size_of(&saved, "step-1");
    const size_t begin = 256 + 2 * ELEMENTS * sizeof(double);
    assert_true(begin < end);
    restart_rows(&saved, 3);
    for (size_t i = 0; i < 20; i++) {
        size_t offset = begin + random_below(&saved.random, end - begin);
        flip(&saved, "step-1", offset);
        assert_refused(&saved, 1, digest, 65, "step-1", "damaged");
        flip(&saved, "step-1", offset);
    }
    assert_brings_back(&saved, 3, window, digest);
    free(window);
    saved_release(&saved);
}

static void a_shard_with_other_rows_or_none_does_not_restore_them(void **state) {
    (void)state;
    struct saved saved;
    uint64_t digest;
    saved_rows(&saved);
    take_direction(&saved, 2);
    free(save_window(&saved, 2, &digest));
    order(&saved.bench, setup_saving(saved.folder, 3));
    assert_refused(&saved, 1, digest, 65, "step-1", "vectors of rows");
    struct message others = setup_rows(saved.folder, 4);
    others.shard_setup.rows.total += 9 * ROW_BLOCK;
    order(&saved.bench, others);
    assert_refused(&saved, 1, digest, 65, "step-1", "vectors of rows");
    saved_release(&saved);
}

static void a_checkpoint_of_rows_that_are_not_there_is_refused(void **state) {
    (void)state;
    const uint64_t beyond = ALL, serial = 1;
    struct saved saved;
    saved_init(&saved);
    struct message margins = {.type = MESSAGE_CHECKPOINT,
                              .checkpoint = {.attempt = 1, .step = 1, .margins = 1}};
    order(&saved.bench, margins);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, -ERROR_INTERNAL);
    begin_attempt(&saved, 2);
    struct message window = {
        .type = MESSAGE_CHECKPOINT,
        .checkpoint = {
            .attempt = 2, .step = 1, .window = {&beyond, 1}, .window_serials = {&serial, 1}}};
    order(&saved.bench, window);
    assert_int_equal(answer(&saved.bench, 0).checkpointed.status, -ERROR_INTERNAL);
    saved_release(&saved);
}

SUITE(checkpoint_rows) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directions_and_margins_come_back_after_slots_were_used_again),
        cmocka_unit_test(only_directions_that_no_earlier_file_holds_are_written),
        cmocka_unit_test(a_file_stays_as_long_as_its_directions_are_needed),
        cmocka_unit_test(programs_wait_only_while_the_slot_they_write_is_read),
        cmocka_unit_test(flipped_bits_of_rows_are_found),
        cmocka_unit_test(a_shard_with_other_rows_or_none_does_not_restore_them),
        cmocka_unit_test(a_checkpoint_of_rows_that_are_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
