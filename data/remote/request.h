/* Requests of objects by HTTP, with libcurl: what is asked, what came of it, and how long to wait
 * before the next attempt. For data/remote/remote.c alone. */
#ifndef DML_DATA_REMOTE_REQUEST_H
#define DML_DATA_REMOTE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "data/remote/address.h"
#include "data/remote/libcurl.h"

/* How long nothing may come of an object, whatever a server says of waiting; the variable
 * DML_REMOTE_SECONDS gives another number. */
#define REMOTE_SECONDS 120

/* Progress is at least so many bytes, or the end. */
#define REMOTE_PROGRESS_BYTES 4096

/* Links that break one after the other, or cannot be made, without progress between them. */
#define REMOTE_TRIES 8

#define UNKNOWN UINT64_MAX
#define TAG_BYTES 256
#define PROBLEM_BYTES 1024 /* of the text beside a refusal */

/* What a server answers. */
struct reply {
    long status;
    uint64_t length;       /* of the body; UNKNOWN */
    uint64_t first, total; /* of a range, UNKNOWN */
    bool ranged;
    char etag[TAG_BYTES]; /* "" without */
    char region[64];      /* in which a bucket is; "" without */
    size_t bytes;         /* of the headers */
    char problem[PROBLEM_BYTES];
    size_t problem_length;
    bool led;              /* there was a redirect */
    bool within, led_away; /* the address that was asked for is internal; a redirect was refused as
                              it led from another one to such an address */
};

/* How long nothing may come of an object, in seconds. */
int64_t request_seconds(void);

/* Whether an address is of this host, a private network or a link; of another family than IP: true.
 */
struct sockaddr;
bool address_is_internal(const struct sockaddr *address);

/* A handle for requests, after which libcurl is loaded; an error names `path`. */
int request_new(const char *path, CURL **easy);

/* Sets all but what becomes of the body, for a handle that may have been used before. Headers are
 * added to the caller's list. A request that is signed goes nowhere else, and what was asked for by
 * https stays there. */
void request_set(CURL *easy, const struct address_request *request, struct reply *reply,
                 struct curl_slist **headers);

/* Notes the text beside a refusal. */
void reply_keep_problem(struct reply *reply, const char *data, size_t length);

/* A strong ETag stands for the bytes of an object (RFC 9110, 8.8.1). */
bool etag_is_strong(const char *etag);

/* What an exchange came to. REFUSED: the error is set. Else `why` says what went wrong. */
enum outcome { DONE, BROKEN, THROTTLED, REFUSED };
enum outcome request_classify(const char *path, CURLcode result, const struct reply *reply,
                              int *code, char why[128]);

struct patience {
    int64_t waited_ns; /* since there was progress */
    unsigned tries;    /* links since then that broke, or could not be made */
    uint64_t random;
};

/* Waits before the next attempt; an error if there is to be none. The waits double, and differ
 * from reader to reader. */
int request_wait(struct patience *patience, const char *path, enum outcome outcome, const char *why,
                 curl_off_t retry_after);

/* A small answer: with limit 0 the headers alone. */
struct small {
    struct reply reply;
    struct bytes body;
    size_t limit; /* of the body */
};

/* Asks until there is an answer; where signatures allow GET alone, the headers by a byte of it. */
int request_small(const char *path, const struct address_request *request, struct small *small);

#endif
