#define _GNU_SOURCE
#include "wire/key.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/hash.h"
#include "base/text.h"

enum { DIGITS = 2 * KEY_BYTES };

static_assert(KEY_NAME_BYTES <= SHA256_TEXT, "a key's name is the beginning of a digest");

char *key_path(const char *state) {
    return path_join(state, "key");
}

void key_forget(struct key *key) {
    explicit_bzero(key, sizeof *key);
}

/* The purpose keeps the name apart from whatever else may be hashed of the secret. */
static void name_key(struct key *key) {
    static const char purpose[] = "dml key name 1";
    char digest[SHA256_TEXT];
    struct sha256 *sha = sha256_new();
    sha256_add(sha, purpose, sizeof purpose);
    sha256_add(sha, key->secret, sizeof key->secret);
    sha256_finish(sha, digest);
    memcpy(key->name, digest, KEY_NAME_BYTES - 1);
    key->name[KEY_NAME_BYTES - 1] = '\0';
}

/* ---- reading ---- */

/* −1 for what is no digit. */
static int value_of(char digit) {
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = digit ? strchr(digits, digit) : NULL;
    int value = found ? (int)(found - digits) : -1;
    return value < 16 ? value : value - 6; /* capitals come 6 behind the small letters */
}

/* 64 digits, and nothing behind them but the end of the line. */
static bool decode(const char *text, size_t length, struct key *key) {
    if (length < DIGITS || length > DIGITS + 1 || (length > DIGITS && text[DIGITS] != '\n'))
        return false;
    for (size_t i = 0; i < KEY_BYTES; i++) {
        int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key->secret[i] = (uint8_t)(16 * high + low);
    }
    name_key(key);
    return true;
}

/* Checks the open file, not the path: that might name another file a moment later. Root may use
 * the keys of all users. */
static int check_owner(int descriptor, const char *path) {
    struct stat status;
    if (fstat(descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot read the key %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(ERROR_DATA, "the key %s is not a file", path);
    if (geteuid() && status.st_uid != geteuid() && status.st_uid)
        return error_set(ERROR_PERMISSION,
                         "the key %s belongs to another user (%u): whoever knows the key can use "
                         "the workers; make one of your own",
                         path, (unsigned)status.st_uid);
    if (!(status.st_mode & (S_IRWXG | S_IRWXO)))
        return 0;
    char *word = shell_word(path);
    int code = error_set(ERROR_PERMISSION,
                         "the key %s is open to others (mode %04o): run `chmod 600 %s`, and make "
                         "another key if somebody may have read it",
                         path, (unsigned)(status.st_mode & 07777), word);
    free(word);
    return code;
}

static int read_from(int descriptor, const char *path, struct key *key) {
    char text[DIGITS + 3];
    int code = check_owner(descriptor, path);
    if (code)
        return code;
    ssize_t length = read(descriptor, text, sizeof text);
    if (length < 0)
        return error_set_errno(ERROR_IO, "cannot read the key %s", path);
    if (!decode(text, (size_t)length, key))
        code = error_set(ERROR_DATA,
                         "%s holds no key (%d hexadecimal digits and a newline): copy it again; or "
                         "remove it, and `run` makes another",
                         path, DIGITS);
    explicit_bzero(text, sizeof text);
    return code;
}

/* Whether there is something to read, or the end, before that time. */
static bool is_due(int descriptor, int64_t until_ns) {
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    int ready;
    do {
        int64_t left_ns = until_ns - clock_monotonic_ns();
        ready = poll(&wait, 1, left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0);
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
}

int key_receive(int descriptor, int timeout_ms, struct key *key) {
    char text[KEY_TEXT_BYTES];
    const int64_t until_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    size_t length = 0;
    ssize_t got = 1;
    int code = 0;
    while (!code && got && length < sizeof text && (!length || text[length - 1] != '\n')) {
        if (!is_due(descriptor, until_ns)) {
            code = error_set(ERROR_UNAVAILABLE, "no key came within %d s", timeout_ms / 1000);
        } else if ((got = read(descriptor, text + length, sizeof text - length)) >= 0) {
            length += (size_t)got;
        } else if (errno != EINTR && errno != EAGAIN) {
            code = error_set_errno(ERROR_IO, "cannot read the key");
        }
    }
    if (!code && !length)
        code = error_set(ERROR_UNAVAILABLE, "no key came");
    else if (!code && !decode(text, length, key))
        code = error_set(ERROR_DATA, "no key came, but something else");
    explicit_bzero(text, sizeof text);
    return code;
}

int key_read(const char *path, struct key *key) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO blocks nobody */
    if (descriptor < 0)
        return errno == ENOENT
                   ? error_set(ERROR_IO,
                               "there is no key %s: the first `dml-coordinator run` with workers "
                               "on other hosts makes STATE/key",
                               path)
                   : error_set_errno(ERROR_IO, "cannot open the key %s", path);
    int code = read_from(descriptor, path, key);
    close(descriptor);
    return code;
}

/* ---- making ---- */

/* Gives the finished file its name. link() fails if the name is taken: two processes must not end
 * up with two keys. A file system without links has rename(), which is safe because the caller
 * holds the lock of the state folder; only if that lock does not hold could it replace a key. */
static int publish(struct new_file *file) {
    if (link(file->temporary, file->path) && errno != EEXIST) {
        if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
            return new_file_publish(file);
        return error_set_errno(ERROR_CREATE, "cannot create %s", file->path);
    }
    char *folder = path_folder(file->path);
    int code = folder_sync(folder);
    free(folder);
    return code;
}

void key_text(const struct key *key, char text[KEY_TEXT_BYTES + 1]) {
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", key->secret[i]);
    strcpy(text + DIGITS, "\n");
    assert(strlen(text) == KEY_TEXT_BYTES);
}

static int write_secret(struct new_file *file) {
    struct key key;
    char text[KEY_TEXT_BYTES + 1];
    if (getrandom(key.secret, sizeof key.secret, 0) != sizeof key.secret)
        return error_set_errno(ERROR_UNAVAILABLE, "no random numbers for a key");
    key_text(&key, text);
    int code = new_file_write(file, text, KEY_TEXT_BYTES);
    key_forget(&key);
    explicit_bzero(text, sizeof text);
    return code;
}

/* The file is closed to others before there is anything in it. */
static int make(const char *path) {
    struct new_file file;
    int code = new_file_open(&file, path);
    if (code)
        return code;
    if (fchmod(file.descriptor, 0600))
        code = error_set_errno(ERROR_CREATE, "cannot create %s", path);
    if (!code)
        code = write_secret(&file);
    if (!code && fsync(file.descriptor))
        code = error_set_errno(ERROR_IO, "cannot write %s to disk", path);
    if (!code)
        code = publish(&file);
    new_file_discard(&file);
    return code;
}

int key_ensure(const char *state, struct key *key, bool *made) {
    char *path = key_path(state);
    int code = 0;
    *made = access(path, F_OK) && errno == ENOENT;
    if (*made)
        code = make(path);
    if (!code)
        code = key_read(path, key);
    assert(code || strlen(key->name) == KEY_NAME_BYTES - 1);
    free(path);
    return code;
}
