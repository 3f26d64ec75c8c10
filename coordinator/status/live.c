#include "coordinator/status/live.h"

#include <assert.h>

const char *stage_text(enum stage stage) {
    static const char *const texts[STAGE_COUNT] = {
#define X(name, text) [name] = text,
        STAGES(X)
#undef X
    };
    assert((unsigned)stage < STAGE_COUNT);
    return texts[stage];
}

const char *live_phase(enum coordinator_phase phase) {
    switch (phase) {
    case PHASE_REJOINING:
        return "looking for workers";
    case PHASE_SETTING_UP:
        return "setting up";
    case PHASE_RUNNING:
        return "running";
    case PHASE_FINAL_CHECKPOINT:
        return "making the last step durable";
    case PHASE_READING:
    case PHASE_READ:
        return "reading the model";
    case PHASE_STOPPED:
    case PHASE_DISMISSED:
        return "ending";
    case PHASE_FAILED:
        return "failed";
    }
    return "unknown";
}

const char *live_state(const struct live *live) {
    const char *text = stage_text(live->stage);
    return text ? text : live->coordinator ? live_phase(coordinator_phase(live->coordinator)) : "";
}

struct store_host host_row(const struct hosts *hosts, uint32_t number) {
    assert(number < hosts->count);
    const struct hosts_entry *host = &hosts->items[number];
    return (struct store_host){.position = number,
                               .host = host->name,
                               .threads = host->threads,
                               .workers = host->up,
                               .state = hosts_state_text(hosts_state(host)),
                               .why = host->why,
                               .failures = host->failed};
}
