/* Answers that were given lately. However often the same is asked, making answers to it takes a
 * small share of the time: one that took long to make is given again for longer. What is being sent
 * is held by whoever sends it, so that nothing is copied. */
#ifndef DML_COORDINATOR_STATUS_ANSWERS_H
#define DML_COORDINATOR_STATUS_ANSWERS_H

#include <stdint.h>

#include "coordinator/status/request.h"
#include "coordinator/status/response.h"

#define ANSWERS_KEPT 8
#define ANSWERS_SHARE 50 /* an answer is good for as many times as long as it took to make */
#define ANSWERS_AGE_MIN_MS 100
#define ANSWERS_AGE_MAX_MS 1000

/* An answer, the request it is for, and how many hold it. */
struct kept_answer {
    char *path, *query;
    struct http_answer answer;
    int64_t made_ns, good_until_ns;
    uint32_t holders;
};

struct answers {
    struct kept_answer *kept[ANSWERS_KEPT]; /* NULL: nothing is kept here */
};

/* The answer to this request that is still good, or NULL. Valid until answers_keep(), longer for
 * whoever holds it. */
struct kept_answer *answers_find(const struct answers *answers, const struct request *request,
                                 int64_t now_ns);

/* Takes over an answer that was made from `begun_ns` to `now_ns`, what is `owned` included; what
 * was kept longest goes. */
struct kept_answer *answers_keep(struct answers *answers, const struct request *request,
                                 const struct http_answer *answer, int64_t begun_ns,
                                 int64_t now_ns);

/* Its body stays as long as somebody holds it. */
void answers_hold(struct kept_answer *kept);
void answers_drop(struct kept_answer *kept);

void answers_release(struct answers *answers);

#endif
