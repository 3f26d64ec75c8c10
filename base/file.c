#define _GNU_SOURCE
#include "base/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"

/* ---- writing ---- */

static void new_file_release(struct new_file *file) {
    free(file->path);
    free(file->temporary);
    *file = (struct new_file){.descriptor = -1};
}

/* The name is this process's own: two processes that write the same file do not write into each
 * other's, and the later rename wins. */
int new_file_open(struct new_file *file, const char *path) {
    int guarded = guard_check();
    if (guarded)
        return guarded;
    file->path = memory_copy_string(path);
    file->temporary = memory_format("%s.tmp.%llu", path, process_number());
    file->descriptor = open(file->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file->descriptor < 0) {
        int code = error_set_errno(ERROR_CREATE, "cannot create %s", path);
        new_file_release(file);
        return code;
    }
    return 0;
}

void file_write_back(int descriptor) {
    (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int file_write_all(int descriptor, const void *data, size_t length, const char *path) {
    const char *at = data;
    if (failpoint_write(FAILPOINT_file_write))
        return error_set_errno(ERROR_IO, "cannot write %s", path);
    while (length) {
        ssize_t written = write(descriptor, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(ERROR_IO, "cannot write %s", path);
        at += written;
        length -= (size_t)written;
    }
    failpoint(FAILPOINT_file_written);
    return 0;
}

int new_file_write(struct new_file *file, const void *data, size_t length) {
    assert(file->descriptor >= 0);
    return file_write_all(file->descriptor, data, length, file->path);
}

/* The order matters. Without the first fsync a power cut could leave the final name with contents
 * that never reached the disk. rename() replaces an older file in one step, so a reader finds the
 * old contents or the new ones. The rename itself is durable only after the folder's fsync, which
 * new_file_publish() does last. */
static int put_in_place(const struct new_file *file) {
    if (failpoint_write(FAILPOINT_file_fsync) || fsync(file->descriptor))
        return error_set_errno(ERROR_IO, "cannot write %s to disk", file->path);
    failpoint(FAILPOINT_file_fsynced);
    if (failpoint_write(FAILPOINT_file_rename))
        return error_set_errno(ERROR_CREATE, "cannot put %s in place", file->path);
    int code = guard_check();
    if (code)
        return code;
    if (rename(file->temporary, file->path))
        return error_set_errno(ERROR_CREATE, "cannot put %s in place", file->path);
    failpoint(FAILPOINT_file_renamed);
    return 0;
}

int new_file_publish(struct new_file *file) {
    int code = put_in_place(file);
    if (code) {
        new_file_discard(file);
        return code;
    }
    char *folder = path_folder(file->path);
    code = folder_sync(folder);
    free(folder);
    close(file->descriptor);
    new_file_release(file);
    return code;
}

void new_file_discard(struct new_file *file) {
    if (!file->temporary)
        return;
    unlink(file->temporary);
    close(file->descriptor);
    new_file_release(file);
}

/* ---- reading ---- */

int file_open_regular(const char *path, int *descriptor, struct stat *status) {
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*descriptor < 0)
        return error_set_errno(errno == ENOENT ? ERROR_UNAVAILABLE : ERROR_IO, "cannot open %s",
                               path);
    int code = fstat(*descriptor, status)  ? error_set_errno(ERROR_IO, "cannot look at %s", path)
               : !S_ISREG(status->st_mode) ? error_set(ERROR_DATA, "%s is no regular file", path)
                                           : 0;
    if (code)
        close(*descriptor);
    return code;
}

#define PIPE_MS 10000

/* A pipe with a writer is read to its end; one that nobody writes to has none. */
static int await_pipe(int descriptor, const char *path) {
    struct stat status;
    if (fstat(descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", path);
    if (S_ISFIFO(status.st_mode)) {
        struct pollfd input = {.fd = descriptor, .events = POLLIN};
        if (poll(&input, 1, PIPE_MS) <= 0)
            return error_set(ERROR_DATA, "%s is a pipe, and nobody writes to it", path);
    }
    (void)fcntl(descriptor, F_SETFL, O_RDONLY);
    return 0;
}

int file_read(const char *path, size_t length_max, char **data, size_t *length) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_errno(ERROR_IO, "cannot open %s", path);
    char *buffer = NULL;
    size_t used = 0, capacity = 0;
    int code = await_pipe(descriptor, path);
    if (code) {
        close(descriptor);
        return code;
    }
    for (;;) {
        if (used + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 4096;
            buffer = memory_resize(buffer, capacity, 1);
        }
        ssize_t got = read(descriptor, buffer + used, capacity - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            code = error_set_errno(ERROR_IO, "cannot read %s", path);
        else if (used + (size_t)got > length_max)
            code =
                error_set(ERROR_DATA, "%s is larger than the %zu bytes allowed", path, length_max);
        if (code || got == 0)
            break;
        used += (size_t)got;
    }
    close(descriptor);
    if (code) {
        free(buffer);
        return code;
    }
    buffer[used] = '\0';
    *data = buffer;
    *length = used;
    return 0;
}

int descriptors_check(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS_LEAST)
        return 0;
    return error_set(ERROR_UNAVAILABLE,
                     "only %llu files may be open at once, and at least %d are needed; raise "
                     "`ulimit -n`",
                     (unsigned long long)limit.rlim_cur, DESCRIPTORS_LEAST);
}

/* A mapped file that another host removes, or that the network cannot deliver, ends the process at
 * the next touch (SIGBUS). What is small enough is read instead, and gives an error. */
static int read_whole(int descriptor, const char *path, size_t length, void **start) {
    char *data = memory_map(length);
    for (size_t at = 0; at < length;) {
        ssize_t got = pread(descriptor, data + at, length - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int code = got ? error_set_errno(ERROR_IO, "cannot read %s", path)
                           : error_set(ERROR_IO, "%s became shorter while it was read", path);
            memory_unmap(data, length);
            return code;
        }
        at += (size_t)got;
    }
    *start = data;
    return 0;
}

/* ---- mapped files that fail ----
 *
 * A page of a mapped file that is not there any more, or that the disk does not give, is a signal
 * (SIGBUS). The process ends by it, since whoever touched the page cannot go on; but it says which
 * file that was. */

enum { MAPPED_KNOWN = 64, MAPPED_PATH = 512 };

static struct mapped {
    const char *start;
    size_t length;
    char path[MAPPED_PATH];
} mapped_files[MAPPED_KNOWN];
static atomic_uint mapped_count;

/* The newest are known. The start is set last: a handler may look meanwhile. */
static void note_mapped(const char *path, const void *start, size_t length) {
    struct mapped *mapped = &mapped_files[atomic_fetch_add(&mapped_count, 1) % MAPPED_KNOWN];
    mapped->start = NULL;
    snprintf(mapped->path, sizeof mapped->path, "%s", path);
    mapped->length = length;
    mapped->start = start;
}

/* Addresses are used again, so the newest is looked at first. */
static const struct mapped *find_mapped(const char *address) {
    unsigned count = atomic_load(&mapped_count);
    for (unsigned i = 0; i < MAPPED_KNOWN && i < count; i++) {
        const struct mapped *mapped = &mapped_files[(count - 1 - i) % MAPPED_KNOWN];
        if (mapped->start && address >= mapped->start && address < mapped->start + mapped->length)
            return mapped;
    }
    return NULL;
}

static void put_on_stderr(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

/* Only calls that are safe in a handler. */
static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    const struct mapped *mapped = find_mapped(info->si_addr);
    if (!mapped) {
        signal(number, SIG_DFL); /* the touch is repeated, and ends the process */
        return;
    }
    put_on_stderr("dml: ");
    put_on_stderr(mapped->path);
    put_on_stderr(
        " was cut short while it was used, or its disk does not give it (bus error): a file of "
        "packs "
        "that is not whole is made again by the same command; put any other back\n");
    _exit(-ERROR_IO);
}

void file_name_bus_errors(void) {
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

int file_map(const char *path, const void **data, size_t *length) {
    struct stat status;
    int descriptor, code = file_open_regular(path, &descriptor, &status);
    if (code)
        return code == ERROR_UNAVAILABLE ? ERROR_IO : code;
    void *start = NULL;
    if (status.st_size > 0 && status.st_size <= NETWORK_READ_BYTES_MAX &&
        filesystem_is_network(path)) {
        code = read_whole(descriptor, path, (size_t)status.st_size, &start);
    } else if (status.st_size > 0) {
        start = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (start == MAP_FAILED)
            code = error_set_errno(ERROR_IO, "cannot map %s", path);
        else
            note_mapped(path, start, (size_t)status.st_size);
    }
    close(descriptor);
    if (code)
        return code;
    *data = start;
    *length = (size_t)status.st_size;
    return 0;
}

void *file_park(const char *folder, void *array, size_t bytes) {
    void *parked = MAP_FAILED;
    int descriptor =
        filesystem_is_network(folder) ? -1 : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor >= 0 && !file_write_all(descriptor, array, bytes, folder))
        parked = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    error_clear();
    if (descriptor >= 0)
        close(descriptor);
    if (parked == MAP_FAILED)
        return array;
    memory_unmap(array, bytes);
    return parked;
}

/* ---- folders ---- */

int folder_make(const char *path, unsigned mode) {
    struct stat status;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return 0;
        return error_set(ERROR_CREATE, "%s is there already and is not a folder", path);
    }
    char *above = path_folder(path);
    int code = strcmp(above, path) ? folder_make(above, 0755) : 0;
    if (!code && mkdir(path, mode) &&
        errno != EEXIST) /* another process may have made it meanwhile */
        code = error_set_errno(ERROR_CREATE, "cannot make the folder %s", path);
    /* A new folder survives a power cut only after an fsync of the folder above it. One that may be
     * written but not read cannot be synced. */
    if (!code && access(above, R_OK) == 0)
        code = folder_sync(above);
    free(above);
    return code;
}

int folder_sync(const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_errno(ERROR_IO, "cannot open the folder %s", path);
    int code = 0;
    if (failpoint_write(FAILPOINT_folder_fsync) || fsync(descriptor))
        code = error_set_errno(ERROR_IO, "cannot write the folder %s to disk", path);
    close(descriptor);
    failpoint(FAILPOINT_folder_fsynced);
    return code;
}

/* Checks what is open, not the path: that might name another folder a moment later. */
static int check_private(int descriptor, const char *path) {
    struct stat status;
    if (fstat(descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", path);
    if (status.st_uid != geteuid())
        return error_set(ERROR_PERMISSION,
                         "%s belongs to another user (%u): set TMPDIR to a folder that only you "
                         "can write into",
                         path, (unsigned)status.st_uid);
    if (!(status.st_mode & (S_IRWXG | S_IRWXO)))
        return 0;
    char *word = shell_word(path);
    int code = error_set(ERROR_PERMISSION, "%s is open to others (mode %04o): run `chmod 700 %s`",
                         path, (unsigned)(status.st_mode & 07777), word);
    free(word);
    return code;
}

int folder_of_user(char **path) {
    const char *above = getenv("TMPDIR");
    char *from_root = path_absolute(above && *above ? above : "/var/tmp");
    char *own = memory_format("%s/dml-%u", from_root, (unsigned)geteuid());
    int code = 0, descriptor = -1;
    free(from_root);
    if (mkdir(own, 0700) && errno != EEXIST)
        code = error_set_errno(ERROR_CREATE, "cannot make the folder %s", own);
    else
        descriptor = open(own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!code && descriptor < 0)
        code = errno == ELOOP || errno == ENOTDIR
                   ? error_set(ERROR_PERMISSION, "%s is a link or a file, not a folder", own)
                   : error_set_errno(ERROR_PERMISSION, "cannot open the folder %s", own);
    if (!code)
        code = check_private(descriptor, own);
    if (descriptor >= 0)
        close(descriptor);
    *path = code ? NULL : own;
    if (code)
        free(own);
    return code;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int folder_names(const char *path, char ***names) {
    DIR *directory = opendir(path);
    *names = NULL;
    if (!directory && errno != ENOENT)
        return error_set_errno(ERROR_IO, "cannot list %s", path);
    size_t count = 0;
    *names = memory_new(1, sizeof **names);
    errno = 0; /* readdir() tells an error from the end by this alone */
    for (struct dirent *entry; directory && (entry = readdir(directory)); errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        *names = memory_resize(*names, count + 2, sizeof **names);
        (*names)[count++] = memory_copy_string(entry->d_name);
        (*names)[count] = NULL;
    }
    int code = errno ? error_set_errno(ERROR_IO, "cannot list %s", path) : 0;
    if (directory)
        closedir(directory);
    qsort(*names, count, sizeof **names, compare_names);
    if (code) {
        names_free(*names);
        *names = NULL;
    }
    return code;
}

void names_free(char **names) {
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
}

uint32_t names_count(char *const *names) {
    uint32_t count = 0;
    while (names && names[count])
        count++;
    return count;
}

uint64_t file_bytes(const char *path) {
    struct stat status;
    char **names;
    if (lstat(path, &status))
        return 0;
    if (!S_ISDIR(status.st_mode))
        return (uint64_t)status.st_size;
    uint64_t bytes = 0;
    if (folder_names(path, &names)) {
        error_clear();
        return 0;
    }
    for (char **name = names; *name; name++) {
        char *inner = path_join(path, *name);
        bytes += file_bytes(inner);
        free(inner);
    }
    names_free(names);
    return bytes;
}

/* ---- names ---- */

bool name_is_temporary(const char *name) {
    size_t digits = strlen(name);
    while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    static const char mark[] = ".tmp.";
    size_t length = sizeof mark - 1;
    return name[digits] && digits > length && strncmp(name + digits - length, mark, length) == 0;
}

bool name_ends(const char *name, const char *ending) {
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

size_t name_plain_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".gz") || !strcmp(dot, ".zst")) ? (size_t)(dot - path)
                                                                : strlen(path);
}

char *path_join(const char *folder, const char *name) {
    if (name[0] == '/')
        return memory_copy_string(name);
    return memory_format("%s/%s", folder, name);
}

char *path_absolute(const char *path) {
    struct stat here, there;
    const char *walked = getenv("PWD");
    if (*path == '/')
        return memory_copy_string(path);
    bool same = walked && *walked == '/' && !stat(".", &here) && !stat(walked, &there) &&
                here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    char *found = same ? NULL : getcwd(NULL, 0);
    char *joined = path_join(same ? walked : found ? found : "/", path);
    free(found);
    return joined;
}

char *path_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return memory_copy_string(".");
    if (slash == path)
        return memory_copy_string("/");
    return memory_format("%.*s", (int)(slash - path), path);
}

/* Offers the name if it has one of the endings; as the nearest, if the path lacks nothing else. */
static void offer_name(struct nearest *nearest, const char *name, const char *const *endings) {
    if (!endings)
        nearest_offer(nearest, name);
    for (; endings && *endings; endings++) {
        size_t length = strlen(nearest->text);
        if (name_ends(name, *endings))
            nearest_offer(nearest, name);
        if (!strncmp(name, nearest->text, length) && !strcmp(name + length, *endings))
            *nearest = (struct nearest){.text = nearest->text, .word = name};
    }
}

const char *file_suggestion(const char *path, const char *const *endings) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = path_folder(path), *prefix = memory_format("%.*s", (int)(name - path), path);
    char **names = NULL;
    struct nearest nearest = {.text = name};
    if (folder_names(folder, &names))
        error_clear(); /* a folder that cannot be listed has no names to offer */
    for (char **each = names; each && *each; each++)
        offer_name(&nearest, *each, endings);
    const char *suggestion = nearest_suggestion(&nearest, prefix);
    names_free(names);
    free(folder);
    free(prefix);
    return suggestion;
}

/* ---- file systems ---- */

/* The numbers by which statfs() tells file systems apart, of those whose files other hosts may
 * change: from linux/magic.h, the kernel's sources, and their makers. */
static const struct {
    uint32_t magic;
    const char *name;
} networks[] = {
    {0x00006969, "NFS"},
    {0x0000517b, "SMB"},
    {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB 2 and 3"},
    {0x0000564c, "NCP"},
    {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x00c36400, "Ceph"},
    {0x5346414f, "AFS (OpenAFS)"},
    {0x6b414653, "AFS (kernel)"},
    {0x73757245, "Coda"},
    {0x01021997, "9p"},
    {0x65735546, "FUSE: sshfs, GlusterFS, virtiofs, …"},
    {0x20030528, "OrangeFS, PVFS2"},
    {0x01161970, "GFS2"},
    {0x7461636f, "OCFS2"},
    {0xaad7aaea, "PanFS"},
    {0xbeefdead, "StorNext"},
    {0x013111a8, "IBRIX"},
    {0xbacbacbc, "VMware's shared folders"},
    {0x786f4256, "VirtualBox's shared folders"},
    {0x7c7c6673, "Parallels' shared folders"},
};

bool filesystem_is_network(const char *path) {
    struct statfs status;
    const char *told = getenv("DML_FILESYSTEM");
    if (told && (!strcmp(told, "network") || !strcmp(told, "local")))
        return *told == 'n';
    if (statfs(path, &status))
        return false;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if ((uint32_t)status.f_type == networks[i].magic)
            return true;
    return false;
}

/* ---- the guard ---- */

static struct {
    char *path; /* NULL: nothing is guarded */
    char text[GUARD_TEXT];
    struct stat status; /* of the file when it got that text */
} guard;

void guard_set(const char *path, const char *text) {
    assert(strlen(text) < GUARD_TEXT);
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

const char *guard_text(void) {
    return guard.text;
}

bool guard_is(const char *path, const char *text) {
    char found[GUARD_TEXT];
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool regular = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t length = regular ? read(descriptor, found, sizeof found) : -1;
    if (descriptor >= 0)
        close(descriptor);
    return length > 0 && (size_t)length == strlen(text) && !memcmp(found, text, (size_t)length);
}

/* For a process that has no free descriptor, which is no reason to end a run. It is the weaker
 * check: an NFS client may answer stat() from what it knew a minute ago. */
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
    int descriptor = open(guard.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
    if (access(guard.path, F_OK) && errno == ENOENT)
        return error_set(ERROR_AGAIN,
                         "%s is gone: its folder was removed or moved; this process writes nothing "
                         "more, and if the folder was moved, the run can go on there",
                         guard.path);
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
