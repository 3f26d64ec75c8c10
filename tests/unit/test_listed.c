/* Operations on listed parameters: what is listed, the step over it, and where it goes. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/lasso.h"
#include "shard/listed.h"
#include "shard/pass_plan.h"

enum { FEATURES = 9, ALL = FEATURES + 1 };

/* The registers of a shard with this part of nine weights and a bias. */
static void set_up(struct registers *registers, uint64_t first, uint64_t count) {
    static int16_t exponents[ALL];
    struct message message = setup(0, first, count);
    message.shard_setup.layout = layout_blob(FEATURES, 1, 1);
    message.shard_setup.hessian.precondition = PRECONDITION_LISTED;
    message.shard_setup.hessian.block_columns = FEATURES;
    for (size_t j = 0; j < ALL; j++)
        exponents[j] = (int16_t)(45 + j);
    *registers = (struct registers){0};
    assert_int_equal(registers_set_up(registers, &message.shard_setup), 0);
    assert_int_equal(registers_set_exponents(registers, 0, exponents, ALL), 0);
}

static void fill(struct registers *registers) {
    const double x[ALL] = {0, 0, 1, 0, 0, 0, -2, 0, 0, 0};
    const double g[ALL] = {0.6, -0.9, 0.1, 0.5, 0, 0.8, 0.4, -0.8, 0.2, 0.3};
    size_t first = (size_t)registers->first;
    for (size_t j = 0; j < registers->count; j++) {
        registers->vector[REGISTER_X].elements[j] = x[first + j];
        registers->vector[REGISTER_G].elements[j] = g[first + j];
    }
}

static void run_list(struct registers *registers, const struct operation *operation,
                     struct yield *yields, struct bytes *listed) {
    struct operation copy = *operation;
    const struct operation_list list = {.items = &copy, .count = 1};
    for (uint32_t i = 0; i < operation_scalars(operation); i++)
        exact_init(&yields[i].sum);
    assert_int_equal(
        listed_run(&list, registers, &(struct bounds){.count = 1, .exponent = {1}}, yields, listed),
        0);
}

static const struct operation list_all = {
    .code = OPERATION_LIST, .a = REGISTER_X, .b = REGISTER_G, .l1 = 0.5, .limit = 3};

/* The numbers that a shard lists, as bits. */
static unsigned listed_by(uint64_t first, uint64_t count, double *support, double *violators) {
    struct registers registers;
    struct yield yields[2];
    struct bytes listed;
    unsigned found = 0;
    bytes_init(&listed);
    set_up(&registers, first, count);
    fill(&registers);
    run_list(&registers, &list_all, yields, &listed);
    struct cursor cursor = cursor_over(listed.data, listed.length);
    uint32_t length = cursor_u32(&cursor);
    const void *list = cursor_take(&cursor, length * LISTED_BYTES);
    for (uint32_t i = 0; i < length; i++) {
        const struct listed at = listed_at(list, i);
        found |= 1u << at.number;
        assert_true(at.regularized == (at.number < FEATURES));
        assert_int_equal(at.exponent, 45 + (int)at.number);
        assert_true(at.mean == 0 && at.scale == 1 && at.penalty == 1 && listed_is_valid(&at));
    }
    *support += exact_value(&yields[0].sum);
    *violators += exact_value(&yields[1].sum);
    registers_release(&registers);
    bytes_release(&listed);
    return found;
}

static void what_is_not_zero_or_free_is_listed_and_the_worst_violators(void **state) {
    (void)state;
    double support = 0, violators = 0;
    unsigned all = listed_by(0, ALL, &support, &violators);
    assert_true(support == 3 && violators == 4); /* 0.5 does not exceed 0.5 */
    assert_int_equal(all, 1u << 2 | 1u << 6 | 1u << 9 | 1u << 1 | 1u << 5 | 1u << 7);
}

/* More may be listed then, among them all that one shard lists. */
static void shards_list_at_least_what_one_shard_does(void **state) {
    (void)state;
    for (uint64_t cut = 1; cut < ALL; cut++) {
        double support = 0, violators = 0, unused = 0;
        unsigned both = listed_by(0, cut, &support, &violators);
        both |= listed_by(cut, ALL - cut, &support, &violators);
        unsigned one = listed_by(0, ALL, &unused, &unused);
        assert_true(support == 3 && violators == 4 && (both & one) == one);
    }
}

/* A list makes the first rows of the triangle, and a shorter one fewer. */
static void sums_of_a_longer_list_leave_nothing_behind(void **state) {
    (void)state;
    struct registers registers;
    const int64_t values[] = {7, 7, 7, 7, 7, 7};
    const struct slice longer = {.entries = 6, .values = values},
                       shorter = {.entries = 3, .values = values};
    set_up(&registers, 0, ALL);
    size_t count = registers_sums(&registers, SUMS_TRIANGLE);
    assert_int_equal(registers.backend->fold(&registers, count, &longer, true), 0);
    assert_int_equal(registers.backend->fold(&registers, count, &shorter, true), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(registers.sum[i] == (i < 3 ? 7 : 0));
    assert_int_equal(registers_clear_sum(&registers, SUMS_TRIANGLE), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(registers.sum[i] == 0);
    registers_release(&registers);
}

/* ---- the step ---- */

/* Sums of H over the list under b = 1, and the list, of which the last is the bias. */
static void make_step(struct registers *registers, bool scaled, const double *h, struct bytes *list,
                      struct listed *items) {
    const uint64_t numbers[] = {1, 2, 6, 9};
    for (size_t i = 0; i < 4; i++) {
        uint64_t j = numbers[i];
        items[i] = (struct listed){.number = j,
                                   .regularized = j < FEATURES,
                                   .exponent = 45 + (int)j,
                                   .x = registers->vector[REGISTER_X].elements[j],
                                   .gradient = registers->vector[REGISTER_G].elements[j],
                                   .mean = scaled && i < 3 ? 0.25 * (double)i : 0,
                                   .scale = scaled && i < 3 ? 0.5 + (double)i : 1,
                                   .penalty = scaled && i < 3 ? 2 : 1,
                                   .square = i < 3 ? 0.5 : 0,
                                   .lasso = i == 3   ? 0
                                            : scaled ? sqrt(2)
                                                     : 1,
                                   .low = -INFINITY,
                                   .high = INFINITY,
                                   .excess = INFINITY};
        listed_put(list, &items[i]);
        for (size_t c = 0; c <= i; c++)
            registers->sum[i * (i + 1) / 2 + c] = llrint(ldexp(
                h[i * 4 + c] * registers->weight_sum, items[i].exponent + items[c].exponent - 63));
    }
}

static void the_step_is_the_minimum_over_the_sums(void **state) {
    (void)state;
    /* Multiples of what the sums can hold. */
    const double h[16] = {3,    1,    -0.5, 0.5,  1,   2,    0.25, 0.25,
                          -0.5, 0.25, 4,    0.75, 0.5, 0.25, 0.75, 1};
    struct registers registers;
    set_up(&registers, 0, ALL);
    fill(&registers);
    for (int scaled = 0; scaled < 2; scaled++) {
        struct bytes list;
        struct listed items[4];
        struct yield yields[4];
        double by_z[16], g[4], x[4], l1[4], v[4];
        bytes_init(&list);
        make_step(&registers, scaled, h, &list, items);
        /* Sums are whole numbers: H is what they are of. */
        double sums[16];
        for (size_t r = 0; r < 4; r++)
            for (size_t c = 0; c <= r; c++)
                sums[r * 4 + c] = sums[c * 4 + r] =
                    ldexp((double)registers.sum[r * (r + 1) / 2 + c],
                          63 - items[r].exponent - items[c].exponent) /
                    registers.weight_sum;
        for (size_t r = 0; r < 4; r++) {
            for (size_t c = 0; c < 4; c++) {
                double centred = sums[r * 4 + c] - items[r].mean * sums[12 + c] -
                                 items[c].mean * sums[12 + r] +
                                 items[r].mean * items[c].mean * sums[15];
                by_z[r * 4 + c] = items[r].scale * items[c].scale * centred;
            }
            by_z[r * 4 + r] += 0.1 * (r < 3 ? items[r].penalty : 0) + 0.01 * items[r].square;
            g[r] = items[r].gradient;
            x[r] = items[r].x;
            l1[r] = r < 3 ? 0.5 * sqrt(items[r].penalty) : 0;
        }
        lasso_solve(&(struct lasso){4, by_z, g, x, l1, NULL, NULL}, 1e-12, v);
        run_list(&registers,
                 &(struct operation){.code = OPERATION_SOLVE,
                                     .alpha = 0.1,
                                     .beta = 0.01,
                                     .l1 = 0.5,
                                     .listed = 4,
                                     .list = list.data},
                 yields, NULL);
        for (size_t i = 0; i < 4; i++)
            assert_true(fabs(exact_value(&yields[i].sum) - (v[i] - x[i])) < 1e-6);
        bytes_release(&list);
    }
    registers_release(&registers);
}

/* ---- several outputs ---- */

enum { OUTPUTS = 3, LISTED = 8 };

/* Five weights and three biases, in units of what the sums hold: H = Σ a·aᵀ over a few a, so that
 * biases together do not curve, as the margins of a softmax. */
static void make_outputs(struct registers *registers, double *h, struct listed *items,
                         struct bytes *list) {
    const uint64_t numbers[LISTED] = {1, 2, 9, 10, 11, 27, 28, 29};
    const double a[4][LISTED] = {{1, -1, 2, -1, -1, 1, -1, 0},
                                 {0, 2, -1, 0, 1, 0, 1, -1},
                                 {3, 0, 0, 1, -1, 1, 0, -1},
                                 {1, 1, 1, 1, -2, 0, 0, 0}};
    for (size_t i = 0; i < LISTED; i++) {
        bool weight = i < LISTED - OUTPUTS;
        items[i] = (struct listed){.number = numbers[i],
                                   .regularized = weight,
                                   .exponent = 45,
                                   .x = i % 2 ? 0.5 : 0,
                                   .gradient = weight ? 0.3 - 0.2 * (double)i : 0,
                                   .mean = weight ? 0.5 * (double)(i % 3) : 0,
                                   .scale = weight ? 1 + (double)(i / 2) : 1,
                                   .penalty = 1,
                                   .square = weight,
                                   .lasso = weight,
                                   .low = -INFINITY,
                                   .high = INFINITY,
                                   .excess = INFINITY};
        listed_put(list, &items[i]);
    }
    for (size_t r = 0; r < LISTED; r++)
        for (size_t c = 0; c < LISTED; c++) {
            h[r * LISTED + c] = 0;
            for (size_t i = 0; i < 4; i++)
                h[r * LISTED + c] += a[i][r] * a[i][c];
            if (c <= r)
                registers->sum[r * (r + 1) / 2 + c] =
                    llrint(ldexp(h[r * LISTED + c] * registers->weight_sum, 45 + 45 - 63));
        }
}

/* T of w = T z, with the biases of each weight's output. */
static void make_change(const struct listed *items, double *t) {
    for (size_t i = 0; i < LISTED * LISTED; i++)
        t[i] = 0;
    for (size_t i = 0; i < LISTED; i++)
        t[i * LISTED + i] = items[i].scale;
    for (size_t i = 0; i < LISTED - OUTPUTS; i++)
        t[(LISTED - OUTPUTS + items[i].number % OUTPUTS) * LISTED + i] =
            -items[i].scale * items[i].mean;
}

static void the_step_of_several_outputs_has_the_bias_of_each(void **state) {
    (void)state;
    static int16_t exponents[ALL] = {45, 45, 45, 45, 45, 45, 45, 45, 45, 45};
    struct message message = setup(0, 0, FEATURES * OUTPUTS + OUTPUTS);
    message.shard_setup.layout = layout_blob(FEATURES * OUTPUTS, OUTPUTS, OUTPUTS);
    message.shard_setup.hessian.precondition = PRECONDITION_LISTED;
    message.shard_setup.hessian.block_columns = LISTED - OUTPUTS;
    struct registers registers = {0};
    struct bytes list;
    struct listed items[LISTED];
    struct yield yields[LISTED];
    double h[LISTED * LISTED], t[LISTED * LISTED], by_z[LISTED * LISTED] = {0};
    double g[LISTED], x[LISTED], l1[LISTED], v[LISTED];
    bytes_init(&list);
    assert_int_equal(registers_set_up(&registers, &message.shard_setup), 0);
    assert_int_equal(registers_set_exponents(&registers, 0, exponents, ALL), 0);
    make_outputs(&registers, h, items, &list);
    make_change(items, t);
    for (size_t r = 0; r < LISTED; r++) {
        for (size_t c = 0; c < LISTED; c++)
            for (size_t i = 0; i < LISTED; i++)
                for (size_t j = 0; j < LISTED; j++)
                    by_z[r * LISTED + c] +=
                        t[i * LISTED + r] * h[i * LISTED + j] * t[j * LISTED + c];
        by_z[r * LISTED + r] += by_z[r * LISTED + r] * 1e-10 + 0.25 * items[r].square;
        g[r] = items[r].gradient;
        x[r] = items[r].x;
        l1[r] = items[r].regularized ? 0.125 : 0;
    }
    lasso_solve(&(struct lasso){LISTED, by_z, g, x, l1, NULL, NULL}, 1e-3, v);
    run_list(&registers,
             &(struct operation){.code = OPERATION_SOLVE,
                                 .beta = 0.25,
                                 .l1 = 0.125,
                                 .listed = LISTED,
                                 .list = list.data},
             yields, NULL);
    double moved = 0;
    for (size_t i = 0; i < LISTED; i++) {
        assert_true(fabs(exact_value(&yields[i].sum) - (v[i] - x[i])) < 1e-6);
        moved += fabs(v[i] - x[i]);
    }
    assert_true(moved > 0.01 && moved < 100);
    bytes_release(&list);
    registers_release(&registers);
}

static void values_are_scattered_and_all_else_is_zero(void **state) {
    (void)state;
    struct registers registers;
    struct bytes values;
    bytes_init(&values);
    value_put(&values, 2, 7); /* of another shard */
    value_put(&values, 5, -1.5);
    value_put(&values, 9, 3);
    set_up(&registers, 4, ALL - 4);
    double *d = registers.vector[REGISTER_D].elements;
    d[0] = d[3] = 8;
    run_list(&registers,
             &(struct operation){
                 .code = OPERATION_SCATTER, .a = REGISTER_D, .listed = 3, .list = values.data},
             NULL, NULL);
    for (size_t j = 4; j < ALL; j++)
        assert_true(d[j - 4] == (j == 5 ? -1.5 : j == 9 ? 3 : 0));
    registers_release(&registers);
    bytes_release(&values);
}

/* ---- refusals ---- */

static void lists_that_are_none_are_refused(void **state) {
    (void)state;
    struct bytes program, list;
    bytes_init(&program);
    bytes_init(&list);
    value_put(&list, 5, 1);
    value_put(&list, 5, 2);
    program_add(&program,
                &(struct operation){
                    .code = OPERATION_SCATTER, .a = REGISTER_D, .listed = 2, .list = list.data});
    assert_non_null(program_fault(program.data, program.length));
    bytes_clear(&program);
    struct operation endless = list_all;
    endless.limit = WORKING_SET_MAX + 1;
    program_add(&program, &endless);
    assert_non_null(program_fault(program.data, program.length));
    bytes_clear(&program);
    program_add(&program, &list_all);
    assert_null(program_fault(program.data, program.length));
    bytes_release(&program);
    bytes_release(&list);
}

static void a_shard_that_was_not_set_up_for_lists_refuses_them(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(20, 0, 20));
    run_operations(&bench, &list_all, 1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

/* The biases of three outputs, but for one: means of columns are taken out by all of them. */
static void a_step_over_some_of_the_biases_is_refused(void **state) {
    (void)state;
    struct message message = setup(0, 0, FEATURES * OUTPUTS + OUTPUTS);
    message.shard_setup.layout = layout_blob(FEATURES * OUTPUTS, OUTPUTS, OUTPUTS);
    message.shard_setup.hessian.precondition = PRECONDITION_LISTED;
    message.shard_setup.hessian.block_columns = LISTED - OUTPUTS;
    message.shard_setup.uniform = 0;
    struct registers registers = {0};
    struct bytes list;
    struct listed items[LISTED];
    struct bench bench;
    double h[LISTED * LISTED];
    static int16_t exponents[FEATURES + 1];
    static int64_t sums[LISTED * (LISTED + 1) / 2];
    bytes_init(&list);
    registers.sum = sums;
    registers.weight_sum = 1;
    make_outputs(&registers, h, items, &list);
    bench_init(&bench, message);
    tell(&bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_EXPONENTS,
                          .exponents = {1, 0, FEATURES + 1},
                          .bulk = {.data = exponents, .length = sizeof exponents}});
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    run_one(&bench, (struct operation){.code = OPERATION_BEGIN,
                                       .evaluation = 1,
                                       .sums = SUMS_TRIANGLE,
                                       .bounds = {.count = 1}});
    for (uint32_t lacking = 1; lacking < OUTPUTS; lacking++) {
        const struct operation solve = {
            .code = OPERATION_SOLVE, .listed = LISTED - lacking, .list = list.data};
        run_operations(&bench, &solve, 1);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        bench.number--;
    }
    run_one(&bench,
            (struct operation){.code = OPERATION_SOLVE, .listed = LISTED, .list = list.data});
    bench_release(&bench);
    bytes_release(&list);
}

SUITE(listed) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_zero_or_free_is_listed_and_the_worst_violators),
        cmocka_unit_test(shards_list_at_least_what_one_shard_does),
        cmocka_unit_test(sums_of_a_longer_list_leave_nothing_behind),
        cmocka_unit_test(the_step_is_the_minimum_over_the_sums),
        cmocka_unit_test(the_step_of_several_outputs_has_the_bias_of_each),
        cmocka_unit_test(values_are_scattered_and_all_else_is_zero),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(a_shard_that_was_not_set_up_for_lists_refuses_them),
        cmocka_unit_test(a_step_over_some_of_the_biases_is_refused),
    };
    return cmocka_run_group_tests_name("listed", tests, NULL, NULL);
}
