/* Keeps recent answers, to give them again. An answer that took long to make is given again for
 * longer, so that making answers takes a small share of the time, however often the same is asked.
 * Whoever sends an answer holds it, so that its body need not be copied. */
#ifndef DML_COORDINATOR_STATUS_ANSWERS_H
#define DML_COORDINATOR_STATUS_ANSWERS_H

#include <stdint.h>

#include "coordinator/status/request.h"
#include "coordinator/status/response.h"

#define ANSWERS_KEPT 8
#define ANSWERS_SHARE 50 /* an answer is given again for 50 times the time that it took to make */
#define ANSWERS_AGE_MIN_MS 100
#define ANSWERS_AGE_MAX_MS 1000

/* An answer, the request that it is for, and how many hold it. */
struct kept_answer {
    char *path, *query;
    struct http_answer answer;
    int64_t made_ns, good_until_ns;
    uint32_t holders;
};

struct answers {
    struct kept_answer *kept[ANSWERS_KEPT]; /* NULL: nothing is kept here */
};

/* The answer to this request if it may still be given, or NULL. Valid until answers_keep(), or as
 * long as it is held. */
struct kept_answer *answers_find(const struct answers *answers, const struct request *request,
                                 int64_t now_ns);

/* Keeps an answer that was made from `begun_ns` to `now_ns`, and takes over its `owned` body. The
 * oldest answer is dropped. */
struct kept_answer *answers_keep(struct answers *answers, const struct request *request,
                                 const struct http_answer *answer, int64_t begun_ns,
                                 int64_t now_ns);

/* The body of an answer stays until everyone who holds it has dropped it. */
void answers_hold(struct kept_answer *kept);
void answers_drop(struct kept_answer *kept);

void answers_release(struct answers *answers);

#endif
