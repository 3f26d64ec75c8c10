#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

static struct {
    char *path; /* NULL: nothing is guarded */
    char text[GUARD_TEXT];
    struct stat status; /* of the file when it got that text */
} guard;

void guard_set(const char *path, const char *text) {
    guard_clear();
    guard.path = memory_copy_string(path);
    strncpy(guard.text, text, sizeof guard.text - 1);
    (void)stat(path, &guard.status);
}

void guard_clear(void) {
    free(guard.path);
    guard.path = NULL;
    memset(guard.text, 0, sizeof guard.text);
    memset(&guard.status, 0, sizeof guard.status);
}

/* For a process without a free descriptor, which must not end a run for that. An NFS client may
 * answer from what it knew a minute ago. */
static bool looks_unchanged(void) {
    struct stat now;
    const struct stat *then = &guard.status;
    return stat(guard.path, &now) == 0 && now.st_dev == then->st_dev &&
           now.st_ino == then->st_ino && now.st_size == then->st_size &&
           now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}

/* Opens the file anew each time: only open() makes an NFS client ask the server. A file that is
 * gone is another's too: whoever made a new one in its place has the lock of that. */
static int read_text(char text[GUARD_TEXT]) {
    text[0] = '\0';
    int descriptor = open(guard.path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && (errno == ENOENT || errno == ESTALE))
        return 0;
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && looks_unchanged()) {
        strcpy(text, guard.text);
        return 0;
    }
    ssize_t got = descriptor < 0 ? -1 : read(descriptor, text, GUARD_TEXT - 1);
    int number = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (got < 0 && number != ESTALE)
        return -1;
    text[got < 0 ? 0 : got] = '\0';
    errno = number;
    return 0;
}

int guard_check(void) {
    char text[GUARD_TEXT];
    if (!guard.path)
        return 0;
    if (read_text(text))
        return error_set_errno(ERROR_IO, "cannot read %s", guard.path);
    if (!strcmp(text, guard.text))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return error_set(ERROR_AGAIN,
                     "another process took over from this one (%s says: %s); this one writes "
                     "nothing more",
                     guard.path, *text ? text : "nothing");
}

bool guard_holds(void) {
    char text[GUARD_TEXT];
    return !guard.path || (!read_text(text) && !strcmp(text, guard.text));
}
