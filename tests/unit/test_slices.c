/* Slices of flushes at a shard: staged, folded once, dropped, refused. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"
#include "base/random.h"
#include "shard/state.h"

enum { N = 100 };

/* Σ of what is folded, as GRADIENT gives it with exponent 20 and 10 examples. */
static void assert_sum(struct bench *bench, double expected) {
    run_one(bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
    const double *h = read_register(bench, REGISTER_H, 0, N);
    for (size_t i = 0; i < N; i++)
        assert_true(h[i] == expected * 0x1p-20 / 10);
}

static void fill(int64_t slice[N], int64_t value) {
    for (size_t i = 0; i < N; i++)
        slice[i] = value;
}

/* The first evaluation, of which the first flush is staged. */
static void begin_with_a_slice(struct bench *bench, int64_t slice[N], int64_t value) {
    bench_init(bench, setup(N, 0, N));
    begin(bench, 1);
    fill(slice, value);
    tell(bench, REPLICA_LINK, stage(flush(1, 1), slice, N));
}

static void a_staged_slice_is_added_once_however_often_it_is_folded(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N];
    begin_with_a_slice(&bench, slice, 1000);
    for (unsigned i = 0; i < 2; i++) {
        assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
        assert_int_equal(answer(&bench, 0).staged.incarnation, 33);
        assert_int_equal(answer(&bench, 0).staged.index, 3);
        tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, N));
    }
    fill(slice, 0); /* the shard has what it acknowledged */
    for (unsigned i = 0; i < 3; i++) {
        tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
    }
    fill(slice, 77);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, N)); /* folded already */
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
    assert_sum(&bench, 1000);
    bench_release(&bench);
}

/* As so many FOLDs in that order: what was folded before is not added again. */
static void flushes_in_one_list_are_each_added_once_and_confirmed_together(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N];
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    for (uint32_t i = 1; i <= 3; i++) {
        fill(slice, 1000 * i);
        tell(&bench, REPLICA_LINK, stage(flush(1, i), slice, N));
    }
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 2)));
    const struct flush_id all[] = {flush(1, 1), flush(1, 2), flush(1, 3)};
    const struct message list = {.type = MESSAGE_FOLD, .fold = {.flushes = listed_flushes(all, 3)}};
    for (unsigned i = 0; i < 2; i++) {
        tell(&bench, COORDINATOR_LINK, list);
        assert_int_equal(bench.out.count, 1);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
        assert_int_equal(answer(&bench, 0).folded.flushes.length, 3 * FLUSH_ID_BYTES);
    }
    assert_sum(&bench, 6000);
    bench_release(&bench);
}

static void a_list_of_another_evaluation_is_passed_over(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N];
    begin_with_a_slice(&bench, slice, 1000);
    tell(&bench, COORDINATOR_LINK, fold(flush(2, 1)));
    assert_int_equal(bench.out.count, 0);
    bench_release(&bench);
}

static void sparse_slices_and_slices_without_elements_are_folded(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    struct {
        uint32_t offsets[4]; /* three, and padding */
        int64_t values[3];
    } sparse = {{1, 98, 50, 0}, {5, -6, 7}};
    struct message message = stage(flush(1, 1), (const int64_t *)&sparse, sizeof sparse / 8);
    message.stage.encoding = STAGE_SPARSE;
    message.stage.entries = 3;
    tell(&bench, REPLICA_LINK, message);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    message = stage(flush(1, 2), NULL, 0);
    message.stage.encoding = STAGE_NONE;
    tell(&bench, REPLICA_LINK, message);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 2)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
    const double *h = read_register(&bench, REGISTER_H, 0, N);
    assert_true(h[1] == 5 * 0x1p-20 / 10 && h[98] == -6 * 0x1p-20 / 10);
    assert_true(h[50] == 7 * 0x1p-20 / 10 && h[0] == 0);
    bench_release(&bench);
}

static void sums_begin_at_zero_whatever_was_added_up_before(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N];
    bench_init(&bench, setup(N, 0, N));
    fill(slice, 1000);
    begin(&bench, 1);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, N));
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    begin(&bench, 2);
    assert_sum(&bench, 0); /* nothing is folded */
    for (uint32_t evaluation = 2; evaluation < 4; evaluation++) {
        for (uint32_t sequence = 1; sequence < 4; sequence++) {
            tell(&bench, REPLICA_LINK, stage(flush(evaluation, sequence), slice, N));
            tell(&bench, COORDINATOR_LINK, fold(flush(evaluation, sequence)));
        }
        assert_sum(&bench, 3000);
        begin(&bench, evaluation + 1);
    }
    struct message nothing = stage(flush(4, 1), NULL, 0);
    nothing.stage.encoding = STAGE_NONE;
    tell(&bench, REPLICA_LINK, nothing);
    tell(&bench, COORDINATOR_LINK, fold(flush(4, 1)));
    assert_sum(&bench, 0);
    bench_release(&bench);
}

static void slices_beyond_the_range_are_refused_and_not_kept(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N + 1] = {0};
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    struct message bad[] = {stage(flush(1, 1), slice, N - 1), stage(flush(1, 1), slice, N + 1),
                            stage(flush(1, 1), slice, 2)};
    slice[0] = N; /* an offset outside of the range */
    bad[2].stage.encoding = STAGE_SPARSE;
    bad[2].stage.entries = 1;
    for (size_t i = 0; i < 3; i++) {
        tell(&bench, REPLICA_LINK, bad[i]);
        assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    }
    assert_int_equal(shard_counters(bench.shard)->stages_refused, 3);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

/* What a shard has taken may lie in memory that a broken replica goes on writing. */
static void a_slice_that_changes_after_it_was_taken_fails_by_name(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct bench bench;
        uint64_t words[2 + N] = {0};
        const bool bits = kind > 0;
        bench_init(&bench, setup(N, 0, N));
        begin(&bench, 1);
        words[0] = bits ? 7 : 0;
        struct message message = stage(flush(1, 1), (const int64_t *)words, 5);
        message.stage.encoding = bits ? STAGE_BITMAP : STAGE_SPARSE;
        message.stage.entries = 3;
        tell(&bench, REPLICA_LINK, message);
        assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
        uint64_t *taken = (uint64_t *)(uintptr_t)bench.shard->staging.staged[0].bulk.data;
        taken[0] = kind == 0 ? (uint64_t)N << 32 : kind == 1 ? UINT64_MAX : kind == 2 ? 3 : 7;
        if (kind == 3)
            taken[0] = 3, taken[1] = UINT64_C(1) << 63;
        tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        assert_non_null(strstr(answer(&bench, 0).failed.reason, "changed by its replica"));
        bench_release(&bench);
    }
}

static void a_slice_adds_to_the_sums_that_it_names_and_to_no_others(void **state) {
    (void)state;
    struct bench bench;
    int64_t values[3] = {5, -6, 7};
    struct {
        uint32_t offsets[2];
        int64_t values[2];
    } sparse = {{0, 2}, {10, 20}};
    struct message in_tiles = setup(N, 0, N);
    in_tiles.shard_setup.rows.tiles = 1;
    bench_init(&bench, in_tiles);
    for (uint32_t times = 1; times <= 2; times++) { /* the sums of the first one do not stay */
        struct message dense = stage(flush(times, 1), values, 3);
        struct message second = stage(flush(times, 2), (const int64_t *)&sparse, sizeof sparse / 8);
        dense.stage.first = 40;
        second.stage.encoding = STAGE_SPARSE;
        second.stage.entries = 2;
        second.stage.first = 41;
        begin(&bench, times);
        tell(&bench, REPLICA_LINK, times == 1 ? dense : second);
        tell(&bench, REPLICA_LINK, times == 1 ? second : dense);
        tell(&bench, COORDINATOR_LINK, fold(flush(times, 1)));
        tell(&bench, COORDINATOR_LINK, fold(flush(times, 2)));
        run_one(&bench,
                (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
        const double *h = read_register(&bench, REGISTER_H, 0, N);
        for (size_t i = 0; i < N; i++) {
            double sum = i == 40 ? 5 : i == 41 ? 4 : i == 42 ? 7 : i == 43 ? 20 : 0;
            assert_true(h[i] == sum * 0x1p-20 / 10);
        }
    }
    bench_release(&bench);
}

/* By bits, of the sums from `first` on; and the same sparse. */
static struct message encoded(struct flush_id id, const int64_t slice[N], size_t first,
                              enum stage_encoding encoding, uint64_t *room) {
    uint32_t *offsets = (uint32_t *)(void *)room;
    uint64_t entries = 0, found = 0;
    for (size_t i = first; i < N; i++)
        entries += slice[i] != 0;
    memset(room, 0, stage_bitmap_bytes(N, N) + stage_sparse_bytes(N));
    bool bits = encoding == STAGE_BITMAP;
    size_t values_at = bits ? stage_bitmap_values_at(N - first) : stage_sparse_values_at(entries);
    int64_t *values = (int64_t *)(void *)(room + values_at / sizeof *room);
    for (size_t i = first; i < N; i++) {
        if (!slice[i])
            continue;
        if (bits)
            room[(i - first) / 64] |= UINT64_C(1) << (i - first) % 64;
        else
            offsets[found] = (uint32_t)(i - first);
        values[found++] = slice[i];
    }
    struct message message = stage(id, (const int64_t *)room, values_at / 8 + entries);
    message.stage.encoding = (uint8_t)encoding;
    message.stage.entries = entries;
    message.stage.first = first;
    return message;
}

static void random_slices_give_the_same_sums_in_every_encoding(void **state) {
    (void)state;
    struct random random;
    int64_t slice[N];
    double expected[N];
    uint64_t room[4 * N];
    struct message in_tiles = setup(N, 0, N);
    in_tiles.shard_setup.rows.tiles = 1; /* slices may begin anywhere */
    for (uint32_t encoding = STAGE_DENSE; encoding <= STAGE_BITMAP; encoding++) {
        struct bench bench;
        bench_init(&bench, in_tiles);
        random = (struct random){7};
        begin(&bench, 1);
        for (uint32_t times = 1; times <= 20; times++) {
            size_t first = random_below(&random, N + 1), share = random_below(&random, 4);
            for (size_t i = 0; i < N; i++)
                slice[i] = random_below(&random, 4) < share && i >= first
                               ? (int64_t)random_below(&random, 99) - 49
                               : 0;
            tell(&bench, REPLICA_LINK,
                 encoding == STAGE_DENSE ? stage(flush(1, times), slice, N)
                                         : encoded(flush(1, times), slice, first, encoding, room));
            assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
            tell(&bench, COORDINATOR_LINK, fold(flush(1, times)));
            assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
        }
        run_one(&bench,
                (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
        const double *h = read_register(&bench, REGISTER_H, 0, N);
        if (encoding == STAGE_DENSE)
            memcpy(expected, h, sizeof expected);
        assert_memory_equal(h, expected, sizeof expected);
        bench_release(&bench);
    }
}

static void slices_by_bits_that_do_not_fit_are_refused(void **state) {
    (void)state;
    struct bench bench;
    int64_t words[] = {1, INT64_C(1) << (N - 64), 5, 6};
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    struct message good = stage(flush(1, 1), words, 4);
    good.stage.encoding = STAGE_BITMAP;
    good.stage.entries = 2;
    tell(&bench, REPLICA_LINK, good); /* sum number N is none */
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    words[1] >>= 1;
    good.stage.entries = 1; /* a word more than the sums have */
    tell(&bench, REPLICA_LINK, good);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    good.stage.entries = 3; /* more values than bits */
    tell(&bench, REPLICA_LINK, good);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    good.stage.entries = 2;
    tell(&bench, REPLICA_LINK, good);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    assert_int_equal(shard_counters(bench.shard)->stages_refused, 3);
    bench_release(&bench);
}

static void an_evaluation_without_sums_takes_flushes_but_no_elements(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N] = {7};
    bench_init(&bench, setup(N, 0, N));
    run_one(&bench,
            (struct operation){.code = OPERATION_BEGIN, .evaluation = 1, .bounds.count = 1});
    struct message sparse = stage(flush(1, 1), slice, 2), none = stage(flush(1, 1), NULL, 0);
    sparse.stage.encoding = STAGE_SPARSE;
    sparse.stage.entries = 1;
    none.stage.encoding = STAGE_NONE;
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, N));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    tell(&bench, REPLICA_LINK, sparse);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    tell(&bench, REPLICA_LINK, none);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
    const struct operation gradient = {.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10};
    run_operations(&bench, &gradient, 1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void stale_and_strange_slices_are_counted_and_ignored(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N] = {0};
    bench_init(&bench, setup(N, 0, N));
    tell(&bench, REPLICA_LINK, stage(flush(0, 1), slice, N)); /* nothing has begun */
    assert_int_equal(bench.out.count, 0);
    begin(&bench, 2);
    struct flush_id older = flush(2, 1), strange = flush(2, 1);
    older.attempt = 0;
    strange.incarnation++;
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), slice, N));
    assert_int_equal(bench.out.count, 0);
    tell(&bench, REPLICA_LINK, stage(older, slice, N));
    assert_int_equal(bench.out.count, 0);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_int_equal(bench.out.count, 0);
    assert_int_equal(shard_counters(bench.shard)->stale, 4);
    tell(&bench, REPLICA_LINK, stage(strange, slice, N));
    assert_int_equal(bench.out.count, 0);
    assert_int_equal(shard_counters(bench.shard)->stranger, 1);
    bench_release(&bench);
}

static void a_dropped_slice_leaves_no_trace_and_a_new_evaluation_none_of_the_last(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N];
    begin_with_a_slice(&bench, slice, 8);
    tell(&bench, COORDINATOR_LINK, drop(flush(1, 1)));
    tell(&bench, COORDINATOR_LINK, drop(flush(1, 1)));
    assert_int_equal(bench.out.count, 0);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    tell(&bench, REPLICA_LINK, stage(flush(1, 2), slice, N));
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 2)));
    assert_sum(&bench, 8);
    begin(&bench, 2);
    assert_sum(&bench, 0);
    run_one(&bench, (struct operation){.code = OPERATION_CHECK});
    bench_release(&bench);
}

/* Each that goes makes room for the last one, which must still be found. */
static void of_many_slices_that_wait_each_is_folded_or_dropped_in_any_order(void **state) {
    (void)state;
    enum { FLUSHES = 90 };
    struct bench bench;
    int64_t slice[N];
    double sum = 0;
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    for (uint32_t i = 1; i <= FLUSHES; i++) {
        fill(slice, i);
        tell(&bench, REPLICA_LINK, stage(flush(1, i), slice, N));
    }
    for (uint32_t turn = 0; turn < FLUSHES; turn++) {
        uint32_t i = 1 + turn * 37 % FLUSHES;
        tell(&bench, COORDINATOR_LINK, i % 3 ? fold(flush(1, i)) : drop(flush(1, i)));
        if (i % 3)
            assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
        sum += i % 3 ? i : 0;
    }
    assert_sum(&bench, sum);
    bench_release(&bench);
}

static void check_wants_exactly_the_flushes_that_were_folded(void **state) {
    (void)state;
    struct bench bench;
    int64_t slice[N] = {0};
    struct flush_id first = flush(1, 1), second = flush(1, 2);
    uint64_t hash = flush_id_hash(&first) + flush_id_hash(&second);
    bench_init(&bench, setup(N, 0, N));
    begin(&bench, 1);
    for (uint32_t i = 2; i >= 1; i--) {
        tell(&bench, REPLICA_LINK, stage(flush(1, i), slice, N));
        tell(&bench, COORDINATOR_LINK, fold(flush(1, i)));
    }
    struct operation check = {.code = OPERATION_CHECK, .hash = hash, .folds = 1};
    run_operations(&bench, &check, 1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench.number--;
    check.folds = 2;
    check.hash++;
    run_operations(&bench, &check, 1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench.number--;
    check.hash = hash;
    run_one(&bench, check);
    bench_release(&bench);
}

SUITE(slices) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_staged_slice_is_added_once_however_often_it_is_folded),
        cmocka_unit_test(flushes_in_one_list_are_each_added_once_and_confirmed_together),
        cmocka_unit_test(a_list_of_another_evaluation_is_passed_over),
        cmocka_unit_test(sparse_slices_and_slices_without_elements_are_folded),
        cmocka_unit_test(a_slice_adds_to_the_sums_that_it_names_and_to_no_others),
        cmocka_unit_test(random_slices_give_the_same_sums_in_every_encoding),
        cmocka_unit_test(slices_by_bits_that_do_not_fit_are_refused),
        cmocka_unit_test(an_evaluation_without_sums_takes_flushes_but_no_elements),
        cmocka_unit_test(sums_begin_at_zero_whatever_was_added_up_before),
        cmocka_unit_test(slices_beyond_the_range_are_refused_and_not_kept),
        cmocka_unit_test(a_slice_that_changes_after_it_was_taken_fails_by_name),
        cmocka_unit_test(stale_and_strange_slices_are_counted_and_ignored),
        cmocka_unit_test(a_dropped_slice_leaves_no_trace_and_a_new_evaluation_none_of_the_last),
        cmocka_unit_test(of_many_slices_that_wait_each_is_folded_or_dropped_in_any_order),
        cmocka_unit_test(check_wants_exactly_the_flushes_that_were_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
