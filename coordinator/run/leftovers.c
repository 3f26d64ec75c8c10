#define _GNU_SOURCE
#include "coordinator/run/leftovers.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    if (guard_holds()) /* asked for each: a large folder takes a while */
        remove(path);
    return 0; /* also if that failed: the other files are removed nevertheless */
}

void folder_remove(const char *folder) {
    nftw(folder, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

void folder_retire(const char *folder) {
    char *aside = memory_format("%s.tmp.%llu", folder, process_number());
    if (guard_holds() && rename(folder, aside) == 0)
        folder_remove(aside);
    free(aside);
}

/* Those whose names begin so. */
static void sweep_folder(const char *place, const char *begin) {
    char **names;
    if (folder_names(place, &names)) {
        error_clear();
        names = NULL;
    }
    for (char **name = names; name && *name; name++) {
        if (!name_is_temporary(*name) || strncmp(*name, begin, strlen(begin)) != 0)
            continue;
        char *path = path_join(place, *name);
        log_info("removing %s, left by a run that was killed", path);
        folder_remove(path);
        free(path);
    }
    names_free(names);
}

void leftovers_remove(const char *state) {
    char *packs = path_join(state, "packs"), *models = path_join(state, "models");
    sweep_folder(packs, "");
    sweep_folder(models, "");
    sweep_folder(state, "key."); /* commands without the lock may write others there */
    free(models);
    free(packs);
}
