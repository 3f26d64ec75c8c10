/* Reading a store that another process writes, without its lock. */
#include <signal.h>
#include <sys/prctl.h>

#include "tests/unit/suites.h"
#include "tests/unit/store_fixture.h"

#define READS 40
#define ROWS 400 /* almost a page each */
#define BURST 20

static void execute(struct store *store, const char *sql) {
    assert_int_equal(sqlite3_exec(store->database, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* Each transaction moves 1 from a row to another, so that the sum stays 0. The log starts anew with
 * each. The writer pauses at times, or nothing could be read. `ready` is closed once there is
 * something to read. */
static void write_on_and_on(int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion leaves it */
    struct store *store = opened();
    execute(store, "PRAGMA wal_autocheckpoint = 2; CREATE TABLE t (v INTEGER, pad BLOB);"
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                   "400) INSERT INTO t SELECT 0, zeroblob(3000) FROM n");
    begun(store, "one");
    close(ready);
    for (int i = 1;; i++) {
        execute(store, "BEGIN; UPDATE t SET v = v + 1 WHERE rowid = abs(random()) % 200 + 1;"
                       "UPDATE t SET v = v - 1 WHERE rowid = abs(random()) % 200 + 201; COMMIT");
        usleep(i % BURST ? 500 : 60000);
    }
}

static int64_t ask(struct store *store, const char *sql) {
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static int64_t read_once(void) {
    struct store *store = NULL;
    int code = store_read(folder, &store);
    if (code == ERROR_AGAIN) {
        error_clear();
        return 0;
    }
    assert_int_equal(code, 0);
    assert_int_equal(ask(store, "SELECT sum(v) FROM t"), 0);
    assert_int_equal(ask(store, "SELECT count(*) FROM t"), ROWS);
    int64_t moved = ask(store, "SELECT sum(v) FROM t WHERE rowid <= 200");
    assert_int_equal(store_close(store), 0);
    return moved;
}

static void read_beside_a_writer(const char *filesystem) {
    int64_t last = 0, changes = 0;
    int ready[2];
    char none;
    setenv("DML_FILESYSTEM", filesystem, 1);
    assert_int_equal(pipe(ready), 0);
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0)
        write_on_and_on(ready[1]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &none, 1), 0); /* its end */
    close(ready[0]);
    for (int i = 0; i < READS; i++) {
        int64_t now = read_once();
        changes += now > last;
        last = now > last ? now : last;
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(read_once() >= last); /* what it left */
    unsetenv("DML_FILESYSTEM");
    assert_true(changes > 2);
    char journal[112];
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(journal);
}

static void what_is_read_beside_a_writer_is_one_commit_on_a_local_disk(void **state) {
    (void)state;
    read_beside_a_writer("local");
}

static void what_is_read_beside_a_writer_is_one_commit_on_a_network_file_system(void **state) {
    (void)state;
    read_beside_a_writer("network");
}

static void what_is_damaged_is_named_where_it_lies(void **state) {
    (void)state;
    struct store *store = NULL;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 5000; i++)
        putc('x', file);
    fclose(file);
    assert_int_equal(store_read(folder, &store), ERROR_IO);
    assert_non_null(strstr(error_text(), path));
    assert_non_null(strstr(error_text(), "damaged"));
}

SUITE(store_snapshot) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_read_beside_a_writer_is_one_commit_on_a_local_disk),
        TEST(what_is_read_beside_a_writer_is_one_commit_on_a_network_file_system),
        TEST(what_is_damaged_is_named_where_it_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
