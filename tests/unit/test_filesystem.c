/* What is told of a file system, what a folder holds, and who may write to it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/unit/failing_readdir.h"
#include "tests/unit/folder_fixture.h"

static void the_environment_decides_if_it_says_a_word_that_is_known(void **state) {
    (void)state;
    setenv("DML_FILESYSTEM", "network", 1);
    assert_true(filesystem_is_network("/"));
    setenv("DML_FILESYSTEM", "local", 1);
    assert_false(filesystem_is_network("/"));
    setenv("DML_FILESYSTEM", "tape", 1);
    assert_false(filesystem_is_network("/proc"));
    unsetenv("DML_FILESYSTEM");
    assert_false(filesystem_is_network("/proc"));
    assert_false(filesystem_is_network("/there/is/no/such/path"));
}

/* How many kilobytes of the process are in no file, in the mapping at this address. */
static long own_kilobytes(const void *start) {
    char line[256], address[32];
    long own = -1;
    bool here = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    snprintf(address, sizeof address, "%lx-", (unsigned long)start);
    while (own < 0 && fgets(line, sizeof line, maps)) {
        here |= !strncmp(line, address, strlen(address));
        if (here && sscanf(line, "Anonymous: %ld kB", &own) != 1)
            own = -1;
    }
    fclose(maps);
    return own;
}

static void an_array_that_is_parked_takes_no_memory_of_the_process_and_no_name(void **state) {
    (void)state;
    const size_t count = 1 << 19;
    char **names;
    uint64_t *array = memory_map(count * sizeof *array);
    for (uint64_t i = 0; i < count; i++)
        array[i] = i * i;
    array = file_park(folder, array, count * sizeof *array);
    for (uint64_t i = 0; i < count; i++)
        assert_true(array[i] == i * i);
    assert_int_equal(own_kilobytes(array), 0);
    assert_int_equal(folder_names(folder, &names), 0);
    assert_null(names[0]);
    names_free(names);
    memory_unmap(array, count * sizeof *array);
}

static void an_array_that_cannot_be_parked_stays_where_it_is(void **state) {
    (void)state;
    uint64_t *array = memory_map(sizeof *array);
    assert_ptr_equal(file_park("/there/is/no/such/path", array, sizeof *array), array);
    memory_unmap(array, sizeof *array);
}

static void put(const char *name, const char *text) {
    FILE *file = fopen(inside(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_folder_whose_reading_fails_is_not_taken_for_an_empty_one(void **state) {
    (void)state;
    char **names;
    put("1", "");
    assert_int_equal(folder_names(folder, &names), 0);
    assert_string_equal(names[0], "1");
    names_free(names);
    reading_fails = true;
    assert_int_equal(folder_names(folder, &names), ERROR_IO);
    assert_null(names); /* so that callers who go on without names find none */
    error_clear();
    assert_string_equal(file_suggestion(inside("2"), NULL), "");
    reading_fails = false;
}

/* Writes FOLDER/result. */
static int write_result(void) {
    struct new_file file;
    int code = new_file_open(&file, inside("result"));
    if (!code)
        code = new_file_write(&file, "new", 3);
    return code ? code : new_file_publish(&file);
}

static void a_process_writes_while_the_lock_file_names_it(void **state) {
    (void)state;
    put("lock", "1 here 7\n");
    guard_set(inside("lock"), "1 here 7\n");
    assert_int_equal(guard_check(), 0);
    assert_int_equal(write_result(), 0);
    guard_clear();
}

static void a_process_that_another_replaced_puts_no_file_in_place(void **state) {
    (void)state;
    struct new_file file;
    put("lock", "1 here 7\n");
    put("result", "old");
    guard_set(inside("lock"), "1 here 7\n");
    assert_int_equal(new_file_open(&file, inside("result")), 0);
    assert_int_equal(new_file_write(&file, "new", 3), 0);
    put("lock", "2 there 8\n");
    assert_int_equal(new_file_publish(&file), ERROR_AGAIN);
    assert_non_null(strstr(error_text(), "says: 2 there 8"));
    error_clear();
    assert_int_equal(write_result(), ERROR_AGAIN);
    char **names, *text;
    size_t length;
    assert_int_equal(file_read(inside("result"), 100, &text, &length), 0);
    assert_string_equal(text, "old");
    assert_int_equal(folder_names(folder, &names), 0);
    assert_string_equal(names[1], "result"); /* nothing half-written is left */
    assert_null(names[2]);
    names_free(names);
    free(text);
    guard_clear();
}

static void a_lock_file_that_is_gone_is_another_process_too(void **state) {
    (void)state;
    put("lock", "1 here 7\n");
    guard_set(inside("lock"), "1 here 7\n");
    unlink(inside("lock"));
    assert_false(guard_holds());
    assert_int_equal(guard_check(), ERROR_AGAIN);
    assert_non_null(strstr(error_text(), "/lock is gone: its folder was removed or moved"));
    guard_clear();
    assert_true(guard_holds());
}

static void a_lock_is_known_by_all_of_its_text(void **state) {
    (void)state;
    put("lock", "1 here 7\n");
    assert_true(guard_is(inside("lock"), "1 here 7\n"));
    assert_false(guard_is(inside("lock"), "1 here 7"));
    assert_false(guard_is(inside("lock"), "1 here 7\n8\n"));
    assert_false(guard_is(inside("lock"), ""));
    assert_false(guard_is(inside("none"), "1 here 7\n"));
    put("lock", "");
    assert_false(guard_is(inside("lock"), ""));
    assert_false(guard_is(folder, ""));
    assert_int_equal(mkfifo(inside("pipe"), 0600), 0);
    assert_false(guard_is(inside("pipe"), "1 here 7\n")); /* nor does it wait for a writer */
}

static void the_folder_of_a_user_is_nobody_else_s(void **state) {
    (void)state;
    char *first, *again, *none, name[32];
    const char *before = getenv("TMPDIR");
    char *kept = before ? memory_copy_string(before) : NULL;
    setenv("TMPDIR", folder, 1);
    snprintf(name, sizeof name, "dml-%u", (unsigned)geteuid());
    assert_int_equal(folder_of_user(&first), 0);
    assert_int_equal(folder_of_user(&again), 0);
    assert_string_equal(first, again);
    assert_int_equal(*first, '/');
    assert_non_null(strstr(first, inside(name)));
    assert_int_equal(chmod(first, 0750), 0);
    assert_int_equal(folder_of_user(&none), ERROR_PERMISSION);
    assert_non_null(strstr(error_text(), "open to others (mode 0750): run `chmod 700 "));
    assert_null(none);
    error_clear();
    assert_int_equal(rmdir(first), 0);
    assert_int_equal(symlink("/tmp", first), 0);
    assert_int_equal(folder_of_user(&none), ERROR_PERMISSION);
    assert_non_null(strstr(error_text(), "is a link or a file, not a folder"));
    error_clear();
    if (!geteuid()) {
        assert_int_equal(unlink(first) || mkdir(first, 0700) || chown(first, 7, 7), 0);
        assert_int_equal(folder_of_user(&none), ERROR_PERMISSION);
        assert_non_null(strstr(error_text(), "belongs to another user (7)"));
        error_clear();
    }
    setenv("TMPDIR", inside("none"), 1);
    assert_int_equal(folder_of_user(&none), ERROR_CREATE);
    error_clear();
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    free(first);
    free(again);
}

SUITE(filesystem) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_decides_if_it_says_a_word_that_is_known),
        cmocka_unit_test_setup_teardown(
            an_array_that_is_parked_takes_no_memory_of_the_process_and_no_name, make_folder,
            remove_folder),
        cmocka_unit_test(an_array_that_cannot_be_parked_stays_where_it_is),
        cmocka_unit_test_setup_teardown(a_folder_whose_reading_fails_is_not_taken_for_an_empty_one,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_process_writes_while_the_lock_file_names_it, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_process_that_another_replaced_puts_no_file_in_place,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_lock_is_known_by_all_of_its_text, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(the_folder_of_a_user_is_nobody_else_s, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_lock_file_that_is_gone_is_another_process_too,
                                        make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
