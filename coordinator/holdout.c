#include "coordinator/holdout.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct holdout {
    struct pack **packs;
    uint32_t count;
    double share;
};

struct holdout *holdout_new(struct pack *const *packs, uint32_t count, double share) {
    struct holdout *holdout = memory_new(1, sizeof *holdout);
    holdout->packs = memory_new(count, sizeof(struct pack *));
    memcpy(holdout->packs, packs, count * sizeof(struct pack *));
    holdout->count = count;
    holdout->share = share;
    return holdout;
}

void holdout_free(struct holdout *holdout) {
    if (!holdout)
        return;
    for (uint32_t i = 0; i < holdout->count; i++)
        pack_close(holdout->packs[i]);
    free(holdout->packs);
    free(holdout);
}

int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures) {
    int code = score_packs(model, holdout->packs, holdout->count, holdout->share, figures);
    if (!code && !figures->examples)
        code = error_set(ERROR_DATA, "the holdout has no labelled row");
    return code;
}
