/* Limits how often something is done: a number a second, and some more at once after a pause. */
#ifndef DML_COORDINATOR_STATUS_HTTP_LIMITS_H
#define DML_COORDINATOR_STATUS_HTTP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/status/http_message.h"

struct allowance {
    double per_second, at_once_most;
    double left; /* how often it could be done at the time `counted_ns` */
    int64_t counted_ns;
};

/* Takes one if any is left; false if none is. */
bool allowance_take(struct allowance *allowance, int64_t now_ns);

/* Keeps recent answers, to give them again. An answer that took long to make is given again for
 * longer, so that making answers takes a small share of the time, however often the same is asked.
 * Whoever sends an answer holds it, so that its body need not be copied. */

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

/* Requests and connections that the status server refused: counted by reason, and logged. */

#define HTTP_REFUSAL_TABLE(X)                                                                      \
    X(HTTP_MALFORMED, "malformed")     /* also another version, or a body */                       \
    X(HTTP_METHOD, "method")           /* neither GET nor HEAD */                                  \
    X(HTTP_MISDIRECTED, "misdirected") /* for another host */                                      \
    X(HTTP_TOO_LARGE, "too_large")     /* head or target beyond the limit */                       \
    X(HTTP_SLOW, "slow")               /* the request or its answer took too long */               \
    X(HTTP_CROWDED, "crowded")         /* closed to make room for another connection */            \
    X(HTTP_DESCRIPTORS, "descriptors") /* this process had no descriptor left to accept with */

enum http_refusal {
#define X(name, text) name,
    HTTP_REFUSAL_TABLE(X)
#undef X
        HTTP_REFUSALS
};
const char *http_refusal_text(enum http_refusal refusal);

/* Starts as zeros. */
struct refusals {
    uint64_t counts[HTTP_REFUSALS];
    uint64_t told;    /* how many of them were logged */
    int64_t told_ns;  /* when they were last logged; 0: never */
    const char *last; /* why the last one was refused */
};

/* Counts and logs a refusal; `why` is a constant. */
void refusals_note(struct refusals *refusals, enum http_refusal refusal, const char *why,
                   int64_t now_ns);

/* Logs how many there were since the last line, if any; at most one line a second. */
void refusals_tell(struct refusals *refusals, int64_t now_ns);

#endif
