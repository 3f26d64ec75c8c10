/* What a shard that was started with --folder may touch. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "shard/confined.h"
#include "tests/unit/folder_fixture.h"

static int put(struct confined *confined, const char *path) {
    const struct disk_piece piece = {"x", 1};
    error_clear();
    return confined->disk.write(confined->disk.context, path, &piece, 1, NULL);
}

static void note(void *visitor, const char *name) {
    (void)visitor, (void)name;
}

static bool is_there(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0;
}

static void make_root(struct confined *confined) {
    assert_int_equal(confined_init(confined, &files_disk, inside("root")), 0);
}

static void below_the_folder_everything_is_as_without_it(void **state) {
    (void)state;
    struct confined confined;
    void *file;
    uint64_t length;
    char byte = 0;
    make_root(&confined);
    const struct disk *disk = &confined.disk;
    assert_int_equal(put(&confined, inside("root/shards/0/step-1")), 0);
    assert_int_equal(disk->open(disk->context, inside("root/shards/0/step-1"), &file, &length), 0);
    assert_int_equal(length, 1);
    assert_int_equal(disk->read(disk->context, file, 0, &byte, 1), 0);
    assert_int_equal(byte, 'x');
    disk->close(disk->context, file);
    assert_int_equal(disk->list(disk->context, inside("root/shards/0"), note, NULL), 0);
    assert_int_equal(disk->remove(disk->context, inside("root/shards/0/step-1")), 0);
    assert_int_equal(disk->open(disk->context, inside("root/none"), &file, &length),
                     ERROR_UNAVAILABLE);
    confined_release(&confined);
}

static void what_lies_beside_the_folder_is_refused(void **state) {
    (void)state;
    struct confined confined;
    void *file;
    uint64_t length;
    make_root(&confined);
    const struct disk *disk = &confined.disk;
    const char *const outside[] = {"other/step-1", "root2/step-1", "root/../other/step-1",
                                   "root/a/../../other/step-1", "step-1"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_int_equal(put(&confined, inside(outside[i])), ERROR_PERMISSION);
        assert_non_null(strstr(error_text(), "--folder"));
        assert_int_equal(disk->open(disk->context, inside(outside[i]), &file, &length),
                         ERROR_PERMISSION);
        assert_int_equal(disk->list(disk->context, inside(outside[i]), note, NULL),
                         ERROR_PERMISSION);
        assert_int_equal(disk->remove(disk->context, inside(outside[i])), ERROR_PERMISSION);
    }
    assert_false(is_there(inside("other")));
    assert_false(is_there(inside("root2")));
    assert_int_equal(put(&confined, "/tmp/dml-confined-test/step-1"), ERROR_PERMISSION);
    assert_false(is_there("/tmp/dml-confined-test"));
    confined_release(&confined);
}

static void links_that_lead_out_are_refused_and_those_within_are_not(void **state) {
    (void)state;
    struct confined confined;
    make_root(&confined);
    assert_int_equal(mkdir(inside("other"), 0755), 0);
    assert_int_equal(mkdir(inside("root/within"), 0755), 0);
    assert_int_equal(symlink("../other", inside("root/out")), 0);
    assert_int_equal(symlink("../nowhere", inside("root/dangling")), 0);
    assert_int_equal(symlink("within", inside("root/in")), 0);
    assert_int_equal(put(&confined, inside("root/out/step-1")), ERROR_PERMISSION);
    assert_int_equal(put(&confined, inside("root/out/deeper/step-1")), ERROR_PERMISSION);
    assert_int_equal(put(&confined, inside("root/dangling")), ERROR_PERMISSION);
    assert_int_equal(put(&confined, inside("root/dangling/step-1")), ERROR_PERMISSION);
    assert_int_equal(put(&confined, inside("root/in/step-1")), 0);
    assert_false(is_there(inside("nowhere")));
    assert_false(is_there(inside("other/step-1")));
    assert_true(is_there(inside("root/within/step-1")));
    confined_release(&confined);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

SUITE(confined) {
    const struct CMUnitTest tests[] = {
        TEST(below_the_folder_everything_is_as_without_it),
        TEST(what_lies_beside_the_folder_is_refused),
        TEST(links_that_lead_out_are_refused_and_those_within_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
