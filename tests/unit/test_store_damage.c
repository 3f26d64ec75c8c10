#include "tests/unit/suites.h"
#include "tests/unit/store_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/hash.h"

#define COMMITS_MAX 32

/* What store_saved_read() answered after each commit: what it may answer ever after. */
static uint64_t states[COMMITS_MAX];
static int state_count;

static uint64_t state_of(const struct store_saved *saved) {
    uint64_t hash = hash64_seeded(&saved->attempt, sizeof saved->attempt, saved->step_count);
    for (uint32_t i = 0; i < saved->step_count; i++) {
        hash = hash64_seeded(&saved->steps[i].step, sizeof saved->steps[i].step, hash);
        hash = hash64_seeded(saved->steps[i].state.data, saved->steps[i].state.length, hash);
        hash =
            hash64_seeded(saved->steps[i].digests, saved->steps[i].shards * sizeof(uint64_t), hash);
    }
    for (uint32_t i = 0; i < saved->journal_count; i++)
        hash = hash64_seeded(saved->journal[i].data, saved->journal[i].length, hash);
    return hash;
}

static void remember(struct store *store) {
    struct store_saved saved;
    assert_int_equal(store_flush(store), 0);
    assert_int_equal(store_saved_read(store, 1, &saved), 0);
    assert_true(state_count < COMMITS_MAX);
    states[state_count++] = state_of(&saved);
    store_saved_release(&saved);
}

/* A small run, left with its log (as by a crash) or without (as by a close). */
static void make_run(bool with_log) {
    struct store *store = opened();
    state_count = 0;
    remember(store);
    if (with_log)
        sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int64_t run = begun(store, "one");
    assert_int_equal(store_attempt(store, run, 1), 0);
    remember(store);
    for (uint64_t step = 1; step <= 4; step++) {
        assert_int_equal(durable(store, run, 1, step, 3000), 0);
        remember(store);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(store_journal(store, run, &i, sizeof i, i == 0), 0);
            remember(store);
        }
    }
    assert_int_equal(store_close(store), 0);
}

struct image {
    unsigned char *bytes;
    size_t length;
};

static struct image read_image(const char *name) {
    struct image image = {malloc(1 << 22), 0};
    FILE *file = fopen(name, "rb");
    if (file) {
        image.length = fread(image.bytes, 1, 1 << 22, file);
        fclose(file);
    }
    return image;
}

static void write_image(const char *name, const struct image *image, size_t length) {
    unlink(name);
    if (length == 0)
        return;
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(image->bytes, 1, length, file), length);
    fclose(file);
}

/* Opens what lies there: an error that names the file, or a state that once was. */
static void must_be_refused_or_true(const char *damage, size_t where) {
    struct store *store = NULL;
    struct store_saved saved = {0};
    error_clear();
    int code = store_open(folder, NULL, &store);
    if (!code)
        code = store_saved_read(store, 1, &saved);
    if (code && !strstr(error_text(), path))
        fail_msg("%s at %zu: %s", damage, where, error_text());
    bool known = code != 0;
    for (int i = 0; !known && i < state_count; i++)
        known = states[i] == state_of(&saved);
    if (!known)
        fail_msg("%s at %zu: a state that never was", damage, where);
    store_saved_release(&saved);
    store_close(store);
}

static void damage_everything(bool with_log) {
    make_run(with_log);
    struct image database = read_image(path), log = read_image(wal);
    assert_int_equal(log.length > 0, with_log);
    struct image *damaged = with_log ? &log : &database;
    for (size_t length = 0; length < damaged->length; length += 512) {
        write_image(path, &database, with_log ? database.length : length);
        write_image(wal, &log, with_log ? length : 0);
        must_be_refused_or_true("truncated", length);
    }
    uint64_t random = 1;
    for (int i = 0; i < 400; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t where = (size_t)(random >> 33) % damaged->length;
        unsigned char before = damaged->bytes[where];
        damaged->bytes[where] ^= (unsigned char)(1 + (random >> 20) % 255);
        write_image(path, &database, database.length);
        write_image(wal, &log, log.length);
        must_be_refused_or_true("flipped", where);
        damaged->bytes[where] = before;
    }
    free(database.bytes);
    free(log.bytes);
}

static void a_damaged_log_gives_an_earlier_state_or_is_named(void **state) {
    (void)state;
    damage_everything(true);
}

static void a_damaged_database_gives_a_true_state_or_is_named(void **state) {
    (void)state;
    damage_everything(false);
}

static void a_changed_blob_is_named_with_what_to_do(void **state) {
    (void)state;
    make_run(false);
    struct image database = read_image(path);
    for (size_t i = 0; i + 8 < database.length; i++)
        if (memcmp(database.bytes + i, "eeeeeeee", 8) == 0)
            database.bytes[i] = 'f';
    write_image(path, &database, database.length);
    free(database.bytes);
    struct store *store = opened();
    struct store_saved saved;
    assert_int_equal(store_saved_read(store, 1, &saved), ERROR_IO);
    assert_non_null(strstr(error_text(), path));
    assert_non_null(strstr(error_text(), "move it away"));
    assert_non_null(strstr(error_text(), "starts anew"));
    assert_int_equal(saved.step_count, 0);
    store_close(store);
}

static void a_journal_without_one_of_its_entries_is_named(void **state) {
    (void)state;
    make_run(false);
    struct store *store = opened();
    struct store_saved saved;
    assert_int_equal(sqlite3_exec(store->database,
                                  "DELETE FROM journal WHERE entry = "
                                  "(SELECT max(entry) - 1 FROM journal)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(store_saved_read(store, 1, &saved), ERROR_IO);
    assert_non_null(strstr(error_text(), path));
    store_close(store);
}

static void damage_that_nobody_would_read_is_found_when_opening(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    for (int i = 0; i < 500; i++)
        assert_int_equal(store_event(store, run, "kind", "zzzzzzzzzzzzzzzzzzzz", NULL), 0);
    assert_int_equal(store_close(store), 0);
    struct image database = read_image(path);
    size_t at = 0;
    while (memcmp(database.bytes + at, "zzzzzzzz", 8) != 0)
        at++;
    database.bytes[at / 4096 * 4096] = 0x7f; /* no kind of page */
    write_image(path, &database, database.length);
    free(database.bytes);
    assert_int_equal(store_open(folder, NULL, &store), ERROR_IO);
    assert_non_null(strstr(error_text(), path));
    assert_non_null(strstr(error_text(), "move it away"));
}

/* How many reads of SQLite still succeed before one fails. */
static int reads_left;

static bool read_fails(void) {
    if (reads_left-- != 0)
        return false;
    errno = EIO;
    return true;
}

static ssize_t failing_read(int file, void *bytes, size_t length) {
    return read_fails() ? -1 : read(file, bytes, length);
}

static ssize_t failing_pread(int file, void *bytes, size_t length, off_t offset) {
    return read_fails() ? -1 : pread(file, bytes, length, offset);
}

static void set_reads(sqlite3_syscall_ptr with_offset, sqlite3_syscall_ptr without) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    assert_non_null(vfs);
    vfs->xSetSystemCall(vfs, "pread", with_offset);
    vfs->xSetSystemCall(vfs, "pread64", with_offset);
    vfs->xSetSystemCall(vfs, "read", without);
}

/* Reads of the log come first, when the database is opened. */
static void fail_each_read(bool with_log) {
    make_run(with_log);
    struct image database = read_image(path), log = read_image(wal);
    int failed = 0, code = ERROR_IO;
    set_reads((sqlite3_syscall_ptr)failing_pread, (sqlite3_syscall_ptr)failing_read);
    for (int i = 0; code; i++) {
        struct store *store = NULL;
        write_image(path, &database, database.length);
        write_image(wal, &log, log.length);
        error_clear();
        reads_left = i;
        code = store_open(folder, NULL, &store);
        store_close(store);
        if (code != 0 && code != ERROR_IO)
            fail_msg("read %d: %d, %s", i, code, error_text());
        if (code &&
            (!strstr(error_text(), path) || !strstr(error_text(), "could not be read (Input") ||
             !strstr(error_text(), "nothing was changed; try again")))
            fail_msg("read %d: %s", i, error_text());
        failed += code != 0;
        code |= reads_left >= 0 ? 0 : ERROR_IO; /* one that failed and did no harm */
    }
    set_reads(NULL, NULL);
    assert_true(failed > 5);
    write_image(path, &database, database.length);
    write_image(wal, &log, log.length);
    struct store *store = opened();
    struct store_saved saved;
    assert_int_equal(store_saved_read(store, 1, &saved), 0);
    assert_true(state_of(&saved) == states[state_count - 1]);
    store_saved_release(&saved);
    store_close(store);
    free(database.bytes);
    free(log.bytes);
}

static void a_read_of_a_database_that_fails_is_no_damage(void **state) {
    (void)state;
    fail_each_read(false);
}

static void a_read_of_a_log_that_fails_is_no_damage(void **state) {
    (void)state;
    fail_each_read(true);
}

/* The process cannot make files longer than they are: the disk is full for it. */
static void fill_the_disk(void) {
    struct store *store;
    if (store_open(folder, NULL, &store))
        _exit(1);
    signal(SIGXFSZ, SIG_IGN);
    struct image log = read_image(wal);
    rlim_t most = log.length + 20000;
    free(log.bytes);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most}))
        _exit(2);
    int code = durable(store, 1, 1, 9, 200000);
    if (code != ERROR_IO || !strstr(error_text(), path))
        _exit(3);
    struct store_saved saved;
    if (store_saved_read(store, 1, &saved) || state_of(&saved) != states[state_count - 1])
        _exit(4);
}

static void a_full_disk_at_a_commit_leaves_the_earlier_state(void **state) {
    (void)state;
    make_run(false);
    in_a_process_that_dies(fill_the_disk);
    struct store *store = opened();
    struct store_saved saved;
    assert_int_equal(store_saved_read(store, 1, &saved), 0);
    assert_true(state_of(&saved) == states[state_count - 1]);
    store_saved_release(&saved);
    store_close(store);
}

SUITE(store_damage) {
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_log_gives_an_earlier_state_or_is_named),
        TEST(a_damaged_database_gives_a_true_state_or_is_named),
        TEST(a_changed_blob_is_named_with_what_to_do),
        TEST(a_journal_without_one_of_its_entries_is_named),
        TEST(damage_that_nobody_would_read_is_found_when_opening),
        TEST(a_read_of_a_database_that_fails_is_no_damage),
        TEST(a_read_of_a_log_that_fails_is_no_damage),
        TEST(a_full_disk_at_a_commit_leaves_the_earlier_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
