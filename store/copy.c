/* A copy of a database in memory, which needs neither the file nor its lock. */
#include <stdlib.h>

#include "base/memory.h"
#include "store/internal.h"

static int copy_pages(struct store *from, struct store *to) {
    sqlite3_backup *backup = sqlite3_backup_init(to->database, "main", from->database, "main");
    if (!backup)
        return store_failed(to, sqlite3_errcode(to->database));
    int result = sqlite3_backup_step(backup, -1);
    sqlite3_backup_finish(backup);
    return result == SQLITE_DONE ? 0 : store_failed(from, result);
}

int store_copy(struct store *store, struct store **copy) {
    struct store *made = memory_new(1, sizeof *made);
    made->path = memory_copy_string(store->path);
    int result = sqlite3_open(":memory:", &made->database);
    int code = result == SQLITE_OK ? 0 : store_failed(made, result);
    if (!code)
        code = copy_pages(store, made);
    if (code)
        store_close(made);
    else
        *copy = made;
    return code;
}
