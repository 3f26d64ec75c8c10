#define _GNU_SOURCE
#include "coordinator/run/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "coordinator/run/progress.h"

static const int numbers[] = {SIGINT, SIGTERM};

/* ---- signals ---- */

/* Work in another thread cannot be stopped where it stands: it ends with the process. */
static _Noreturn void end_process(struct loop *loop, int number, const char *why) {
    progress_close();
    if (loop->child)
        kill(loop->child, number);
    if (loop->leave)
        loop->leave(loop->context);
    fprintf(stderr, "dml-coordinator: %s; the same command goes on from here\n", why);
    _exit(-ERROR_AGAIN);
}

void loop_stop(struct loop *loop, int signal, const char *why) {
    if (!loop->stop)
        end_process(loop, signal, why);
    log_info("%s: stopping", why);
    loop->stop(loop->context);
}

static void on_signal(evutil_socket_t number, short what, void *context) {
    (void)what;
    struct loop *loop = context;
    if (loop->stop || !loop->ignored[number == SIGTERM])
        loop_stop(loop, number, number == SIGINT ? "interrupted" : "terminated");
}

void loop_poll(struct loop *loop) {
    event_base_loop(loop->base, EVLOOP_NONBLOCK);
}

int loop_open(struct loop *loop) {
    *loop = (struct loop){.stage = STAGE_STARTING};
    /* Before libevent opens anything: if its socket pair for signals fails, it ends the process. */
    int code = descriptors_check();
    if (code)
        return code;
    loop->base = event_base_new();
    if (!loop->base)
        return error_set(ERROR_UNAVAILABLE, "libevent offers no way to wait for sockets");
    signal(SIGPIPE, SIG_IGN); /* who asks may leave before the answer */
    for (int i = 0; i < 2; i++) {
        struct sigaction before;
        loop->ignored[i] = !sigaction(numbers[i], NULL, &before) && before.sa_handler == SIG_IGN;
        loop->signals[i] = evsignal_new(loop->base, numbers[i], on_signal, loop);
        event_add(loop->signals[i], NULL);
    }
    return 0;
}

void loop_close(struct loop *loop) {
    for (int i = 0; i < 2; i++)
        if (loop->signals[i])
            event_free(loop->signals[i]);
    if (loop->base)
        event_base_free(loop->base);
    *loop = (struct loop){0};
}

/* ---- beside the loop ---- */

struct work {
    int (*run)(void *context);
    void *context;
    int code;
    char *error; /* its text, if it failed */
    int ended;   /* an eventfd: readable when the rest is set */
};

static void *run_work(void *context) {
    const uint64_t once = 1;
    struct work *work = context;
    work->code = work->run(work->context);
    work->error = work->code ? memory_copy_string(error_text()) : NULL;
    if (write(work->ended, &once, sizeof once) < 0)
        abort(); /* an eventfd takes a first write */
    return NULL;
}

static void on_ended(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    *(bool *)context = true;
}

/* A handler may break off a turn of the loop for reasons of its own. */
static void turn_until_set(struct event_base *base, const bool *set) {
    while (!*set && event_base_loop(base, EVLOOP_ONCE) >= 0)
        continue;
}

static enum stage enter(struct loop *loop, enum stage stage) {
    enum stage before = loop->stage;
    loop->stage = stage;
    if (stage_text(stage))
        progress_stage(stage_text(stage));
    return before;
}

static int do_work(struct loop *loop, struct work *work) {
    pthread_t thread;
    bool ended = false;
    int code = thread_start(&thread, run_work, work);
    if (code)
        return code;
    struct event *end = event_new(loop->base, work->ended, EV_READ, on_ended, &ended);
    event_add(end, NULL);
    turn_until_set(loop->base, &ended);
    pthread_join(thread, NULL);
    event_free(end);
    error_clear(); /* what handlers left */
    if (work->error)
        error_set(work->code, "%s", work->error);
    free(work->error);
    return work->code;
}

int loop_beside(struct loop *loop, enum stage stage, int (*run)(void *context), void *context) {
    struct work work = {.run = run, .context = context, .ended = eventfd(0, EFD_CLOEXEC)};
    if (work.ended < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot begin %s", stage_text(stage));
    enum stage before = enter(loop, stage);
    int code = do_work(loop, &work);
    loop->stage = before;
    close(work.ended);
    return code;
}

/* ---- children ---- */

static void on_child(evutil_socket_t number, short what, void *context) {
    (void)number, (void)what, (void)context; /* the loop goes round: that is all */
}

int loop_wait(struct loop *loop, enum stage stage, pid_t child, int *status) {
    struct event *ended = evsignal_new(loop->base, SIGCHLD, on_child, NULL);
    event_add(ended, NULL); /* from here on no end is missed */
    enum stage before = enter(loop, stage);
    pid_t found;
    loop->child = child;
    while ((found = waitpid(child, status, WNOHANG)) == 0 || (found < 0 && errno == EINTR))
        event_base_loop(loop->base, EVLOOP_ONCE);
    loop->child = 0;
    loop->stage = before;
    event_free(ended);
    return found < 0 ? error_set_errno(ERROR_UNAVAILABLE, "cannot wait for a command") : 0;
}

/* ---- until ---- */

void loop_until(struct event_base *base, int timeout_ms, bool (*done)(const void *context),
                const void *context) {
    struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    bool over = false;
    char *error = memory_copy_string(error_text()); /* handlers clear their own */
    struct event *timer = evtimer_new(base, on_ended, &over);
    event_add(timer, &timeout);
    while (!over && !done(context) && event_base_loop(base, EVLOOP_ONCE) >= 0)
        continue;
    event_free(timer);
    error_clear();
    if (*error)
        error_set(0, "%s", error);
    free(error);
}
