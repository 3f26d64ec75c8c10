#define _GNU_SOURCE

#include "coordinator/run/loop.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "coordinator/run/progress.h"

/* How long a child's processes may take to end when this process is told to. */
#define CHILD_END_MS 2000

static const struct {
    int number;
    const char *why;
} endings[LOOP_SIGNALS] = {
    {SIGINT, "interrupted"}, {SIGTERM, "terminated"}, {SIGHUP, "the terminal is gone"}};

/* ---- signals ---- */

static unsigned index_of_signal(int number) {
    unsigned i = 0;
    while (i < LOOP_SIGNALS && endings[i].number != number)
        i++;
    assert(i < LOOP_SIGNALS);
    return i;
}

/* Only what is safe at any instant. */
static void end_early(int number) {
    static const char before[] = "dml-coordinator: ",
                      after[] = "; the same command goes on from here\n";
    const char *why = endings[index_of_signal(number)].why;
    const struct iovec text[] = {{(char *)(uintptr_t)before, sizeof before - 1},
                                 {(char *)(uintptr_t)why, strlen(why)},
                                 {(char *)(uintptr_t)after, sizeof after - 1}};
    ssize_t written = writev(STDERR_FILENO, text, 3);
    (void)written;
    _exit(-ERROR_AGAIN);
}

static void treat_signals(void (*how)(int)) {
    for (int i = 0; i < LOOP_SIGNALS; i++)
        if (!process_ignores(endings[i].number))
            signal(endings[i].number, how);
}

void loop_signals_early(bool handled) {
    sigset_t all;
    treat_signals(handled ? end_early : SIG_DFL);
    sigemptyset(&all);
    for (int i = 0; i < LOOP_SIGNALS; i++)
        sigaddset(&all, endings[i].number);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
}

/* Passes the signal on to what the child has started, too, and outlives it: whoever calls the same
 * command again must not meet what the first one had started. The child is reaped, as its zombie
 * would count as one that is left. */
static void end_child(pid_t child, int number) {
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    assert(child > 0);
    kill(-child, number);
    for (int waited = 0; waitpid(child, NULL, WNOHANG) == 0; waited++) {
        if (waited == CHILD_END_MS)
            kill(-child, SIGKILL);
        nanosleep(&pause, NULL);
    }
    if (process_group_ended(child, CHILD_END_MS))
        return;
    kill(-child, SIGKILL);
    process_group_ended(child, CHILD_END_MS);
}

/* Without `stop` this ends the process without a return to main(): a thread may be at work beside
 * the loop and cannot be stopped from here; it ends with the process. _exit() and not exit(),
 * because handlers of exit() would run while that thread still uses what they release. Nothing on
 * the disk needs care: every file is written so that a kill at any instant leaves it whole or
 * temporary. */
void loop_stop(struct loop *loop, int signal, const char *why) {
    if (loop->stop) {
        log_info("%s: stopping", why);
        loop->stop(loop->context);
        return;
    }
    progress_close();
    if (loop->child)
        end_child(loop->child, signal);
    if (loop->leave)
        loop->leave(loop->context, why);
    char text[160];
    snprintf(text, sizeof text, "dml-coordinator: %s; the same command goes on from here\n", why);
    log_last(text);
    _exit(-ERROR_AGAIN);
}

static void on_signal(evutil_socket_t number, short what, void *context) {
    (void)what;
    struct loop *loop = context;
    unsigned i = index_of_signal(number);
    if (!loop->ignored[i] || (loop->stop && number != SIGHUP))
        loop_stop(loop, number, endings[i].why);
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
    signal(SIGPIPE, SIG_IGN); /* a client may close its connection before the answer is written */
    /* Whoever started this process may have ignored or blocked SIGCHLD: then the system reaps
     * children before they are asked about, or nobody hears that one has ended. */
    sigset_t child;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &child, NULL);
    for (int i = 0; i < LOOP_SIGNALS; i++) {
        loop->ignored[i] = process_ignores(endings[i].number);
        loop->signals[i] = evsignal_new(loop->base, endings[i].number, on_signal, loop);
        event_add(loop->signals[i], NULL);
    }
    return 0;
}

void loop_close(struct loop *loop) {
    for (int i = 0; i < LOOP_SIGNALS; i++)
        if (loop->signals[i])
            event_free(loop->signals[i]);
    if (loop->base)
        treat_signals(SIG_IGN);
    if (loop->base)
        event_base_free(loop->base);
    *loop = (struct loop){0};
}

/* ---- beside the loop ---- */

/* Work in a thread, and its answer. The thread owns the struct until it writes to `ended`.
 *
 * What the work may do: read and write files, compute, log, record an error (that text belongs to
 * its thread). What it may not: use anything that a handler of the loop uses meanwhile. The store,
 * above all: it has one connection, and `dml-coordinator jobs` or the status server may read from
 * it while the work runs; SQLite would take the calls of both threads for parts of one transaction.
 * If the work's result belongs in the store, the caller puts it there when loop_finish() has
 * returned. */
struct loop_work {
    pthread_t thread;
    int (*run)(void *context);
    void *context;
    int code;
    char *error; /* its text, if it failed */
    int ended;   /* an eventfd: readable when the rest is set */
};

static void *run_work(void *context) {
    const uint64_t once = 1;
    struct loop_work *work = context;
    work->code = work->run(work->context);
    work->error = work->code ? memory_copy_string(error_text()) : NULL;
    if (write(work->ended, &once, sizeof once) < 0)
        abort(); /* the first write to an eventfd cannot fail */
    return NULL;
}

static void on_ended(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    *(bool *)context = true;
}

static enum stage enter_stage(struct loop *loop, enum stage stage) {
    enum stage before = loop->stage;
    loop->stage = stage;
    if (stage_text(stage))
        progress_stage(stage_text(stage));
    return before;
}

static void work_free(struct loop_work *work) {
    close(work->ended);
    free(work->error);
    free(work);
}

int loop_begin(int (*run)(void *context), void *context, struct loop_work **begun) {
    int ended = eventfd(0, EFD_CLOEXEC);
    if (ended < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot begin work in a thread");
    struct loop_work *work = memory_new(1, sizeof *work);
    *work = (struct loop_work){.run = run, .context = context, .ended = ended};
    int code = thread_start(&work->thread, run_work, work);
    if (code)
        work_free(work);
    else
        *begun = work;
    return code;
}

int loop_finish(struct loop *loop, struct loop_work *work) {
    bool ended = false;
    assert(loop->base && work->ended >= 0);
    struct event *end = event_new(loop->base, work->ended, EV_READ, on_ended, &ended);
    event_add(end, NULL);
    /* One turn may end early: a handler that calls event_base_loopbreak() ends it, too. */
    while (!ended && event_base_loop(loop->base, EVLOOP_ONCE) >= 0)
        continue;
    pthread_join(work->thread, NULL);
    event_free(end);
    error_clear(); /* what handlers left */
    int code = work->code;
    if (work->error)
        error_set(code, "%s", work->error);
    work_free(work);
    return code;
}

int loop_beside(struct loop *loop, enum stage stage, int (*run)(void *context), void *context) {
    struct loop_work *work;
    enum stage before = enter_stage(loop, stage);
    int code = loop_begin(run, context, &work);
    if (!code)
        code = loop_finish(loop, work);
    loop->stage = before;
    return code;
}

/* ---- children ---- */

/* Ignored and blocked signals stay so in a child, even after exec. This process ignores SIGPIPE
 * (loop_open()) and SIGXFSZ (base/process.c); programs of others expect neither. */
void loop_child_attributes(posix_spawnattr_t *attributes, int flags) {
    sigset_t none, standard;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    sigaddset(&standard, SIGXFSZ);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setflags(attributes,
                             (short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &standard);
}

/* posix_spawn(), not fork(). This process has threads: if one of them holds a lock (that of malloc,
 * say) while another forks, the child may wait for that lock for ever. And fork() copies the page
 * tables of all mapped data. */
int loop_spawn(const char *program, char *const *arguments, char *const *environment,
               const struct loop_child *how, pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    assert(program && arguments[0] && how->output >= 0);
    posix_spawn_file_actions_init(&actions);
    if (how->input)
        posix_spawn_file_actions_adddup2(&actions, how->input, STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, how->output, STDOUT_FILENO);
    if (how->errors >= 0)
        posix_spawn_file_actions_adddup2(&actions, how->errors, STDERR_FILENO);
    loop_child_attributes(&attributes, how->session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    int failed = posix_spawnp(child, program, &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static void on_child(evutil_socket_t number, short what, void *context) {
    (void)number, (void)what, (void)context; /* it only ends a turn of the loop */
}

/* The child may end before the handler is added; its SIGCHLD is lost then. So the handler comes
 * first and waitpid() second: a child that ended before is found by the first waitpid(), and one
 * that ends later wakes the loop. While workers exist, their launcher handles SIGCHLD as well; each
 * asks for its own children only. */
int loop_wait(struct loop *loop, enum stage stage, pid_t child, int *status) {
    assert(loop->base && child > 0 && !loop->child);
    struct event *ended = evsignal_new(loop->base, SIGCHLD, on_child, NULL);
    event_add(ended, NULL);
    enum stage before = enter_stage(loop, stage);
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
    assert(base && timeout_ms >= 0);
    char *error = memory_copy_string(error_text()); /* handlers would clear it with their own */
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
