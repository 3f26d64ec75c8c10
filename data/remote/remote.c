#define _GNU_SOURCE
#include "data/remote/remote.h"

#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/remote/address.h"
#include "data/remote/folder_walk.h"
#include "data/remote/listing.h"
#include "data/remote/pattern.h"
#include "data/remote/request.h"

#define BUFFER_BYTES (1u << 20)    /* that may wait to be taken */
#define PAGE_BYTES_MAX (16u << 20) /* of a list of keys */
#define EMPTY_PAGES_MAX 256        /* of it, one after the other */

static struct source_stamp stamp_of(const char *etag, uint64_t bytes) {
    struct source_stamp stamp = {.bytes = bytes == UNKNOWN ? 0 : bytes};
    if (etag_is_strong(etag)) {
        stamp.inode = hash64(etag, strlen(etag));
        stamp.changed_ns = (int64_t)hash64_seeded(etag, strlen(etag), 1);
    } else {
        stamp.changed_ns = clock_wall_ms() * NS_PER_MS;
    }
    return stamp;
}

int remote_look(const char *path, struct source_stamp *stamp) {
    struct address_request request;
    struct small small = {0};
    bytes_init(&small.body);
    int code = address_request(path, &request);
    if (!code)
        code = request_small(path, &request, &small);
    const struct reply *reply = &small.reply;
    *stamp = stamp_of(reply->etag, reply->ranged ? reply->total : reply->length);
    bytes_release(&small.body);
    address_request_release(&request);
    return code;
}

/* ---- an object ---- */

struct remote {
    const char *path;
    struct address_request request;
    struct curl_slist *headers;
    CURL *easy;
    CURLM *multi;
    struct reply reply;
    struct patience patience;
    struct bytes pending; /* received and not handed out: from `at` on */
    size_t at;
    bool running, paused, accepted, known, ended;
    uint64_t offset;                  /* so many bytes were received in all, */
    uint64_t progress;                /* and when there was progress last */
    uint64_t came;                    /* since the patience was renewed; with what comes again */
    uint64_t total;                   /* that the object has; UNKNOWN */
    char etag[TAG_BYTES];             /* that it had first */
    struct hash_stream *hash, *again; /* of what was received; and of what comes again */
    uint64_t repeated;                /* so many bytes came again */
    bool repeats;                     /* until there are `offset` */
    int64_t silent_ns;                /* how long nothing has come of a link that stands */
    int code;                         /* of an error that was found while receiving */
};

static int changed(const struct remote *remote) {
    return error_set(ERROR_DATA,
                     "%s was changed while it was read: start again when it is complete; objects "
                     "should be written under new names",
                     remote->path);
}

/* Whether what begins to come goes on where the last link broke. */
static int accept_reply(struct remote *remote) {
    const struct reply *reply = &remote->reply;
    bool ranged = reply->status == 206;
    uint64_t total = ranged ? reply->total : reply->length;
    remote->accepted = true;
    if (!remote->known) {
        remote->known = true;
        remote->total = total;
        snprintf(remote->etag, sizeof remote->etag, "%s", reply->etag);
        return ranged ? error_set(ERROR_UNAVAILABLE, "%s: the server sends a part, unasked",
                                  remote->path)
                      : 0;
    }
    bool tagged = etag_is_strong(remote->etag) && etag_is_strong(reply->etag);
    if ((tagged && strcmp(remote->etag, reply->etag) != 0) ||
        (total != UNKNOWN && remote->total != UNKNOWN && total != remote->total))
        return changed(remote);
    if (ranged && (!tagged || reply->first != remote->offset))
        return error_set(ERROR_UNAVAILABLE,
                         "%s: the server sends another part than the one that was asked for",
                         remote->path);
    remote->repeats = !ranged && remote->offset;
    remote->repeated = 0;
    hash_stream_free(remote->again);
    remote->again = hash_stream_new();
    return 0;
}

/* Takes what comes again; returns how much of it that is. */
static size_t compare_again(struct remote *remote, const char *data, size_t length) {
    uint64_t left = remote->offset - remote->repeated;
    size_t here = length < left ? length : (size_t)left;
    char one[HASH128_TEXT], other[HASH128_TEXT];
    hash_stream_add(remote->again, data, here);
    remote->repeated += here;
    if (remote->repeated < remote->offset)
        return here;
    remote->repeats = false;
    hash_stream_text(remote->hash, one);
    hash_stream_text(remote->again, other);
    if (strcmp(one, other) != 0)
        remote->code = changed(remote);
    return here;
}

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    struct remote *remote = context;
    size_t length = size * count, again = 0;
    if (remote->reply.status != 200 && remote->reply.status != 206) {
        reply_keep_problem(&remote->reply, data, length);
        return length;
    }
    if (!remote->accepted && (remote->code = accept_reply(remote)))
        return 0;
    if (remote->pending.length - remote->at >= BUFFER_BYTES) {
        remote->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    remote->silent_ns = 0;
    if (remote->repeats)
        again = compare_again(remote, data, length);
    if (remote->code)
        return 0;
    hash_stream_add(remote->hash, data + again, length - again);
    bytes_append(&remote->pending, data + again, length - again);
    remote->offset += length - again;
    /* What comes again is time well spent, but no progress: a link that always breaks in the midst
     * of it is not made for ever. */
    remote->came += length;
    if (remote->came >= REMOTE_PROGRESS_BYTES) {
        remote->came = 0;
        remote->patience.waited_ns = 0;
    }
    if (remote->offset - remote->progress >= REMOTE_PROGRESS_BYTES) {
        remote->progress = remote->offset;
        remote->patience.tries = 0;
    }
    return length;
}

static void begin_request(struct remote *remote) {
    char range[32];
    libcurl.slist_free_all(remote->headers);
    remote->headers = NULL;
    request_set(remote->easy, &remote->request, &remote->reply, &remote->headers);
    bool goes_on = remote->offset && etag_is_strong(remote->etag);
    if (goes_on) {
        char *line = memory_format("If-Match: %s", remote->etag);
        remote->headers = libcurl.slist_append(remote->headers, line);
        free(line);
        snprintf(range, sizeof range, "%" PRIu64 "-", remote->offset);
        libcurl.easy_setopt(remote->easy, CURLOPT_RANGE, range);
    }
    libcurl.easy_setopt(remote->easy, CURLOPT_HTTPHEADER, remote->headers);
    libcurl.easy_setopt(remote->easy, CURLOPT_WRITEFUNCTION, take_body);
    libcurl.easy_setopt(remote->easy, CURLOPT_WRITEDATA, remote);
    libcurl.multi_add_handle(remote->multi, remote->easy);
    remote->running = true;
    remote->accepted = remote->paused = false;
    remote->repeats = false;
    remote->silent_ns = 0;
}

/* A range that the server does not have: the object is shorter than it was said to be. */
static int check_range(struct remote *remote) {
    uint64_t has = remote->reply.total;
    if (remote->total == UNKNOWN && has == remote->offset) {
        remote->ended = true;
        return 0;
    }
    if (remote->total == UNKNOWN)
        return error_set(
            ERROR_DATA,
            "%s: the server has sent %llu bytes of it, and says when it is asked for the "
            "rest that it does not have as many: it was changed, or the server is at fault",
            remote->path, (unsigned long long)remote->offset);
    return error_set(ERROR_DATA,
                     "%s: the server says that it has %llu bytes, and sends no more than %llu: it "
                     "was changed, or the server is at fault",
                     remote->path, (unsigned long long)remote->total,
                     (unsigned long long)remote->offset);
}

/* Ends a request, and waits for the next if there must be one. */
static int end_request(struct remote *remote, CURLcode result) {
    char why[128] = "";
    int code = 0;
    curl_off_t retry_after = 0;
    const long status = remote->reply.status;
    libcurl.easy_getinfo(remote->easy, CURLINFO_RETRY_AFTER, &retry_after);
    libcurl.multi_remove_handle(remote->multi, remote->easy);
    remote->running = false;
    if (!remote->code && result == CURLE_OK && (status == 200 || status == 206) &&
        !remote->accepted)
        remote->code = accept_reply(remote);
    if (remote->code)
        return remote->code;
    if (status == 412 || (remote->known && (status == 404 || status == 410)))
        return changed(remote);
    if (status == 416 && remote->known)
        return check_range(remote);
    enum outcome outcome = request_classify(remote->path, result, &remote->reply, &code, why);
    if (outcome == REFUSED)
        return code;
    if (outcome == DONE && !remote->repeats &&
        (remote->total == UNKNOWN || remote->offset == remote->total)) {
        remote->ended = true;
        return 0;
    }
    if (outcome == DONE) {
        snprintf(why, sizeof why, "the data ends too early");
        outcome = BROKEN;
    }
    return request_wait(&remote->patience, remote->path, outcome, why, retry_after);
}

/* Receives more, for a while. */
static int receive(struct remote *remote) {
    int running, left;
    if (remote->paused) {
        remote->paused = false;
        libcurl.easy_pause(remote->easy, CURLPAUSE_CONT);
    }
    int64_t begun = clock_monotonic_ns();
    libcurl.multi_perform(remote->multi, &running);
    CURLMsg *message = libcurl.multi_info_read(remote->multi, &left);
    if (message && message->msg == CURLMSG_DONE)
        return end_request(remote, message->data.result);
    if (remote->pending.length > remote->at)
        return 0;
    libcurl.multi_poll(remote->multi, NULL, 0, 200, NULL);
    int64_t waited = clock_monotonic_ns() - begun, most = request_seconds() * NS_PER_S;
    remote->silent_ns += waited;
    remote->patience.waited_ns += waited;
    if (remote->silent_ns > most / 4 || remote->patience.waited_ns > most)
        return end_request(remote, CURLE_OPERATION_TIMEDOUT);
    return 0;
}

int remote_read(struct remote *remote, void *buffer, size_t capacity, size_t *length) {
    while (remote->at == remote->pending.length && !remote->ended) {
        bytes_clear(&remote->pending);
        remote->at = 0;
        if (!remote->running)
            begin_request(remote);
        int code = receive(remote);
        if (code)
            return code;
    }
    size_t there = remote->pending.length - remote->at;
    *length = there < capacity ? there : capacity;
    if (*length)
        memcpy(buffer, remote->pending.data + remote->at, *length);
    remote->at += *length;
    return 0;
}

/* Receives the first bytes, so that what is known of the object is. */
int remote_open(const char *path, struct remote **opened) {
    CURL *easy;
    size_t none;
    int code = request_new(path, &easy);
    if (code)
        return code;
    struct remote *remote = memory_new(1, sizeof *remote);
    *remote = (struct remote){.path = path,
                              .easy = easy,
                              .multi = libcurl.multi_init(),
                              .hash = hash_stream_new(),
                              .total = UNKNOWN,
                              .patience = {.random = (uint64_t)clock_monotonic_ns()}};
    bytes_init(&remote->pending);
    code = address_request(path, &remote->request);
    if (!code)
        code = remote_read(remote, NULL, 0, &none);
    if (code) {
        remote_close(remote);
        return code;
    }
    *opened = remote;
    return 0;
}

void remote_close(struct remote *remote) {
    if (!remote)
        return;
    if (remote->running)
        libcurl.multi_remove_handle(remote->multi, remote->easy);
    libcurl.easy_cleanup(remote->easy);
    libcurl.multi_cleanup(remote->multi);
    libcurl.slist_free_all(remote->headers);
    address_request_release(&remote->request);
    hash_stream_free(remote->hash);
    hash_stream_free(remote->again);
    bytes_release(&remote->pending);
    free(remote);
}

struct source_stamp remote_stamp(const struct remote *remote) {
    return stamp_of(remote->etag, remote->total == UNKNOWN ? remote->offset : remote->total);
}

/* ---- keys that match a pattern ---- */

bool remote_is_pattern(const char *path) {
    return !strncmp(path, "s3://", 5) && (strpbrk(path, "*?[") || name_ends(path, "/"));
}

/* Adds a page of keys; an error names the pattern. */
static int list_page(const char *pattern, const char *prefix, struct listing *listing) {
    struct address_request request;
    struct small small = {.limit = PAGE_BYTES_MAX};
    bytes_init(&small.body);
    char *token = listing->token ? memory_copy_string(listing->token) : NULL;
    int code = address_list_request(pattern, prefix, token, &request);
    if (!code)
        code = request_small(pattern, &request, &small);
    const char *why =
        code ? NULL : listing_add(listing, (const char *)small.body.data, small.body.length);
    if (!why && token && listing->token && !strcmp(token, listing->token))
        why = "the same page again";
    if (why)
        code = error_set(ERROR_UNAVAILABLE, "%s: the list of keys has %s", pattern, why);
    if (!code && listing->count > REMOTE_KEYS_MAX)
        code = error_set(ERROR_DATA, "%s: more than %u keys begin as it does: write more of them",
                         pattern, REMOTE_KEYS_MAX);
    free(token);
    bytes_release(&small.body);
    address_request_release(&request);
    return code;
}

/* Adds all pages. Some may have no keys, but not one after the other without end. */
static int list_pages(const char *pattern, const char *prefix, struct listing *listing) {
    unsigned empty = 0;
    int code;
    do {
        size_t before = listing->count;
        code = list_page(pattern, prefix, listing);
        empty = listing->count > before ? 0 : empty + 1;
        if (!code && empty > EMPTY_PAGES_MAX)
            code = error_set(ERROR_UNAVAILABLE,
                             "%s: the list of keys has %u pages without one, and no end", pattern,
                             empty);
    } while (!code && listing->token);
    return code;
}

/* Whether an object is one that the pattern, of keys, asks for. The mark of a folder, which ends
 * with a slash, is none. */
static bool fits(const char *pattern, const char *key) {
    if (!pattern_is_deep(pattern))
        return !fnmatch(pattern, key, FNM_PATHNAME | FNM_PERIOD);
    return !name_ends(key, "/") && pattern_fits(pattern, key);
}

/* The objects of a list that a pattern, of keys, asks for. */
static size_t choose(const struct listing *listing, const char *pattern, const char *bucket,
                     const char *asked, char **found) {
    const char *other = NULL;
    size_t count = 0;
    unsigned long long others = 0;
    for (size_t i = 0; i < listing->count; i++) {
        if (!fits(asked, listing->key[i]))
            continue;
        if (!pattern_is_whole(asked) || pattern_takes_name(listing->key[i]))
            found[count++] = memory_format("s3://%s/%s", bucket, listing->key[i]);
        else if (!others++)
            other = listing->key[i];
    }
    folder_warn_of_others(pattern, other, others);
    qsort(found, count, sizeof *found, compare_paths);
    return count;
}

int remote_list(const char *pattern, char ***paths) {
    const char *slash = strchr(pattern + 5, '/');
    if (!slash || slash == pattern + 5)
        return error_set(ERROR_DATA, "%s is no object: write s3://BUCKET/KEY", pattern);
    struct listing listing = {0};
    const bool folder = name_ends(pattern, "/");
    char *bucket = memory_format("%.*s", (int)(slash - pattern - 5), pattern + 5),
         *prefix = memory_format("%.*s", (int)strcspn(slash + 1, "*?["), slash + 1),
         *below = memory_format("%s%s**", slash + 1, folder ? "" : "/"), **found;
    int code = list_pages(pattern, prefix, &listing);
    found = memory_new(listing.count + 1, sizeof *found);
    size_t count = code || folder ? 0 : choose(&listing, pattern, bucket, slash + 1, found);
    if (!code && !count && !pattern_is_whole(slash + 1)) /* what it matches are folders */
        count = choose(&listing, pattern, bucket, below, found);
    if (!code && !count)
        code = error_set(ERROR_DATA, "no object matches %s", pattern);
    *paths = code ? NULL : found;
    if (code)
        free(found);
    listing_release(&listing);
    free(bucket);
    free(prefix);
    free(below);
    return code;
}
