/* A folder of its own for each test. */
#ifndef DML_TESTS_FOLDER_FIXTURE_H
#define DML_TESTS_FOLDER_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "test-folder-XXXXXX");
    error_clear();
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char *command = memory_format("rm -rf %s", folder);
    int status = system(command);
    free(command);
    return status;
}

/* FOLDER/NAME, valid until the next call. */
static char *inside(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#endif
