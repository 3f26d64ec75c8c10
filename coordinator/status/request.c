#define _GNU_SOURCE
#include "coordinator/status/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A part of the text that is read. */
struct span {
    const char *at;
    size_t length;
};

struct reading {
    struct request *request;
    unsigned hosts, lengths;
    bool close, keep_alive;
    const char *why;
};

static int refuse(struct reading *reading, int status, const char *why) {
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
static int read_host(struct reading *reading, struct span authority) {
    char host[AUTHORITY_MAX], *known = reading->request->host;
    if (!authority_read(authority.at, authority.length, host))
        return refuse(reading, 400, "a malformed Host");
    if (*known && strcmp(known, host))
        return refuse(reading, 400, "a target whose host differs from Host");
    strcpy(known, host);
    return 200;
}

/* Takes "http://HOST:PORT" off a target, if it has the absolute form. */
static int take_authority(struct reading *reading, struct span *target) {
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

static int read_target(struct reading *reading, struct span target) {
    struct request *request = reading->request;
    if (target.length >= sizeof request->target - 1)
        return refuse(reading, 414, "a long target");
    for (size_t i = 0; i < target.length; i++)
        if (target.at[i] <= ' ' || target.at[i] > '~')
            return refuse(reading, 400, "a target with strange characters");
    int status = take_authority(reading, &target);
    if (status != 200)
        return status;
    bool bare = *request->host && (!target.length || target.at[0] == '?');
    if (!bare && (!target.length || target.at[0] != '/'))
        return refuse(reading, 400, "a target without a path");
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

static int read_version(struct reading *reading, struct span version) {
    reading->request->keep_alive = is(version, "HTTP/1.1");
    if (is(version, "HTTP/1.1") || is(version, "HTTP/1.0"))
        return 200;
    if (version.length == 8 && memcmp(version.at, "HTTP/", 5) == 0)
        return refuse(reading, 505, "another version of HTTP");
    return refuse(reading, 400, "a malformed request line");
}

static int read_line(struct reading *reading, struct span line) {
    struct span method, target, version;
    if (!split(line, ' ', &method, &line) || !split(line, ' ', &target, &version) ||
        !is_token(method))
        return refuse(reading, 400, "a malformed request line");
    reading->request->head = is(method, "HEAD");
    int status = read_version(reading, version);
    if (status == 200)
        status = read_target(reading, target);
    if (status == 200 && !is(method, "GET") && !is(method, "HEAD"))
        status = refuse(reading, 405, "a method other than GET and HEAD");
    return status;
}

/* ---- the fields ---- */

static void read_connection(struct reading *reading, struct span value) {
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

static bool is_text(struct span value) {
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if ((c < ' ' && c != '\t') || c == 127)
            return false;
    }
    return true;
}

static int read_field(struct reading *reading, struct span line) {
    struct span name, value;
    if (!split(line, ':', &name, &value) || !is_token(name) || !is_text(value))
        return refuse(reading, 400, "a malformed field");
    value = trimmed(value);
    if (is_caseless(name, "Transfer-Encoding"))
        return refuse(reading, 400, "a Transfer-Encoding");
    if (is_caseless(name, "Content-Length") && (reading->lengths++ || !is(value, "0")))
        return refuse(reading, 400, "a body, or two Content-Length");
    if (is_caseless(name, "Host"))
        return reading->hosts++ ? refuse(reading, 400, "two Host") : read_host(reading, value);
    if (is_caseless(name, "Connection"))
        read_connection(reading, value);
    return 200;
}

/* Takes the next line, without its end, off the text. */
static int next_line(struct reading *reading, struct span *text, struct span *line) {
    if (!split(*text, '\n', line, text) || !line->length || line->at[line->length - 1] != '\r')
        return refuse(reading, 400, "a line that does not end with CR LF");
    line->length--;
    return 200;
}

int request_read(const char *text, size_t length, struct request *request, const char **why) {
    struct reading reading = {.request = request};
    struct span rest = {text, length}, line;
    *request = (struct request){.path = "", .query = ""};
    int status = next_line(&reading, &rest, &line);
    if (status == 200)
        status = read_line(&reading, line);
    while (status == 200 && (status = next_line(&reading, &rest, &line)) == 200 && line.length)
        status = read_field(&reading, line);
    if (status == 200 && request->keep_alive && !reading.hosts)
        status = refuse(&reading, 400, "no Host");
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
