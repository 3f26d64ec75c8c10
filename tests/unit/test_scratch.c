/* A copy of a set's chunks on a local disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/file.h"
#include "data/set/set_file.h"
#include "tests/unit/folder_fixture.h"

#define BYTES 300000

static struct chunk_cache *opened(const char *fingerprint) {
    struct chunk_cache *cache = NULL;
    if (chunk_cache_open(inside("copies"), fingerprint, BYTES, &cache))
        fail_msg("%s", error_text());
    return cache;
}

static void what_one_replica_puts_another_finds_and_the_rest_are_holes(void **state) {
    (void)state;
    struct chunk_cache *one = opened("aa"), *other = opened("aa");
    struct stat status;
    assert_true(chunk_cache_put(one, 200000, "chunk", 6));
    assert_string_equal((const char *)chunk_cache_at(other, 200000), "chunk");
    assert_int_equal(*chunk_cache_at(other, 0), 0);
    assert_int_equal(stat(inside("copies/dml-aa.scratch"), &status), 0);
    assert_int_equal(status.st_size, BYTES);
    assert_true(status.st_blocks * 512 < BYTES / 2);
    assert_int_equal(status.st_mode & 0777, 0600);
    chunk_cache_close(one);
    chunk_cache_close(other);
    one = opened("aa"); /* the next run */
    assert_string_equal((const char *)chunk_cache_at(one, 200000), "chunk");
    chunk_cache_close(one);
}

static void copies_of_other_sets_go_when_nobody_has_them_open(void **state) {
    (void)state;
    struct chunk_cache *used = opened("aa"), *left = opened("bb");
    FILE *file = fopen(inside("copies/mine.txt"), "w");
    fclose(file);
    chunk_cache_close(left);
    chunk_cache_close(opened("cc"));
    assert_int_equal(access(inside("copies/dml-aa.scratch"), F_OK), 0);
    assert_int_not_equal(access(inside("copies/dml-bb.scratch"), F_OK), 0);
    assert_int_equal(access(inside("copies/mine.txt"), F_OK), 0);
    chunk_cache_close(used);
}

static void a_file_that_others_may_write_or_a_link_is_not_used(void **state) {
    (void)state;
    struct chunk_cache *cache = NULL;
    chunk_cache_close(opened("aa"));
    assert_int_equal(chmod(inside("copies/dml-aa.scratch"), 0666), 0);
    assert_int_equal(chunk_cache_open(inside("copies"), "aa", BYTES, &cache), ERROR_PERMISSION);
    error_clear();
    assert_int_equal(symlink("/etc/hostname", inside("copies/dml-ll.scratch")), 0);
    assert_int_equal(chunk_cache_open(inside("copies"), "ll", BYTES, &cache), ERROR_CREATE);
    error_clear();
}

static void a_folder_that_cannot_be_made_is_an_error(void **state) {
    (void)state;
    struct chunk_cache *cache = NULL;
    FILE *file = fopen(inside("copies"), "w");
    fclose(file);
    assert_int_equal(chunk_cache_open(inside("copies"), "aa", BYTES, &cache), ERROR_CREATE);
    error_clear();
}

SUITE(cache) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_one_replica_puts_another_finds_and_the_rest_are_holes,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(copies_of_other_sets_go_when_nobody_has_them_open,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_file_that_others_may_write_or_a_link_is_not_used,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_made_is_an_error, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
