/* What the status server turned away, counted by reason, and told of in the log now and then. */
#ifndef DML_COORDINATOR_STATUS_REFUSALS_H
#define DML_COORDINATOR_STATUS_REFUSALS_H

#include <stdint.h>

#define HTTP_REFUSAL_TABLE(X)                                                                      \
    X(HTTP_MALFORMED, "malformed")     /* or of another version, or with a body */                 \
    X(HTTP_METHOD, "method")           /* neither GET nor HEAD */                                  \
    X(HTTP_MISDIRECTED, "misdirected") /* for another host */                                      \
    X(HTTP_TOO_LARGE, "too_large")     /* head or target beyond the limit */                       \
    X(HTTP_SLOW, "slow")               /* not complete, or its answer not taken, in time */        \
    X(HTTP_CROWDED, "crowded")         /* closed to make room for another */                       \
    X(HTTP_DESCRIPTORS, "descriptors") /* this process had none left to accept with */

enum http_refusal {
#define X(name, text) name,
    HTTP_REFUSAL_TABLE(X)
#undef X
        HTTP_REFUSALS
};
const char *http_refusal_text(enum http_refusal refusal);

/* Zeros are a good start. */
struct refusals {
    uint64_t counts[HTTP_REFUSALS];
    uint64_t told;    /* how many the log has */
    int64_t told_ns;  /* when it got its last line about them; 0: never */
    const char *last; /* what the last one was for */
};

/* Counts one and tells of it; `why` is a constant. */
void refusals_note(struct refusals *refusals, enum http_refusal refusal, const char *why,
                   int64_t now_ns);

/* Logs how many there were since the last line, if there were; at most one line a second. */
void refusals_tell(struct refusals *refusals, int64_t now_ns);

#endif
