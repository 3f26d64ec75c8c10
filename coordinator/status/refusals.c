#include "coordinator/status/refusals.h"

#include "base/clock.h"
#include "base/log.h"

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
