#define _GNU_SOURCE
#include "wire/key.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int write_secret(struct new_file *file) {
    uint8_t secret[KEY_BYTES];
    char text[DIGITS + 2];
    if (getrandom(secret, sizeof secret, 0) != sizeof secret)
        return error_set_errno(ERROR_UNAVAILABLE, "no random numbers for a key");
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", secret[i]);
    strcpy(text + DIGITS, "\n");
    assert(strlen(text) == DIGITS + 1);
    int code = new_file_write(file, text, DIGITS + 1);
    explicit_bzero(secret, sizeof secret);
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
