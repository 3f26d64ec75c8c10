/* A set that comes in pieces, for a host that does not see its file. */
#include "tests/unit/data_fixture.h"
#include "tests/unit/suites.h"

#include "data/set/set_file.h"

/* A set of several chunks, and where it is. */
static struct set *whole_set(void) {
    static const struct source_options reading;
    struct bytes text;
    struct pack *pack;
    struct set *set = NULL;
    bool made;
    bytes_init(&text);
    for (int row = 0; row < 4000; row++) {
        char *line =
            memory_format("%d %d:%d %d:2\n", row % 2, 1 + row % 7, 1 + row % 5, 9 + row % 300);
        bytes_append(&text, line, strlen(line));
        free(line);
    }
    const char *path = fixture_bytes("rows", text.data, text.length);
    bytes_release(&text);
    if (pack_of_source(fixture_path("packs"), path, &reading, 2, &pack, &made) ||
        set_of_packs(fixture_path("sets"), &pack, 1,
                     &(struct set_options){.labels = LABEL_BINARY, .threads = 2}, &set, &made))
        fail_msg("%s", error_text());
    pack_close(pack);
    assert_true(set_info(set)->chunks > 2);
    return set;
}

/* The head comes; answers how many bytes did. */
static uint64_t give_head(struct partial_set *partial, const struct set *whole) {
    uint64_t offset, bytes, all = 0;
    while ((bytes = partial_lacks(partial, &offset))) {
        assert_int_equal(partial_put(partial, set_bytes(whole, offset, bytes)), 0);
        all += bytes;
    }
    return all;
}

static struct set *opened(struct partial_set *partial) {
    struct set *set;
    if (partial_open(partial, &set))
        fail_msg("%s", error_text());
    partial_free(partial);
    return set;
}

static const void *bytes_of(const struct set *whole, uint32_t place) {
    uint64_t offset, bytes = set_place(whole, place, &offset);
    return set_bytes(whole, offset, bytes);
}

static void its_head_comes_first_and_then_the_chunks_that_are_needed(void **state) {
    (void)state;
    struct set *whole = whole_set();
    struct partial_set *partial = partial_new(fixture_path("copies"), "abc");
    assert_in_range(give_head(partial, whole), sizeof(struct container_header) + 1,
                    set_length(whole) / 2);
    struct set *set = opened(partial);
    assert_string_equal(set_info(set)->fingerprint, set_info(whole)->fingerprint);
    assert_int_equal(set_places(set), set_info(whole)->chunks);
    assert_false(set_has(set, 1));
    struct rows rows, expected;
    assert_int_equal(set_chunk(set, 1, &rows), ERROR_UNAVAILABLE); /* not here */
    error_clear();
    assert_int_equal(set_put(set, 1, bytes_of(whole, 1)), 0);
    assert_true(set_has(set, 1));
    assert_false(set_has(set, 0));
    assert_int_equal(set_look(set, 1, 1), 0);
    assert_int_equal(set_chunk(set, 1, &rows), 0);
    assert_int_equal(set_settle(set), 0);
    assert_int_equal(set_chunk(whole, 1, &expected), 0);
    assert_int_equal(rows.count, expected.count);
    assert_memory_equal(rows.label, expected.label, rows.count * sizeof *rows.label);
    set_close(set);
    set_close(whole);
}

static void bytes_with_a_wrong_checksum_are_dropped(void **state) {
    (void)state;
    struct set *whole = whole_set();
    struct partial_set *partial = partial_new(fixture_path("dropped"), "abc");
    uint64_t offset, bytes = partial_lacks(partial, &offset);
    uint8_t *wrong = memory_new(set_length(whole), 1);
    assert_int_equal(partial_put(partial, wrong), 0);
    assert_int_equal(partial_lacks(partial, &offset), bytes);
    assert_int_equal(partial_put(partial, set_bytes(whole, 0, bytes)), 0);
    bytes = partial_lacks(partial, &offset);
    assert_int_equal(partial_put(partial, wrong), 0);
    uint64_t again;
    assert_int_equal(partial_lacks(partial, &again), bytes);
    assert_int_equal(again, offset);
    give_head(partial, whole);
    struct set *set = opened(partial);
    assert_int_equal(set_put(set, 0, wrong), 0);
    assert_false(set_has(set, 0));
    free(wrong);
    set_close(set);
    set_close(whole);
}

static void what_a_former_process_has_put_there_is_not_lacking(void **state) {
    (void)state;
    struct set *whole = whole_set();
    struct partial_set *partial = partial_new(fixture_path("former"), "abc");
    give_head(partial, whole);
    struct set *set = opened(partial);
    assert_int_equal(set_put(set, 2, bytes_of(whole, 2)), 0);
    set_close(set);
    partial = partial_new(fixture_path("former"), "abc");
    assert_int_equal(give_head(partial, whole), sizeof(struct container_header));
    set = opened(partial);
    assert_true(set_has(set, 2));
    assert_false(set_has(set, 0));
    set_remove_copy(set);
    set_close(set);
    partial = partial_new(fixture_path("former"), "abc");
    assert_true(give_head(partial, whole) > sizeof(struct container_header));
    partial_free(partial);
    set_close(whole);
}

static void a_change_while_rows_are_used_is_found_afterwards(void **state) {
    (void)state;
    struct set *whole = whole_set();
    struct partial_set *partial = partial_new(fixture_path("changed"), "abc");
    give_head(partial, whole);
    struct set *set = opened(partial);
    struct rows rows;
    uint64_t offset;
    assert_int_equal(set_put(set, 0, bytes_of(whole, 0)), 0);
    assert_int_equal(set_look(set, 0, 1), 0);
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    set_place(set, 0, &offset);
    FILE *file = fopen(set_path(set), "r+");
    assert_int_equal(fseek(file, (long)offset + 8, SEEK_SET), 0);
    fputc(0xaa, file);
    fclose(file);
    assert_int_equal(set_settle(set), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "the copy of chunk 0 is damaged"));
    error_clear();
    set_close(set);
    set_close(whole);
}

static void without_a_folder_it_is_in_memory(void **state) {
    (void)state;
    struct set *whole = whole_set();
    struct partial_set *partial = partial_new(NULL, "abc");
    give_head(partial, whole);
    struct set *set = opened(partial);
    assert_int_equal(set_put(set, 0, bytes_of(whole, 0)), 0);
    assert_true(set_has(set, 0));
    set_close(set);
    set_close(whole);
}

SUITE(partial) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_head_comes_first_and_then_the_chunks_that_are_needed),
        cmocka_unit_test(bytes_with_a_wrong_checksum_are_dropped),
        cmocka_unit_test(what_a_former_process_has_put_there_is_not_lacking),
        cmocka_unit_test(a_change_while_rows_are_used_is_found_afterwards),
        cmocka_unit_test(without_a_folder_it_is_in_memory),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
