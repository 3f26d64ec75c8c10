#include "coordinator/status/http_limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

bool allowance_take(struct allowance *allowance, int64_t now_ns) {
    double gained = (double)(now_ns - allowance->counted_ns) / 1e9 * allowance->per_second;
    allowance->left = fmin(allowance->left + gained, allowance->at_once_most);
    allowance->counted_ns = now_ns;
    if (allowance->left < 1)
        return false;
    allowance->left -= 1;
    return true;
}

static bool is_for(const struct kept_answer *kept, const struct request *request) {
    return kept && strcmp(kept->path, request->path) == 0 &&
           strcmp(kept->query, request->query) == 0;
}

void answers_hold(struct kept_answer *kept) {
    kept->holders++;
}

void answers_drop(struct kept_answer *kept) {
    if (!kept || --kept->holders)
        return;
    free(kept->path);
    free(kept->query);
    free(kept->answer.owned);
    free(kept);
}

struct kept_answer *answers_find(const struct answers *answers, const struct request *request,
                                 int64_t now_ns) {
    for (unsigned i = 0; i < ANSWERS_KEPT; i++) {
        struct kept_answer *kept = answers->kept[i];
        if (is_for(kept, request) && now_ns < kept->good_until_ns)
            return kept;
    }
    return NULL;
}

/* The place of the earlier answer to the same request, else a free place, else that of the oldest
 * answer. */
static struct kept_answer **place_for(struct answers *answers, const struct request *request) {
    struct kept_answer **oldest = &answers->kept[0];
    for (unsigned i = 0; i < ANSWERS_KEPT; i++) {
        struct kept_answer **kept = &answers->kept[i];
        if (is_for(*kept, request))
            return kept;
        if (*oldest && (!*kept || (*kept)->made_ns < (*oldest)->made_ns))
            oldest = kept;
    }
    return oldest;
}

static int64_t age_for(int64_t made_in_ns) {
    int64_t age_ns = made_in_ns * ANSWERS_SHARE;
    return age_ns < ANSWERS_AGE_MIN_MS * NS_PER_MS   ? ANSWERS_AGE_MIN_MS * NS_PER_MS
           : age_ns > ANSWERS_AGE_MAX_MS * NS_PER_MS ? ANSWERS_AGE_MAX_MS * NS_PER_MS
                                                     : age_ns;
}

struct kept_answer *answers_keep(struct answers *answers, const struct request *request,
                                 const struct http_answer *answer, int64_t begun_ns,
                                 int64_t now_ns) {
    struct kept_answer **place = place_for(answers, request);
    answers_drop(*place);
    *place = memory_new(1, sizeof **place);
    **place = (struct kept_answer){.path = memory_copy_string(request->path),
                                   .query = memory_copy_string(request->query),
                                   .answer = *answer,
                                   .made_ns = now_ns,
                                   .good_until_ns = now_ns + age_for(now_ns - begun_ns),
                                   .holders = 1};
    return *place;
}

void answers_release(struct answers *answers) {
    for (unsigned i = 0; i < ANSWERS_KEPT; i++)
        answers_drop(answers->kept[i]);
}

const char *http_refusal_text(enum http_refusal refusal) {
    static const char *const texts[] = {
#define X(name, text) text,
        HTTP_REFUSAL_TABLE(X)
#undef X
    };
    return texts[refusal];
}

void refusals_tell(struct refusals *refusals, int64_t now_ns) {
    uint64_t all = 0;
    for (unsigned i = 0; i < HTTP_REFUSALS; i++)
        all += refusals->counts[i];
    if (all == refusals->told || (refusals->told_ns && now_ns - refusals->told_ns < NS_PER_S))
        return;
    log_info("status server: refused %llu requests or connections, the last for %s",
             (unsigned long long)(all - refusals->told), refusals->last);
    refusals->told = all;
    refusals->told_ns = now_ns;
}

void refusals_note(struct refusals *refusals, enum http_refusal refusal, const char *why,
                   int64_t now_ns) {
    refusals->counts[refusal]++;
    refusals->last = why;
    refusals_tell(refusals, now_ns);
}
