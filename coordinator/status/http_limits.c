#include "coordinator/status/http_limits.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

bool rate_limit_take(struct rate_limit *limit, int64_t now_ns) {
    assert(now_ns >= limit->counted_ns && limit->per_second > 0);
    double gained = (double)(now_ns - limit->counted_ns) / 1e9 * limit->per_second;
    limit->left = fmin(limit->left + gained, limit->at_once_most);
    limit->counted_ns = now_ns;
    if (limit->left < 1)
        return false;
    limit->left -= 1;
    return true;
}

static bool is_for(const struct cached_response *kept, const struct request *request) {
    return kept && strcmp(kept->path, request->path) == 0 &&
           strcmp(kept->query, request->query) == 0;
}

void cached_response_hold(struct cached_response *kept) {
    assert(kept->holders > 0); /* the cache's own, at least */
    kept->holders++;
}

void cached_response_drop(struct cached_response *kept) {
    assert(!kept || kept->holders > 0);
    if (!kept || --kept->holders)
        return;
    free(kept->path);
    free(kept->query);
    free(kept->answer.owned);
    free(kept);
}

struct cached_response *response_cache_find(const struct response_cache *cache,
                                            const struct request *request, int64_t now_ns) {
    for (unsigned i = 0; i < RESPONSES_CACHED; i++) {
        struct cached_response *kept = cache->responses[i];
        if (is_for(kept, request) && now_ns < kept->good_until_ns)
            return kept;
    }
    return NULL;
}

/* The place of the earlier answer to the same request, else a free place, else that of the oldest
 * answer. */
static struct cached_response **place_for(struct response_cache *cache,
                                          const struct request *request) {
    struct cached_response **oldest = &cache->responses[0];
    for (unsigned i = 0; i < RESPONSES_CACHED; i++) {
        struct cached_response **kept = &cache->responses[i];
        if (is_for(*kept, request))
            return kept;
        if (*oldest && (!*kept || (*kept)->made_ns < (*oldest)->made_ns))
            oldest = kept;
    }
    return oldest;
}

struct cached_response *response_cache_put(struct response_cache *cache,
                                           const struct request *request,
                                           const struct http_answer *answer, int64_t begun_ns,
                                           int64_t now_ns) {
    struct cached_response **place = place_for(cache, request);
    assert(now_ns >= begun_ns && answer->status > 0);
    int64_t age_ns = (now_ns - begun_ns) * CACHE_SHARE;
    age_ns = age_ns < CACHE_AGE_MIN_MS * NS_PER_MS   ? CACHE_AGE_MIN_MS * NS_PER_MS
             : age_ns > CACHE_AGE_MAX_MS * NS_PER_MS ? CACHE_AGE_MAX_MS * NS_PER_MS
                                                     : age_ns;
    cached_response_drop(*place);
    *place = memory_new(1, sizeof **place);
    **place = (struct cached_response){.path = memory_copy_string(request->path),
                                       .query = memory_copy_string(request->query),
                                       .answer = *answer,
                                       .made_ns = now_ns,
                                       .good_until_ns = now_ns + age_ns,
                                       .holders = 1};
    return *place;
}

void response_cache_release(struct response_cache *cache) {
    for (unsigned i = 0; i < RESPONSES_CACHED; i++)
        cached_response_drop(cache->responses[i]);
}

const char *http_drop_text(enum http_drop drop) {
    static const char *const texts[] = {
#define X(name, text) text,
        HTTP_DROPS(X)
#undef X
    };
    assert((unsigned)drop < HTTP_DROP_COUNT);
    return texts[drop];
}

void drop_counters_log(struct drop_counters *counters, int64_t now_ns) {
    uint64_t all = 0;
    for (unsigned i = 0; i < HTTP_DROP_COUNT; i++)
        all += counters->counts[i];
    assert(all >= counters->told);
    if (all == counters->told || (counters->told_ns && now_ns - counters->told_ns < NS_PER_S))
        return;
    log_info("status server: refused %llu requests or connections, the last for %s",
             (unsigned long long)(all - counters->told), counters->last);
    counters->told = all;
    counters->told_ns = now_ns;
}

void drop_counters_note(struct drop_counters *counters, enum http_drop drop, const char *why,
                        int64_t now_ns) {
    assert(drop < HTTP_DROP_COUNT);
    counters->counts[drop]++;
    counters->last = why;
    drop_counters_log(counters, now_ns);
}
