/* A replica that computes tiles: a strip of the point at a time, and flushes of one strip each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "replica/flush.h"
#include "replica/needs.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"
#include "tests/unit/suites.h"
#include "wire/wanted.h"

/* Three strips of 20 chunks; the border between the shards is within the second. */
enum { COLUMNS = 10000, WIDTH = 4000, ALL = COLUMNS + 1, BORDER = BLOCK_ELEMENTS };
enum { CHUNKS = 20, STRIPS = 3, ROWS = 1000, CUT = BORDER + 1000 };

static void set_up_tiles(struct bench *bench, uint32_t strip_columns, uint8_t scaled) {
    struct layout layout = layout_linear(COLUMNS, 1, true);
    struct message_replica_setup setup = replica_setup_of(bench, blob_of_layout(&layout));
    setup.rows = ROWS;
    setup.strip_columns = strip_columns;
    setup.coordinates = scaled;
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    assert_int_equal(asked(bench, ACTION_OPEN_SET).setup.strip_columns, strip_columns);
}

static void opened(struct bench *bench) {
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
}

static struct range range_of(const struct bench *bench, uint32_t shard) {
    return bench->shards == 1 ? (struct range){0, ALL}
           : shard            ? (struct range){CUT, ALL - CUT}
                              : (struct range){0, CUT};
}

static void meet_shards(struct bench *bench) {
    uint32_t shards = bench->shards;
    for (uint32_t i = 0; i < shards; i++) {
        struct range range = range_of(bench, i);
        give(bench, COORDINATOR,
             (struct message){
                 .type = MESSAGE_SHARD_AT,
                 .shard_at = {ATTEMPT, i, 100 + i, range.first, range.count, bench->address, ""}});
        connect_shard(bench, i);
        greeted(bench, i);
    }
    sent(bench, COORDINATOR, MESSAGE_READY);
    nothing_more(bench);
}

static void ready(struct bench *bench, uint32_t shards) {
    bench_new(bench, shards);
    set_up_tiles(bench, WIDTH, 0);
    opened(bench);
    meet_shards(bench);
}

static void announce(struct bench *bench, uint32_t evaluation, enum evaluation_kind kind) {
    const struct evaluation_part part = {kind, 0, STRIPS * CHUNKS};
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE,
                          .evaluate = {ATTEMPT, evaluation, {1, {0}}, {&part, 1}, 0, 1, 0, {0}}});
}

static struct range strip_at(uint32_t strip) {
    return (struct range){strip * WIDTH, strip == STRIPS - 1 ? ALL - strip * WIDTH : WIDTH};
}

/* What a shard has of these elements; a shard that has nothing of them answers so. */
static void answer_fetch(struct bench *bench, uint32_t shard, struct range wanted) {
    struct message_fetch fetch = sent(bench, FIRST_SHARD + shard, MESSAGE_FETCH).fetch;
    assert_int_equal(fetch.first, wanted.first);
    assert_int_equal(fetch.count, wanted.count);
    struct range own = range_intersection(range_of(bench, shard), wanted);
    if (!own.count)
        own.first = range_of(bench, shard).first;
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {ATTEMPT, 1, own.first, own.count, FETCH_GIVEN},
                          .bulk = {.data = bench->point + own.first, .length = own.count * 8}});
}

/* All are asked before the first answers. */
static void fetch_strip(struct bench *bench, uint32_t strip) {
    for (uint32_t i = 0; i < bench->shards; i++)
        answer_fetch(bench, i, strip_at(strip));
}

static void each_strip_is_fetched_once_for_the_portions_that_follow(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready(&bench, shards);
        announce(&bench, 1, EVALUATION_PRODUCT);
        nothing_more(&bench); /* which strip is not known */
        portion(&bench, 1, CHUNKS + 4, 0);
        fetch_strip(&bench, 1);
        struct computation computation = started(&bench, CHUNKS + 4);
        sent(&bench, COORDINATOR, MESSAGE_WANT);
        assert_int_equal(computation.strip, 1);
        assert_memory_equal(computation.parameters, bench.point + WIDTH, WIDTH * 8);
        end_portion(&bench, 40, ALL);
        take_up(&bench, 1, CHUNKS + 6, 0);
        end_portion(&bench, 60, ALL);
        nothing_more(&bench);
        bench_free(&bench);
    }
}

/* On another host than the shards, with sparse rows and fifty rows a chunk. */
static void ready_apart(struct bench *bench, uint32_t shards) {
    uint64_t row[CHUNKS + 1];
    for (uint32_t i = 0; i <= CHUNKS; i++)
        row[i] = i * 50;
    bench_new(bench, shards);
    bench->address = "10.0.0.2:7000";
    set_up_tiles(bench, WIDTH, 0);
    replica_rows_are_sparse(bench->replica, 1, STRIPS * CHUNKS);
    replica_rows_of_chunks(bench->replica, row, CHUNKS);
    opened(bench);
    meet_shards(bench);
}

/* Columns are those of the strip, and the border of the shards is 1096 columns behind its first. */
static const uint32_t used[] = {3, CUT - WIDTH - 1, CUT - WIDTH, WIDTH - 1};

/* Before anything is fetched for a portion, its columns are noted. */
static void note_used(struct bench *bench, uint32_t first) {
    const uint32_t start[] = {0, 4};
    const struct rows rows = {.count = 1, .start = start, .feature = used, .values = 4};
    const struct computation noting = started(bench, first);
    struct computed answer = {0};
    totals_init(&answer.totals, 1);
    assert_true(noting.scan_only);
    needs_note(&rows, noting.columns);
    replica_computed(bench->replica, &answer, bench->now_ns, &bench->outbox);
}

/* The bits of a FETCH: those that it brings, or those of the last, which it names. */
static const uint64_t *bits_of(uint32_t shard, const struct message *fetch) {
    static uint64_t kept[2][WIDTH / 64 + 1];
    const size_t bytes = wanted_bytes(fetch->fetch.columns);
    assert_true(bytes <= sizeof kept[shard]);
    assert_true(fetch->bulk.length == bytes || !fetch->bulk.length);
    if (fetch->bulk.length)
        memcpy(kept[shard], fetch->bulk.data, bytes);
    return kept[shard];
}

/* Each of two shards has two of them. */
static void fetch_used(struct bench *bench, uint32_t evaluation) {
    for (uint32_t i = 0; i < 2; i++) {
        struct message message = sent(bench, FIRST_SHARD + i, MESSAGE_FETCH);
        const struct message_fetch *fetch = &message.fetch;
        const struct wanted wanted = {fetch->column, fetch->columns, fetch->width,
                                      bits_of(i, &message)};
        struct range own = range_intersection(range_of(bench, i), strip_at(1));
        double elements[WIDTH];
        uint64_t total = wanted_total(&wanted, own.first, own.count);
        assert_int_equal(total, 2);
        wanted_gather(&wanted, own.first, own.count, bench->point + own.first, elements);
        give(
            bench, FIRST_SHARD + i,
            (struct message){.type = MESSAGE_PARAMETERS,
                             .parameters = {ATTEMPT, evaluation, own.first, own.count, FETCH_GIVEN},
                             .bulk = {.data = elements, .length = total * sizeof *elements}});
    }
}

static void compute_used(struct bench *bench) {
    struct computation computation = started(bench, CHUNKS + 4);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    assert_null(computation.columns);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(computation.parameters[used[i]] == bench->point[WIDTH + used[i]]);
    assert_true(computation.parameters[4] == 0);
    end_portion(bench, 40, ALL);
}

static void tiles_fetch_what_they_use_of_their_strip(void **state) {
    (void)state;
    struct bench bench;
    ready_apart(&bench, 2);
    for (uint32_t evaluation = 1; evaluation <= 2; evaluation++) {
        announce(&bench, evaluation, EVALUATION_PRODUCT);
        portion(&bench, evaluation, CHUNKS + 4, 0);
        if (evaluation == 1)
            note_used(&bench, CHUNKS + 4);
        fetch_used(&bench, evaluation);
        compute_used(&bench);
    }
    bench_free(&bench);
}

/* So that there is no question for each portion. */
static void a_second_portion_whose_columns_are_not_known_fetches_the_strip(void **state) {
    (void)state;
    struct bench bench;
    ready_apart(&bench, 2);
    announce(&bench, 1, EVALUATION_PRODUCT);
    portion(&bench, 1, CHUNKS + 4, 0);
    note_used(&bench, CHUNKS + 4);
    fetch_used(&bench, 1);
    compute_used(&bench);
    portion(&bench, 1, CHUNKS + 6, 0);
    fetch_strip(&bench, 1);
    assert_non_null(started(&bench, CHUNKS + 6).columns);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

/* Two tiles were computed for others. */
static void a_strip_of_which_too_much_is_known_is_learnt_anew(void **state) {
    (void)state;
    struct bench bench;
    ready_apart(&bench, 2);
    for (uint32_t evaluation = 1; evaluation <= 3; evaluation++) {
        announce(&bench, evaluation, EVALUATION_PRODUCT);
        for (uint32_t i = 0; i < (evaluation == 1 ? 2 : 1); i++) {
            portion(&bench, evaluation, CHUNKS + 4 + 2 * i, PORTION_SOLO);
            if (evaluation != 2)
                note_used(&bench, CHUNKS + 4 + 2 * i);
            fetch_used(&bench, evaluation);
            started(&bench, CHUNKS + 4 + 2 * i);
            sent(&bench, COORDINATOR, MESSAGE_WANT);
            end_portion(&bench, 40, ALL);
            asked(&bench, ACTION_GATHER);
            gathered(&bench);
            for (uint32_t k = 0; k < 2; k++)
                sent(&bench, FIRST_SHARD + k, MESSAGE_STAGE);
        }
    }
    bench_free(&bench);
}

/* Portions of two chunks. Of two shards only the one that has the rows is asked again. */
static void a_transpose_fetches_the_rows_of_its_portions_and_then_as_many_again(void **state) {
    (void)state;
    struct bench bench;
    ready_apart(&bench, 1);
    announce(&bench, 1, EVALUATION_TRANSPOSE);
    nothing_more(&bench); /* which rows is not known */
    const struct range asked_for[] = {{200, 100}, {300, 100}, {400, 200}};
    for (uint32_t i = 0; i < 4; i++) {
        portion(&bench, 1, CHUNKS + 4 + 2 * i, 0);
        if (i < 3)
            answer_fetch(&bench, 0, asked_for[i]);
        struct computation computation = started(&bench, CHUNKS + 4 + 2 * i);
        sent(&bench, COORDINATOR, MESSAGE_WANT);
        const uint64_t row = 200 + 100 * i;
        assert_true(computation.first_number <= row);
        assert_true(computation.parameters[row - computation.first_number] == bench.point[row]);
        end_portion(&bench, 0, ALL);
    }
    nothing_more(&bench);
    bench_free(&bench);
}

static void a_shard_without_the_rows_of_a_later_portion_is_not_asked(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 2);
    announce(&bench, 1, EVALUATION_PRODUCT);
    portion(&bench, 1, 4, PORTION_SOLO);
    fetch_strip(&bench, 0);
    started(&bench, 4);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    end_portion(&bench, 200, ALL);
    asked(&bench, ACTION_GATHER);
    gathered(&bench);
    for (uint32_t i = 0; i < 2; i++)
        sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
    portion(&bench, 1, 2 * CHUNKS + 4, 0); /* all of the last strip is on the second shard */
    answer_fetch(&bench, 1, strip_at(2));
    started(&bench, 2 * CHUNKS + 4);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(&bench);
    bench_free(&bench);
}

/* It asks for none of the point, and computes when all shards have begun. */
static void what_is_of_rows_alone_waits_for_the_shards_and_fetches_nothing(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready(&bench, shards);
        const struct evaluation_part part = {EVALUATION_SIZES, 0, CHUNKS};
        give(&bench, COORDINATOR,
             (struct message){.type = MESSAGE_EVALUATE,
                              .evaluate = {ATTEMPT, 1, {1, {0}}, {&part, 1}, 0, 1, 0, {0}}});
        portion(&bench, 1, 3, 0);
        for (uint32_t i = 0; i < shards; i++)
            answer_fetch(&bench, i, (struct range){0, 0});
        assert_int_equal(started(&bench, 3).parts.items[0].kind, EVALUATION_SIZES);
        sent(&bench, COORDINATOR, MESSAGE_WANT);
        bench_free(&bench);
    }
}

static void a_flush_ends_with_its_strip(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 2);
    announce(&bench, 1, EVALUATION_TRANSPOSE);
    portion(&bench, 1, CHUNKS, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct message_fetch fetch = sent(&bench, FIRST_SHARD + i, MESSAGE_FETCH).fetch;
        assert_int_equal(fetch.first, 0);
        assert_int_equal(fetch.count, ROWS); /* the vector of rows, whole */
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct sums_sizes sizes = {.parameters = ALL, .rows = ROWS, .outputs = 1};
        struct range own = range_of(&bench, i);
        struct sums_range rows = evaluation_sums_range(SUMS_ROWS, &sizes, own.first, own.count);
        give(
            &bench, FIRST_SHARD + i,
            (struct message){.type = MESSAGE_PARAMETERS,
                             .parameters = {ATTEMPT, 1, rows.first, rows.count, FETCH_GIVEN},
                             .bulk = {.data = bench.point + rows.first, .length = rows.count * 8}});
    }
    started(&bench, CHUNKS);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    portion(&bench, 1, 2 * CHUNKS, 0);
    end_portion(&bench, 0, ALL);
    struct action gather = asked(&bench, ACTION_GATHER);
    assert_true(gather.first == 0 && gather.sums == WIDTH);
    for (int i = 0; i < WIDTH; i++)
        gather.into[i] = i + 1;
    gathered(&bench);
    struct message first = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    struct message second = sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_int_equal(first.stage.first, WIDTH);
    assert_int_equal(first.stage.entries, CUT - WIDTH);
    assert_int_equal(second.stage.first, 0);
    assert_int_equal(second.stage.entries, 2 * WIDTH - CUT);
    assert_int_equal(((const int64_t *)second.bulk.data)[0], CUT - WIDTH + 1);
    /* The vector of rows is here already. */
    assert_int_equal(started(&bench, 2 * CHUNKS).strip, 2);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    rest(&bench, 1);
    end_portion(&bench, 0, ALL);
    assert_int_equal(asked(&bench, ACTION_GATHER).sums, ALL - 2 * WIDTH);
    gathered(&bench);
    assert_int_equal(sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage.encoding, STAGE_NONE);
    assert_int_equal(sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE).stage.first, 2 * WIDTH - CUT);
    bench_free(&bench);
}

static void a_link_that_comes_back_is_asked_for_the_strip_at_hand(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1);
    announce(&bench, 1, EVALUATION_PRODUCT);
    portion(&bench, 1, 0, 0);
    fetch_strip(&bench, 0);
    started(&bench, 0);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    portion(&bench, 1, 2 * CHUNKS, 0);
    end_portion(&bench, 0, ALL);
    asked(&bench, ACTION_GATHER);
    gathered(&bench);
    sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(sent(&bench, FIRST_SHARD, MESSAGE_FETCH).fetch.first, 2 * WIDTH);
    replica_gone(bench.replica, FIRST_SHARD, &bench.outbox);
    connect_shard(&bench, 0);
    greeted(&bench, 0);
    answer_fetch(&bench, 0, strip_at(2));
    sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    sent(&bench, COORDINATOR, MESSAGE_READY);
    assert_memory_equal(started(&bench, 2 * CHUNKS).parameters, bench.point + 2 * WIDTH, 8);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void a_portion_of_two_strips_or_of_none_is_refused(void **state) {
    (void)state;
    static const uint32_t firsts[] = {CHUNKS - 1, STRIPS * CHUNKS};
    for (int i = 0; i < 2; i++) {
        struct bench bench;
        ready(&bench, 1);
        announce(&bench, 1, EVALUATION_PRODUCT);
        portion(&bench, 1, firsts[i], 0);
        assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "strips"));
        bench_free(&bench);
    }
}

static void what_tiles_have_not_is_refused(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1);
    announce(&bench, 1, EVALUATION_GRADIENT);
    assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "tiles"));
    bench_free(&bench);
    bench_new(&bench, 1);
    set_up_tiles(&bench, WIDTH, 1);
    opened(&bench);
    assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "scaled"));
    bench_free(&bench);
    bench_new(&bench, 1);
    set_up_tiles(&bench, COLUMNS, 0);
    opened(&bench);
    assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "one strip"));
    bench_free(&bench);
}

static void derivatives_of_a_linear_model_are_refused(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1);
    const struct evaluation_part alone = {EVALUATION_DERIVATIVES, 0, CHUNKS};
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE,
                          .evaluate = {ATTEMPT, 1, {1, {0}}, {&alone, 1}, 0, 1, 0, {0}}});
    assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "network"));
    bench_free(&bench);
}

SUITE(replica_tiles) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_strip_is_fetched_once_for_the_portions_that_follow),
        cmocka_unit_test(what_is_of_rows_alone_waits_for_the_shards_and_fetches_nothing),
        cmocka_unit_test(tiles_fetch_what_they_use_of_their_strip),
        cmocka_unit_test(a_second_portion_whose_columns_are_not_known_fetches_the_strip),
        cmocka_unit_test(a_strip_of_which_too_much_is_known_is_learnt_anew),
        cmocka_unit_test(a_transpose_fetches_the_rows_of_its_portions_and_then_as_many_again),
        cmocka_unit_test(a_shard_without_the_rows_of_a_later_portion_is_not_asked),
        cmocka_unit_test(a_flush_ends_with_its_strip),
        cmocka_unit_test(a_link_that_comes_back_is_asked_for_the_strip_at_hand),
        cmocka_unit_test(a_portion_of_two_strips_or_of_none_is_refused),
        cmocka_unit_test(what_tiles_have_not_is_refused),
        cmocka_unit_test(derivatives_of_a_linear_model_are_refused),
    };
    return cmocka_run_group_tests_name("replica tiles", tests, NULL, NULL);
}
