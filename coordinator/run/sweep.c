#define _GNU_SOURCE
#include "coordinator/run/sweep.h"

#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0; /* the others go all the same */
}

void folder_remove(const char *folder) {
    nftw(folder, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

static void sweep_folder(const char *state, const char *folder) {
    char *pattern = memory_format("%s/%s/*.tmp.[0-9]*", state, folder);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            log_info("removing %s, left by a run that was killed", found.gl_pathv[i]);
            folder_remove(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    free(pattern);
}

void state_sweep(const char *state) {
    sweep_folder(state, "packs");
    sweep_folder(state, "models");
}
