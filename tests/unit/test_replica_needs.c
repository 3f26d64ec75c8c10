/* A replica that asks shards on other hosts for what its chunks use of the point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/random.h"
#include "replica/needs.h"
#include "tests/unit/replica_bench.h"
#include "tests/unit/suites.h"
#include "wire/wanted.h"

enum { CHUNKS = 100, FEATURES = PARAMETERS };

/* On another host unless the address says otherwise. Shards: the first has two blocks. */
static void ready_at(struct bench *bench, uint32_t shards, const char *address) {
    bench_ready_at(bench, shards, address);
    replica_rows_are_sparse(bench->replica, 1 << 20, CHUNKS);
    for (size_t i = 0; i < PARAMETERS; i++)
        bench->point[i] = 1 + (double)i;
}

/* What is in hand has values in these columns. */
static void note(const struct computation *computation, const uint32_t *columns, uint32_t count) {
    const uint32_t start[] = {0, count};
    const struct rows rows = {.count = 1, .start = start, .feature = columns, .values = count};
    assert_non_null(computation->columns);
    needs_note(&rows, computation->columns);
}

/* The elements that a shard is asked for. */
static struct wanted wanted_by(struct bench *bench, uint32_t shard) {
    struct message message = sent(bench, FIRST_SHARD + shard, MESSAGE_FETCH);
    const struct message_fetch *fetch = &message.fetch;
    assert_int_equal(fetch->first, 0);
    assert_int_equal(fetch->count, PARAMETERS);
    return (struct wanted){fetch->column, fetch->columns, fetch->width, message.bulk.data};
}

/* A shard answers with those alone; answers how many they are. */
static uint64_t answer(struct bench *bench, uint32_t evaluation, uint32_t shard,
                       const struct wanted *wanted) {
    static double elements[PARAMETERS];
    uint64_t first = first_of(bench, shard), count = count_of(bench, shard);
    uint64_t total = wanted_total(wanted, first, count);
    wanted_gather(wanted, first, count, bench->point + first, elements);
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {ATTEMPT, evaluation, first, count, FETCH_GIVEN},
                          .bulk = {.data = elements, .length = total * sizeof *elements}});
    return total;
}

/* A whole evaluation of portion 10, whose chunks are learnt. */
static void learn(struct bench *bench, const uint32_t *columns, uint32_t count) {
    begin(bench, 1);
    portion(bench, 1, 10, PORTION_LAST);
    struct computation computation = started(bench, 10);
    note(&computation, columns, count);
    computed(bench, 0.5, false);
    asked(bench, ACTION_GATHER);
    gathered(bench);
    for (uint32_t i = 0; i < bench->shards; i++)
        sent(bench, FIRST_SHARD + i, MESSAGE_STAGE);
    nothing_more(bench);
}

/* Columns in the last word before the border of the shards, and behind it, too. */
static const uint32_t used[] = {3, 70, 2 * BLOCK_ELEMENTS - 1, 2 * BLOCK_ELEMENTS, FEATURES - 1};
enum { USED = sizeof used / sizeof *used };

static void known_chunks_are_computed_with_what_they_use(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready_at(&bench, shards, "10.0.0.2:7000");
        learn(&bench, used, USED);
        evaluate(&bench, 2);
        uint64_t total = 0;
        struct wanted wanted[2];
        for (uint32_t i = 0; i < shards; i++) {
            wanted[i] = wanted_by(&bench, i);
            total += answer(&bench, 2, i, &wanted[i]);
        }
        assert_int_equal(total, USED);
        portion(&bench, 2, 10, PORTION_LAST);
        struct computation computation = started(&bench, 10);
        assert_null(computation.columns);
        for (uint32_t i = 0; i < USED; i++)
            assert_true(computation.parameters[used[i]] == 1 + (double)used[i]);
        assert_true(computation.parameters[4] == 0);
        bench_free(&bench);
    }
}

/* How many bytes of bits a shard gets. */
static size_t bits_sent(struct bench *bench) {
    struct message message = sent(bench, FIRST_SHARD, MESSAGE_FETCH);
    assert_true(message.fetch.columns > 0 && message.fetch.hash);
    return message.bulk.length;
}

static void bits_come_once_to_a_shard_that_answered_by_them(void **state) {
    (void)state;
    struct bench bench;
    ready_at(&bench, 1, "10.0.0.2:7000");
    learn(&bench, used, USED);
    evaluate(&bench, 2);
    assert_true(bits_sent(&bench) > 0);
    evaluate(&bench, 3); /* it may not have heard of the first */
    struct wanted wanted = wanted_by(&bench, 0);
    assert_non_null(wanted.words);
    answer(&bench, 3, 0, &wanted);
    evaluate(&bench, 4);
    assert_int_equal(bits_sent(&bench), 0);
    replica_gone(bench.replica, FIRST_SHARD, &bench.outbox);
    connect_shard(&bench, 0);
    greeted(&bench, 0);
    assert_true(bits_sent(&bench) > 0); /* another connection */
    sent(&bench, COORDINATOR, MESSAGE_READY);
    bench_free(&bench);
}

static void a_chunk_that_is_not_known_fetches_the_whole_point(void **state) {
    (void)state;
    struct bench bench;
    ready_at(&bench, 1, "10.0.0.2:7000");
    learn(&bench, used, USED);
    evaluate(&bench, 2);
    struct wanted part = wanted_by(&bench, 0);
    assert_true(part.columns > 0);
    answer(&bench, 2, 0, &part);
    portion(&bench, 2, 20, 0);
    struct wanted all = wanted_by(&bench, 0);
    assert_int_equal(all.columns, 0);
    answer(&bench, 2, 0, &part); /* of the first question, once more: it counts for nothing */
    nothing_more(&bench);
    assert_int_equal(answer(&bench, 2, 0, &all), PARAMETERS);
    struct computation computation = started(&bench, 20);
    assert_non_null(computation.columns);
    assert_true(computation.parameters[4] == 5);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void a_shard_of_this_host_sends_all(void **state) {
    (void)state;
    struct bench bench;
    ready_at(&bench, 2, "unix:/run/shard");
    begin(&bench, 1);
    portion(&bench, 1, 10, PORTION_LAST);
    assert_null(started(&bench, 10).columns);
    computed(&bench, 0.5, false);
    asked(&bench, ACTION_GATHER);
    gathered(&bench);
    for (uint32_t i = 0; i < 2; i++)
        sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
    evaluate(&bench, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(wanted_by(&bench, i).columns, 0);
    bench_free(&bench);
}

static void chunks_that_use_nearly_all_columns_fetch_all(void **state) {
    (void)state;
    static uint32_t columns[FEATURES];
    for (uint32_t j = 0; j < FEATURES; j++)
        columns[j] = j;
    struct bench bench;
    ready_at(&bench, 1, "10.0.0.2:7000");
    learn(&bench, columns, FEATURES - FEATURES / 10);
    evaluate(&bench, 2);
    assert_int_equal(wanted_by(&bench, 0).columns, 0);
    bench_free(&bench);
}

/* The replica asks for the columns of the portion that it was given. */
static void note_next(struct bench *bench, uint32_t first, const uint32_t *columns,
                      uint32_t count) {
    struct computation computation = started(bench, first);
    assert_true(computation.scan_only && !computation.sums && !computation.clear);
    note(&computation, columns, count);
    computed(bench, 0, false);
}

static void over_few_chunks_each_portion_fetches_what_it_uses(void **state) {
    (void)state;
    static const uint32_t others[] = {5, 70};
    struct bench bench;
    bench_ready_at(&bench, 1, "10.0.0.2:7000");
    replica_rows_are_sparse(bench.replica, 1, CHUNKS);
    for (size_t i = 0; i < PARAMETERS; i++)
        bench.point[i] = 1 + (double)i;
    for (uint32_t evaluation = 1; evaluation <= 2; evaluation++) {
        evaluate(&bench, evaluation);
        nothing_more(&bench); /* which columns is not known */
        portion(&bench, evaluation, 10, 0);
        note_next(&bench, 10, used, USED);
        struct wanted wanted = wanted_by(&bench, 0);
        assert_int_equal(answer(&bench, evaluation, 0, &wanted), USED);
        struct computation computation = started(&bench, 10);
        assert_true(!computation.scan_only && !computation.columns);
        assert_true(computation.parameters[70] == 71);
        sent(&bench, COORDINATOR, MESSAGE_WANT);
        computed(&bench, 0.5, false);
        portion(&bench, evaluation, 20, PORTION_LAST);
        note_next(&bench, 20, others, 2);
        wanted = wanted_by(&bench, 0);
        assert_int_equal(answer(&bench, evaluation, 0, &wanted), USED + 1);
        computation = started(&bench, 20);
        assert_true(computation.parameters[5] == 6 && computation.parameters[3] == 4);
        computed(&bench, 0.5, false);
        asked(&bench, ACTION_GATHER);
        gathered(&bench);
        assert_int_equal(sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage.portions.length, 2);
        nothing_more(&bench);
    }
    bench_free(&bench);
}

/* ---- wire/wanted.h ---- */

static bool is_wanted(const struct wanted *wanted, uint64_t element) {
    uint64_t column = element / wanted->width, bit = column - wanted->column;
    if (column < wanted->column)
        return false;
    return bit >= wanted->columns || (wanted->words[bit / 64] >> bit % 64 & 1);
}

static void any_part_of_a_vector_is_gathered_and_scattered_by_bits(void **state) {
    (void)state;
    enum { COLUMNS = 300, WIDTHS = 4, OTHERS = 7, ROOM = COLUMNS * WIDTHS + OTHERS };
    struct random random;
    random_init(&random, 5);
    uint64_t words[COLUMNS / 64 + 1];
    double vector[ROOM], packed[ROOM], again[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        vector[i] = 1 + (double)i;
    for (int turn = 0; turn < 3000; turn++) {
        uint64_t density = random_below(&random, 3);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            words[i] = random_next(&random);
            words[i] = density == 0 ? 0 : density == 1 ? words[i] : ~UINT64_C(0);
        }
        uint64_t before = random_below(&random, 3) * 64;
        struct wanted wanted = {.column = before,
                                .columns = 1 + random_below(&random, COLUMNS - before),
                                .width = 1 + (uint32_t)random_below(&random, WIDTHS),
                                .words = words};
        uint64_t first = random_below(&random, ROOM), count = random_below(&random, ROOM - first);
        uint64_t total = 0;
        memset(again, 0, sizeof again);
        for (uint64_t i = first; i < first + count; i++)
            total += is_wanted(&wanted, i);
        assert_int_equal(wanted_total(&wanted, first, count), total);
        wanted_gather(&wanted, first, count, vector + first, packed);
        wanted_scatter(&wanted, first, count, packed, again + first);
        for (uint64_t i = 0; i < ROOM; i++) {
            bool there = i >= first && i < first + count && is_wanted(&wanted, i);
            assert_true(again[i] == (there ? vector[i] : 0));
        }
    }
}

SUITE(replica_needs) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_chunks_are_computed_with_what_they_use),
        cmocka_unit_test(bits_come_once_to_a_shard_that_answered_by_them),
        cmocka_unit_test(a_chunk_that_is_not_known_fetches_the_whole_point),
        cmocka_unit_test(a_shard_of_this_host_sends_all),
        cmocka_unit_test(chunks_that_use_nearly_all_columns_fetch_all),
        cmocka_unit_test(over_few_chunks_each_portion_fetches_what_it_uses),
        cmocka_unit_test(any_part_of_a_vector_is_gathered_and_scattered_by_bits),
    };
    return cmocka_run_group_tests_name("replica needs", tests, NULL, NULL);
}
