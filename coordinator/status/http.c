#define _GNU_SOURCE
#include "coordinator/status/http.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/status/http_limits.h"
#include "coordinator/status/http_message.h"
#include "wire/address.h"
#include "wire/peer.h"

#define PLACES_LEAST 4
#define PLACES_MOST 256
#define DESCRIPTORS_SHARE 8 /* connections use at most an eighth of the process's descriptors */
#define REQUESTS_PER_SECOND 500
#define REQUESTS_AT_ONCE 100
#define REQUESTS_A_TURN 8 /* then the loop serves the workers first */
#define TURN_MS 10        /* how often connections that wait for their turn are served */
#define DEADLINE_MS 10000
#define IDLE_DEADLINES 6 /* an idle connection is kept for 6 deadlines */
#define DEADLINE_CHECK_MS 250
#define PAUSE_MS 100                  /* before accepting again, when there was no descriptor */
#define DISCARDED_BYTES_MAX (1 << 18) /* of what a client still sends after a refusal */

/* A connection reads a request, writes the answer, and reads again; between the two it may wait for
 * the answer to a POST. Or it is closing. Then it is
 * half closed after the answer was sent, and what still comes is discarded. A full close would
 * reset the connection, and the client could lose the answer. */
struct connection {
    struct http *http;
    struct bufferevent *stream; /* NULL: this place is free */
    int64_t since_ns;           /* when it began to read, to write or to be idle */
    bool idle;                  /* between two requests */
    bool closing, hung_up;
    uint64_t ticket; /* of the POST whose answer it waits for, or 0 */
    bool keep_alive; /* after that answer */
    size_t discarded;
};

struct http {
    char *url;
    struct host_check host_check;
    int descriptor; /* −1 once the listener owns it */
    int64_t deadline_ns;
    struct event_base *base;
    struct http_callbacks callbacks;
    struct evconnlistener *listener;
    struct event *deadline, *resumer, *waker;
    uint64_t tickets; /* given out so far */
    struct rate_limit limit;
    uint32_t served;      /* requests since the waiting connections were last served */
    struct evbuffer *out; /* the answer that is being sent; else empty */
    uint32_t turn;        /* the place whose turn is next, when connections wait */
    struct http_counts counts;
    struct response_cache cache;
    uint32_t places; /* how many of the connections below are used */
    struct connection connections[PLACES_MOST];
};

static void note_drop(struct http *http, enum http_drop drop, const char *why) {
    drop_counters_note(&http->counts.dropped, drop, why, clock_monotonic_ns());
}

/* ---- connections ---- */

/* Closes the descriptor at once. libevent would close it only in the next turn of the loop; then
 * many connections at a time could leave no descriptor for the run itself. */
static void close_connection(struct connection *connection) {
    int descriptor = bufferevent_getfd(connection->stream);
    bufferevent_disable(connection->stream, EV_READ | EV_WRITE);
    bufferevent_free(connection->stream);
    close(descriptor);
    assert(connection->http->counts.connections > 0);
    connection->http->counts.connections--;
    connection->stream = NULL;
}

static_assert(PLACES_LEAST <= PLACES_MOST, "there is room for the least number of connections");

static void write_head(struct connection *connection, const struct http_answer *answer,
                       bool keep_alive) {
    char head[RESPONSE_HEAD_MAX];
    assert(!connection->closing && !evbuffer_get_length(connection->http->out));
    evbuffer_add(connection->http->out, head, response_head(answer, keep_alive, time(NULL), head));
    connection->closing = !keep_alive;
    connection->since_ns = clock_monotonic_ns();
    connection->http->counts.requests++;
}

/* Most answers fit into the socket at once, which saves a turn of the loop. The rest is sent as
 * there is room. An error here is ignored: it occurs again in the loop, and is handled there. */
static void send_answer(struct connection *connection) {
    struct evbuffer *out = connection->http->out;
    assert(connection->stream && evbuffer_get_length(out) > 0);
    (void)evbuffer_write(out, bufferevent_getfd(connection->stream));
    evbuffer_add_buffer(bufferevent_get_output(connection->stream), out);
}

static void answer_refusal(struct connection *connection, const struct request *request, int status,
                           const char *why) {
    char body[160];
    struct http_answer answer = {.status = status,
                                 .type = "application/json",
                                 .fields = status == 405 ? request_allow(request) : NULL,
                                 .body = body};
    answer.length = (size_t)snprintf(body, sizeof body, "{\"error\":\"%s\"}\n", why);
    note_drop(connection->http,
              status == 405                                     ? HTTP_METHOD
              : status == 421                                   ? HTTP_MISDIRECTED
              : status == 413 || status == 414 || status == 431 ? HTTP_TOO_LARGE
                                                                : HTTP_MALFORMED,
              why);
    write_head(connection, &answer, false);
    if (!request->head)
        evbuffer_add(connection->http->out, body, answer.length);
    send_answer(connection);
}

static void on_sent(const void *body, size_t length, void *kept) {
    (void)body;
    (void)length;
    cached_response_drop(kept);
}

static void answer(struct connection *connection, const struct request *request) {
    struct http *http = connection->http;
    int64_t begun_ns = clock_monotonic_ns();
    struct cached_response *kept = response_cache_find(&http->cache, request, begun_ns);
    if (!kept) {
        struct http_answer made = {.status = 500, .type = "text/plain", .body = ""};
        http->callbacks.answer(http->callbacks.context, request, &made);
        kept = response_cache_put(&http->cache, request, &made, begun_ns, clock_monotonic_ns());
    }
    write_head(connection, &kept->answer, request->keep_alive);
    if (!request->head &&
        !evbuffer_add_reference(http->out, kept->answer.body, kept->answer.length, on_sent, kept))
        cached_response_hold(kept);
    send_answer(connection);
}

/* Answers a POST at once, or lets the connection wait. */
static void take_post(struct connection *connection, const struct request *request) {
    struct http *http = connection->http;
    struct http_answer made = {.status = 500, .type = "text/plain", .body = ""};
    connection->keep_alive = request->keep_alive;
    connection->ticket = ++http->tickets;
    if (!http->callbacks.post(http->callbacks.context, request, connection->ticket, &made))
        return;
    connection->ticket = 0;
    write_head(connection, &made, request->keep_alive);
    evbuffer_add(http->out, made.body, made.length);
    free(made.owned);
    send_answer(connection);
}

static void discard(struct connection *connection) {
    struct evbuffer *in = bufferevent_get_input(connection->stream);
    connection->discarded += evbuffer_get_length(in);
    evbuffer_drain(in, evbuffer_get_length(in));
    if (connection->discarded > DISCARDED_BYTES_MAX)
        close_connection(connection);
}

/* Whether a request may be answered now. If not, on_turn() serves the connections that wait: in the
 * next turn of the loop, or after TURN_MS. */
static bool may_answer(struct http *http) {
    bool time_for_others = http->served >= REQUESTS_A_TURN;
    struct timeval turn = {.tv_usec = time_for_others ? 0 : TURN_MS * 1000};
    if (!time_for_others && rate_limit_take(&http->limit, clock_monotonic_ns())) {
        http->served++;
        return true;
    }
    event_add(http->waker, &turn);
    return false;
}

enum served { SERVED_NONE, SERVED_ONE, SERVED_LATER };

/* Reads the request at the beginning of what has come: its status as of request_read(). `end` is
 * the length of its head; 0 if that is too long. */
static int read_request(const struct connection *connection, const char *text, size_t end,
                        struct request *request, const char **why) {
    *request = (struct request){.head = false};
    if (!end) {
        *why = "a head beyond 8 KiB";
        return 431;
    }
    const int status = request_read(text, end, request, why);
    if (status != 200 || !*request->host ||
        host_check_accepts(&connection->http->host_check, request->host))
        return status;
    *why = "a Host that is not this server; use its address, or localhost";
    return 421;
}

/* Answers one request, if a whole one has come and the answer before it was sent. */
static enum served serve_one(struct connection *connection) {
    struct evbuffer *in = bufferevent_get_input(connection->stream);
    struct request request;
    const char *why;
    if (connection->closing || connection->ticket ||
        evbuffer_get_length(bufferevent_get_output(connection->stream)))
        return SERVED_NONE;
    size_t length = evbuffer_get_length(in);
    if (connection->idle != (length == 0)) {
        connection->idle = length == 0;
        connection->since_ns = clock_monotonic_ns();
    }
    const char *text = (const char *)evbuffer_pullup(in, -1);
    size_t end = text ? request_end(text, length) : 0;
    if (!end && length < REQUEST_BYTES_MAX)
        return SERVED_NONE;
    const int status = read_request(connection, text, end, &request, &why);
    const size_t whole = end + request.body_length;
    if (status == 200 && length < whole) { /* more is read than without a body */
        bufferevent_setwatermark(connection->stream, EV_READ, 0, whole);
        return SERVED_NONE;
    }
    if (!may_answer(connection->http))
        return SERVED_LATER;
    if (status == 200 && request.posts) {
        request.body = text + end;
        take_post(connection, &request);
        bufferevent_setwatermark(connection->stream, EV_READ, 0, REQUEST_BYTES_MAX);
    } else if (status == 200) {
        answer(connection, &request);
    } else {
        answer_refusal(connection, &request, status, why);
    }
    evbuffer_drain(in, status == 200 ? whole : end);
    return SERVED_ONE;
}

/* Answers the requests that have come, one after another: each waits until the answer before it was
 * sent. False if one of them has to wait for its turn. */
static bool serve_connection(struct connection *connection) {
    enum served served;
    do
        served = serve_one(connection);
    while (served == SERVED_ONE);
    if (served != SERVED_NONE || connection->ticket ||
        evbuffer_get_length(bufferevent_get_output(connection->stream)))
        return served != SERVED_LATER;
    if (connection->hung_up) { /* its last answer was sent */
        close_connection(connection);
    } else if (connection->closing) {
        shutdown(bufferevent_getfd(connection->stream), SHUT_WR);
        discard(connection);
    }
    return true;
}

/* While connections wait for their turn, a new request waits too. */
static void on_readable(struct bufferevent *stream, void *context) {
    struct connection *connection = context;
    (void)stream;
    if (connection->closing)
        discard(connection);
    else if (!evtimer_pending(connection->http->waker, NULL))
        serve_connection(connection);
}

static void on_turn(evutil_socket_t descriptor, short events, void *context) {
    struct http *http = context;
    (void)descriptor;
    (void)events;
    http->served = 0;
    for (uint32_t i = 0; i < http->places; i++) {
        struct connection *connection = &http->connections[http->turn % http->places];
        if (connection->stream && !connection->closing && !serve_connection(connection))
            return;
        http->turn++;
    }
}

static void on_written(struct bufferevent *stream, void *context) {
    struct connection *connection = context;
    (void)stream;
    if (connection->closing || !evtimer_pending(connection->http->waker, NULL))
        serve_connection(connection);
}

/* A client may half close the connection after its request: it still gets its answer. */
static void on_event(struct bufferevent *stream, short what, void *context) {
    struct connection *connection = context;
    bool answering = connection->ticket || evbuffer_get_length(bufferevent_get_output(stream)) > 0;
    bool waiting = evbuffer_get_length(bufferevent_get_input(stream)) > 0 &&
                   evtimer_pending(connection->http->waker, NULL);
    if (what & BEV_EVENT_EOF && (answering || waiting)) {
        connection->hung_up = true;
        bufferevent_disable(stream, EV_READ);
    } else {
        close_connection(connection);
    }
}

/* ---- accepting ---- */

/* A free place. If there is none, closes the connection that has been quiet longest. */
static struct connection *find_free_connection(struct http *http) {
    assert(http->places >= PLACES_LEAST && http->places <= PLACES_MOST);
    struct connection *quietest = &http->connections[0];
    for (uint32_t i = 0; i < http->places; i++) {
        struct connection *connection = &http->connections[i];
        if (!connection->stream)
            return connection;
        if (connection->since_ns < quietest->since_ns)
            quietest = connection;
    }
    note_drop(http, HTTP_CROWDED, "too many connections");
    close_connection(quietest);
    return quietest;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t descriptor,
                      struct sockaddr *address, int length, void *context) {
    struct http *http = context;
    const int on = 1;
    (void)listener;
    (void)address;
    (void)length;
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* else 40 ms a reply */
    struct connection *connection = find_free_connection(http);
    struct bufferevent *stream = bufferevent_socket_new(http->base, descriptor, 0);
    if (!stream) {
        close(descriptor);
        return;
    }
    *connection =
        (struct connection){.http = http, .stream = stream, .since_ns = clock_monotonic_ns()};
    http->counts.connections++;
    assert(http->counts.connections <= http->places);
    bufferevent_setcb(stream, on_readable, on_written, on_event, connection);
    bufferevent_setwatermark(stream, EV_READ, 0, REQUEST_BYTES_MAX);
    bufferevent_enable(stream, EV_READ | EV_WRITE);
}

/* Without a free descriptor, accepting fails, and the loop would try it again at once: so it
 * pauses. */
static void on_accept_failed(struct evconnlistener *listener, void *context) {
    struct http *http = context;
    struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    note_drop(http, HTTP_DESCRIPTORS, "lack of descriptors");
    evconnlistener_disable(listener);
    event_add(http->resumer, &pause);
}

static void on_resume(evutil_socket_t descriptor, short events, void *context) {
    struct http *http = context;
    (void)descriptor;
    (void)events;
    evconnlistener_enable(http->listener);
}

/* Closes connections that are over their deadline. Only a slow request or answer counts as a
 * refusal; an idle connection, or one that lingers after its last answer, does not. */
static void on_deadline(evutil_socket_t descriptor, short events, void *context) {
    struct http *http = context;
    int64_t now_ns = clock_monotonic_ns();
    (void)descriptor;
    (void)events;
    for (uint32_t i = 0; i < http->places; i++) {
        struct connection *connection = &http->connections[i];
        int64_t allowed_ns = http->deadline_ns * (connection->idle ? IDLE_DEADLINES : 1);
        if (!connection->stream || connection->ticket || now_ns - connection->since_ns < allowed_ns)
            continue;
        if (!connection->idle && !connection->closing)
            note_drop(http, HTTP_SLOW, "slowness");
        close_connection(connection);
    }
    drop_counters_log(&http->counts.dropped, now_ns);
}

/* ---- life ---- */

/* Listens on ADDRESS:PORT, with a warning if the address is not a loopback address. `bound`, to be
 * freed, is the address with the port that was picked for port 0. */
static int open_listener(const char *address, int *descriptor, char **bound) {
    int code = address_listen(address, descriptor, bound);
    if (!code && !address_is_loopback(*descriptor))
        log_warning("status server: everyone who can reach %s can read the status; there is no "
                    "password",
                    *bound);
    if (!code)
        return 0;
    char *text = memory_copy_string(error_text());
    error_clear();
    error_set(code, "key `http`: %s; set another ADDRESS:PORT, or port 0 to get a free port", text);
    free(text);
    return code;
}

int http_new(const char *address, struct http **http) {
    const char *wanted = getenv("DML_HTTP_DEADLINE_MS");
    long deadline_ms = wanted ? strtol(wanted, NULL, 10) : DEADLINE_MS;
    char *bound;
    int descriptor;
    int code = open_listener(address, &descriptor, &bound);
    if (code)
        return code;
    *http = memory_new(1, sizeof **http);
    (*http)->descriptor = descriptor;
    (*http)->url = memory_format("http://%s/", bound);
    (*http)->deadline_ns = (deadline_ms > 0 ? deadline_ms : DEADLINE_MS) * NS_PER_MS;
    /* How many connections there may be at once: the limit leaves enough descriptors for workers,
     * checkpoints and the store. */
    struct rlimit limit;
    rlim_t share = getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur / DESCRIPTORS_SHARE;
    (*http)->places = share < PLACES_LEAST  ? PLACES_LEAST
                      : share > PLACES_MOST ? PLACES_MOST
                                            : (uint32_t)share;
    /* The names and addresses of the server that listens there. */
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    char number[NI_MAXHOST] = "", machine[HOST_CHECK_BYTES] = "";
    if (getsockname(descriptor, (struct sockaddr *)&own, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&own, length, number, sizeof number, NULL, 0,
                          NI_NUMERICHOST);
    if (gethostname(machine, sizeof machine - 1))
        machine[0] = '\0';
    host_check_init(&(*http)->host_check, address, number, machine);
    (*http)->limit =
        (struct rate_limit){.per_second = REQUESTS_PER_SECOND, .at_once_most = REQUESTS_AT_ONCE};
    free(bound);
    log_info("status server: %s", (*http)->url);
    return 0;
}

const char *http_url(const struct http *http) {
    return http->url;
}

int http_serve(struct http *http, struct event_base *base, const struct http_callbacks *callbacks) {
    struct timeval pause = {.tv_usec = DEADLINE_CHECK_MS * 1000};
    http->base = base;
    http->callbacks = *callbacks;
    http->deadline = event_new(base, -1, EV_PERSIST, on_deadline, http);
    http->resumer = evtimer_new(base, on_resume, http);
    http->waker = evtimer_new(base, on_turn, http);
    http->out = evbuffer_new();
    http->listener = evconnlistener_new(
        base, on_accept, http, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, http->descriptor);
    if (!http->listener)
        return error_set(ERROR_UNAVAILABLE, "cannot listen at %s", http->url);
    http->descriptor = -1;
    evconnlistener_set_error_cb(http->listener, on_accept_failed);
    event_add(http->deadline, &pause);
    return 0;
}

void http_answer_later(struct http *http, uint64_t ticket, const struct http_answer *answer) {
    assert(ticket > 0);
    for (uint32_t i = 0; i < http->places; i++) {
        struct connection *connection = &http->connections[i];
        if (!connection->stream || connection->ticket != ticket)
            continue;
        connection->ticket = 0;
        write_head(connection, answer, connection->keep_alive);
        evbuffer_add(http->out, answer->body, answer->length);
        send_answer(connection);
        serve_connection(connection); /* the client may have sent the next request already */
        break;
    }
    free(answer->owned);
}

const struct http_counts *http_counts(const struct http *http) {
    return &http->counts;
}

void http_free(struct http *http) {
    if (!http)
        return;
    for (uint32_t i = 0; i < http->places; i++)
        if (http->connections[i].stream)
            close_connection(&http->connections[i]);
    if (http->listener)
        evconnlistener_free(http->listener);
    if (http->deadline)
        event_free(http->deadline);
    if (http->resumer)
        event_free(http->resumer);
    if (http->waker)
        event_free(http->waker);
    if (http->descriptor >= 0)
        close(http->descriptor);
    if (http->out)
        evbuffer_free(http->out);
    response_cache_release(&http->cache);
    free(http->url);
    free(http);
}
