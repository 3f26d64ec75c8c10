#include "tests/unit/suites.h"
#include "tests/unit/store_fixture.h"

/* What programs do of which this one is an older version: their schema is put in the place of its
 * own. */
static const char *const steps[] = {
    NULL, "CREATE TABLE later (x INTEGER); INSERT INTO later SELECT run + 40 FROM runs;",
    "ALTER TABLE later ADD COLUMN y INTEGER NOT NULL DEFAULT 7;"};
static const char *const broken_steps[] = {NULL, "CREATE TABLE later (x INTEGER);",
                                           "ALTER TABLE nowhere ADD COLUMN y INTEGER;"};
static const struct store_schema later_schema = {STORE_VERSION + 2, steps};
static const struct store_schema broken_schema = {STORE_VERSION + 2, broken_steps};
static const struct store_schema *own_schema;

/* A database of this version with a run in it, and `schema` in force. */
static void become(const struct store_schema *schema) {
    struct store *store = opened();
    begun(store, "one");
    assert_int_equal(store_close(store), 0);
    own_schema = store_schema;
    store_schema = schema;
}

static int back(void **state) {
    if (own_schema)
        store_schema = own_schema;
    return remove_folder(state);
}

/* The number that a statement answers in the file itself; -1 if it fails. */
static int answer(const char *sql) {
    sqlite3 *file;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    int number = -1;
    if (!sqlite3_prepare_v2(file, sql, -1, &statement, NULL) &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(file);
    return number;
}

static void assert_unchanged(void) {
    assert_int_equal(answer("PRAGMA user_version"), STORE_VERSION);
    assert_int_equal(answer("SELECT count(*) FROM later"), -1);
    assert_int_equal(answer("SELECT count(*) FROM runs"), 1);
}

static void assert_upgraded(void) {
    assert_int_equal(answer("PRAGMA user_version"), STORE_VERSION + 2);
    assert_int_equal(answer("SELECT x + y FROM later"), 48);
    assert_int_equal(answer("SELECT count(*) FROM runs"), 1);
}

static void an_older_database_is_brought_up_to_date_with_all_it_has(void **state) {
    (void)state;
    become(&later_schema);
    for (int i = 0; i < 2; i++) { /* once only */
        assert_int_equal(store_close(opened()), 0);
        assert_upgraded();
    }
}

static void an_upgrade_that_fails_halfway_changes_nothing(void **state) {
    (void)state;
    struct store *store;
    become(&broken_schema);
    assert_int_not_equal(store_open(folder, NULL, &store), 0);
    assert_unchanged();
    store_schema = &later_schema;
    assert_int_equal(store_close(opened()), 0);
    assert_upgraded();
}

static int asked;

static int refuse(struct store *preview) {
    asked++;
    int code = sqlite3_exec(preview->database, "SELECT x + y FROM later", NULL, NULL, NULL);
    assert_int_equal(code, SQLITE_OK); /* a preview is what the database would become */
    return error_set(ERROR_UNAVAILABLE, "a run is unfinished");
}

static int agree(struct store *preview) {
    refuse(preview);
    error_clear();
    return 0;
}

static void whoever_asks_may_leave_an_older_database_as_it_is(void **state) {
    (void)state;
    struct store *store;
    become(&later_schema);
    asked = 0;
    assert_int_equal(store_open(folder, refuse, &store), ERROR_UNAVAILABLE);
    assert_int_equal(store_open_existing(folder, refuse, &store), ERROR_UNAVAILABLE);
    assert_string_equal(error_text(), "a run is unfinished");
    assert_unchanged();
    assert_int_equal(store_open(folder, agree, &store), 0);
    assert_int_equal(store_close(store), 0);
    assert_upgraded();
    assert_int_equal(store_open(folder, refuse, &store), 0);
    assert_int_equal(store_close(store), 0);
    assert_int_equal(asked, 3);
}

static void to_read_an_older_database_changes_nothing(void **state) {
    (void)state;
    struct store *store;
    become(&later_schema);
    assert_int_equal(store_open_to_read(folder, &store), 0);
    assert_int_equal(sqlite3_exec(store->database, "SELECT x + y FROM later", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(store_close(store), 0);
    assert_unchanged();
    assert_int_equal(store_read(folder, &store), 0);
    assert_int_equal(store_close(store), 0);
    assert_unchanged();
}

static void a_database_of_another_program_is_refused_by_its_version(void **state) {
    (void)state;
    static const char *const changes[] = {"PRAGMA user_version = 77",
                                          "PRAGMA application_id = 0; PRAGMA user_version = 12",
                                          "PRAGMA application_id = 0; PRAGMA user_version = 1"};
    static const char *const says[] = {"has version 77, and this program reads version 1",
                                       "has version 12, and this program reads version 1",
                                       "a newer or a development version of dml made it"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct store *store = opened();
        sqlite3_exec(store->database, changes[i], NULL, NULL, NULL);
        assert_int_equal(store_close(store), 0);
        assert_int_equal(store_open(folder, NULL, &store), ERROR_UNAVAILABLE);
        assert_non_null(strstr(error_text(), says[i]));
        assert_non_null(strstr(error_text(), "use that program, or another state folder"));
        assert_int_equal(store_open_to_read(folder, &store), ERROR_UNAVAILABLE);
        error_clear();
        unlink(path);
        unlink(wal);
    }
}

#define UPGRADE_TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, back)

SUITE(store_upgrade) {
    const struct CMUnitTest tests[] = {
        UPGRADE_TEST(an_older_database_is_brought_up_to_date_with_all_it_has),
        UPGRADE_TEST(an_upgrade_that_fails_halfway_changes_nothing),
        UPGRADE_TEST(whoever_asks_may_leave_an_older_database_as_it_is),
        UPGRADE_TEST(to_read_an_older_database_changes_nothing),
        UPGRADE_TEST(a_database_of_another_program_is_refused_by_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
