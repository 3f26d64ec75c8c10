#include "coordinator/run/missing_workers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "wire/address.h"
#include "wire/message.h"
#include "wire/peer.h"

#define QUIET_NS (1 * NS_PER_S)  /* workers that come together with the run are no news */
#define PAUSE_NS (15 * NS_PER_S) /* from one line to the next */
#define NAMED_MOST 4             /* workers in one line */

void missing_init(struct missing_workers *missing, const char *const *addresses, uint32_t shards,
                  uint32_t replicas) {
    *missing = (struct missing_workers){
        .addresses = addresses, .shards = shards, .links = shards + replicas};
    missing->workers = memory_new(missing->links, sizeof *missing->workers);
}

void missing_release(struct missing_workers *missing) {
    for (uint32_t i = 0; i < missing->links; i++)
        free(missing->workers[i].why);
    free(missing->workers);
    *missing = (struct missing_workers){0};
}

void missing_begin(struct missing_workers *missing, uint32_t link, int64_t now_ns, double seconds) {
    assert(link < missing->links);
    struct missing_worker *worker = &missing->workers[link];
    if (worker->missing)
        return;
    *worker = (struct missing_worker){.missing = true,
                                      .strict = seconds <= 0,
                                      .until_ns = now_ns + (int64_t)(seconds * (double)NS_PER_S)};
    if (missing->waits)
        return;
    missing->waits = true;
    missing->since_ns = now_ns;
    missing->told_ns = 0;
}

void missing_failed(struct missing_workers *missing, uint32_t link, const char *why) {
    assert(link < missing->links);
    struct missing_worker *worker = &missing->workers[link];
    free(worker->why);
    worker->why = memory_copy_string(why);
}

bool missing_is_new(const struct missing_workers *missing, uint32_t link, const char *why) {
    const char *last = missing->workers[link].why;
    return !last || strcmp(last, why) != 0;
}

void missing_came(struct missing_workers *missing, uint32_t link) {
    assert(link < missing->links);
    struct missing_worker *worker = &missing->workers[link];
    free(worker->why);
    *worker = (struct missing_worker){0};
}

bool missing_gave_up(const struct missing_workers *missing, uint32_t link) {
    return missing->workers[link].given_up;
}

/* ---- in words ---- */

static bool is_shard(const struct missing_workers *missing, uint32_t link) {
    return link < missing->shards;
}

static const char *role_of(const struct missing_workers *missing, uint32_t link) {
    return role_name(is_shard(missing, link) ? ROLE_SHARD : ROLE_REPLICA);
}

static uint32_t index_in_role(const struct missing_workers *missing, uint32_t link) {
    return is_shard(missing, link) ? link : link - missing->shards;
}

/* What one worker adds to a list. Free it. */
typedef char *describe(const struct missing_workers *missing, uint32_t link);

static char *describe_place(const struct missing_workers *missing, uint32_t link) {
    return memory_format("%s %u at %s", role_of(missing, link), index_in_role(missing, link),
                         missing->addresses[link]);
}

static char *describe_failure(const struct missing_workers *missing, uint32_t link) {
    const char *why = missing->workers[link].why;
    return memory_format("%s %u is not there (%s%s)", role_of(missing, link),
                         index_in_role(missing, link), why ? why : missing->addresses[link],
                         why ? "" : ": no answer");
}

static char *describe_remedy(const struct missing_workers *missing, uint32_t link) {
    const char *address = missing->addresses[link];
    char *word = shell_word(address);
    char *remedy = memory_format("dml-%s --listen %s%s", role_of(missing, link), word,
                                 address_is_unix(address) ? "" : " --key STATE/key");
    free(word);
    return remedy;
}

/* Whom the run waits for; all that are missing if it has `over`. NULL if there is none. */
static char *list_missing(const struct missing_workers *missing, bool over, const char *separator,
                          describe *in_words) {
    char *text = NULL;
    uint32_t named = 0, more = 0;
    for (uint32_t i = 0; i < missing->links; i++) {
        const struct missing_worker *worker = &missing->workers[i];
        if (!worker->missing || (worker->given_up && !over))
            continue;
        if (named == NAMED_MOST) {
            more++;
            continue;
        }
        char *item = in_words(missing, i), *before = text;
        assert((named == 0) == (before == NULL));
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

char *missing_text(const struct missing_workers *missing) {
    return list_missing(missing, false, ", ", describe_place);
}

/* ---- time ---- */

static void log_missing(struct missing_workers *missing, int64_t now_ns) {
    int64_t from_ns = missing->told_ns ? missing->told_ns + PAUSE_NS : missing->since_ns + QUIET_NS;
    if (now_ns < from_ns)
        return;
    char *text = missing_text(missing);
    assert(text);
    missing->told_ns = now_ns;
    log_info("waiting for %s", text);
    free(text);
}

int missing_check(struct missing_workers *missing, bool replica_there, int64_t now_ns) {
    bool waits = false;
    for (uint32_t i = 0; i < missing->links; i++) {
        const struct missing_worker *worker = &missing->workers[i];
        if (!worker->missing || worker->given_up)
            continue;
        bool over = now_ns >= worker->until_ns && (!worker->strict || worker->why);
        if (over && (worker->strict || is_shard(missing, i) || !replica_there)) {
            char *failures = list_missing(missing, true, ", ", describe_failure);
            char *remedies = list_missing(missing, true, ", ", describe_remedy);
            int code =
                error_set(ERROR_UNAVAILABLE, "%s; start %s, or wait longer for them with --wait",
                          failures, remedies);
            free(failures);
            free(remedies);
            return code;
        }
        waits |= !over;
        if (over) { /* nobody waits for this replica any more */
            char *text = describe_failure(missing, i);
            missing->workers[i].given_up = true;
            log_warning("%s: the run goes on without it until it comes", text);
            free(text);
        }
    }
    missing->waits = waits;
    if (waits)
        log_missing(missing, now_ns);
    return 0;
}
