/* A readdir() that fails when a test wants it to. For one file of a test program: the linker takes
 * it in place of that of the C library. */
#ifndef DML_TESTS_UNIT_FAILING_READDIR_H
#define DML_TESTS_UNIT_FAILING_READDIR_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool reading_fails;

/* Fails as it does when a disk or server does. */
struct dirent *readdir(DIR *directory) {
    union {
        void *object;
        struct dirent *(*function)(DIR *);
    } real = {.object = dlsym(RTLD_NEXT, "readdir")};
    if (!reading_fails)
        return real.function(directory);
    errno = EIO;
    return NULL;
}

#endif
