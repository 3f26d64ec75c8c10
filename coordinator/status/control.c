#define _GNU_SOURCE
#include "coordinator/status/control.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define SOCKET_NAME "control.sock"
#define LINE_BYTES_LARGEST 256
#define IDLE_SECONDS 5
#define CLIENTS_MAX 16 /* at once; others wait: a run must not lack descriptors for them */
#define PAUSE_MS 100   /* before accepting again, when there was no descriptor */

struct control {
    struct control_callbacks callbacks;
    struct evconnlistener *listener;
    struct event *resumer;
    unsigned clients; /* connections that are open */
    struct event_base *base;
    char *path;
    struct stat bound; /* the socket's file, as we made it */
};

static void end_client(struct control *control, struct bufferevent *client) {
    bufferevent_free(client);
    assert(control->clients > 0);
    control->clients--;
    evconnlistener_enable(control->listener);
}

static void on_event(struct bufferevent *client, short what, void *context) {
    (void)what; /* end of file, error or time-out: in each case the connection ends */
    end_client(context, client);
}

static void on_written(struct bufferevent *client, void *context) {
    end_client(context, client);
}

/* The callback may end the run, and with it the loop. So it is called only after the client has its
 * answer. */
static void on_cancel_written(struct bufferevent *client, void *context) {
    struct control *control = context;
    end_client(control, client);
    control->callbacks.cancel(control->callbacks.context);
}

static void answer(struct control *control, struct bufferevent *client, const char *text) {
    bufferevent_disable(client, EV_READ);
    bufferevent_setcb(client, NULL, on_written, on_event, control);
    bufferevent_write(client, text, strlen(text));
    bufferevent_write(client, "\n", 1);
}

/* Gives up the reference to `value`. */
static void answer_json(struct control *control, struct bufferevent *client, json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT);
    answer(control, client, text ? text : "{}");
    free(text);
    json_decref(value);
}

static void on_line(struct bufferevent *client, void *context) {
    struct control *control = context;
    struct evbuffer *input = bufferevent_get_input(client);
    char *line = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF);
    if (!line) {
        if (evbuffer_get_length(input) > LINE_BYTES_LARGEST)
            end_client(control, client);
        return;
    }
    if (strcmp(line, "status") == 0) {
        answer_json(control, client, control->callbacks.status(control->callbacks.context));
    } else if (strcmp(line, "runs") == 0) {
        answer_json(control, client, control->callbacks.runs(control->callbacks.context));
    } else if (strcmp(line, "cancel") == 0) {
        answer(control, client, "ok");
        bufferevent_setcb(client, NULL, on_cancel_written, on_event, control);
    } else {
        answer(control, client, "unknown request; allowed: status, runs, cancel");
    }
    free(line);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t descriptor,
                      struct sockaddr *address, int length, void *context) {
    struct control *control = context;
    struct timeval idle = {.tv_sec = IDLE_SECONDS};
    (void)listener;
    (void)address;
    (void)length;
    struct bufferevent *client =
        bufferevent_socket_new(control->base, descriptor, BEV_OPT_CLOSE_ON_FREE);
    if (!client) {
        close(descriptor);
        return;
    }
    bufferevent_setcb(client, on_line, NULL, on_event, control);
    bufferevent_set_timeouts(client, &idle, &idle);
    bufferevent_enable(client, EV_READ | EV_WRITE);
    if (++control->clients == CLIENTS_MAX)
        evconnlistener_disable(control->listener);
}

/* Without a free descriptor the loop would try it again at once, and say so each time. */
static void on_accept_failed(struct evconnlistener *listener, void *context) {
    struct control *control = context;
    struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    evconnlistener_disable(listener);
    event_add(control->resumer, &pause);
}

static void on_resume(evutil_socket_t descriptor, short events, void *context) {
    struct control *control = context;
    (void)descriptor;
    (void)events;
    if (control->clients < CLIENTS_MAX)
        evconnlistener_enable(control->listener);
}

/* Binds through the folder's descriptor, because an address has no room for a long path.
 * *descriptor is −1 if the file system holds no sockets: a run can do without. */
static int listen_in(const char *folder, const char *path, int *descriptor) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder_descriptor = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int listening = -1, code = 0;
    if (folder_descriptor >= 0) {
        unlink(path); /* we hold the lock, so the process that made this socket has ended */
        listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder_descriptor,
             SOCKET_NAME);
    mode_t before = umask(0177);
    if (folder_descriptor < 0 || listening < 0 ||
        bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 16)) {
        /* sshfs and SMB, for example, hold no sockets. */
        if ((errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) &&
            filesystem_is_network(folder))
            log_warning("the file system of %s holds no sockets: `status` and `cancel` cannot ask "
                        "this run; the key `http` shows it, and SIGTERM ends it",
                        folder);
        else
            code = error_set_errno(ERROR_CREATE, "cannot make the control socket %s", path);
        if (listening >= 0)
            close(listening);
        listening = -1;
    }
    umask(before);
    if (folder_descriptor >= 0)
        close(folder_descriptor);
    *descriptor = listening;
    return code;
}

int control_new(struct event_base *base, const char *state_folder,
                const struct control_callbacks *callbacks, struct control **control) {
    char *path = memory_format("%s/%s", state_folder, SOCKET_NAME);
    int descriptor;
    int code = listen_in(state_folder, path, &descriptor);
    *control = NULL;
    if (descriptor < 0) {
        free(path);
        return code;
    }
    struct control *c = memory_new(1, sizeof *c);
    *c = (struct control){.callbacks = *callbacks, .base = base, .path = path};
    (void)lstat(path, &c->bound);
    c->listener = evconnlistener_new(base, on_accept, c,
                                     LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, descriptor);
    if (!c->listener) {
        close(descriptor);
        control_free(c);
        return error_set(ERROR_UNAVAILABLE, "cannot listen on the control socket");
    }
    c->resumer = evtimer_new(base, on_resume, c);
    evconnlistener_set_error_cb(c->listener, on_accept_failed);
    *control = c;
    return 0;
}

void control_free(struct control *control) {
    if (!control)
        return;
    if (control->listener)
        evconnlistener_free(control->listener);
    if (control->resumer)
        event_free(control->resumer);
    /* Whoever took over from this process has a socket of its own there. */
    struct stat there;
    if (!lstat(control->path, &there) && there.st_ino == control->bound.st_ino &&
        there.st_dev == control->bound.st_dev)
        unlink(control->path);
    free(control->path);
    free(control);
}
