/* What bounds the cost of the status server, whatever clients do: a limit of requests a second, a
 * cache of recent responses, and a log of what was turned away that stays short. */
#ifndef DML_COORDINATOR_STATUS_HTTP_LIMITS_H
#define DML_COORDINATOR_STATUS_HTTP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/status/http_message.h"

/* Limits how often something is done: a number a second, and some more at once after a pause. */
struct rate_limit {
    double per_second, at_once_most;
    double left; /* how often it could be done at the time `counted_ns` */
    int64_t counted_ns;
};

/* Takes one if any is left; false if none is. */
bool rate_limit_take(struct rate_limit *limit, int64_t now_ns);

/* ---- recent responses ----
 *
 * They are given again. One that took long to make is given again for longer, so that making them
 * takes a small share of the time, however often the same is asked. Whoever sends one holds it, so
 * that its body need not be copied. */

#define RESPONSES_CACHED 8
#define CACHE_SHARE 50 /* a response is kept for 50 times the time that it took to make */
#define CACHE_AGE_MIN_MS 100
#define CACHE_AGE_MAX_MS 1000

/* A response, the request that it is for, and how many hold it. */
struct cached_response {
    char *path, *query;
    struct http_answer answer;
    int64_t made_ns, good_until_ns;
    uint32_t holders;
};

struct response_cache {
    struct cached_response *responses[RESPONSES_CACHED]; /* NULL: nothing is kept here */
};

/* The answer to this request if it may still be given, or NULL. Valid until response_cache_put(),
 * or as long as it is held. */
struct cached_response *response_cache_find(const struct response_cache *cache,
                                            const struct request *request, int64_t now_ns);

/* Keeps an answer that was made from `begun_ns` to `now_ns`, and takes over its `owned` body. The
 * oldest answer is dropped. */
struct cached_response *response_cache_put(struct response_cache *cache,
                                           const struct request *request,
                                           const struct http_answer *answer, int64_t begun_ns,
                                           int64_t now_ns);

/* The body of an answer stays until everyone who holds it has dropped it. */
void cached_response_hold(struct cached_response *kept);
void cached_response_drop(struct cached_response *kept);

void response_cache_release(struct response_cache *cache);

/* ---- requests and connections that were turned away, by reason ---- */

#define HTTP_DROPS(X)                                                                              \
    X(HTTP_MALFORMED, "malformed")     /* also another version, or a body */                       \
    X(HTTP_METHOD, "method")           /* not one that the path takes */                           \
    X(HTTP_MISDIRECTED, "misdirected") /* for another host */                                      \
    X(HTTP_TOO_LARGE, "too_large")     /* head or target beyond the limit */                       \
    X(HTTP_SLOW, "slow")               /* the request or its answer took too long */               \
    X(HTTP_CROWDED, "crowded")         /* closed to make room for another connection */            \
    X(HTTP_DESCRIPTORS, "descriptors") /* this process had no descriptor left to accept with */

enum http_drop {
#define X(name, text) name,
    HTTP_DROPS(X)
#undef X
        HTTP_DROP_COUNT
};
const char *http_drop_text(enum http_drop drop);

/* Starts as zeros. */
struct drop_counters {
    uint64_t counts[HTTP_DROP_COUNT];
    uint64_t told;    /* how many of them were logged */
    int64_t told_ns;  /* when they were last logged; 0: never */
    const char *last; /* why the last one was refused */
};

/* Counts and logs a refusal; `why` is a constant. */
void drop_counters_note(struct drop_counters *counters, enum http_drop drop, const char *why,
                        int64_t now_ns);

/* Logs how many there were since the last line, if any; at most one line a second. */
void drop_counters_log(struct drop_counters *counters, int64_t now_ns);

#endif
