#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

#include <math.h>

enum { N = 100 };

static void hello_is_refused_for_old_terms_other_runs_and_other_versions(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    struct message message = hello();
    message.term = TERM - 1;
    tell(&bench, 9, message);
    assert_answer(&bench, 0, 9, MESSAGE_REFUSED);
    message = hello();
    message.hello.run = "another";
    tell(&bench, 9, message);
    assert_answer(&bench, 0, 9, MESSAGE_REFUSED);
    message = hello();
    message.hello.protocol++;
    tell(&bench, 9, message);
    assert_answer(&bench, 0, 9, MESSAGE_REFUSED);
    message = hello();
    message.hello.role = ROLE_REPLICA;
    tell(&bench, 9, message);
    assert_answer(&bench, 0, 9, MESSAGE_REFUSED);
    message = hello();
    message.term = TERM + 1;
    tell(&bench, 9, message);
    assert_answer(&bench, 0, 9, MESSAGE_WELCOME);
    assert_int_equal(answer(&bench, 0).welcome.proof, 9);
    assert_int_equal(answer(&bench, 0).term, TERM + 1);
    tell(&bench, COORDINATOR_LINK, setup(N, 0, N)); /* fenced out */
    assert_int_equal(bench.out.count, 0);
    assert_int_equal(shard_counters(bench.shard)->old_term, 1);
    bench_release(&bench);
}

/* Else the next coordinator would take it for another process, and go back for it. */
static void a_shard_says_since_which_term_it_is_its_incarnation(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    struct message again = hello();
    again.term = TERM + 1;
    tell(&bench, 9, again);
    assert_int_equal(answer(&bench, 0).welcome.since, TERM);
    again.term = TERM + 2;
    again.hello.incarnation++;
    tell(&bench, 10, again);
    assert_int_equal(answer(&bench, 0).welcome.since, TERM + 2);
    bench_release(&bench);
}

/* It has nothing that a run could go on from. */
static void a_shard_that_is_not_set_up_completely_holds_no_attempt(void **state) {
    (void)state;
    struct bench bench;
    struct message half = setup(N, 0, N);
    half.shard_setup.uniform = 0; /* so EXPONENTS must follow */
    bench_init(&bench, half);
    assert_int_equal(bench.out.count, 0);
    tell(&bench, 9, hello());
    assert_answer(&bench, 1, 9, MESSAGE_HOLDING);
    assert_int_equal(answer(&bench, 1).holding.attempt, 0);
    bench_release(&bench);
    bench_init(&bench, setup(N, 0, N));
    tell(&bench, 9, hello());
    assert_int_equal(answer(&bench, 1).holding.attempt, 1);
    bench_release(&bench);
}

static void only_the_coordinator_and_greeted_replicas_are_heard(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    tell(&bench, REPLICA_LINK, setup(N, 0, N));
    assert_int_equal(bench.out.count, 0);
    begin(&bench, 1);
    struct message fetch = fetch_all(1);
    tell(&bench, 17, fetch);
    assert_int_equal(bench.out.count, 0);
    shard_peer_gone(bench.shard, REPLICA_LINK);
    tell(&bench, REPLICA_LINK, fetch);
    assert_int_equal(bench.out.count, 0);
    assert_int_equal(shard_counters(bench.shard)->stranger, 3);
    struct message other = greet();
    other.greet.run = "another";
    tell(&bench, 18, other);
    assert_answer(&bench, 0, 18, MESSAGE_REFUSED);
    bench_release(&bench);
}

static void replicas_are_known_by_their_links_in_whatever_order_they_come_and_go(void **state) {
    (void)state;
    const uint32_t links[] = {19, 4, 12, 30, 5, 7}, gone = 12;
    struct bench bench;
    bench_init(&bench, setup(10, 0, 10));
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct message greeting = greet();
        greeting.greet.incarnation = 1000 + links[i];
        tell(&bench, links[i], greeting);
        assert_answer(&bench, 0, links[i], MESSAGE_GREETED);
    }
    begin(&bench, 1);
    shard_peer_gone(bench.shard, gone);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        const struct flush_id id = {1, 1, 1000 + links[i], 1};
        tell(&bench, links[i], stage(id, (int64_t[10]){0}, 10));
        assert_int_equal(bench.out.count, links[i] != gone);
        if (links[i] != gone)
            assert_answer(&bench, 0, links[i], MESSAGE_STAGED);
    }
    tell(&bench, gone, greet());
    tell(&bench, gone, fetch_all(1));
    assert_answer(&bench, 0, gone, MESSAGE_PARAMETERS);
    bench_release(&bench);
}

static void a_setup_with_an_unknown_type_of_history_is_refused(void **state) {
    (void)state;
    struct bench bench;
    struct message message = setup(N, 0, N);
    message.shard_setup.history_type = HISTORY_DOUBLE + 1;
    bench_init(&bench, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void after_a_setup_that_fails_nothing_of_the_one_before_can_be_read(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    struct message message = setup(N, 0, N);
    message.shard_setup.history_type = HISTORY_DOUBLE + 1;
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    tell(&bench, REPLICA_LINK, fetch_all(1));
    assert_int_equal(bench.out.count, 0);
    tell(&bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_READ, .read = {.register_ = REGISTER_X, .count = N}});
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void exponents_may_come_in_pieces_and_are_spread_over_the_outputs(void **state) {
    (void)state;
    enum { OUTPUTS = 3, FEATURES = 20 };
    struct bench bench;
    struct message message = setup(OUTPUTS * FEATURES, 0, OUTPUTS * FEATURES);
    message.shard_setup.uniform = 0;
    message.shard_setup.layout = layout_blob(OUTPUTS * FEATURES, OUTPUTS, 0);
    bench_init(&bench, message);
    assert_int_equal(bench.out.count, 0);
    int16_t exponents[FEATURES];
    for (int16_t i = 0; i < FEATURES; i++)
        exponents[i] = (int16_t)(i - 5);
    const unsigned pieces[] = {0, 7, FEATURES};
    for (unsigned i = 0; i < 2; i++) {
        message = (struct message){.type = MESSAGE_EXPONENTS};
        message.exponents.attempt = 1;
        message.exponents.first = pieces[i];
        message.exponents.count = pieces[i + 1] - pieces[i];
        message.bulk = (struct bulk){.data = exponents + pieces[i],
                                     .length = message.exponents.count * sizeof *exponents};
        tell(&bench, COORDINATOR_LINK, message);
        assert_int_equal(bench.out.count, i);
    }
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    run_one(&bench, (struct operation){.code = OPERATION_BEGIN,
                                       .evaluation = 1,
                                       .sums = SUMS_PARAMETERS,
                                       .bounds = bounds_of_one(2)});
    int64_t slice[OUTPUTS * FEATURES];
    for (int64_t i = 0; i < OUTPUTS * FEATURES; i++)
        slice[i] = 640 * i;
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, OUTPUTS * FEATURES));
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
    const double *h = read_register(&bench, REGISTER_H, 0, OUTPUTS * FEATURES);
    for (int i = 0; i < OUTPUTS * FEATURES; i++)
        assert_true(h[i] == ldexp(640 * i, 2 - exponents[i / OUTPUTS]) / 10);
    bench_release(&bench);
}

static struct message start_piece(const double *all, uint64_t first, uint64_t count) {
    struct message message = {.type = MESSAGE_START};
    message.start =
        (struct message_start){.attempt = 1, .program = 1, .first = first, .count = count};
    message.bulk = (struct bulk){.data = all + first, .length = count * sizeof *all};
    return message;
}

static void a_start_comes_in_pieces_and_the_shard_is_ready_when_all_is_there(void **state) {
    (void)state;
    enum { FIRST = BLOCK_ELEMENTS, OWN = 50, ALL = FIRST + OWN };
    static double all[ALL];
    static int16_t exponents[ALL];
    for (int i = 0; i < ALL; i++)
        all[i] = i / 8.0;
    struct bench bench;
    struct message message = setup(ALL, FIRST, OWN);
    message.shard_setup.start = 1;
    message.shard_setup.uniform = 0;
    bench_init(&bench, message);
    tell(&bench, COORDINATOR_LINK, start_piece(all, FIRST, 20));
    tell(&bench, COORDINATOR_LINK, start_piece(all, FIRST, 20)); /* a repetition changes nothing */
    assert_int_equal(bench.out.count, 0);
    tell(&bench, COORDINATOR_LINK, start_piece(all, FIRST + 20, OWN - 20));
    assert_int_equal(bench.out.count, 0); /* exponents are lacking */
    message = (struct message){.type = MESSAGE_EXPONENTS};
    message.exponents = (struct message_exponents){1, FIRST, OWN};
    message.bulk = (struct bulk){.data = exponents, .length = OWN * sizeof *exponents};
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_memory_equal(read_register(&bench, REGISTER_X, FIRST, OWN), all + FIRST,
                        OWN * sizeof *all);
    bench_release(&bench);
}

static void a_new_attempt_without_a_start_is_at_zero(void **state) {
    (void)state;
    static const double ones[N] = {1, 1, 1}, zeros[N];
    struct bench bench;
    struct message message = setup(N, 0, N);
    message.shard_setup.start = 1;
    bench_init(&bench, message);
    tell(&bench, COORDINATOR_LINK, start_piece(ones, 0, N));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    message = setup(N, 0, N);
    message.shard_setup.attempt = 2;
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    tell(&bench, COORDINATOR_LINK, start_piece(ones, 0, N)); /* of the old attempt */
    assert_memory_equal(read_register(&bench, REGISTER_X, 0, N), zeros, sizeof zeros);
    bench_release(&bench);
}

static void without_a_start_each_shard_makes_its_part_of_the_one_of_the_layout(void **state) {
    (void)state;
    enum { ALL = BLOCK_ELEMENTS + 50 };
    struct layout layout = {.seed = 5};
    layout_add(&layout, &(struct layout_tensor){.name = "W1",
                                                .rows = ALL - 7,
                                                .columns = 1,
                                                .start = LAYOUT_START_UNIFORM,
                                                .bound = 0.5});
    layout_add(&layout, &(struct layout_tensor){.name = "b1", .rows = 1, .columns = 7});
    static double all[ALL];
    layout_start(&layout, 0, ALL, all);
    for (uint64_t first = 0; first < ALL; first += BLOCK_ELEMENTS) {
        struct bench bench;
        uint64_t count = first ? ALL - first : BLOCK_ELEMENTS;
        struct message message = setup(ALL, first, count);
        message.shard_setup.layout = blob_of_layout(&layout);
        bench_init(&bench, message);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
        assert_memory_equal(read_register(&bench, REGISTER_X, first, count), all + first,
                            count * sizeof *all);
        bench_release(&bench);
    }
}

static void what_is_sent_for_a_program_is_in_its_register_until_that_has_run(void **state) {
    (void)state;
    static const double ones[N] = {1, 1, 1}, zeros[N];
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    struct message message = start_piece(ones, 0, N);
    message.start.register_ = REGISTER_T;
    tell(&bench, COORDINATOR_LINK, message);
    assert_memory_equal(read_register(&bench, REGISTER_T, 0, N), ones, sizeof ones);
    run_one(&bench, (struct operation){.code = OPERATION_ZERO, .a = REGISTER_T});
    tell(&bench, COORDINATOR_LINK, message); /* late */
    assert_memory_equal(read_register(&bench, REGISTER_T, 0, N), zeros, sizeof zeros);
    message.start.program = 2;
    message.start.first = 1; /* and one too far */
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    message.start.first = 0;
    message.start.register_ = REGISTER_BEST; /* which this shard does not keep */
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void a_start_that_cannot_be_is_refused(void **state) {
    (void)state;
    static const double all[N] = {[3] = INFINITY};
    struct message pieces[] = {start_piece(all, 2, 1), start_piece(all, 0, 10)};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct bench bench;
        struct message message = setup(N, 0, N);
        message.shard_setup.start = 1;
        bench_init(&bench, message);
        tell(&bench, COORDINATOR_LINK, pieces[i]);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        bench_release(&bench);
    }
}

static void a_repeated_program_is_answered_from_memory(void **state) {
    (void)state;
    struct bench bench;
    struct bytes program;
    bytes_init(&program);
    bench_init(&bench, setup(N, 0, N));
    program_add(&program,
                &(struct operation){.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_T});
    program_add(&program, &(struct operation){.code = OPERATION_DOT});
    struct message message = program_message(1, &program);
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    const double *x = read_register(&bench, REGISTER_X, 0, N);
    tell(&bench, COORDINATOR_LINK, message);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    assert_int_equal(answer(&bench, 0).result.number, 1);
    assert_ptr_equal(read_register(&bench, REGISTER_X, 0, N), x); /* not swapped again */
    bytes_release(&program);
    bench_release(&bench);
}

static void other_content_or_a_number_out_of_order_is_refused(void **state) {
    (void)state;
    struct bench bench;
    struct bytes program;
    bytes_init(&program);
    bench_init(&bench, setup(N, 0, N));
    run_one(&bench, (struct operation){.code = OPERATION_ZERO});
    program_add(&program, &(struct operation){.code = OPERATION_ZERO, .a = REGISTER_D});
    const uint64_t numbers[] = {0, 1, 3};
    for (size_t i = 0; i < 3; i++) {
        tell(&bench, COORDINATOR_LINK, program_message(numbers[i], &program));
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        assert_int_equal(answer(&bench, 0).failed.status, 70);
    }
    struct message message = program_message(2, &program);
    message.program.attempt = 7;
    tell(&bench, COORDINATOR_LINK, message);
    assert_int_equal(bench.out.count, 0);
    tell(&bench, COORDINATOR_LINK, program_message(2, &program));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    bytes_release(&program);
    bench_release(&bench);
}

static void programs_that_do_not_fit_are_refused_whole(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    const double *x = read_register(&bench, REGISTER_X, 0, N);
    const struct operation swap = {.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_T};
    const struct operation bad[] = {
        {.code = OPERATION_PAIR, .slot = 6},
        {.code = OPERATION_DIRECTION, .count = 1, .slots = {6}},
        {.code = OPERATION_CHECK, .folds = 1},
        {.code = OPERATION_SWAP, .b = REGISTER_BEST},
        {.code = OPERATION_TENSOR_SQUARES, .tensors = TENSORS_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        run_operations(&bench, (const struct operation[]){swap, bad[i]}, 2);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        bench.number--;
        assert_ptr_equal(read_register(&bench, REGISTER_X, 0, N), x);
    }
    bench_release(&bench);
}

static void a_fetch_by_bits_is_answered_with_those_columns(void **state) {
    (void)state;
    static const uint64_t bits[1] = {0x21}; /* the first column and the sixth */
    const struct message fetch = {.type = MESSAGE_FETCH,
                                  .fetch = {.attempt = 1,
                                            .evaluation = 1,
                                            .first = 0,
                                            .count = ALL_OF_IT,
                                            .columns = 10,
                                            .width = 1},
                                  .bulk = {.data = bits, .length = sizeof bits}};
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    tell(&bench, REPLICA_LINK, fetch); /* held, with its bits */
    begin(&bench, 1);
    for (int turn = 0; turn < 2; turn++) {
        size_t at = turn ? 0 : 1;
        assert_answer(&bench, at, REPLICA_LINK, MESSAGE_PARAMETERS);
        assert_int_equal(answer(&bench, at).parameters.count, N);
        assert_int_equal(answer(&bench, at).bulk.length, (2 + N - 10) * sizeof(double));
        assert_null(answer(&bench, at).bulk.segment);
        double elements[3];
        memcpy(elements, answer(&bench, at).bulk.data, sizeof elements);
        const double *t = read_register(&bench, REGISTER_T, 0, N);
        assert_true(elements[0] == t[0] && elements[1] == t[5] && elements[2] == t[10]);
        tell(&bench, REPLICA_LINK, fetch);
    }
    bench_release(&bench);
}

static void a_fetch_may_mean_the_bits_that_came_last(void **state) {
    (void)state;
    static const uint64_t bits[1] = {0x21};
    struct message fetch = {
        .type = MESSAGE_FETCH,
        .fetch = {.attempt = 1, .evaluation = 1, .count = N, .columns = 10, .width = 1, .hash = 7}};
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    tell(&bench, REPLICA_LINK, fetch); /* none came */
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    fetch.bulk = (struct bulk){.data = bits, .length = sizeof bits};
    tell(&bench, REPLICA_LINK, fetch);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
    fetch.bulk = (struct bulk){0};
    tell(&bench, REPLICA_LINK, fetch);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
    assert_int_equal(answer(&bench, 0).bulk.length, (2 + N - 10) * sizeof(double));
    fetch.fetch.hash = 8;
    tell(&bench, REPLICA_LINK, fetch);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    fetch.fetch.hash = 7;
    fetch.fetch.columns = 9;
    tell(&bench, REPLICA_LINK, fetch);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    bench_release(&bench);
}

static void a_fetch_is_held_until_its_evaluation_begins(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    tell(&bench, REPLICA_LINK, fetch_all(2));
    assert_int_equal(bench.out.count, 0);
    begin(&bench, 1);
    assert_int_equal(bench.out.count, 1);
    run_operations(
        &bench,
        (const struct operation[]){
            {.code = OPERATION_BEGIN, .evaluation = 2, .sums = SUMS_PARAMETERS, .bounds.count = 1},
            {.code = OPERATION_ZERO, .a = REGISTER_T}},
        2);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    assert_answer(&bench, 1, REPLICA_LINK, MESSAGE_PARAMETERS);
    assert_int_equal(answer(&bench, 1).parameters.evaluation, 2);
    assert_int_equal(answer(&bench, 1).bulk.length, N * 8);
    assert_non_null(answer(&bench, 1).bulk.segment);
    tell(&bench, REPLICA_LINK, fetch_all(2));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
    tell(&bench, REPLICA_LINK, fetch_all(1));
    assert_int_equal(bench.out.count, 0);
    run_one(&bench, (struct operation){.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_T});
    tell(&bench, REPLICA_LINK, fetch_all(2));
    assert_int_equal(bench.out.count, 0); /* t is another point by now */
    bench_release(&bench);
}

static void an_empty_shard_answers_everything(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, N, 0));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    begin(&bench, 1);
    tell(&bench, REPLICA_LINK, fetch_all(1));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), NULL, 0));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
    run_one(&bench, (struct operation){.code = OPERATION_DOT});
    struct message result = answer(&bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    struct exact sum;
    assert_true(exact_decode(&sum, &cursor));
    assert_true(exact_value(&sum) == 0);
    read_register(&bench, REGISTER_X, N, 0);
    bench_release(&bench);
}

static void a_new_attempt_starts_from_zero_and_with_program_1(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N] = {[5] = 3};
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, N));
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_X, .alpha = 10});
    const double *x = read_register(&bench, REGISTER_X, 0, N);
    assert_true(x[5] != 0);
    struct message again = setup(N, 0, N);
    again.shard_setup.attempt = 2;
    tell(&bench, COORDINATOR_LINK, again);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_ptr_equal(read_register(&bench, REGISTER_X, 0, N), x); /* the same memory */
    assert_true(x[5] == 0);
    tell(&bench, COORDINATOR_LINK, setup(N, 0, N)); /* the old attempt's, late */
    assert_int_equal(bench.out.count, 0);
    bench_release(&bench);
}

static void elements_outside_of_the_range_cannot_be_read(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(3 * BLOCK_ELEMENTS, BLOCK_ELEMENTS, BLOCK_ELEMENTS));
    read_register(&bench, REGISTER_G, BLOCK_ELEMENTS + 5, 10);
    const uint64_t wrong[][2] = {{0, 1},
                                 {BLOCK_ELEMENTS, BLOCK_ELEMENTS + 1},
                                 {2 * BLOCK_ELEMENTS + 1, 1},
                                 {BLOCK_ELEMENTS + 1, UINT64_MAX}};
    for (size_t i = 0; i < 4; i++) {
        tell(&bench, COORDINATOR_LINK,
             (struct message){.type = MESSAGE_READ,
                              .read = {.first = wrong[i][0], .count = wrong[i][1]}});
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    }
    bench_release(&bench);
}

SUITE(shard) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_is_refused_for_old_terms_other_runs_and_other_versions),
        cmocka_unit_test(a_shard_says_since_which_term_it_is_its_incarnation),
        cmocka_unit_test(a_shard_that_is_not_set_up_completely_holds_no_attempt),
        cmocka_unit_test(only_the_coordinator_and_greeted_replicas_are_heard),
        cmocka_unit_test(replicas_are_known_by_their_links_in_whatever_order_they_come_and_go),
        cmocka_unit_test(a_setup_with_an_unknown_type_of_history_is_refused),
        cmocka_unit_test(after_a_setup_that_fails_nothing_of_the_one_before_can_be_read),
        cmocka_unit_test(exponents_may_come_in_pieces_and_are_spread_over_the_outputs),
        cmocka_unit_test(a_start_comes_in_pieces_and_the_shard_is_ready_when_all_is_there),
        cmocka_unit_test(a_new_attempt_without_a_start_is_at_zero),
        cmocka_unit_test(without_a_start_each_shard_makes_its_part_of_the_one_of_the_layout),
        cmocka_unit_test(a_start_that_cannot_be_is_refused),
        cmocka_unit_test(what_is_sent_for_a_program_is_in_its_register_until_that_has_run),
        cmocka_unit_test(a_repeated_program_is_answered_from_memory),
        cmocka_unit_test(other_content_or_a_number_out_of_order_is_refused),
        cmocka_unit_test(programs_that_do_not_fit_are_refused_whole),
        cmocka_unit_test(a_fetch_by_bits_is_answered_with_those_columns),
        cmocka_unit_test(a_fetch_may_mean_the_bits_that_came_last),
        cmocka_unit_test(a_fetch_is_held_until_its_evaluation_begins),
        cmocka_unit_test(an_empty_shard_answers_everything),
        cmocka_unit_test(a_new_attempt_starts_from_zero_and_with_program_1),
        cmocka_unit_test(elements_outside_of_the_range_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
