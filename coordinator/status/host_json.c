#include "coordinator/status/host_json.h"

#include "base/text.h"

struct store_host host_row(const struct hosts *hosts, uint32_t number) {
    const struct hosts_entry *host = &hosts->items[number];
    return (struct store_host){.position = number,
                               .host = host->name,
                               .threads = host->threads,
                               .workers = host->up,
                               .state = hosts_state_text(hosts_state(host)),
                               .why = host->why,
                               .failures = host->failed};
}

json_t *host_json(const struct store_host *host) {
    return json_pack("{s:o, s:s, s:o, s:I, s:I, s:o}", "name", text_to_json(host->host), "state",
                     host->state, "why", *host->why ? text_to_json(host->why) : json_null(),
                     "workers", (json_int_t)host->workers, "failures", (json_int_t)host->failures,
                     "threads", host->threads ? json_integer(host->threads) : json_null());
}

json_t *hosts_json(const struct hosts *hosts) {
    json_t *list = json_array();
    for (uint32_t i = 0; hosts && i < hosts->count; i++) {
        struct store_host row = host_row(hosts, i);
        json_array_append_new(list, host_json(&row));
    }
    return list;
}
