/* `rollback`: makes an earlier version live again. */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/command/go_live.h"

static int find_before(struct go_live *live) {
    struct history history;
    int code = history_read(live->store, &history);
    assert(!live->to); /* --to names none */
    if (!code)
        live->to = history_before(&history, live->from);
    if (!code && !live->to)
        code = live->from
                   ? error_set(ERROR_UNAVAILABLE,
                               "%s: no other version was live before that of run %lld, which "
                               "stays live; --to RUN makes another one live",
                               live->state, (long long)live->from)
                   : error_set(ERROR_UNAVAILABLE, "%s: no model is live there", live->state);
    history_release(&history);
    return code;
}

/* A rollback that was cut off is completed when it is repeated, and does not go back once more. */
static int go_back(struct go_live *live) {
    const char *to = live->options->to;
    char *what = memory_format("--to %s", to ? to : "");
    int code = to ? go_live_find(live, to, what, &live->to) : 0;
    free(what);
    int announced = code ? 0 : go_live_settle_earlier(live, DECISION_ROLLED_BACK);
    if (!code && !announced && !live->completed) {
        live->from = history_current(live->state);
        if (!live->to)
            code = find_before(live);
        if (!code)
            code = go_live_check(live);
        assert(code || live->to > 0);
        char *why = memory_format("rolled back from run %lld", (long long)live->from);
        announced = code ? 0 : go_live_now(live, DECISION_ROLLED_BACK, why);
        free(why);
    }
    if (code)
        return code;
    if (announced && announced != ERROR_UNAVAILABLE)
        return announced;
    code = go_live_show(live, " again", "rollback");
    return announced ? announced : code;
}

int command_rollback(const struct options *options) {
    struct go_live live;
    int code = go_live_open(options, 0, &live);
    if (!code)
        code = go_back(&live);
    go_live_close(&live);
    return code;
}
