/* Reads a database whose folder this process may not write, or in which another one works. SQLite
 * cannot: even to read it needs the lock, and a log must be recovered. So the files are copied, and
 * the copy is opened. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "store/internal.h"

#define TRIES 20
#define BETWEEN_TRIES_MS 50
#define PIECE_BYTES (1u << 20)

/* SQLite's file formats. */
#define DATABASE_HEADER_BYTES 100 /* has a counter of the transactions without a log */
#define LOG_HEADER_BYTES 32       /* has salts that are new each time the log starts anew */

/* In the order in which they are copied. */
static const char *const names[] = {"dml.db", "dml.db-wal", "dml.db-journal"};
enum { DATABASE, LOG, JOURNAL, FILES };

/* The copied files belong together if this is the same before and after the copying. A log only
 * grows until it starts anew, and until then has every page that is written to the database. So the
 * database may change while it is copied, if the log is copied after it and is still the same log.
 * A journal has every page as it was, so the same holds for it. Without either, the database must
 * not change. */
struct stamp {
    ino_t inode[FILES];
    char header[FILES][DATABASE_HEADER_BYTES];
    off_t size;
    struct timespec changed;
};

static int cannot_read(const char *path) {
    if (errno == EACCES)
        return error_set(ERROR_PERMISSION,
                         "cannot read %s: permission denied; the folder's owner can allow it with "
                         "chmod go+rx FOLDER",
                         path);
    return error_set_errno(ERROR_IO, "cannot read %s", path);
}

/* *descriptor is −1 if there is no such file. */
static int open_file(const char *folder, int file, int *descriptor) {
    char *path = path_join(folder, names[file]);
    *descriptor = open(path, O_RDONLY | O_CLOEXEC);
    int code = *descriptor < 0 && errno != ENOENT ? cannot_read(path) : 0;
    free(path);
    return code;
}

static int stamp_file(const char *folder, int file, struct stamp *stamp) {
    struct stat status;
    int descriptor, code = open_file(folder, file, &descriptor);
    if (code || descriptor < 0)
        return code;
    size_t length = file == DATABASE ? DATABASE_HEADER_BYTES : LOG_HEADER_BYTES;
    if (fstat(descriptor, &status) || pread(descriptor, stamp->header[file], length, 0) < 0)
        code = cannot_read(folder);
    close(descriptor);
    if (code)
        return code;
    stamp->inode[file] = status.st_ino;
    if (file == DATABASE) {
        stamp->size = status.st_size;
        stamp->changed = status.st_mtim;
    }
    return 0;
}

static int stamp_files(const char *folder, struct stamp *stamp) {
    int code = 0;
    memset(stamp, 0, sizeof *stamp);
    for (int i = 0; !code && i < FILES; i++)
        code = stamp_file(folder, i, stamp);
    return code;
}

static bool is_same(const struct stamp *a, const struct stamp *b) {
    bool same = memcmp(a->inode, b->inode, sizeof a->inode) == 0 &&
                memcmp(a->header[LOG], b->header[LOG], LOG_HEADER_BYTES) == 0 &&
                memcmp(a->header[JOURNAL], b->header[JOURNAL], LOG_HEADER_BYTES) == 0;
    if (!same || a->inode[LOG] || a->inode[JOURNAL])
        return same;
    return a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec &&
           memcmp(a->header[DATABASE], b->header[DATABASE], DATABASE_HEADER_BYTES) == 0;
}

static int copy_bytes(int from, int to, const char *source, const char *target) {
    char *piece = memory_new(PIECE_BYTES, 1);
    ssize_t got;
    int code = 0;
    while (!code && (got = read(from, piece, PIECE_BYTES)) != 0) {
        if (got > 0)
            code = file_write_all(to, piece, (size_t)got, target);
        else if (errno != EINTR)
            code = cannot_read(source);
    }
    free(piece);
    return code;
}

static int copy_file(const char *from, const char *to, int file) {
    int source, code = open_file(from, file, &source);
    char *target = path_join(to, names[file]);
    unlink(target); /* of the try before */
    if (!code && source >= 0) {
        int made = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        code = made < 0 ? error_set_errno(ERROR_CREATE, "cannot make %s", target)
                        : copy_bytes(source, made, from, target);
        if (made >= 0)
            close(made);
        close(source);
    }
    free(target);
    return code;
}

static int copy_files(const char *from, const char *to) {
    struct stamp before, after;
    for (int i = 0; i < TRIES; i++) {
        int code = stamp_files(from, &before);
        for (int file = 0; !code && file < FILES; file++)
            code = copy_file(from, to, file);
        if (!code)
            code = stamp_files(from, &after);
        if (code || is_same(&before, &after))
            return code;
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_TRIES_MS * 1000000L}, NULL);
    }
    return error_set(ERROR_AGAIN, "%s/dml.db changes faster than it can be copied; try again",
                     from);
}

static char *private_folder(void) {
    const char *above = getenv("TMPDIR");
    char *folder = memory_format("%s/dml-read-XXXXXX", above && *above ? above : "/tmp");
    if (mkdtemp(folder))
        return folder;
    error_set_errno(ERROR_CREATE,
                    "cannot make the private folder %s, in which to read a copy of a database that "
                    "may not be written; set TMPDIR to a folder that may",
                    folder);
    free(folder);
    return NULL;
}

static void remove_folder(char *folder) {
    char **left;
    if (!folder_names(folder, &left)) {
        for (char **name = left; *name; name++) {
            char *path = path_join(folder, *name);
            unlink(path);
            free(path);
        }
        names_free(left);
    }
    rmdir(folder);
    free(folder);
}

int store_read(const char *state_folder, struct store **store) {
    struct store *opened = NULL;
    int code = store_check_existing(state_folder);
    if (code)
        return code;
    char *folder = private_folder();
    if (!folder)
        return ERROR_CREATE;
    code = copy_files(state_folder, folder);
    if (!code)
        code = store_open_files(state_folder, folder, SQLITE_OPEN_READWRITE, NULL, &opened);
    if (!code)
        code = store_copy(opened, store);
    store_close(opened);
    remove_folder(folder);
    return code;
}

/* A copy of a database in memory, which needs neither the file nor its lock. */

int store_copy(struct store *store, struct store **copy) {
    struct store *made = memory_new(1, sizeof *made);
    made->owner = pthread_self();
    made->path = memory_copy_string(store->path);
    int result = sqlite3_open(":memory:", &made->database);
    sqlite3_backup *backup =
        result == SQLITE_OK ? sqlite3_backup_init(made->database, "main", store->database, "main")
                            : NULL;
    int code = 0;
    if (!backup)
        code = store_failed(made, sqlite3_errcode(made->database));
    if (backup) {
        result = sqlite3_backup_step(backup, -1);
        sqlite3_backup_finish(backup);
        code = result == SQLITE_DONE ? 0 : store_failed(store, result);
    }
    if (code)
        store_close(made);
    else
        *copy = made;
    return code;
}
