#include "coordinator/run/holdout.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
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

/* Where both have names, one id is one name. */
static int check_names(const struct pack *pack, const struct set_info *data) {
    struct source_report report;
    pack_report(pack, &report);
    char **names = report.column_names;
    uint64_t columns = 0;
    int code = 0;
    while (names && names[columns])
        columns++;
    for (uint32_t i = 0; names && data->feature_names && i < data->features && !code; i++) {
        uint64_t column = data->feature_id[i];
        const char *name = column <= columns ? names[column - 1] : "";
        if (*data->feature_names[i] && strcmp(name, data->feature_names[i]))
            code = error_set(ERROR_DATA,
                             "%s:1: column %llu is named \"%s\", but \"%s\" in the data that is "
                             "trained on",
                             pack_source(pack), (unsigned long long)column, name,
                             data->feature_names[i]);
    }
    source_report_release(&report);
    return code;
}

int holdout_check(const struct holdout *holdout, const struct set_info *data) {
    bool of_its_own = holdout->share == 0;
    int code = 0;
    for (uint32_t i = 0; of_its_own && i < holdout->count && !code; i++)
        code = check_names(holdout->packs[i], data);
    return code;
}

int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures) {
    failpoint(FAILPOINT_score);
    int code = score_packs(model, holdout->packs, holdout->count, holdout->share, figures);
    if (!code && !figures->examples)
        code = error_set(ERROR_DATA, "the holdout has no labelled row");
    return code;
}
