#define _GNU_SOURCE

#include "coordinator/status/http_message.h"

#include <assert.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define ADDRESS_CHARACTERS DIGITS "abcdefABCDEF:."
#define NAME_CHARACTERS DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._"
#define PORT_DIGITS_MAX 5

static_assert(REQUEST_TARGET_MAX < REQUEST_BYTES_MAX, "a target is a part of a head");

/* ---- Host ---- */

/* How many bytes at the beginning of the text are in `kind`. */
static size_t span_of(const char *text, size_t length, const char *kind) {
    size_t count = 0;
    while (count < length && text[count] && strchr(kind, text[count]))
        count++;
    return count;
}

/* Whether the text is empty, or ":" and a port, which may be empty. */
static bool is_port(const char *text, size_t length) {
    return !length || (text[0] == ':' && length <= 1 + PORT_DIGITS_MAX &&
                       span_of(text + 1, length - 1, DIGITS) == length - 1);
}

bool host_check_parse(const char *text, size_t length, char host[HOST_CHECK_BYTES]) {
    bool bracketed = length && text[0] == '[';
    const char *start = bracketed ? text + 1 : text;
    size_t left = length - (size_t)(start - text);
    size_t named = span_of(start, left, bracketed ? ADDRESS_CHARACTERS : NAME_CHARACTERS);
    const char *end = start + named;
    left -= named;
    if (!named || named >= HOST_CHECK_BYTES)
        return false;
    for (size_t i = 0; i < named; i++)
        host[i] = (char)(start[i] >= 'A' && start[i] <= 'Z' ? start[i] + ('a' - 'A') : start[i]);
    host[named] = '\0';
    if (bracketed) {
        struct in6_addr unused;
        return left && *end == ']' && is_port(end + 1, left - 1) &&
               inet_pton(AF_INET6, host, &unused) == 1;
    }
    if (host[named - 1] == '.')
        host[named - 1] = '\0';
    return host[0] && is_port(end, left);
}

/* Reads a numeric address; IPv4 is mapped to IPv6. */
static bool read_address(const char *text, struct in6_addr *address) {
    struct in_addr four;
    if (inet_pton(AF_INET, text, &four) != 1)
        return inet_pton(AF_INET6, text, address) == 1;
    *address = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(address->s6_addr + 12, &four, sizeof four);
    return true;
}

static bool is_loopback(const struct in6_addr *address) {
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == IN_LOOPBACKNET);
}

void host_check_init(struct host_check *check, const char *said, const char *bound,
                     const char *machine) {
    char number[INET6_ADDRSTRLEN] = "";
    *check = (struct host_check){.configured = ""};
    snprintf(number, sizeof number, "%.*s", (int)strcspn(bound, "%"), bound); /* fe80::1%eth0 */
    if (!read_address(number, &check->bound))
        check->bound = in6addr_loopback;
    if (!host_check_parse(said, strlen(said), check->configured))
        check->configured[0] = '\0';
    if (is_loopback(&check->bound) || !host_check_parse(machine, strlen(machine), check->machine))
        check->machine[0] = '\0';
}

bool host_check_accepts(const struct host_check *check, const char *host) {
    static const struct in6_addr any_four = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    bool on_any =
        IN6_IS_ADDR_UNSPECIFIED(&check->bound) || IN6_ARE_ADDR_EQUAL(&check->bound, &any_four);
    struct in6_addr address;
    if (read_address(host, &address))
        return on_any || is_loopback(&address) || IN6_ARE_ADDR_EQUAL(&address, &check->bound);
    return strcmp(host, "localhost") == 0 ||
           (*check->configured && strcmp(host, check->configured) == 0) ||
           (*check->machine && strcmp(host, check->machine) == 0);
}

#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A part of the text that is read. */
struct span {
    const char *at;
    size_t length;
};

struct request_parse {
    struct request *request;
    unsigned hosts, lengths, types;
    bool close, keep_alive;
    const char *why;
};

static int request_refuse(struct request_parse *reading, int status, const char *why) {
    reading->why = why;
    return status;
}

static bool is(struct span span, const char *text) {
    return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

static bool is_caseless(struct span span, const char *text) {
    return span.length == strlen(text) && strncasecmp(span.at, text, span.length) == 0;
}

static bool is_token(struct span span) {
    for (size_t i = 0; i < span.length; i++)
        if (!span.at[i] || !strchr(TOKEN, span.at[i]))
            return false;
    return span.length > 0;
}

/* The part before the first `end`; `rest` is what follows it. False if there is no `end`. */
static bool split(struct span whole, char end, struct span *part, struct span *rest) {
    const char *found = memchr(whole.at, end, whole.length);
    if (!found)
        return false;
    *part = (struct span){whole.at, (size_t)(found - whole.at)};
    *rest = (struct span){found + 1, whole.length - part->length - 1};
    return true;
}

static struct span trimmed(struct span span) {
    while (span.length && (*span.at == ' ' || *span.at == '\t'))
        span.at++, span.length--;
    while (span.length && (span.at[span.length - 1] == ' ' || span.at[span.length - 1] == '\t'))
        span.length--;
    return span;
}

size_t request_end(const char *text, size_t length) {
    const char *end = memmem(text, length, "\n\r\n", 3);
    const char *bare = memmem(text, length, "\n\n", 2); /* refused without waiting for more */
    if (bare && (!end || bare < end))
        return (size_t)(bare - text) + 2;
    return end ? (size_t)(end - text) + 3 : 0;
}

/* ---- the request line ---- */

/* Takes the host that the request is for. If Host and target both name it, they must agree. */
static int read_host(struct request_parse *reading, struct span authority) {
    char host[HOST_CHECK_BYTES], *known = reading->request->host;
    if (!host_check_parse(authority.at, authority.length, host))
        return request_refuse(reading, 400, "a malformed Host");
    if (*known && strcmp(known, host))
        return request_refuse(reading, 400, "a target whose host differs from Host");
    strcpy(known, host);
    return 200;
}

/* Takes "http://HOST:PORT" off a target, if it has the absolute form. */
static int take_authority(struct request_parse *reading, struct span *target) {
    static const char scheme[] = "http://";
    size_t skipped = sizeof scheme - 1, length = 0;
    if (target->length < skipped || strncasecmp(target->at, scheme, skipped))
        return 200;
    *target = (struct span){target->at + skipped, target->length - skipped};
    while (length < target->length && target->at[length] != '/' && target->at[length] != '?')
        length++;
    int status = read_host(reading, (struct span){target->at, length});
    *target = (struct span){target->at + length, target->length - length};
    return status;
}

static int read_target(struct request_parse *reading, struct span target) {
    struct request *request = reading->request;
    if (target.length >= sizeof request->target - 1)
        return request_refuse(reading, 414, "a long target");
    for (size_t i = 0; i < target.length; i++)
        if (target.at[i] <= ' ' || target.at[i] > '~')
            return request_refuse(reading, 400, "a target with strange characters");
    int status = take_authority(reading, &target);
    if (status != 200)
        return status;
    bool bare = *request->host && (!target.length || target.at[0] == '?');
    if (!bare && (!target.length || target.at[0] != '/'))
        return request_refuse(reading, 400, "a target without a path");
    request->target[0] = '/';
    memcpy(request->target + bare, target.at, target.length);
    request->target[target.length + bare] = '\0';
    char *mark = strchr(request->target, '?');
    request->path = request->target;
    request->query = mark ? mark + 1 : strchr(request->target, '\0');
    if (mark)
        *mark = '\0';
    return 200;
}

static bool takes_post(const char *path) {
    const char *end = strstr(path, REQUEST_POSTED);
    return end && strcmp(end, REQUEST_POSTED) == 0;
}

const char *request_allow(const struct request *request) {
    return takes_post(request->path) ? "Allow: POST\r\n" : "Allow: GET, HEAD\r\n";
}

static int read_line(struct request_parse *reading, struct span line) {
    struct request *request = reading->request;
    struct span method, target, version;
    if (!split(line, ' ', &method, &line) || !split(line, ' ', &target, &version) ||
        !is_token(method))
        return request_refuse(reading, 400, "a malformed request line");
    request->head = is(method, "HEAD");
    request->posts = is(method, "POST");
    request->keep_alive = is(version, "HTTP/1.1");
    if (!request->keep_alive && !is(version, "HTTP/1.0")) {
        if (version.length == 8 && memcmp(version.at, "HTTP/", 5) == 0)
            return request_refuse(reading, 505, "another version of HTTP");
        return request_refuse(reading, 400, "a malformed request line");
    }
    int status = read_target(reading, target);
    if (status != 200)
        return status;
    const bool posts = takes_post(request->path);
    if (posts ? !request->posts : !is(method, "GET") && !request->head)
        status = request_refuse(
            reading, 405, posts ? "a method other than POST" : "a method other than GET and HEAD");
    return status;
}

/* ---- the fields ---- */

static void read_connection(struct request_parse *reading, struct span value) {
    struct span option;
    bool more = true;
    while (more) {
        more = split(value, ',', &option, &value);
        if (!more)
            option = value;
        reading->close |= is_caseless(trimmed(option), "close");
        reading->keep_alive |= is_caseless(trimmed(option), "keep-alive");
    }
}

static const char a_type[] = "a body without Content-Type: " REQUEST_BODY_TYPE;

static int read_length(struct request_parse *reading, struct span value) {
    struct request *request = reading->request;
    if (reading->lengths++ || (!request->posts && !is(value, "0")))
        return request_refuse(reading, 400, "a body, or two Content-Length");
    if (!value.length || span_of(value.at, value.length, DIGITS) < value.length)
        return request_refuse(reading, 400, "a malformed Content-Length");
    for (size_t i = 0; i < value.length && request->body_length <= REQUEST_BODY_MAX; i++)
        request->body_length = 10 * request->body_length + (size_t)(value.at[i] - '0');
    if (request->body_length > REQUEST_BODY_MAX)
        return request_refuse(reading, 413, "a body beyond 64 KiB");
    return 200;
}

static int read_field(struct request_parse *reading, struct span line) {
    struct span name, value;
    bool fits = split(line, ':', &name, &value) && is_token(name);
    for (size_t i = 0; fits && i < value.length; i++) {
        const unsigned char c = (unsigned char)value.at[i];
        fits = (c >= ' ' || c == '\t') && c != 127;
    }
    if (!fits)
        return request_refuse(reading, 400, "a malformed field");
    value = trimmed(value);
    if (is_caseless(name, "Transfer-Encoding"))
        return request_refuse(reading, 400, "a Transfer-Encoding");
    if (is_caseless(name, "Content-Length"))
        return read_length(reading, value);
    if (is_caseless(name, "Content-Type") && reading->request->posts &&
        (reading->types++ || !is_caseless(value, REQUEST_BODY_TYPE)))
        return request_refuse(reading, 415, a_type);
    if (is_caseless(name, "Host"))
        return reading->hosts++ ? request_refuse(reading, 400, "two Host")
                                : read_host(reading, value);
    if (is_caseless(name, "Connection"))
        read_connection(reading, value);
    return 200;
}

/* Takes the next line, without its end, off the text. */
static int next_line(struct request_parse *reading, struct span *text, struct span *line) {
    if (!split(*text, '\n', line, text) || !line->length || line->at[line->length - 1] != '\r')
        return request_refuse(reading, 400, "a line that does not end with CR LF");
    line->length--;
    return 200;
}

int request_read(const char *text, size_t length, struct request *request, const char **why) {
    struct request_parse reading = {.request = request};
    struct span rest = {text, length}, line;
    *request = (struct request){.path = "", .query = ""};
    int status = next_line(&reading, &rest, &line);
    if (status == 200)
        status = read_line(&reading, line);
    while (status == 200 && (status = next_line(&reading, &rest, &line)) == 200 && line.length)
        status = read_field(&reading, line);
    if (status == 200 && request->keep_alive && !reading.hosts)
        status = request_refuse(&reading, 400, "no Host");
    if (status == 200 && request->posts && !reading.lengths)
        status = request_refuse(&reading, 411, "a POST without Content-Length");
    if (status == 200 && request->posts && !reading.types)
        status = request_refuse(&reading, 415, a_type);
    request->keep_alive =
        status == 200 && !reading.close && (request->keep_alive || reading.keep_alive);
    *why = reading.why;
    return status;
}

/* ---- the query ---- */

/* The next NAME=VALUE of a query, both as spans; false at its end. */
static bool next_pair(const char **query, struct span *name, struct span *value) {
    if (!**query)
        return false;
    const char *end = strchrnul(*query, '&');
    struct span pair = {*query, (size_t)(end - *query)};
    if (!split(pair, '=', name, value)) {
        *name = pair;
        *value = (struct span){end, 0};
    }
    *query = *end ? end + 1 : end;
    return true;
}

bool request_number(const struct request *request, const char *name, int64_t missing,
                    int64_t *number) {
    const char *query = request->query;
    struct span key, value;
    *number = missing;
    while (next_pair(&query, &key, &value)) {
        if (!is(key, name))
            continue;
        if (!value.length || value.length > 18 || strspn(value.at, "0123456789") < value.length)
            return false;
        *number = strtoll(value.at, NULL, 10);
    }
    return true;
}

bool request_has_only(const struct request *request, const char *const *names) {
    const char *query = request->query;
    struct span key, value;
    while (next_pair(&query, &key, &value)) {
        const char *const *name = names;
        while (*name && !is(key, *name))
            name++;
        if (!*name)
            return false;
    }
    return true;
}

static const char *status_text(int status) {
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {421, "Misdirected Request"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "Internal Server Error";
}

/* Caches must not store an answer: it is about one instant. */
size_t response_head(const struct http_answer *answer, bool keep_alive, time_t now,
                     char head[RESPONSE_HEAD_MAX]) {
    char date[64];
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    return (size_t)snprintf(head, RESPONSE_HEAD_MAX,
                            "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n"
                            "Content-Length: %zu\r\nCache-Control: no-store\r\n"
                            "X-Content-Type-Options: nosniff\r\n%sConnection: %s\r\n\r\n",
                            answer->status, status_text(answer->status), date, answer->type,
                            answer->length, answer->fields ? answer->fields : "",
                            keep_alive ? "keep-alive" : "close");
}
