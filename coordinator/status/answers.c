#include "coordinator/status/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

static bool is_for(const struct kept_answer *kept, const struct request *request) {
    return kept->path && strcmp(kept->path, request->path) == 0 &&
           strcmp(kept->query, request->query) == 0;
}

static void forget(struct kept_answer *kept) {
    free(kept->path);
    free(kept->query);
    free(kept->answer.owned);
    *kept = (struct kept_answer){0};
}

const struct http_answer *answers_find(const struct answers *answers, const struct request *request,
                                       int64_t now_ns) {
    for (unsigned i = 0; i < ANSWERS_KEPT; i++) {
        const struct kept_answer *kept = &answers->kept[i];
        if (is_for(kept, request) && now_ns < kept->good_until_ns)
            return &kept->answer;
    }
    return NULL;
}

/* The place of the answer before to the same, or of the oldest. */
static struct kept_answer *place_for(struct answers *answers, const struct request *request) {
    struct kept_answer *oldest = &answers->kept[0];
    for (unsigned i = 0; i < ANSWERS_KEPT; i++) {
        struct kept_answer *kept = &answers->kept[i];
        if (is_for(kept, request))
            return kept;
        if (kept->made_ns < oldest->made_ns)
            oldest = kept;
    }
    return oldest;
}

const struct http_answer *answers_keep(struct answers *answers, const struct request *request,
                                       const struct http_answer *answer, int64_t begun_ns,
                                       int64_t now_ns) {
    struct kept_answer *kept = place_for(answers, request);
    int64_t age_ns = (now_ns - begun_ns) * ANSWERS_SHARE;
    forget(kept);
    if (age_ns > ANSWERS_AGE_MAX_MS * NS_PER_MS)
        age_ns = ANSWERS_AGE_MAX_MS * NS_PER_MS;
    *kept = (struct kept_answer){.path = memory_copy_string(request->path),
                                 .query = memory_copy_string(request->query),
                                 .answer = *answer,
                                 .made_ns = now_ns,
                                 .good_until_ns = now_ns + age_ns};
    return &kept->answer;
}

void answers_release(struct answers *answers) {
    for (unsigned i = 0; i < ANSWERS_KEPT; i++)
        forget(&answers->kept[i]);
}
