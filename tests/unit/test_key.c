/* The key file: who may have it, what it holds, and that it is made once. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/unit/folder_fixture.h"
#include "wire/key.h"

static const char digits[] = "00112233445566778899aabbccddeeff0123456789abcdefABCDEF0123456789";

static void write_file(const char *name, const char *text, unsigned mode) {
    FILE *file = fopen(inside(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(inside(name), mode), 0);
}

static void assert_refused(const char *text, unsigned mode, int code, const char *why) {
    struct key key;
    write_file("key", text, mode);
    assert_int_equal(key_read(inside("key"), &key), code);
    assert_non_null(strstr(error_text(), why));
    error_clear();
}

static void a_key_is_made_once_for_its_owner_alone(void **state) {
    (void)state;
    struct key first, second;
    struct stat status;
    bool made;
    assert_int_equal(key_ensure(folder, &first, &made), 0);
    assert_true(made);
    assert_int_equal(stat(inside("key"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_size, 65);
    assert_int_equal(key_ensure(folder, &second, &made), 0);
    assert_false(made);
    assert_memory_equal(&first, &second, sizeof first);
    char **names;
    assert_int_equal(folder_names(folder, &names), 0);
    assert_string_equal(names[0], "key");
    assert_null(names[1]); /* nothing half-written */
    names_free(names);
    unlink(inside("key"));
    assert_int_equal(key_ensure(folder, &second, &made), 0);
    assert_memory_not_equal(first.secret, second.secret, KEY_BYTES);
    assert_string_not_equal(first.name, second.name);
}

static int ensure(struct key *key) {
    bool made;
    return key_ensure(folder, key, &made);
}

/* The first test, because a child has the process_number() of its parent if that asked before. */
static void processes_that_make_it_together_get_the_same_key(void **state) {
    (void)state;
    enum { OTHERS = 4 };
    int told[2];
    struct key own, other;
    assert_int_equal(pipe(told), 0);
    for (int i = 0; i < OTHERS; i++)
        if (!fork()) {
            bool failed = ensure(&own) || write(told[1], &own, sizeof own) != sizeof own;
            _exit(failed);
        }
    if (ensure(&own))
        fail_msg("%s", error_text());
    for (int i = 0; i < OTHERS; i++) {
        assert_int_equal(read(told[0], &other, sizeof other), sizeof other);
        assert_memory_equal(&own, &other, sizeof own);
    }
    close(told[0]);
    close(told[1]);
}

static void a_key_that_others_may_read_is_refused(void **state) {
    (void)state;
    struct key key;
    assert_refused(digits, 0644, ERROR_PERMISSION, "chmod 600");
    assert_refused(digits, 0620, ERROR_PERMISSION, "chmod 600");
    write_file("a key", digits, 0640);
    assert_int_equal(key_read(inside("a key"), &key), ERROR_PERMISSION);
    assert_non_null(strstr(error_text(), "/a key'`")); /* quoted, as the shell needs it */
    error_clear();
    write_file("key", digits, 0400);
    assert_int_equal(key_read(inside("key"), &key), 0);
    assert_int_equal(key.secret[1], 0x11);
    assert_int_equal(key.secret[24], 0xab);
}

static void a_file_that_holds_no_key_is_refused(void **state) {
    (void)state;
    char longer[80];
    snprintf(longer, sizeof longer, "%s0\n", digits);
    assert_refused("", 0600, ERROR_DATA, "holds no key");
    assert_refused("0123\n", 0600, ERROR_DATA, "holds no key");
    assert_refused(longer, 0600, ERROR_DATA, "holds no key");
    snprintf(longer, sizeof longer, "%s\r\n", digits);
    assert_refused(longer, 0600, ERROR_DATA, "holds no key");
    snprintf(longer, sizeof longer, "\x10%s", digits + 1);
    assert_refused(longer, 0600, ERROR_DATA, "holds no key");
    struct key key;
    assert_int_equal(key_read(inside("none"), &key), ERROR_IO);
    assert_non_null(strstr(error_text(), "STATE/key"));
    error_clear();
    assert_int_equal(key_read(folder, &key), ERROR_DATA);
    error_clear();
}

/* What comes through a pipe whose other end closes after it. Returns what was left unread. */
static ssize_t receive(const char *text, int expected, struct key *key) {
    int ends[2];
    char left[80];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    close(ends[1]);
    assert_int_equal(key_receive(ends[0], 1000, key), expected);
    error_clear();
    ssize_t length = read(ends[0], left, sizeof left);
    close(ends[0]);
    return length;
}

static void a_key_comes_through_a_pipe_and_nothing_after_it_is_read(void **state) {
    (void)state;
    struct key key, read;
    char text[KEY_TEXT_BYTES + 1], more[80];
    int ends[2];
    snprintf(more, sizeof more, "%s\n", digits);
    write_file("key", more, 0600);
    assert_int_equal(key_read(inside("key"), &read), 0);
    assert_int_equal(receive(digits, 0, &key), 0);
    assert_memory_equal(&key, &read, sizeof key);
    strcat(more, "next");
    assert_int_equal(receive(more, 0, &key), 4);
    assert_memory_equal(&key, &read, sizeof key);
    key_text(&key, text);
    assert_int_equal(receive(text, 0, &read), 0);
    assert_memory_equal(&key, &read, sizeof key);
    assert_int_equal(receive("", ERROR_UNAVAILABLE, &key), 0);
    assert_int_equal(receive("0123456789\nabc", ERROR_DATA, &key), 0);
    assert_int_equal(receive("0123456789", ERROR_DATA, &key), 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(key_receive(ends[0], 20, &key), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "no key came within"));
    close(ends[0]);
    close(ends[1]);
}

SUITE(key) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(processes_that_make_it_together_get_the_same_key,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_key_is_made_once_for_its_owner_alone, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_key_that_others_may_read_is_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_key_comes_through_a_pipe_and_nothing_after_it_is_read,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_file_that_holds_no_key_is_refused, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
