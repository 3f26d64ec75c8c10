/* Requests and connections that the status server refused: counted by reason, and logged. */
#ifndef DML_COORDINATOR_STATUS_REFUSALS_H
#define DML_COORDINATOR_STATUS_REFUSALS_H

#include <stdint.h>

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
