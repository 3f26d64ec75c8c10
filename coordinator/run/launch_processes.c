#define _GNU_SOURCE
#include "coordinator/run/launch.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "coordinator/run/launch_ways.h"
#include "coordinator/run/loop.h"

#define START_TIMEOUT_MS 20000
#define END_TIMEOUT_MS 2000
#define GROUP_END_MS 1000 /* of what a command has started, when it has been killed */
#define START_TRIES 5     /* of a worker that is killed before it listens */

const char *launch_program(enum role role) {
    return role == ROLE_SHARD ? "dml-shard" : "dml-replica";
}

/* Rules for failpoints that act more than once are for the first workers only: when one of them was
 * replaced, they have done their work, and the new worker shall not die of them again. */
int launch_spawn(const struct launch *launch, char **arguments, const struct loop_child *how,
                 pid_t *pid) {
    const bool every = !launch->restarted || getenv("DML_FAILPOINT_ONCE");
    size_t count = names_count(environ), kept = 0;
    char **variables = memory_new(count + 1, sizeof *variables); /* the strings are not owned */
    for (size_t i = 0; i < count; i++)
        if (every || strncmp(environ[i], "DML_FAILPOINT=", 14) != 0)
            variables[kept++] = environ[i];
    assert(kept <= count && arguments[0]);
    int failed = loop_spawn(arguments[0], arguments, variables, how, pid);
    free(variables);
    return failed;
}

static void on_line(evutil_socket_t descriptor, short what, void *context);
static void on_deadline(evutil_socket_t descriptor, short what, void *context);

static void await_no_line(struct launched *worker) {
    if (worker->output < 0)
        return;
    event_free(worker->line);
    event_free(worker->deadline);
    close(worker->output);
    worker->output = -1;
    worker->starting = false;
}

/* Starts it at the address that it has, or on the host. */
static int start_again(struct launch *launch, struct launched *worker) {
    int ends[2];
    assert(!worker->pid && worker->output < 0 && !worker->starting);
    if (pipe2(ends, O_CLOEXEC))
        return error_set_errno(ERROR_UNAVAILABLE, "cannot make a pipe");
    failpoint(FAILPOINT_launch_worker);
    int code = worker->host ? launch_remote_start(launch, worker, ends[1])
                            : launch_local_start(launch, worker, ends[1]);
    close(ends[1]);
    if (!code) {
        struct timeval timeout = {.tv_sec = START_TIMEOUT_MS / 1000};
        worker->starting = true;
        worker->said_length = worker->said_bytes = 0;
        worker->output = ends[0];
        worker->line = event_new(launch->base, ends[0], EV_READ | EV_PERSIST, on_line, worker);
        worker->deadline = evtimer_new(launch->base, on_deadline, worker);
        event_add(worker->line, NULL);
        event_add(worker->deadline, &timeout);
        return 0;
    }
    close(ends[0]);
    worker->pid = 0;
    return code;
}

static int start_one(struct launch *launch, struct launched *worker) {
    int code = worker->host ? 0 : launch_local_place(launch, worker);
    worker->adopted = false;
    worker->by_path = false;
    return code ? code : start_again(launch, worker);
}

/* ---- what becomes of them ---- */

static void report_up(struct launched *worker, int code) {
    struct launch *launch = worker->launch;
    bool any_starting = false;
    await_no_line(worker);
    for (uint32_t i = 0; i < launch->count; i++)
        any_starting |= launch->workers[i]->starting;
    if (!code && !launch->up_ns && !any_starting) {
        launch->up_ns = clock_monotonic_ns();
        failpoint(FAILPOINT_launch_started);
    }
    if (launch->callbacks.up) {
        launch->callbacks.up(launch->callbacks.context, worker, code);
    } else if (code) { /* the next launch_start() says so */
        free(launch->why);
        launch->failed = code;
        launch->why = memory_copy_string(error_text());
        error_clear();
    }
}

/* Sets the error that a worker is not there for, and returns its code. */
static int is_not_up(struct launched *worker) {
    char *why = launch_remote_why(worker->launch, worker);
    int code = error_set(ERROR_UNAVAILABLE, "%s", why);
    free(why);
    return code;
}

/* A worker here is up when it has written a line; one on a host when it has written where it
 * listens, perhaps after lines that its host greets with. If its output ends without that, the
 * process is ending: SIGCHLD follows, and on_child() knows how it ended. */
static void on_line(evutil_socket_t descriptor, short what, void *context) {
    (void)what;
    struct launched *worker = context;
    size_t room = sizeof worker->said - 1 - worker->said_length;
    ssize_t got = read(descriptor, worker->said + worker->said_length, room);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        event_del(worker->line);
        return;
    }
    worker->said_length += (size_t)got;
    worker->said_bytes += (size_t)got;
    worker->said[worker->said_length] = '\0';
    bool up = worker->host ? launch_remote_listens(worker)
                           : memchr(worker->said, '\n', worker->said_length) != NULL;
    if (up)
        report_up(worker, 0);
    else if (worker->host && launch_remote_is_endless(worker))
        report_up(worker, is_not_up(worker));
}

static void on_deadline(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct launched *worker = context;
    report_up(worker, worker->host ? is_not_up(worker)
                                   : error_set(ERROR_UNAVAILABLE,
                                               "%s %u (pid %d) did not start to listen in %d s",
                                               role_name(worker->role), worker->index,
                                               (int)worker->pid, START_TIMEOUT_MS / 1000));
}

/* A worker that ended before it listened is started again if it was killed: if it exited by itself,
 * it would do so again. On a host it is started again if its program may be elsewhere there. Nobody
 * was connected to it, so it keeps its address: others may already have been told where it will
 * listen. */
static void has_ended(struct launched *worker) {
    struct launch *launch = worker->launch;
    assert(worker->pid > 0 && !worker->adopted);
    worker->pid = 0;
    if (!worker->starting) {
        if (launch->callbacks.ended)
            launch->callbacks.ended(launch->callbacks.context, worker);
        return;
    }
    await_no_line(worker);
    int code;
    if (worker->host ? launch_remote_other_path(worker)
                     : WIFSIGNALED(worker->status) && ++worker->tries < START_TRIES)
        code = start_again(launch, worker);
    else if (worker->host)
        code = is_not_up(worker);
    else
        code = error_set(ERROR_UNAVAILABLE,
                         "%s %u could not be started: see the messages above; is %s installed "
                         "beside dml-coordinator?",
                         role_name(worker->role), worker->index, launch_program(worker->role));
    if (code)
        report_up(worker, code);
}

/* Whether the process has ended or is no child of this one. What it has started is killed: of a
 * command that ran a worker on a host nobody else knows. Before waitpid(), after which another
 * process may get its id. */
static bool reap(pid_t pid, int *status) {
    siginfo_t ended = {0};
    assert(pid > 0);
    if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT | WNOHANG))
        return errno != EINTR;
    if (!ended.si_pid)
        return false;
    kill(-pid, SIGKILL);
    waitpid(pid, status, 0);
    process_group_ended(pid, GROUP_END_MS);
    return true;
}

/* SIGCHLD. Signals of the same number merge while one is pending: one call may stand for several
 * ends, so every child is asked. Only our own pids are: waitpid(-1) would also take the end of
 * on_publish, for which loop_wait() waits. has_ended() may start a worker anew, which changes only
 * its own pid. */
static void on_child(evutil_socket_t number, short what, void *context) {
    (void)number, (void)what;
    struct launch *launch = context;
    /* Processes that were replaced: nobody asks how they ended. */
    for (uint32_t i = 0; i < launch->killed_count;)
        if (reap(launch->killed[i], &(int){0}))
            launch->killed[i] = launch->killed[--launch->killed_count];
        else
            i++;
    for (uint32_t i = 0; i < launch->count; i++) {
        struct launched *worker = launch->workers[i];
        if (worker->pid && !worker->adopted && reap(worker->pid, &worker->status))
            has_ended(worker);
    }
}

void launch_init(struct launch *launch, struct event_base *base, const char *state,
                 const char *verbosity) {
    *launch = (struct launch){.base = base, .state = state, .verbosity = verbosity};
    launch->child = evsignal_new(base, SIGCHLD, on_child, launch);
    event_add(launch->child, NULL);
}

void launch_set_remote(struct launch *launch, const char *prefix, const char *state) {
    assert(!launch->remote.prefix && !launch->remote.state);
    launch->remote.prefix = memory_copy_string(prefix);
    launch->remote.state = memory_copy_string(state);
}

void launch_listen(struct launch *launch, const struct launch_callbacks *callbacks) {
    launch->callbacks = callbacks ? *callbacks : (struct launch_callbacks){0};
}

struct launched *launch_find(const struct launch *launch, enum role role, uint32_t index) {
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->workers[i]->role == role && launch->workers[i]->index == index)
            return launch->workers[i];
    return NULL;
}

/* The worker, which is new if there was none. */
static struct launched *find_or_add(struct launch *launch, enum role role, uint32_t index) {
    struct launched *worker = launch_find(launch, role, index);
    if (worker)
        return worker;
    worker = memory_new(1, sizeof *worker);
    *worker = (struct launched){.launch = launch, .role = role, .index = index, .output = -1};
    launch->workers = memory_resize(launch->workers, launch->count + 1, sizeof *launch->workers);
    launch->workers[launch->count++] = worker;
    return worker;
}

void launch_place(struct launch *launch, enum role role, uint32_t index,
                  const struct hosts_entry *host) {
    struct launched *worker = find_or_add(launch, role, index);
    assert(!worker->pid && !worker->starting);
    worker->host = host;
}

void launch_adopt(struct launch *launch, enum role role, uint32_t index, pid_t pid,
                  const char *address) {
    struct launched *worker = find_or_add(launch, role, index);
    assert(!worker->starting);
    free(worker->address);
    worker->address = memory_copy_string(address);
    worker->pid = worker->host ? 0 : pid; /* a number of another host means nothing here */
    worker->adopted = true;
}

/* The sockets that earlier coordinators left are removed once, before there are any of ours: a
 * folder in which a worker is about to bind its socket looks like one that was left. */
int launch_start(struct launch *launch, uint32_t shards, uint32_t replicas) {
    int code = 0;
    if (launch->failed)
        return error_set(launch->failed, "%s", launch->why);
    for (uint32_t i = 0; i < shards; i++)
        find_or_add(launch, ROLE_SHARD, i);
    for (uint32_t i = 0; i < replicas; i++)
        find_or_add(launch, ROLE_REPLICA, i);
    if (!launch->folder)
        launch_local_sweep(launch);
    for (uint32_t i = 0; i < launch->count && !code; i++)
        if (!launch->workers[i]->pid && !launch->workers[i]->adopted) {
            launch->up_ns = 0;
            code = start_one(launch, launch->workers[i]);
        }
    return code;
}

#define COMMAND_LINE_MAX (64u << 10)

/* An adopted worker is no child of this process. When it ends we do not hear of it, and its pid may
 * be given to another process, even to a worker of another job. So it is killed only if a word of
 * that process's command line is the address, which no other process ever had. */
static bool is_ours(const struct launched *worker) {
    char path[64], *words;
    size_t length;
    bool ours = false;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)worker->pid);
    if (file_read(path, COMMAND_LINE_MAX, &words, &length)) {
        error_clear();
        return false;
    }
    for (const char *word = words; word < words + length; word += strlen(word) + 1)
        ours |= strcmp(word, worker->address) == 0;
    free(words);
    return ours;
}

/* The command that started a worker on a host may have started others. Each child leads a group. */
static void end_process(const struct launched *worker, int number) {
    assert(worker->pid > 0 && !worker->adopted);
    kill(-worker->pid, number);
}

/* The process may die later, if it is in the middle of a write to the disk. It must be reaped in
 * any case, so its pid is kept in `killed`. */
void launch_stop(struct launched *worker) {
    struct launch *launch = worker->launch;
    if (worker->pid && !worker->adopted) {
        end_process(worker, SIGKILL);
        launch->killed =
            memory_resize(launch->killed, launch->killed_count + 1, sizeof *launch->killed);
        launch->killed[launch->killed_count++] = worker->pid;
    } else if (worker->pid && is_ours(worker)) {
        kill(worker->pid, SIGKILL);
    }
    worker->pid = 0;
    await_no_line(worker);
    worker->adopted = false;
    assert(!worker->pid && !worker->starting);
}

void launch_rest(struct launch *launch) {
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->workers[i]->adopted)
            launch_stop(launch->workers[i]);
}

bool launch_has(const struct launch *launch, uint32_t shards, uint32_t replicas) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < launch->count; i++)
        found += launch->workers[i]->role == ROLE_SHARD;
    return found == shards && launch->count - found == replicas;
}

bool launch_runs(const struct launched *worker) {
    return worker->pid || worker->adopted;
}

int launch_restart(struct launch *launch, struct launched *worker, const struct hosts_entry *host) {
    launch->restarted = true;
    worker->tries = 0;
    launch_stop(worker);
    worker->host = host;
    return start_one(launch, worker);
}

const char *launch_ending(const struct launched *worker) {
    static char text[96];
    if (WIFSIGNALED(worker->status))
        snprintf(text, sizeof text, "was killed by signal %d (%s)", WTERMSIG(worker->status),
                 strsignal(WTERMSIG(worker->status)));
    else
        snprintf(text, sizeof text, "exited with status %d", WEXITSTATUS(worker->status));
    return text;
}

static bool none_runs(const void *context) {
    const struct launch *launch = context;
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->workers[i]->pid && !launch->workers[i]->adopted)
            return false;
    return true;
}

/* Nor is one dying that was killed before. */
static bool none_is_left(const void *context) {
    const struct launch *launch = context;
    return none_runs(launch) && !launch->killed_count;
}

static void signal_all(const struct launch *launch, int number) {
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->workers[i]->pid && !launch->workers[i]->adopted)
            end_process(launch->workers[i], number);
}

void launch_abandon(struct launch *launch) {
    for (uint32_t i = 0; i < launch->count; i++) {
        launch->workers[i]->pid = 0;
        free(launch->workers[i]->address); /* so that its socket is not removed */
        launch->workers[i]->address = NULL;
    }
}

void launch_leave(struct launch *launch) {
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    bool left = true;
    signal_all(launch, SIGTERM);
    for (int waited = 0; left && waited < 2 * END_TIMEOUT_MS; waited++) {
        if (waited == END_TIMEOUT_MS)
            signal_all(launch, SIGKILL);
        left = false;
        for (uint32_t i = 0; i < launch->count; i++) {
            struct launched *worker = launch->workers[i];
            if (worker->pid && !worker->adopted && reap(worker->pid, &worker->status))
                worker->pid = 0;
            left |= worker->pid && !worker->adopted;
        }
        if (left)
            nanosleep(&pause, NULL);
    }
    launch_local_clear(launch);
}

void launch_release(struct launch *launch, int grace_ms) {
    if (!launch->base)
        return;
    launch_listen(launch, NULL);
    for (uint32_t i = 0; i < launch->count; i++) {
        /* So that on_child() starts it no more. What is started on a host may take for ever. */
        struct launched *worker = launch->workers[i];
        if (worker->starting && worker->host && worker->pid)
            end_process(worker, SIGTERM);
        await_no_line(worker);
    }
    loop_until(launch->base, grace_ms, none_runs, launch);
    signal_all(launch, SIGTERM);
    loop_until(launch->base, END_TIMEOUT_MS, none_runs, launch);
    signal_all(launch, SIGKILL);
    loop_until(launch->base, END_TIMEOUT_MS, none_is_left, launch);
    launch_local_clear(launch);
    for (uint32_t i = 0; i < launch->count; i++) {
        free(launch->workers[i]->address);
        free(launch->workers[i]);
    }
    event_free(launch->child);
    free(launch->folder);
    free(launch->remote.prefix);
    free(launch->remote.state);
    free(launch->why);
    free(launch->workers);
    free(launch->killed);
    *launch = (struct launch){0};
}
