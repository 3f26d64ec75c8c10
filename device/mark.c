#include "device/find.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

/* DEVICE_BUILD: a checksum of the device code and its compiler; the build makes it. */
#include <device/build.inc>

/* Another number wherever a line of the mark means something else: older marks then count for
 * nothing, and the check is run again. */
#define MARK_HEAD "dml device check 1\n"
#define MARK_BYTES_MAX 4096
#define MARK_EVERYBODY "/var/lib/dml"
#define DRIVER_VERSION "/sys/module/nvidia/version"

/* The file in one of the two folders; NULL: there is no such folder for this user. Free it. */
static char *mark_path(bool everybody) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    if (everybody)
        return memory_format(MARK_EVERYBODY "/device-check-%s", host);
    if (state && *state == '/')
        return memory_format("%s/dml/device-check-%s", state, host);
    return home && *home == '/' ? memory_format("%s/.local/state/dml/device-check-%s", home, host)
                                : NULL;
}

/* "550.54.15": of the driver that the system has loaded. */
static char *driver_version(enum device_kind kind) {
    char *text;
    size_t length;
    if (kind == DEVICE_EMULATED)
        return memory_copy_string("none");
    if (file_read(DRIVER_VERSION, 64, &text, &length)) {
        error_clear();
        return memory_copy_string("unknown");
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

/* The device's name without its number: GPUs of one kind are checked together. */
static const char *name_of_kind(enum device_kind kind, unsigned number) {
    uint64_t bytes;
    const char *name = device_describe(kind, number, &bytes), *blank = strchr(name, ' ');
    return kind == DEVICE_CUDA && blank ? blank + 1 : name;
}

/* The value of the line "KEY VALUE", of *length bytes; "" if there is none. */
static const char *mark_line(const char *mark, const char *key, size_t *length) {
    for (const char *line = mark; *line; line += *line == '\n')
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ' ') {
            line += strlen(key) + 1;
            *length = strcspn(line, "\n");
            return line;
        } else {
            line += strcspn(line, "\n");
        }
    *length = 0;
    return "";
}

static char *text_of_mark(enum device_kind kind, unsigned number) {
    char *driver = driver_version(kind);
    char *text = memory_format(MARK_HEAD "device %s\ndriver %s\nbuild %s\n",
                               name_of_kind(kind, number), driver, DEVICE_BUILD);
    free(driver);
    return text;
}

/* How the mark in that file differs from `wanted`; NULL: not at all. Free it. */
static char *mark_differs(const char *path, const char *wanted) {
    static const char *const keys[] = {"device", "driver", "build"};
    char *mark = NULL, *why = NULL;
    size_t size;
    if (file_read(path, MARK_BYTES_MAX, &mark, &size) ||
        strncmp(mark, MARK_HEAD, strlen(MARK_HEAD)) != 0) {
        error_clear();
        free(mark);
        return memory_copy_string("was not checked on this machine");
    }
    for (size_t i = 0; !why && i < sizeof keys / sizeof *keys; i++) {
        size_t was, is;
        const char *checked = mark_line(mark, keys[i], &was);
        const char *here = mark_line(wanted, keys[i], &is);
        if (was != is || strncmp(checked, here, is) != 0)
            why = memory_format("was checked with another %s (%.*s, now %.*s)", keys[i], (int)was,
                                checked, (int)is, here);
    }
    free(mark);
    return why;
}

char *device_unchecked(enum device_kind kind, unsigned number) {
    const char *given = getenv("DML_DEVICE_MARK");
    char *paths[] = {given ? memory_copy_string(given) : mark_path(false),
                     given ? NULL : mark_path(true)};
    char *wanted = text_of_mark(kind, number), *why = NULL;
    bool checked = false;
    for (int i = 0; i < 2; i++) {
        char *differs = paths[i] && !checked ? mark_differs(paths[i], wanted) : NULL;
        checked |= paths[i] && !differs;
        if (!why)
            why = differs;
        else
            free(differs);
        free(paths[i]);
    }
    free(wanted);
    char *text = checked ? NULL
                         : memory_format("%s %s: run `make check-cuda` in the sources here, or ask "
                                         "for it with device = %s",
                                         name_of_kind(kind, number), why,
                                         kind == DEVICE_CUDA ? "cuda" : "emulated");
    free(why);
    return text;
}

int device_mark_checked(enum device_kind kind, unsigned number, char **path) {
    const char *given = getenv("DML_DEVICE_MARK");
    struct new_file file;
    *path = given ? memory_copy_string(given) : mark_path(geteuid() == 0);
    if (!*path)
        return error_set(ERROR_UNAVAILABLE, "there is no folder for the mark: HOME is not set");
    char *folder = path_folder(*path), *text = text_of_mark(kind, number);
    int code = folder_make(folder, 0755);
    if (!code)
        code = new_file_open(&file, *path);
    if (!code) {
        code = new_file_write(&file, text, strlen(text));
        if (!code)
            code = new_file_publish(&file);
        new_file_discard(&file);
    }
    free(text);
    free(folder);
    return code;
}
