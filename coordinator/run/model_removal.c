#include "coordinator/run/model_removal.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/run_folder.h"

struct model_removal {
    const char *state;
    const int64_t *runs;
    size_t count;
    const char *why;
    bool *gone; /* [count] */
};

/* A large folder takes long to remove. */
static int work_on_removal(void *context) {
    const struct model_removal *removal = context;
    for (size_t i = 0; i < removal->count; i++) {
        failpoint(FAILPOINT_model_remove);
        char *folder = run_model_folder(removal->state, removal->runs[i]);
        if (removal->why)
            log_info("removing %s: %s", folder, removal->why);
        removal->gone[i] = folder_retire(folder);
        free(folder);
    }
    return 0;
}

/* The store belongs to the loop's thread, so it is told afterwards. */
int models_remove(struct loop *loop, struct store *store, const char *state, const int64_t *runs,
                  size_t count, const char *why) {
    if (!count)
        return 0;
    struct model_removal removal = {state, runs, count, why, memory_new(count, sizeof(bool))};
    int code = loop_beside(loop, STAGE_ENDING, work_on_removal, &removal);
    for (size_t i = 0; i < count && !code; i++)
        code = removal.gone[i] ? store_model_removed(store, runs[i]) : 0;
    free(removal.gone);
    return code;
}
