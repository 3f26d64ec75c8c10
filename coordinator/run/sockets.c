#define _GNU_SOURCE
#include "coordinator/run/sockets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define ADDRESS "unix:"

static const char *parent(void) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");
    return runtime && *runtime ? runtime : temporary && *temporary ? temporary : "/tmp";
}

/* How the names of this state's folders begin. Device and inode, so that a copy of the state folder
 * has others and does not touch the sockets of the original. */
static char *prefix_of(const char *state) {
    struct stat status = {0};
    (void)stat(state, &status);
    return memory_format("dml-%llx-%llx-", (unsigned long long)status.st_dev,
                         (unsigned long long)status.st_ino);
}

int sockets_make(const char *state, char **folder) {
    char *prefix = prefix_of(state);
    *folder = memory_format("%s/%sXXXXXX", parent(), prefix);
    free(prefix);
    if (mkdtemp(*folder))
        return 0;
    int code =
        error_set_errno(ERROR_CREATE, "cannot make a private folder %s for sockets", *folder);
    free(*folder);
    *folder = NULL;
    return code;
}

bool sockets_are_of(const char *state, const char *address) {
    if (strncmp(address, ADDRESS, strlen(ADDRESS)) != 0)
        return false;
    char *prefix = prefix_of(state), *folder = path_folder(address + strlen(ADDRESS));
    const char *slash = strrchr(folder, '/');
    const char *name = slash ? slash + 1 : folder;
    bool ours = strncmp(name, prefix, strlen(prefix)) == 0;
    free(folder);
    free(prefix);
    return ours;
}

static bool is_in_use(const char *path, const char *const *addresses, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (addresses[i] && strncmp(addresses[i], ADDRESS, strlen(ADDRESS)) == 0 &&
            strcmp(addresses[i] + strlen(ADDRESS), path) == 0)
            return true;
    return false;
}

/* /tmp belongs to all: another user may have made a folder, or a link, of such a name. */
static bool is_own_folder(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

static void sweep_folder(const char *folder, const char *const *addresses, size_t count) {
    char **names;
    if (!is_own_folder(folder) || folder_names(folder, &names)) {
        error_clear();
        return;
    }
    for (char **name = names; *name; name++) {
        char *path = path_join(folder, *name);
        if (!is_in_use(path, addresses, count))
            unlink(path);
        free(path);
    }
    names_free(names);
    if (rmdir(folder) == 0)
        log_debug("removed %s, left by a coordinator that was killed", folder);
}

void sockets_sweep(const char *state, const char *const *addresses, size_t count) {
    char **names, *prefix = prefix_of(state);
    if (folder_names(parent(), &names)) {
        error_clear();
        names = NULL;
    }
    for (char **name = names; name && *name; name++)
        if (strncmp(*name, prefix, strlen(prefix)) == 0) {
            char *folder = path_join(parent(), *name);
            sweep_folder(folder, addresses, count);
            free(folder);
        }
    names_free(names);
    free(prefix);
}
