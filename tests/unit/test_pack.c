#define _GNU_SOURCE
#include "tests/unit/failing_readdir.h"
#include "tests/unit/suites.h"
#include "data/pack/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include "data/pack/pack_file.h"
#include "tests/unit/data_fixture.h"

static const struct source_options plain_options;

static struct pack *pack_it(const char *source, bool expect_made) {
    struct pack *pack;
    bool made;
    int code = pack_of_source(fixture_path("packs"), source, &plain_options, 2, &pack, &made);
    if (code)
        fail_msg("%s", error_text());
    assert_int_equal(made, expect_made);
    return pack;
}

static void features_are_numbered_as_the_text_shows_them(void **state) {
    (void)state;
    struct pack *pack = pack_it(fixture_text("order", "1 9:1 4:1\n-1 2:1 4:1 11:1\n"), true);
    static const uint64_t id[] = {9, 4, 2, 11}, count[] = {1, 2, 1, 1};
    assert_int_equal(pack->facts->features, 4);
    assert_memory_equal(pack->id, id, sizeof id);
    assert_memory_equal(pack->count, count, sizeof count);
    pack_close(pack);
}

static enum value_type type_of(const char *name, const char *text) {
    struct pack *pack = pack_it(fixture_text(name, text), true);
    enum value_type type = pack->facts->type;
    pack_close(pack);
    return type;
}

static void the_narrowest_exact_value_type_is_chosen(void **state) {
    (void)state;
    assert_int_equal(type_of("ones", "1 1:1 2:1.0\n"), VALUE_ONES);
    assert_int_equal(type_of("float", "1 1:0.5 2:16777216\n"), VALUE_FLOAT);
    assert_int_equal(type_of("double", "1 1:0.5 2:16777217\n"), VALUE_DOUBLE);
    assert_int_equal(type_of("tenth", "1 1:0.1\n"), VALUE_DOUBLE);
    assert_int_equal(type_of("large", "1 1:1e300\n"), VALUE_DOUBLE);
}

static void values_and_labels_are_those_of_the_text(void **state) {
    (void)state;
    struct pack *pack =
        pack_it(fixture_text("text.csv", "a,b,y\n0.1,2,M\n3,-4e-7,B\n5,6,M\n"), true);
    struct pack_rows rows = pack_rows(pack, 0);
    static const double expected[] = {0.1, 2, 3, -4e-7, 5, 6};
    assert_int_equal(rows.values, 6);
    for (uint64_t i = 0; i < 6; i++)
        assert_true(pack_value(&rows, i) == expected[i]);
    assert_null(rows.feature); /* dense */
    assert_string_equal(pack->label_text[rows.label_text[0] - 1], "M");
    assert_string_equal(pack->label_text[rows.label_text[1] - 1], "B");
    assert_int_equal(rows.label_text[2], rows.label_text[0]);
    assert_string_equal(pack->name[1], "b");
    pack_close(pack);
}

/* Rows that are alike have room for the features of one. */
static void texts_that_all_have_the_same_words_are_packed(void **state) {
    (void)state;
    static const char *const text[] = {"review", NULL};
    const struct source_options options = {.table.text = text, .words.lowercase = true};
    struct bytes lines;
    bytes_init(&lines);
    bytes_append(&lines, "review,y\n", 9);
    for (uint32_t row = 0; row < 500; row++)
        bytes_append(&lines,
                     row % 2 ? "aa bb cc dd ee ff gg hh,1\n" : "aa bb cc dd ee ff gg hh,0\n", 26);
    const char *source = fixture_bytes("reviews.csv", lines.data, lines.length);
    struct pack *pack;
    bool made;
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &options, 2, &pack, &made), 0);
    struct pack_rows rows = pack_rows(pack, 0);
    assert_int_equal(pack->facts->features, 8);
    assert_int_equal(rows.values, 4000);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(pack->count[i], 500);
    pack_close(pack);
    bytes_release(&lines);
}

static void an_unchanged_source_is_not_packed_again(void **state) {
    (void)state;
    const char *source = fixture_text("same", "1 1:1\n-1 2:2\n");
    pack_close(pack_it(source, true));
    pack_close(pack_it(source, false));
}

/* ---- weights ---- */

static int pack_weighted(const char *source, const char *weights, uint64_t bad_lines,
                         struct pack **pack, bool *made) {
    struct source_options options = {.property.file[ROW_WEIGHT] = weights,
                                     .bad_lines_max = bad_lines};
    return pack_of_source(fixture_path("packs"), source, &options, 2, pack, made);
}

/* Weights are taken by rows: lines without one do not count, here and there, and a malformed line
 * has its own. */
static void rows_have_the_weights_of_their_file(void **state) {
    (void)state;
    const char *source = fixture_text("weighed", "# rows\n1 1:1\n\nx 2:1\n-1 2:1\n1 1:2\n");
    const char *weights = fixture_text("weighed.weights", "0.5\r\n7\n\n  3e2 \n0");
    struct pack *pack;
    bool made;
    assert_int_equal(pack_weighted(source, weights, 1, &pack, &made), 0);
    struct pack_rows rows = pack_rows(pack, 0);
    static const double expected[] = {0.5, 300, 0};
    assert_int_equal(rows.rows, 3);
    assert_true(pack->facts->weighted);
    assert_memory_equal(rows.weight, expected, sizeof expected);
    pack_close(pack);
}

static void rows_have_the_offsets_and_the_logarithms_of_exposures_of_their_files(void **state) {
    (void)state;
    const char *source = fixture_text("shifted", "1 1:1\nx 2:1\n-1 2:1\n1 1:2\n");
    struct source_options options = {
        .property.file[ROW_OFFSET] = fixture_text("shifted.offsets", "0.5\n7\n-3e2\n0\n"),
        .property.file[ROW_EXPOSURE] = fixture_text("shifted.exposures", "1\n1\n1\n4\n"),
        .bad_lines_max = 1};
    struct pack *pack;
    bool made;
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &options, 2, &pack, &made), 0);
    struct pack_rows rows = pack_rows(pack, 0);
    assert_int_equal(rows.rows, 3);
    assert_true(pack->facts->offset && !pack->facts->weighted && !rows.weight);
    assert_true(rows.offset[0] == 0.5 && rows.offset[1] == -300);
    assert_true(fabs(rows.offset[2] - 1.3862943611198906) < 1e-15);
    pack_close(pack);
    /* Another file of them is another pack; none is one without room for them. */
    options.property.file[ROW_EXPOSURE] = fixture_text("other.exposures", "1\n1\n1\n5\n");
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &options, 2, &pack, &made), 0);
    assert_true(made);
    pack_close(pack);
    options.property.file[ROW_EXPOSURE] = fixture_text("zero.exposures", "1\n1\n0\n5\n");
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &options, 2, &pack, &made),
                     ERROR_DATA);
    assert_non_null(strstr(error_text(), "zero.exposures:3: \"0\" is no exposure"));
    options.property.file[ROW_OFFSET] = options.property.file[ROW_EXPOSURE] = NULL;
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &options, 2, &pack, &made), 0);
    assert_false(pack->facts->offset);
    assert_null(pack_rows(pack, 0).offset);
    pack_close(pack);
}

/* Enough text for many blocks, read by two threads. */
static void weights_follow_their_rows_over_blocks(void **state) {
    (void)state;
    enum { MANY = 100000 };
    struct bytes text, weights;
    bytes_init(&text);
    bytes_init(&weights);
    for (int i = 0; i < MANY; i++) {
        char line[64];
        int length = snprintf(line, sizeof line, i % 1000 == 7 ? "oops %d\n" : "1 1:%d 2:1\n", i);
        bytes_append(&text, line, (size_t)length);
        length = snprintf(line, sizeof line, "%d.25\n", i);
        bytes_append(&weights, line, (size_t)length);
    }
    bytes_append(&weights, "", 1);
    struct bytes packed;
    bytes_init(&packed);
    fixture_gzip(&packed, (const char *)weights.data);
    struct pack *pack;
    bool made;
    const char *source = fixture_bytes("many", text.data, text.length);
    const char *file = fixture_bytes("many.weights.gz", packed.data, packed.length);
    assert_int_equal(pack_weighted(source, file, MANY, &pack, &made), 0);
    assert_true(pack->facts->blocks > 2);
    assert_int_equal(pack->facts->rows, MANY - MANY / 1000);
    for (uint32_t b = 0; b < pack->facts->blocks; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        for (uint32_t row = 0; row < rows.rows; row++) {
            uint64_t first;
            pack_row(&rows, row, &first);
            assert_true(rows.weight[row] == pack_value(&rows, first) + 0.25);
        }
    }
    pack_close(pack);
    bytes_release(&text);
    bytes_release(&weights);
    bytes_release(&packed);
}

static void weights_of_1_are_not_stored(void **state) {
    (void)state;
    struct pack *pack;
    bool made;
    const char *source = fixture_text("alike", "1 1:1\n-1 2:1\n");
    assert_int_equal(
        pack_weighted(source, fixture_text("alike.weights", "1\n1.0\n"), 0, &pack, &made), 0);
    assert_false(pack->facts->weighted);
    assert_null(pack_rows(pack, 0).weight);
    pack_close(pack);
}

static void another_file_of_weights_is_another_pack(void **state) {
    (void)state;
    struct pack *pack;
    bool made;
    const char *source = fixture_text("twice", "1 1:1\n-1 2:1\n");
    const char *weights = fixture_text("twice.weights", "1\n2\n");
    assert_int_equal(pack_weighted(source, weights, 0, &pack, &made), 0);
    assert_true(made);
    pack_close(pack);
    assert_int_equal(pack_weighted(source, weights, 0, &pack, &made), 0);
    assert_false(made);
    pack_close(pack);
    fixture_text("twice.weights", "1\n3\n");
    assert_int_equal(pack_weighted(source, weights, 0, &pack, &made), 0);
    assert_true(made);
    assert_true(pack_rows(pack, 0).weight[1] == 3);
    pack_close(pack);
    assert_int_equal(pack_weighted(source, NULL, 0, &pack, &made), 0);
    assert_true(made);
    assert_null(pack_rows(pack, 0).weight);
    pack_close(pack);
}

static void assert_refused(const char *weights, const char *why) {
    struct pack *pack;
    bool made;
    const char *source = fixture_text("pair", "1 1:1\n-1 2:1\n");
    assert_int_equal(pack_weighted(source, fixture_text("w", weights), 5, &pack, &made),
                     ERROR_DATA);
    if (!strstr(error_text(), why))
        fail_msg("%s: %s", weights, error_text());
    error_clear();
}

static void weights_that_make_no_sense_are_refused_by_name(void **state) {
    (void)state;
    assert_refused("1\n", "w has only 1 weights, and ");
    assert_refused("1\n2\n3\n4\n", "w has 4 weights, but ");
    assert_refused("1\n2\n3\n4\n", "pair has 2 rows");
    assert_refused("1\n\n-2\n", "w:3: \"-2\" is no weight: allowed: a number from 0 to 1e+100");
    assert_refused("nan\n2\n", "w:1: \"nan\"");
    assert_refused("1\ninf\n", "w:2: \"inf\"");
    assert_refused("1\n1e308\n", "w:2: \"1e308\"");
    assert_refused("1\n1e999\n", "w:2: \"1e999\"");
    assert_refused("1 2\n", "w:1: \"1 2\"");
    assert_refused("1,\n2\n", "w:1: \"1,\"");
    struct pack *pack;
    bool made;
    const char *source = fixture_text("pair", "1 1:1\n-1 2:1\n");
    assert_int_equal(pack_weighted(source, fixture_text("w", "1e-320\n0\n"), 0, &pack, &made), 0);
    pack_close(pack);
    assert_int_equal(pack_weighted(source, fixture_path("none"), 0, &pack, &made), ERROR_DATA);
    assert_non_null(strstr(error_text(), "none"));
    error_clear();
    assert_int_equal(pack_weighted(source, fixture_text("w", ""), 0, &pack, &made), ERROR_DATA);
    assert_non_null(strstr(error_text(), "w"));
    error_clear();
}

static void set_time(const char *path, time_t seconds) {
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_touched_source_is_known_by_its_content(void **state) {
    (void)state;
    const char *source = fixture_text("touched", "1 1:1\n-1 2:3\n");
    pack_close(pack_it(source, true));
    set_time(source, 1000000000);
    pack_close(pack_it(source, false));
    struct pack *pack = pack_it(fixture_text("copy", "1 1:1\n-1 2:3\n"), false);
    assert_string_equal(pack_source(pack), fixture_path("copy"));
    pack_close(pack);
}

static void a_changed_source_of_the_same_size_is_packed_again(void **state) {
    (void)state;
    const char *source = fixture_text("changed", "1 1:1\n-1 2:4\n");
    pack_close(pack_it(source, true));
    fixture_text("changed", "1 1:1\n-1 2:5\n");
    set_time(source, 1000000000);
    pack_close(pack_it(source, true));
}

static void a_source_changed_in_place_with_its_time_set_back_is_packed_again(void **state) {
    (void)state;
    struct stat before;
    const char *source = fixture_text("back", "1 1:1\n-1 7:2\n");
    pack_close(pack_it(source, true));
    assert_int_equal(stat(source, &before), 0);
    usleep(20000); /* the clock of files has ticked */
    fixture_text("back", "1 1:1\n-1 7:3\n");
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, source, times, 0), 0);
    struct pack *pack = pack_it(source, true);
    struct pack_rows rows = pack_rows(pack, 0);
    assert_true(pack_value(&rows, 1) == 3);
    pack_close(pack);
}

static void other_options_make_another_pack(void **state) {
    (void)state;
    const char *source = fixture_text("options.csv", "1,2\n3,4\n");
    pack_close(pack_it(source, true));
    struct source_options options = {.label.column = "1"};
    struct pack *pack;
    bool made;
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &options, 2, &pack, &made), 0);
    assert_true(made);
    pack_close(pack);
}

static void flip_byte(const char *path, long at) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    assert_int_equal(fclose(file), 0);
}

static void damage_at(const char *source, long at) {
    struct pack *pack = pack_it(source, true);
    char *path = memory_copy_string(pack->container.path);
    pack_close(pack);
    flip_byte(path, at);
    assert_int_equal(pack_open(path, &pack), ERROR_DATA);
    assert_non_null(strstr(error_text(), path));
    error_clear();
    pack_close(pack_it(source, true));
    pack_close(pack_it(source, false));
    free(path);
}

static void a_damaged_pack_is_named_and_made_again(void **state) {
    (void)state;
    char *rows = fixture_rows(0, 100);
    const char *source = fixture_text("damaged", rows);
    damage_at(source, 5); /* the header */
    assert_int_equal(unlink(source), 0);
    rows[0] = '2';
    source = fixture_text("damaged", rows);
    damage_at(source, 450); /* the first block */
    free(rows);
}

static void a_shortened_pack_is_damaged(void **state) {
    (void)state;
    struct pack *pack = pack_it(fixture_text("short", "1 1:1\n3 4:4\n"), true);
    char *path = memory_copy_string(pack->container.path);
    pack_close(pack);
    assert_int_equal(truncate(path, 500), 0);
    assert_int_equal(pack_open(path, &pack), ERROR_DATA);
    error_clear();
    free(path);
}

static void threads_do_not_change_a_pack(void **state) {
    (void)state;
    char *rows = fixture_rows(0, 30000);
    const char *source = fixture_text("threads", rows);
    free(rows);
    char *contents[2];
    size_t length[2];
    for (unsigned i = 0; i < 2; i++) {
        struct pack *pack;
        bool made;
        const char *folder = fixture_path(i ? "packs-4" : "packs-1");
        assert_int_equal(pack_of_source(folder, source, &plain_options, i ? 4 : 1, &pack, &made),
                         0);
        assert_int_equal(file_read(pack->container.path, 1u << 30, &contents[i], &length[i]), 0);
        pack_close(pack);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(contents[0], contents[1], length[0]);
    free(contents[0]);
    free(contents[1]);
}

static unsigned files_in(const char *path) {
    unsigned count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* New memory is filled with another byte each time, so that what nobody writes differs. */
static void assert_packed_alike(const char *source, const struct source_options *options) {
    char *contents[2];
    size_t length[2];
    for (unsigned i = 0; i < 2; i++) {
        struct pack *pack;
        bool made;
        const char *folder = fixture_path(i ? "filled-2" : "filled-1");
        mallopt(M_PERTURB, i ? 0x55 : 0x22);
        if (pack_of_source(folder, source, options, 1, &pack, &made))
            fail_msg("%s", error_text());
        assert_true(made);
        assert_int_equal(file_read(pack->container.path, 1u << 20, &contents[i], &length[i]), 0);
        pack_close(pack);
    }
    mallopt(M_PERTURB, 0);
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(contents[0], contents[1], length[0]);
    free(contents[0]);
    free(contents[1]);
}

static void nothing_that_was_in_memory_comes_into_a_pack(void **state) {
    (void)state;
    static const uint8_t images[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 8};
    char *weights = memory_copy_string(fixture_text("of-three", "1\n0.5\n2\n")),
         *offsets = memory_copy_string(fixture_text("shifts", "1\n2\n3\n"));
    const struct source_options none = {.label.optional = true},
                                weighted = {.property.file[ROW_WEIGHT] = weights,
                                            .property.file[ROW_OFFSET] = offsets};
    assert_packed_alike(fixture_bytes("images", images, sizeof images), &none);
    assert_packed_alike(fixture_text("ones-3", "1 2:1\n0 1:1 3:1\n1 3:1\n"), &plain_options);
    assert_packed_alike(fixture_text("floats-3", "1 2:2\n0 1:1 3:1\n1 3:1\n"), &weighted);
    assert_packed_alike(fixture_text("doubles-3", "1 2:.1\n0 1:1 3:1\n1 3:1\n"), &weighted);
    assert_packed_alike(fixture_text("table-3.csv", "a,b,y\n0.5,u,M\n3,v,B\n5,u,M\n"), &weighted);
    assert_packed_alike(fixture_text("lines", "{\"a\":0.5,\"y\":1}\n{\"a\":2,\"y\":0}\n"),
                        &plain_options);
    free(weights);
    free(offsets);
}

static void bad_data_leaves_no_file_behind(void **state) {
    (void)state;
    char *rows = fixture_rows(0, 20000);
    char *text = memory_format("%s1 1:x\n", rows);
    struct pack *pack;
    bool made;
    const char *folder = fixture_path("packs-bad");
    assert_int_equal(
        pack_of_source(folder, fixture_text("late", text), &plain_options, 2, &pack, &made),
        ERROR_DATA);
    error_clear();
    assert_int_equal(files_in(folder), 0);
    free(text);
    free(rows);
}

/* An older pack than the newest would be other data. */
static void packs_that_cannot_be_listed_are_not_taken_for_none(void **state) {
    (void)state;
    const struct source_options streamed = {.streams = true};
    const char *source = fixture_text("listed", "1 1:1\n-1 1:2\n");
    struct pack *pack;
    bool made;
    int input = dup(STDIN_FILENO), nothing = open("/dev/null", O_RDONLY);
    pack_close(pack_it(source, true));
    assert_int_equal(dup2(nothing, STDIN_FILENO), STDIN_FILENO);
    reading_fails = true;
    assert_int_equal(pack_of_source(fixture_path("packs"), source, &plain_options, 2, &pack, &made),
                     ERROR_IO);
    error_clear();
    assert_int_equal(pack_of_source(fixture_path("packs"), "-", &streamed, 2, &pack, &made),
                     ERROR_IO);
    error_clear();
    reading_fails = false;
    assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    close(input);
    close(nothing);
}

SUITE(pack) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_numbered_as_the_text_shows_them),
        cmocka_unit_test(the_narrowest_exact_value_type_is_chosen),
        cmocka_unit_test(values_and_labels_are_those_of_the_text),
        cmocka_unit_test(texts_that_all_have_the_same_words_are_packed),
        cmocka_unit_test(rows_have_the_weights_of_their_file),
        cmocka_unit_test(rows_have_the_offsets_and_the_logarithms_of_exposures_of_their_files),
        cmocka_unit_test(weights_follow_their_rows_over_blocks),
        cmocka_unit_test(weights_of_1_are_not_stored),
        cmocka_unit_test(another_file_of_weights_is_another_pack),
        cmocka_unit_test(weights_that_make_no_sense_are_refused_by_name),
        cmocka_unit_test(an_unchanged_source_is_not_packed_again),
        cmocka_unit_test(packs_that_cannot_be_listed_are_not_taken_for_none),
        cmocka_unit_test(a_touched_source_is_known_by_its_content),
        cmocka_unit_test(a_changed_source_of_the_same_size_is_packed_again),
        cmocka_unit_test(a_source_changed_in_place_with_its_time_set_back_is_packed_again),
        cmocka_unit_test(other_options_make_another_pack),
        cmocka_unit_test(a_damaged_pack_is_named_and_made_again),
        cmocka_unit_test(a_shortened_pack_is_damaged),
        cmocka_unit_test(threads_do_not_change_a_pack),
        cmocka_unit_test(nothing_that_was_in_memory_comes_into_a_pack),
        cmocka_unit_test(bad_data_leaves_no_file_behind),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
