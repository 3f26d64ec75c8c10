#include "coordinator/run/awaiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/message.h"
#include "wire/peer.h"

#define QUIET_NS (1 * NS_PER_S)  /* workers that come together with the run are no news */
#define PAUSE_NS (15 * NS_PER_S) /* from one line to the next */
#define NAMED_MOST 4             /* workers in one line */

void awaiting_init(struct awaiting *awaiting, const char *const *addresses, uint32_t shards,
                   uint32_t replicas) {
    *awaiting =
        (struct awaiting){.addresses = addresses, .shards = shards, .links = shards + replicas};
    awaiting->workers = memory_new(awaiting->links, sizeof *awaiting->workers);
}

void awaiting_release(struct awaiting *awaiting) {
    for (uint32_t i = 0; i < awaiting->links; i++)
        free(awaiting->workers[i].why);
    free(awaiting->workers);
    *awaiting = (struct awaiting){0};
}

void awaiting_begin(struct awaiting *awaiting, uint32_t link, int64_t now_ns, double seconds) {
    struct awaited *worker = &awaiting->workers[link];
    if (worker->missing)
        return;
    *worker = (struct awaited){.missing = true,
                               .strict = seconds <= 0,
                               .until_ns = now_ns + (int64_t)(seconds * (double)NS_PER_S)};
    if (awaiting->waits)
        return;
    awaiting->waits = true;
    awaiting->since_ns = now_ns;
    awaiting->told_ns = 0;
}

void awaiting_failed(struct awaiting *awaiting, uint32_t link, const char *why) {
    struct awaited *worker = &awaiting->workers[link];
    free(worker->why);
    worker->why = memory_copy_string(why);
}

bool awaiting_is_new(const struct awaiting *awaiting, uint32_t link, const char *why) {
    const char *last = awaiting->workers[link].why;
    return !last || strcmp(last, why) != 0;
}

void awaiting_came(struct awaiting *awaiting, uint32_t link) {
    struct awaited *worker = &awaiting->workers[link];
    free(worker->why);
    *worker = (struct awaited){0};
}

bool awaiting_gave_up(const struct awaiting *awaiting, uint32_t link) {
    return awaiting->workers[link].given_up;
}

/* ---- in words ---- */

static bool is_shard(const struct awaiting *awaiting, uint32_t link) {
    return link < awaiting->shards;
}

static const char *role_of(const struct awaiting *awaiting, uint32_t link) {
    return role_name(is_shard(awaiting, link) ? ROLE_SHARD : ROLE_REPLICA);
}

static uint32_t index_of(const struct awaiting *awaiting, uint32_t link) {
    return is_shard(awaiting, link) ? link : link - awaiting->shards;
}

/* What one worker adds to a list. Free it. */
typedef char *describe(const struct awaiting *awaiting, uint32_t link);

static char *describe_place(const struct awaiting *awaiting, uint32_t link) {
    return memory_format("%s %u at %s", role_of(awaiting, link), index_of(awaiting, link),
                         awaiting->addresses[link]);
}

static char *describe_failure(const struct awaiting *awaiting, uint32_t link) {
    const char *why = awaiting->workers[link].why;
    return memory_format("%s %u is not there (%s%s)", role_of(awaiting, link),
                         index_of(awaiting, link), why ? why : awaiting->addresses[link],
                         why ? "" : ": no answer");
}

static char *describe_remedy(const struct awaiting *awaiting, uint32_t link) {
    const char *address = awaiting->addresses[link];
    return memory_format("dml-%s --listen %s%s", role_of(awaiting, link), address,
                         address_may_need_tls(address) ? " --key STATE/key" : "");
}

/* Whom the run waits for; all that are missing if it has `over`. NULL if there is none. */
static char *list(const struct awaiting *awaiting, bool over, const char *separator,
                  describe *in_words) {
    char *text = NULL;
    uint32_t named = 0, more = 0;
    for (uint32_t i = 0; i < awaiting->links; i++) {
        const struct awaited *worker = &awaiting->workers[i];
        if (!worker->missing || (worker->given_up && !over))
            continue;
        if (named == NAMED_MOST) {
            more++;
            continue;
        }
        char *item = in_words(awaiting, i), *before = text;
        text = memory_format("%s%s%s", before ? before : "", named++ ? separator : "", item);
        free(before);
        free(item);
    }
    if (!more)
        return text;
    char *shortened = memory_format("%s%s%u more", text, separator, more);
    free(text);
    return shortened;
}

char *awaiting_text(const struct awaiting *awaiting) {
    return list(awaiting, false, ", ", describe_place);
}

static int refuse(const struct awaiting *awaiting) {
    char *failures = list(awaiting, true, ", ", describe_failure);
    char *remedies = list(awaiting, true, ", ", describe_remedy);
    int code = error_set(ERROR_UNAVAILABLE, "%s; start %s, or wait longer for them with --wait",
                         failures, remedies);
    free(failures);
    free(remedies);
    return code;
}

/* ---- time ---- */

static void tell(struct awaiting *awaiting, int64_t now_ns) {
    int64_t from_ns =
        awaiting->told_ns ? awaiting->told_ns + PAUSE_NS : awaiting->since_ns + QUIET_NS;
    if (now_ns < from_ns)
        return;
    char *text = awaiting_text(awaiting);
    awaiting->told_ns = now_ns;
    log_info("waiting for %s", text);
    free(text);
}

/* Nobody waits for this replica any more. */
static void go_without(const struct awaiting *awaiting, uint32_t link) {
    char *text = describe_failure(awaiting, link);
    awaiting->workers[link].given_up = true;
    log_warning("%s: the run goes on without it until it comes", text);
    free(text);
}

int awaiting_check(struct awaiting *awaiting, bool replica_there, int64_t now_ns) {
    bool waits = false;
    for (uint32_t i = 0; i < awaiting->links; i++) {
        const struct awaited *worker = &awaiting->workers[i];
        if (!worker->missing || worker->given_up)
            continue;
        bool over = now_ns >= worker->until_ns && (!worker->strict || worker->why);
        if (over && (worker->strict || is_shard(awaiting, i) || !replica_there))
            return refuse(awaiting);
        if (over)
            go_without(awaiting, i);
        else
            waits = true;
    }
    awaiting->waits = waits;
    if (waits)
        tell(awaiting, now_ns);
    return 0;
}
