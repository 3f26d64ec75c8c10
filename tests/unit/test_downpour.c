/* Downpour: the order of minibatches, its stages, and the programs of its steps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "optimizer/downpour.h"
#include "wire/program.h"

#define BLOCK 64

static const double rates[] = {0.5, 0.25};
static const uint32_t multiples[] = {1, 3};
static const struct downpour_settings settings = {.epochs = 3,
                                                  .batch = 2 * BLOCK,
                                                  .seed = 1,
                                                  .rates = rates,
                                                  .rate_count = 2,
                                                  .multiples = multiples,
                                                  .multiple_count = 2};
static const struct optimizer_settings plain = {.memory = 1};

static struct optimizer_data data_of(uint64_t rows) {
    return (struct optimizer_data){.chunks = (uint32_t)((rows + BLOCK - 1) / BLOCK),
                                   .block_rows = BLOCK,
                                   .rows = rows,
                                   .weight_sum = (double)rows};
}

/* Steps with a loss of 1 a row. */
static void step(struct downpour *d) {
    struct bytes program;
    bytes_init(&program);
    struct evaluation_parts parts = downpour_parts(d);
    downpour_step(d, (double)downpour_rows(d, &parts), &program);
    assert_null(program_fault(program.data, program.length));
    bytes_release(&program);
}

/* ---- the order ---- */

/* One more of each chunk of the parts. */
static void hit(const struct evaluation_parts *parts, uint8_t *times) {
    for (uint32_t i = 0; i < parts->count; i++)
        for (uint32_t j = 0; j < parts->items[i].count; j++)
            times[parts->items[i].first + j]++;
}

static void run_an_epoch(struct downpour *d) {
    uint8_t *times = memory_new(d->data.chunks, 1);
    uint64_t rows = 0, epoch = d->epoch, steps = 0;
    while (d->epoch == epoch) {
        struct evaluation_parts parts = downpour_parts(d);
        struct part_list list = evaluation_list(&parts);
        assert_null(evaluation_fault(&list));
        hit(&parts, times);
        rows += downpour_rows(d, &parts);
        step(d);
        steps++;
    }
    for (uint32_t i = 0; i < d->data.chunks; i++)
        assert_int_equal(times[i], 1);
    assert_int_equal(rows, d->data.rows);
    assert_int_equal(d->rows, d->data.rows);
    assert_int_equal(steps, downpour_minibatches(d, epoch));
    free(times);
}

static void each_row_is_in_one_minibatch_of_an_epoch(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 7);
    for (unsigned i = 0; i < 300; i++) {
        struct downpour_settings s = settings;
        struct optimizer_data data = data_of(1 + random_below(&random, 3000));
        struct downpour d;
        s.batch = BLOCK * (uint32_t)(1 + random_below(&random, i % 2 ? 5 : 60));
        s.seed = i;
        downpour_init(&d, &s, &plain, &data);
        for (unsigned epoch = 0; epoch < 3; epoch++)
            run_an_epoch(&d);
        assert_int_equal(d.stage, DOWNPOUR_ENDED);
    }
}

/* By hand from the words of doc/FORMATS.md. */
static void the_order_is_the_one_that_is_documented(void **state) {
    (void)state;
    static const uint32_t expected[][4] = {{1, 2, 0, 0}, {3, 2, 0, 0}, {5, 2, 0, 0}, {7, 2, 0, 0},
                                           {0, 1, 9, 1}, {0, 4, 8, 2}, {4, 4, 0, 0}};
    struct optimizer_data data = data_of(10 * BLOCK - 1);
    struct downpour d;
    downpour_init(&d, &settings, &plain, &data);
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct evaluation_parts parts = downpour_parts(&d);
        uint32_t got[4] = {0};
        for (uint32_t j = 0; j < parts.count; j++) {
            got[2 * j] = parts.items[j].first;
            got[2 * j + 1] = parts.items[j].count;
        }
        assert_memory_equal(got, expected[i], sizeof got);
        step(&d);
    }
}

static void epochs_and_seeds_have_orders_of_their_own(void **state) {
    (void)state;
    struct optimizer_data data = data_of(1000 * BLOCK);
    struct downpour_settings other = settings;
    struct downpour d, e, f;
    uint32_t equal_seeds = 0, equal_epochs = 0;
    other.seed = 2;
    other.multiple_count = 1;
    downpour_init(&d, &other, &plain, &data);
    downpour_init(&e, &other, &plain, &data);
    downpour_init(&f, &settings, &plain, &data);
    e.epoch = 1;
    for (unsigned i = 0; i < 500; i++) {
        struct evaluation_parts one = downpour_parts(&d);
        struct evaluation_parts two = downpour_parts(&f);
        struct evaluation_parts three = downpour_parts(&e);
        equal_seeds += one.items[0].first == two.items[0].first;
        equal_epochs += one.items[0].first == three.items[0].first;
        d.minibatch++;
        e.minibatch++;
        f.minibatch++;
    }
    assert_true(equal_seeds < 10 && equal_epochs < 10);
}

static void lists_by_epoch_go_on_with_their_last_value(void **state) {
    (void)state;
    struct optimizer_data data = data_of(12 * BLOCK);
    struct downpour d;
    downpour_init(&d, &settings, &plain, &data);
    assert_int_equal(downpour_minibatches(&d, 0), 6);
    assert_int_equal(downpour_minibatches(&d, 1), 2);
    assert_int_equal(downpour_minibatches(&d, 9), 2);
    assert_true(downpour_rate(&d, 0) == 0.5);
    assert_true(downpour_rate(&d, 1) == 0.25);
    assert_true(downpour_rate(&d, 9) == 0.25);
}

/* ---- steps ---- */

static void a_step_is_one_program(void **state) {
    (void)state;
    static const enum operation_code expected[] = {OPERATION_GRADIENT, OPERATION_REGULARIZE,
                                                   OPERATION_ADAGRAD, OPERATION_ADD};
    struct optimizer_data data = data_of(3 * BLOCK);
    struct optimizer_settings penalties = {.memory = 1, .l1 = 0.125, .l2 = 0.5};
    struct operation operation;
    struct bytes program;
    struct downpour d;
    struct downpour_settings own = settings;
    own.weight_unit = 4;
    own.gradient_unit = 8;
    data.weight_sum = 96; /* half a row's on average */
    bytes_init(&program);
    downpour_init(&d, &own, &penalties, &data);
    downpour_step(&d, 1, &program);
    struct cursor cursor = cursor_over(program.data, program.length);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(program_next(&cursor, &operation));
        assert_int_equal(operation.code, expected[i]);
        if (operation.code == OPERATION_GRADIENT)
            assert_true(operation.alpha == (d.rows == 2 * BLOCK ? 64 : 32));
        if (operation.code == OPERATION_ADAGRAD)
            assert_true(operation.alpha == 4 * 0.5 && operation.l1 == 0.125 &&
                        operation.beta == 8 * DOWNPOUR_FLOOR_LEAST);
    }
    assert_false(program_next(&cursor, &operation));
    assert_int_equal(operation.a, REGISTER_T);
    bytes_release(&program);
}

/* With 1.5 a row: of two chunks, then in the second epoch of three times as many. */
static void a_minibatch_of_more_rows_has_a_lower_floor(void **state) {
    (void)state;
    struct downpour_settings floored = settings;
    struct optimizer_data data = data_of(6 * BLOCK);
    struct downpour d;
    floored.row_floor = 1.5;
    downpour_init(&d, &floored, &plain, &data);
    for (unsigned i = 0; i < 4; i++) {
        struct operation operation = {0};
        struct bytes program;
        bytes_init(&program);
        downpour_step(&d, 1, &program);
        struct cursor cursor = cursor_over(program.data, program.length);
        while (operation.code != OPERATION_ADAGRAD)
            assert_true(program_next(&cursor, &operation));
        assert_true(operation.beta == 1.5 / ((i < 3 ? 2 : 6) * BLOCK));
        bytes_release(&program);
    }
}

/* 128 rows, unless that makes too few steps. */
static void a_minibatch_by_itself_is_halved_until_an_epoch_has_its_steps(void **state) {
    (void)state;
    static const uint64_t rows[] = {38400, 38399, 19199, 9599, 4799, 100};
    static const uint32_t batch[] = {128, 64, 32, 16, 8, 8};
    struct downpour_settings own = settings;
    own.batch = 0;
    own.steps_least = 300;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct optimizer_data data = data_of(rows[i]);
        struct downpour d;
        downpour_init(&d, &own, &plain, &data);
        assert_int_equal(downpour_batch(&d), batch[i]);
        d.settings.batch = 640;
        assert_int_equal(downpour_batch(&d), 640);
    }
}

static void the_loss_of_an_epoch_is_the_mean_over_its_rows(void **state) {
    (void)state;
    struct optimizer_data data = data_of(5 * BLOCK - 7);
    struct downpour d;
    downpour_init(&d, &settings, &plain, &data);
    assert_true(isnan(downpour_loss(&d)));
    for (unsigned i = 0; i < 4; i++) {
        step(&d);
        assert_true(fabs(downpour_loss(&d) - 1) < 1e-15);
    }
    assert_int_equal(d.epoch, 2); /* of three minibatches, then of one */
}

/* ---- the holdout ---- */

static void measure(struct downpour *d, uint32_t patience, double loss) {
    struct bytes program;
    bytes_init(&program);
    assert_int_equal(d->stage, DOWNPOUR_HOLDOUT);
    d->patience = patience;
    downpour_measured(d, (struct held){loss, NAN}, &program);
    bytes_release(&program);
}

static void an_epoch_without_a_better_loss_ends_it(void **state) {
    (void)state;
    struct downpour_settings s = settings;
    struct optimizer_data data = data_of(BLOCK); /* a minibatch an epoch */
    struct downpour d;
    struct bytes program;
    s.epochs = 10;
    s.measures = true;
    bytes_init(&program);
    downpour_init(&d, &s, &plain, &data);
    static const double losses[] = {5, 4, 4.5, 3, 3.25, 3}; /* an equal one is not better */
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(d.stage, DOWNPOUR_MINIBATCH);
        step(&d);
        measure(&d, 2, losses[i]);
    }
    assert_int_equal(d.stage, DOWNPOUR_ENDED);
    assert_true(downpour_stopped_early(&d));
    assert_int_equal(d.best_epoch, 4);
    downpour_finish(&d, &program);
    assert_true(program.length > 0 && d.at_best);
    bytes_release(&program);
}

static void without_patience_all_epochs_are_made(void **state) {
    (void)state;
    struct downpour_settings s = settings;
    struct optimizer_data data = data_of(BLOCK);
    struct downpour d;
    struct bytes program;
    s.measures = true;
    bytes_init(&program);
    downpour_init(&d, &s, &plain, &data);
    for (unsigned i = 0; i < 3; i++) {
        step(&d);
        measure(&d, 0, 1 + i);
    }
    assert_int_equal(d.stage, DOWNPOUR_ENDED);
    assert_false(downpour_stopped_early(&d));
    downpour_finish(&d, &program);
    assert_int_equal(program.length, 0);
    bytes_release(&program);
}

/* Registers as names, as programs with SWAP and ADD leave them. */
static void run_names(const struct bytes *program, int *x, int *t, int *best) {
    struct cursor cursor = cursor_over(program->data, program->length);
    struct operation operation;
    while (program_next(&cursor, &operation))
        if (operation.code == OPERATION_SWAP) {
            int kept = *x;
            *x = *best;
            *best = kept;
        }
    cursor = cursor_over(program->data, program->length);
    while (program_next(&cursor, &operation))
        if (operation.code == OPERATION_ADD && operation.a == REGISTER_T)
            *t = *x;
        else if (operation.code == OPERATION_ADD)
            *x = *t;
}

static void one_that_ended_goes_on_from_its_last_step_if_more_epochs_are_allowed(void **state) {
    (void)state;
    struct downpour_settings s = settings;
    struct optimizer_data data = data_of(BLOCK);
    struct bytes program;
    struct downpour d;
    int x = 2, t = 2, best = 1; /* after epoch 2, the first of which was better */
    s.epochs = 2;
    s.measures = true;
    bytes_init(&program);
    downpour_init(&d, &s, &plain, &data);
    for (unsigned i = 0; i < 2; i++) {
        step(&d);
        measure(&d, 5, 1 + i);
    }
    downpour_finish(&d, &program);
    run_names(&program, &x, &t, &best);
    assert_true(x == 1 && t == 1 && best == 2);
    d.closing = true;
    bytes_clear(&program);
    downpour_take_up(&d, &program);
    downpour_finish(&d, &program); /* nothing more is allowed: the same end */
    run_names(&program, &x, &t, &best);
    assert_true(x == 1 && t == 1 && best == 2 && d.stage == DOWNPOUR_ENDED);
    d.settings.epochs = 3;
    bytes_clear(&program);
    downpour_take_up(&d, &program);
    run_names(&program, &x, &t, &best);
    assert_true(x == 2 && t == 2 && best == 1 && d.stage == DOWNPOUR_MINIBATCH && !d.closing);
    bytes_release(&program);
}

static void one_that_was_stopped_in_an_epoch_goes_on_in_it(void **state) {
    (void)state;
    struct downpour_settings s = settings;
    struct optimizer_data data = data_of(8 * BLOCK);
    struct bytes program;
    struct downpour d;
    int x = 2, t = 2, best = 1; /* in epoch 2 */
    s.epochs = 2;
    s.measures = true;
    bytes_init(&program);
    downpour_init(&d, &s, &plain, &data);
    while (d.stage == DOWNPOUR_MINIBATCH)
        step(&d);
    measure(&d, 5, 1);
    step(&d);
    downpour_finish(&d, &program);
    run_names(&program, &x, &t, &best);
    assert_true(x == 1 && t == 1 && best == 2);
    bytes_clear(&program);
    downpour_take_up(&d, &program);
    run_names(&program, &x, &t, &best);
    assert_true(x == 2 && t == 2 && best == 1);
    assert_true(d.stage == DOWNPOUR_MINIBATCH && d.epoch == 1 && d.minibatch == 1);
    bytes_release(&program);
}

static void one_that_was_stopped_between_epochs_makes_no_more_than_are_allowed_now(void **state) {
    (void)state;
    struct downpour_settings s = settings;
    struct optimizer_data data = data_of(BLOCK);
    struct bytes program;
    struct downpour d;
    bytes_init(&program);
    downpour_init(&d, &s, &plain, &data);
    step(&d);
    step(&d);
    d.settings.epochs = 2;
    downpour_take_up(&d, &program);
    assert_int_equal(d.stage, DOWNPOUR_ENDED);
    bytes_release(&program);
}

SUITE(downpour) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_in_one_minibatch_of_an_epoch),
        cmocka_unit_test(the_order_is_the_one_that_is_documented),
        cmocka_unit_test(epochs_and_seeds_have_orders_of_their_own),
        cmocka_unit_test(lists_by_epoch_go_on_with_their_last_value),
        cmocka_unit_test(a_step_is_one_program),
        cmocka_unit_test(a_minibatch_of_more_rows_has_a_lower_floor),
        cmocka_unit_test(a_minibatch_by_itself_is_halved_until_an_epoch_has_its_steps),
        cmocka_unit_test(the_loss_of_an_epoch_is_the_mean_over_its_rows),
        cmocka_unit_test(an_epoch_without_a_better_loss_ends_it),
        cmocka_unit_test(without_patience_all_epochs_are_made),
        cmocka_unit_test(one_that_ended_goes_on_from_its_last_step_if_more_epochs_are_allowed),
        cmocka_unit_test(one_that_was_stopped_in_an_epoch_goes_on_in_it),
        cmocka_unit_test(one_that_was_stopped_between_epochs_makes_no_more_than_are_allowed_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
