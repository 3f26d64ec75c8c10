/* Rows of a set as their file has them and as the set stores them: both say the same. */
#include "tests/unit/suites.h"
#include "data/set/statistics.h"

#include "tests/unit/data_fixture.h"

#define ROWS 3000

/* The first value of a row is its number; the second row out of three has it alone. */
static const char *numbered(const char *name) {
    struct bytes text;
    char line[64];
    bytes_init(&text);
    for (unsigned i = 1; i <= ROWS; i++) {
        int length = i % 3 ? snprintf(line, sizeof line, "%d 7:%u 9:0 %u:0.%u\n", i % 2 ? 1 : -1, i,
                                      10 + i % 50, i)
                           : snprintf(line, sizeof line, "%d 7:%u\n", i % 2 ? 1 : -1, i);
        bytes_append(&text, line, (size_t)length);
    }
    const char *path = fixture_bytes(name, text.data, text.length);
    bytes_release(&text);
    return path;
}

static struct set *make_set(const char *path, const struct set_options *merging) {
    const struct source_options reading = {.format = FORMAT_LIBSVM};
    struct set_options options = *merging;
    struct pack *pack;
    struct set *set = NULL;
    bool made;
    if (pack_of_source(fixture_path("packs"), path, &reading, 2, &pack, &made) ||
        set_of_packs(fixture_path("packs"), &pack, 1, &options, &set, &made))
        fail_msg("%s", error_text());
    pack_close(pack);
    return set;
}

/* A row of the sample: what the file has, without zeros, is what the set has. */
static void assert_same(const struct sample *sample, uint32_t row) {
    uint64_t at = sample->stored_start[row], end = sample->stored_start[row + 1];
    for (uint64_t i = sample->start[row]; i < sample->start[row + 1]; i++) {
        if (sample->value[i] == 0)
            continue;
        uint64_t found = at;
        while (found < end && sample->column_id[found] != sample->id[i])
            found++;
        assert_true(found < end);
        assert_true(sample->stored[found] == sample->value[i]);
    }
    assert_true(sample->value[sample->start[row]] == (double)sample->row[row]);
    assert_int_equal(end - at, sample->row[row] % 3 ? 2 : 1);
}

static void assert_sampled(const struct set_options *merging) {
    struct set *set = make_set(numbered("numbered"), merging);
    const struct sample_options options = {.folds = merging->fold.folds,
                                           .fold_seed = merging->fold.seed,
                                           .shuffle_seed = merging->shuffle_seed};
    struct sample sample;
    if (sample_take(set, fixture_path("packs"), &options, &sample))
        fail_msg("%s", error_text());
    assert_int_equal(sample.count, 32);
    for (uint32_t row = 0; row < sample.count; row++) {
        assert_true(!row || sample.row[row] > sample.row[row - 1]);
        assert_same(&sample, row);
    }
    sample_release(&sample);
    set_close(set);
}

static void rows_of_the_file_are_those_of_the_set(void **state) {
    (void)state;
    struct set_options merging = {.labels = LABEL_BINARY};
    assert_sampled(&merging);
    merging.shuffled = true;
    merging.shuffle_seed = 5;
    assert_sampled(&merging);
}

static void rows_that_are_held_out_or_of_the_fold_are_left_out(void **state) {
    (void)state;
    struct set_options merging = {.labels = LABEL_BINARY, .holdout = 0.4, .keep_holdout = true};
    assert_sampled(&merging);
    merging.fold = (struct holdout_pick){.share = 0.4, .folds = 3, .fold = 2, .seed = 9};
    assert_sampled(&merging);
    merging.shuffled = true;
    assert_sampled(&merging);
}

static void without_the_pack_there_are_no_rows(void **state) {
    (void)state;
    struct set *set = make_set(numbered("numbered"), &(struct set_options){.labels = LABEL_BINARY});
    const struct sample_options options = {0};
    struct sample sample;
    assert_int_equal(sample_take(set, fixture_path("none"), &options, &sample), ERROR_IO);
    error_clear();
    sample_release(&sample);
    set_close(set);
}

SUITE(sample) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_file_are_those_of_the_set),
        cmocka_unit_test(rows_that_are_held_out_or_of_the_fold_are_left_out),
        cmocka_unit_test(without_the_pack_there_are_no_rows),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
