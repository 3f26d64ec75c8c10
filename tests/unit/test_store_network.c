/* The store on a network file system, and a store whose process was replaced. */
#include "tests/unit/suites.h"
#include "base/file.h"
#include "tests/unit/store_fixture.h"

static void pretend(const char *kind) {
    setenv("DML_FILESYSTEM", kind, 1);
}

static void work_without_an_end(void) {
    struct store *store;
    char uuid[16];
    snprintf(uuid, sizeof uuid, "%d", (int)getpid());
    if (store_open(folder, NULL, &store))
        _exit(1);
    begun(store, uuid);
}

/* Byte 18 of the file: 1 for a rollback journal, 2 for WAL. */
static int journal_mode(void) {
    unsigned char header[20] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(header, 1, sizeof header, file), sizeof header);
    fclose(file);
    return header[18];
}

static int64_t last_run(struct store *store) {
    struct store_run run;
    bool found;
    assert_int_equal(store_run_last(store, &run, &found), 0);
    int64_t number = run.run;
    store_run_release(&run);
    return number;
}

static void on_a_network_file_system_there_is_no_log_and_the_lock_is_let_go(void **state) {
    (void)state;
    pretend("network");
    struct store *first = opened(), *second = NULL;
    begun(first, "one");
    assert_int_equal(journal_mode(), 1);
    assert_int_not_equal(access(wal, F_OK), 0);
    assert_int_equal(store_open(folder, NULL, &second), 0); /* its successor is not kept out */
    assert_int_equal(last_run(second), 1);
    begun(second, "two");
    assert_int_equal(last_run(first), 2);
    assert_int_equal(store_close(second), 0);
    assert_int_equal(store_close(first), 0);
}

static void a_database_that_is_moved_is_converted_with_all_that_was_in_its_log(void **state) {
    (void)state;
    pretend("local");
    in_a_process_that_dies(work_without_an_end);
    assert_int_equal(access(wal, F_OK), 0);
    pretend("network");
    struct store *store = opened();
    assert_int_equal(last_run(store), 1);
    begun(store, "two");
    assert_int_equal(store_close(store), 0);
    assert_int_equal(journal_mode(), 1);
    assert_int_not_equal(access(wal, F_OK), 0);
    in_a_process_that_dies(work_without_an_end);
    pretend("local");
    store = opened();
    assert_int_equal(last_run(store), 3);
    assert_int_equal(journal_mode(), 2);
    assert_int_equal(store_close(store), 0);
}

static void write_lock(const char *text) {
    char name[96];
    snprintf(name, sizeof name, "%s/lock", folder);
    FILE *file = fopen(name, "w");
    fputs(text, file);
    fclose(file);
}

/* What the files of the database hold. Free it. */
static char *contents(void) {
    char command[256], *text = calloc(1, 256);
    snprintf(command, sizeof command, "cat %s* | cksum; ls %s", path, folder);
    FILE *pipe = popen(command, "r");
    assert_true(fread(text, 1, 255, pipe) > 0);
    pclose(pipe);
    return text;
}

/* A transaction is open when the process is stopped, and its successor writes meanwhile. */
static void check_replaced(const char *kind) {
    struct store_step step = {.step = 1, .note = ""};
    char name[128];
    snprintf(name, sizeof name, "%s/lock", folder);
    pretend(kind);
    write_lock("1 here 7\n");
    guard_set(name, "1 here 7\n");
    struct store *store = opened();
    int64_t run = begun(store, "one");
    assert_int_equal(store_step(store, run, &step), 0);
    char *before = contents();
    write_lock("2 there 8\n");
    assert_int_equal(store_flush(store), ERROR_AGAIN);
    error_clear();
    assert_int_equal(store_step(store, run, &step), ERROR_AGAIN);
    assert_int_equal(store_attempt(store, run, 2), ERROR_AGAIN);
    assert_int_equal(store_run_end(store, run, "stalled", NULL, 0, 0, 0, 0), ERROR_AGAIN);
    store_abandon(store);
    store_close(store);
    char *after = contents();
    assert_string_equal(after, before);
    free(before);
    free(after);
    guard_clear();
    unlink(name);
    snprintf(name, sizeof name, "%s-journal", path);
    unlink(name);
}

static void what_a_replaced_process_collected_is_never_written(void **state) {
    (void)state;
    check_replaced("network");
}

static void nor_is_its_database_closed(void **state) {
    (void)state;
    char name[128];
    snprintf(name, sizeof name, "%s/lock", folder);
    pretend("local");
    write_lock("1 here 7\n");
    guard_set(name, "1 here 7\n");
    struct store *store = opened();
    begun(store, "one");
    write_lock("2 there 8\n");
    char *before = contents();
    assert_int_equal(store_close(store), 0); /* else its log goes into the file */
    char *after = contents();
    assert_string_equal(after, before);
    free(before);
    free(after);
    guard_clear();
    unlink(name);
}

static void not_even_into_a_log_of_its_own(void **state) {
    (void)state;
    check_replaced("local");
}

SUITE(store_network) {
    const struct CMUnitTest tests[] = {
        TEST(on_a_network_file_system_there_is_no_log_and_the_lock_is_let_go),
        TEST(a_database_that_is_moved_is_converted_with_all_that_was_in_its_log),
        TEST(what_a_replaced_process_collected_is_never_written),
        TEST(nor_is_its_database_closed),
        TEST(not_even_into_a_log_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
