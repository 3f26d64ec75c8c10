#include "coordinator/run/dataset.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"

struct holdout {
    struct pack **packs;
    uint32_t count;
    bool picks;
    struct holdout_pick pick; /* if it does */
};

struct holdout *holdout_new(struct pack *const *packs, uint32_t count,
                            const struct holdout_pick *pick) {
    struct holdout *holdout = memory_new(1, sizeof *holdout);
    assert(count > 0);
    holdout->packs = memory_new(count, sizeof(struct pack *));
    memcpy(holdout->packs, packs, count * sizeof(struct pack *));
    holdout->count = count;
    holdout->picks = pick != NULL;
    if (pick)
        holdout->pick = *pick;
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

/* Tries with a model without parameters whether the rows can be scored. */
static int try_rows(const struct holdout *holdout, const struct set_info *data,
                    const struct model_layout *layout, const char *key) {
    struct score_figures figures;
    struct model model = {.layout = *layout};
    uint64_t *ids = memory_new(layout->features, sizeof *ids);
    double *idf = layout->idf ? memory_new(layout->features, sizeof *idf) : NULL;
    assert(!holdout->picks);
    for (uint64_t r = 0; r < layout->features; r++) {
        uint64_t column = column_order_at(&layout->original_order, r);
        ids[r] = layout->feature_id[column];
        if (idf)
            idf[r] = layout->idf[column];
    }
    model.layout.feature_id = ids;
    model.layout.idf = idf;
    model.layout.feature_names = NULL;
    model.layout.original_order = (struct column_order){0};
    model.layout.kept = NULL;
    int code = score_labels(&model, holdout->packs, holdout->count, &figures);
    free(ids);
    free(idf);
    if (code)
        return code;
    char *where = memory_format("key `%s`: %s", key, pack_source(holdout->packs[0]));
    code = score_check_labels(&figures, where, data->classes, data->class_names);
    free(where);
    return code;
}

int holdout_check(const struct holdout *holdout, const struct set_info *data,
                  const struct model_layout *layout, const char *key) {
    if (!holdout)
        return 0;
    if (holdout->picks && holdout->pick.folds) /* the set was made without them */
        return 0;
    if (holdout->picks) /* rows of the data itself */
        return data->rows_held_out ? 0
                                   : error_set(ERROR_DATA,
                                               "key `%s`: no row is held out: the data "
                                               "is too small for that share",
                                               key);
    return try_rows(holdout, data, layout, key);
}

static const struct holdout_pick *pick_of(const struct holdout *holdout) {
    return holdout->picks ? &holdout->pick : NULL;
}

int holdout_margins(const struct holdout *holdout, const struct model *model,
                    struct ranking **ranking) {
    return score_margins(model, holdout->packs, holdout->count, pick_of(holdout), ranking);
}

double holdout_share(const struct holdout *holdout) {
    return holdout->picks && !holdout->pick.folds ? holdout->pick.share : 0;
}

json_t *holdout_json(const struct holdout *holdout, const struct score_figures *figures) {
    char rows[17];
    json_t *object = score_figures_json(figures);
    snprintf(rows, sizeof rows, "%016llx",
             (unsigned long long)holdout_rows_id(holdout->packs, holdout->count, pick_of(holdout)));
    json_object_set_new(object, "rows", json_string(rows));
    return object;
}

static int score_rows(const struct holdout *holdout, const struct holdout_pick *pick,
                      const struct model *model, struct score_figures *figures) {
    failpoint(FAILPOINT_score);
    int code = score_packs(model, holdout->packs, holdout->count, pick, figures);
    if (!code && !figures->examples) {
        score_figures_release(figures);
        code = error_set(ERROR_DATA, "the holdout has no labelled row");
    }
    return code;
}

int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures) {
    return score_rows(holdout, pick_of(holdout), model, figures);
}

int holdout_score_within(const struct holdout *holdout, double share, const struct model *model,
                         struct score_figures *figures) {
    assert(share > 0 && share <= holdout_share(holdout));
    const struct holdout_pick pick = {.share = share};
    return score_rows(holdout, &pick, model, figures);
}
