#define _GNU_SOURCE
#include "data/remote/request.h"

#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#define HEADERS_BYTES_MAX (256u << 10) /* of one answer */
#define REDIRECTS_MAX 10
#define BACKOFF_MS_MAX 10000
#define RETRY_SECONDS_MAX INT64_C(10000000) /* longer than anyone waits: request_seconds() */

int request_new(const char *path, CURL **easy) {
    int code = libcurl_load(path);
    *easy = code ? NULL : libcurl.easy_init();
    return code;
}

int64_t request_seconds(void) {
    const char *text = getenv("DML_REMOTE_SECONDS");
    long seconds = text ? strtol(text, NULL, 10) : 0;
    return seconds > 0 && seconds < 1000000 ? seconds : REMOTE_SECONDS;
}

/* ---- what a server answers ---- */

static void reply_reset(struct reply *reply, long status) {
    const struct reply before = *reply;
    *reply = (struct reply){.status = status,
                            .length = UNKNOWN,
                            .first = UNKNOWN,
                            .total = UNKNOWN,
                            .bytes = before.bytes,
                            .led = before.led || (status >= 300 && status < 400),
                            .within = before.within,
                            .led_away = before.led_away};
}

/* The value of a header line, in `line`, if it has this name. */
static const char *header_value(char *line, const char *name) {
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    char *value = line + length + 1 + strspn(line + length + 1, " \t"),
         *end = value + strlen(value);
    while (end > value && strchr("\r\n \t", end[-1]))
        *--end = '\0';
    return value;
}

static uint64_t number_of(const char *text, const char **behind) {
    size_t digits = strspn(text, "0123456789");
    *behind = text + digits;
    return digits && digits < 19 ? strtoull(text, NULL, 10) : UNKNOWN;
}

/* "bytes 5-9/10", "bytes 5-9/x", "bytes x/10", where x is an asterisk */
static void read_range(struct reply *reply, const char *value) {
    const char *behind;
    if (strncmp(value, "bytes ", 6) != 0)
        return;
    reply->ranged = true;
    reply->first = number_of(value + 6, &behind);
    const char *slash = strchr(value, '/');
    reply->total = slash ? number_of(slash + 1, &behind) : UNKNOWN;
}

static size_t take_header(char *data, size_t size, size_t count, void *context) {
    struct reply *reply = context;
    size_t length = size * count;
    char line[1024];
    const char *value, *behind;
    reply->bytes += length;
    if (reply->bytes > HEADERS_BYTES_MAX)
        return 0;
    snprintf(line, sizeof line, "%.*s", (int)length, data);
    if (!strncmp(line, "HTTP/", 5)) {
        const char *code = strchr(line, ' ');
        reply_reset(reply, code ? strtol(code, NULL, 10) : 0);
    } else if ((value = header_value(line, "etag"))) {
        snprintf(reply->etag, sizeof reply->etag, "%s", strlen(value) < TAG_BYTES ? value : "");
    } else if ((value = header_value(line, "content-length"))) {
        reply->length = number_of(value, &behind);
    } else if ((value = header_value(line, "content-range"))) {
        read_range(reply, value);
    } else if ((value = header_value(line, "x-amz-bucket-region"))) {
        snprintf(reply->region, sizeof reply->region, "%.63s", value);
    }
    return length;
}

bool etag_is_strong(const char *etag) {
    return *etag == '"';
}

/* What S3 says beside a status: <Code>SlowDown</Code>. In `code`, or "". */
static void problem_code(const struct reply *reply, char code[64]) {
    const char *at = strstr(reply->problem, "<Code>");
    size_t length = at ? strspn(at + 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") : 0;
    snprintf(code, 64, "%.*s", length < 60 ? (int)length : 0, at ? at + 6 : "");
}

/* ---- patience ---- */

enum outcome request_classify(const char *path, CURLcode result, const struct reply *reply,
                              int *code, char why[128]) {
    char problem[64];
    long status = reply->status;
    problem_code(reply, problem);
    if (result == CURLE_OK && (status == 200 || status == 206))
        return DONE;
    snprintf(why, 128, "status %ld%s%s", status, *problem ? " " : "", problem);
    bool led = reply->led_away || result == CURLE_UNSUPPORTED_PROTOCOL ||
               result == CURLE_TOO_MANY_REDIRECTS;
    if (!led &&
        (status == 429 || status == 408 || (status >= 500 && status != 501 && status != 505)))
        return THROTTLED;
    if (result != CURLE_OK && reply->led_away)
        *code = error_set(ERROR_PERMISSION,
                          "cannot open %s: it leads to an address of an internal network, which is "
                          "not followed from outside; if that is meant, give that address",
                          path);
    else if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE)
        *code =
            error_set(ERROR_UNAVAILABLE,
                      "cannot open %s: its certificate is not to be trusted (%s); SSL_CERT_FILE "
                      "names other authorities",
                      path, libcurl.easy_strerror(result));
    else if (result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_TOO_MANY_REDIRECTS ||
             result == CURLE_URL_MALFORMAT || reply->bytes > HEADERS_BYTES_MAX)
        *code = error_set(ERROR_UNAVAILABLE, "cannot open %s: %s", path,
                          result == CURLE_UNSUPPORTED_PROTOCOL
                              ? "it leads to an address that is not followed"
                          : result == CURLE_TOO_MANY_REDIRECTS ? "it leads in a circle"
                          : result == CURLE_URL_MALFORMAT      ? "it is no address"
                                                               : "the headers have no end");
    else if (status == 404 || status == 410)
        *code = error_set(ERROR_DATA, "cannot open %s: it is not there (%s)", path, why);
    else if (status == 401 || status == 403)
        *code = error_set(ERROR_PERMISSION, "cannot open %s: the server does not allow it (%s)%s",
                          path, why,
                          strncmp(path, "s3://", 5) == 0
                              ? "; see to the credentials, in the environment or in ~/.aws, and "
                                "to the clock"
                              : "");
    else if (result == CURLE_OK && status == 204)
        *code =
            error_set(ERROR_UNAVAILABLE, "cannot open %s: the server sent nothing (%s)", path, why);
    else if (status >= 300 || (result == CURLE_OK && status))
        *code = error_set(ERROR_UNAVAILABLE, "cannot open %s: the server answers with %s%s%s", path,
                          why, *reply->region ? "; set AWS_REGION to " : "", reply->region);
    else {
        snprintf(why, 128, "%s", libcurl.easy_strerror(result));
        return BROKEN;
    }
    return REFUSED;
}

int request_wait(struct patience *patience, const char *path, enum outcome outcome, const char *why,
                 curl_off_t retry_after) {
    int64_t seconds = request_seconds(), left_ms = seconds * 1000 - patience->waited_ns / NS_PER_MS;
    unsigned tries = ++patience->tries;
    int64_t ms = tries > 7 ? BACKOFF_MS_MAX : (int64_t)100 << (tries - 1);
    patience->random = patience->random * 6364136223846793005u + 1442695040888963407u;
    ms -= (int64_t)(patience->random >> 33) % (ms / 2);
    assert(ms > 0);
    bool asked = retry_after > ms / 1000;
    if (asked) /* whatever a server asks for: the product fits */
        ms = retry_after < RETRY_SECONDS_MAX ? retry_after * 1000 : RETRY_SECONDS_MAX * 1000;
    if (outcome == BROKEN && tries > REMOTE_TRIES)
        return error_set(ERROR_UNAVAILABLE,
                         "cannot read %s: %s; gave up after %u attempts, none of which came "
                         "further; try again later",
                         path, why, tries);
    if (ms > left_ms)
        return error_set(ERROR_UNAVAILABLE,
                         "cannot read %s: %s%s; gave up after %u attempts and %.0f s without "
                         "progress: DML_REMOTE_SECONDS is %lld; try again later",
                         path, why, asked ? ", and asks for a longer wait" : "", tries,
                         (double)patience->waited_ns / NS_PER_S, (long long)seconds);
    log_info("%s: %s; attempt %u follows in %.1f s", path, why, tries + 1, (double)ms / 1000);
    for (int64_t end = clock_monotonic_ns() + ms * NS_PER_MS, now;
         (now = clock_monotonic_ns()) < end;)
        poll(NULL, 0, (int)((end - now) / NS_PER_MS) + 1);
    patience->waited_ns += ms * NS_PER_MS;
    return 0;
}

/* ---- where a redirect may lead ---- */

/* The networks of one host, site or provider (RFC 6890, and 4193, 4291, 6052 for IPv6), by the
 * first bits of their addresses. Addresses of IPv4 are written as those of IPv6 that stand for
 * them. */
static const struct {
    unsigned char first[16];
    unsigned bits;
} internal_networks[] = {
#define IPV4(a, b, bits)                                                                           \
    { {[10] = 0xff, [11] = 0xff, [12] = (a), [13] = (b)}, 96 + (bits) }
    IPV4(0, 0, 8),      IPV4(10, 0, 8),    IPV4(100, 64, 10),  IPV4(127, 0, 8),
    IPV4(169, 254, 16), IPV4(172, 16, 12), IPV4(192, 168, 16),
#undef IPV4
    {{0}, 127},         /* none, and ::1 */
    {{0xfc}, 7},        /* of a site */
    {{0xfe, 0x80}, 10}, /* of a link */
    {{0xfe, 0xc0}, 10}, /* of a site, as it was once */
};

bool address_is_internal(const struct sockaddr *address) {
    static const unsigned char translated[12] = {0, 0x64, 0xff, 0x9b}; /* 64:ff9b::/96 */
    unsigned char bytes[16] = {[10] = 0xff, [11] = 0xff};
    if (address->sa_family == AF_INET)
        memcpy(bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    else if (address->sa_family == AF_INET6)
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    else
        return true;
    if (!memcmp(bytes, translated, sizeof translated))
        memcpy(bytes, (const unsigned char[12]){[10] = 0xff, [11] = 0xff}, 12);
    for (size_t i = 0; i < sizeof internal_networks / sizeof *internal_networks; i++) {
        unsigned whole = internal_networks[i].bits / 8, rest = internal_networks[i].bits % 8;
        const unsigned char *first = internal_networks[i].first;
        if (!memcmp(bytes, first, whole) &&
            (!rest || (bytes[whole] ^ first[whole]) >> (8 - rest) == 0))
            return true;
    }
    return false;
}

/* Called by libcurl for each address that it is about to connect to; so a name cannot lead
 * elsewhere between a check and the connection. A server outside must not make this process read
 * what only hosts inside can. Through a proxy all addresses are that of the proxy. */
static curl_socket_t open_socket(void *context, curlsocktype purpose,
                                 struct curl_sockaddr *address) {
    struct reply *reply = context;
    bool internal = address_is_internal(&address->addr);
    (void)purpose;
    if (!reply->led)
        reply->within |= internal;
    if (reply->led && internal && !reply->within) {
        reply->led_away = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- requests ---- */

static const char *authorities(void) {
    const char *file = getenv("CURL_CA_BUNDLE");
    return file && *file ? file : getenv("SSL_CERT_FILE");
}

void request_set(CURL *easy, const struct address_request *request, struct reply *reply,
                 struct curl_slist **headers) {
    bool plain = !strncmp(request->url, "http:", 5);
    const char *file = authorities(), *folder = getenv("SSL_CERT_DIR");
    *reply = (struct reply){0};
    reply_reset(reply, 0);
    libcurl.easy_reset(easy);
    libcurl.easy_setopt(easy, CURLOPT_URL, request->url);
    libcurl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    libcurl.easy_setopt(easy, CURLOPT_USERAGENT, "dml");
    libcurl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    libcurl.easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, plain ? "http,https" : "https");
    libcurl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->s3 ? 0L : 1L);
    libcurl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    libcurl.easy_setopt(easy, CURLOPT_OPENSOCKETDATA, reply);
    libcurl.easy_setopt(easy, CURLOPT_PATH_AS_IS, request->s3 ? 1L : 0L); /* a key may have /../ */
    libcurl.easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    libcurl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)(request_seconds() + 3) / 4);
    libcurl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    libcurl.easy_setopt(easy, CURLOPT_HEADERDATA, reply);
    libcurl.easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (file && *file)
        libcurl.easy_setopt(easy, CURLOPT_CAINFO, file);
    if (folder && *folder)
        libcurl.easy_setopt(easy, CURLOPT_CAPATH, folder);
    if (request->user) {
        char *signer = memory_format("aws:amz:%s:s3", request->region);
        libcurl.easy_setopt(easy, CURLOPT_AWS_SIGV4, signer);
        libcurl.easy_setopt(easy, CURLOPT_USERPWD, request->user);
        free(signer);
        *headers = libcurl.slist_append(*headers, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
    }
    if (request->token) {
        char *line = memory_format("x-amz-security-token: %s", request->token);
        *headers = libcurl.slist_append(*headers, line);
        free(line);
    }
}

void reply_keep_problem(struct reply *reply, const char *data, size_t length) {
    assert(reply->problem_length < sizeof reply->problem);
    size_t room = sizeof reply->problem - 1 - reply->problem_length;
    length = length < room ? length : room;
    for (size_t i = 0; i < length; i++)
        reply->problem[reply->problem_length++] = data[i] ? data[i] : ' ';
}

/* ---- small answers: headers alone, and pages of keys ---- */

static size_t take_small(char *data, size_t size, size_t count, void *context) {
    struct small *small = context;
    size_t length = size * count;
    if (small->reply.status != 200 && small->reply.status != 206)
        reply_keep_problem(&small->reply, data, length);
    else if (small->body.length + length > small->limit)
        return 0;
    else
        bytes_append(&small->body, data, length);
    return length;
}

/* With limit 0 asks for the headers, by HEAD, or with `one` for a byte, where signatures allow GET
 * alone. A body that is longer than asked for is cut off. */
static CURLcode try_small(CURL *easy, const struct address_request *request, bool one,
                          struct small *small, curl_off_t *retry_after) {
    struct curl_slist *headers = NULL;
    request_set(easy, request, &small->reply, &headers);
    bytes_clear(&small->body);
    libcurl.easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    libcurl.easy_setopt(easy, CURLOPT_TIMEOUT, (long)(request_seconds() + 3) / 4);
    libcurl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_small);
    libcurl.easy_setopt(easy, CURLOPT_WRITEDATA, small);
    if (one)
        libcurl.easy_setopt(easy, CURLOPT_RANGE, "0-0");
    else if (!small->limit)
        libcurl.easy_setopt(easy, CURLOPT_NOBODY, 1L);
    CURLcode result = libcurl.easy_perform(easy);
    libcurl.easy_getinfo(easy, CURLINFO_RETRY_AFTER, retry_after);
    libcurl.slist_free_all(headers);
    bool status = small->reply.status == 200 || small->reply.status == 206;
    return one && status && result == CURLE_WRITE_ERROR ? CURLE_OK : result;
}

int request_small(const char *path, const struct address_request *request, struct small *small) {
    struct patience patience = {.random = (uint64_t)clock_monotonic_ns()};
    CURL *easy;
    bool one = false;
    int code = request_new(path, &easy);
    if (code)
        return code;
    for (;;) {
        char why[128] = "";
        curl_off_t retry_after = 0;
        int64_t begun = clock_monotonic_ns();
        CURLcode result = try_small(easy, request, one, small, &retry_after);
        long status = small->reply.status;
        patience.waited_ns += clock_monotonic_ns() - begun;
        if (!small->limit && !one && (status == 403 || status == 405 || status == 501)) {
            one = true;
            continue;
        }
        enum outcome outcome = request_classify(path, result, &small->reply, &code, why);
        if (outcome == DONE || outcome == REFUSED)
            break;
        if ((code = request_wait(&patience, path, outcome, why, retry_after)))
            break;
    }
    libcurl.easy_cleanup(easy);
    return code;
}
