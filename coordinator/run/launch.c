#define _GNU_SOURCE
#include "coordinator/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/memory.h"

#define START_TIMEOUT_MS 20000
#define START_TRIES 5 /* of a worker that is killed before it listens */
#define LINE_BYTES_MAX_STARTED 512

/* The worker's program: beside this one if it is there, else found on the PATH. Free it. */
static char *program_of(enum role role) {
    const char *name = role == ROLE_SHARD ? "dml-shard" : "dml-replica";
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length > 0) {
        own[length] = '\0';
        char *folder = path_folder(own);
        char *beside = path_join(folder, name);
        free(folder);
        if (access(beside, X_OK) == 0)
            return beside;
        free(beside);
    }
    return memory_copy_string(name);
}

/* In the child: only async-signal-safe calls until exec. */
static _Noreturn void become(char *const *arguments, int output, const char *program) {
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0); /* Ctrl-C is for the coordinator, which then ends its workers in order */
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    execvp(program, arguments);
    _exit(127);
}

static int make_private_folder(struct launch *launch) {
    if (launch->folder)
        return 0;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");
    const char *parent = runtime && *runtime       ? runtime
                         : temporary && *temporary ? temporary
                                                   : "/tmp";
    launch->folder = memory_format("%s/dml-XXXXXX", parent);
    if (mkdtemp(launch->folder))
        return 0;
    int code = error_set_errno(ERROR_CREATE, "cannot make a private folder %s for sockets",
                               launch->folder);
    free(launch->folder);
    launch->folder = NULL;
    return code;
}

/* Every start has an address of its own, so that nobody meets the process before. */
static void new_address(const struct launch *launch, struct launched *worker) {
    free(worker->address);
    worker->address = memory_format("unix:%s/%s-%u.%u", launch->folder, role_name(worker->role),
                                    worker->index, worker->starts++);
}

static int start_one(struct launch *launch, struct launched *worker) {
    int ends[2];
    int code = make_private_folder(launch);
    if (code)
        return code;
    if (pipe2(ends, O_CLOEXEC))
        return error_set_errno(ERROR_UNAVAILABLE, "cannot make a pipe");
    new_address(launch, worker);
    char *program = program_of(worker->role);
    char parent[16];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *arguments[] = {
        program, "--listen", worker->address, "--parent-pid", parent, (char *)launch->verbosity,
        NULL};
    worker->adopted = false;
    failpoint(FAILPOINT_launch_worker);
    worker->pid = fork();
    if (worker->pid == 0)
        become(arguments, ends[1], program);
    close(ends[1]);
    worker->output = ends[0];
    free(program);
    if (worker->pid < 0) {
        worker->pid = 0;
        return error_set_errno(ERROR_UNAVAILABLE, "cannot start %s %u", role_name(worker->role),
                               worker->index);
    }
    return 0;
}

/* A worker is up when it has written a line. */
static int await_line(struct launched *worker, int64_t deadline_ns) {
    char line[LINE_BYTES_MAX_STARTED];
    size_t length = 0;
    while (length < sizeof line && !memchr(line, '\n', length)) {
        int64_t left_ms = (deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
        struct pollfd pollfd = {.fd = worker->output, .events = POLLIN};
        int ready = left_ms > 0 ? poll(&pollfd, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return error_set(ERROR_UNAVAILABLE, "%s %u (pid %d) did not start to listen in %d s",
                             role_name(worker->role), worker->index, (int)worker->pid,
                             START_TIMEOUT_MS / 1000);
        ssize_t got = read(worker->output, line + length, sizeof line - length);
        if (got <= 0) {
            waitpid(worker->pid, &worker->status, 0);
            worker->pid = 0;
            return error_set(ERROR_UNAVAILABLE,
                             "%s %u could not be started: see the messages above; is dml-%s "
                             "installed beside dml-coordinator?",
                             role_name(worker->role), worker->index, role_name(worker->role));
        }
        length += (size_t)got;
    }
    return 0;
}

/* One that was killed is started again; one that exited by itself would do so again. */
static int await_one(struct launch *launch, struct launched *worker, int64_t deadline_ns) {
    int code = await_line(worker, deadline_ns);
    for (int i = 1; i < START_TRIES && code && !worker->pid && WIFSIGNALED(worker->status); i++) {
        error_clear();
        close(worker->output);
        worker->output = -1;
        code = start_one(launch, worker);
        if (!code)
            code = await_line(worker, deadline_ns);
    }
    return code;
}

void launch_init(struct launch *launch, uint32_t shards, uint32_t replicas, const char *verbosity) {
    *launch = (struct launch){.count = shards + replicas, .verbosity = verbosity};
    launch->workers = memory_new(launch->count, sizeof *launch->workers);
    for (uint32_t i = 0; i < launch->count; i++)
        launch->workers[i] = (struct launched){.role = i < shards ? ROLE_SHARD : ROLE_REPLICA,
                                               .index = i < shards ? i : i - shards,
                                               .output = -1};
}

void launch_adopt(struct launched *worker, pid_t pid, const char *address) {
    free(worker->address);
    worker->address = memory_copy_string(address);
    worker->pid = pid;
    worker->adopted = true;
}

int launch_start(struct launch *launch) {
    int code = 0;
    for (uint32_t i = 0; i < launch->count && !code; i++)
        if (!launch->workers[i].pid)
            code = start_one(launch, &launch->workers[i]);
    int64_t deadline_ns = clock_monotonic_ns() + START_TIMEOUT_MS * NS_PER_MS;
    for (uint32_t i = 0; i < launch->count && !code; i++)
        if (!launch->workers[i].adopted)
            code = await_one(launch, &launch->workers[i], deadline_ns);
    if (!code)
        failpoint(FAILPOINT_launch_started);
    return code;
}

/* The pid of a process that is not ours may belong to another by now: only one that is one of our
 * programs is touched. */
static bool is_ours(const struct launched *worker) {
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)worker->pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool ours = fgets(name, sizeof name, file) && strncmp(name, "dml-", 4) == 0;
    fclose(file);
    return ours;
}

static void end_one(struct launched *worker) {
    if (!worker->pid)
        return;
    if (!worker->adopted) {
        kill(worker->pid, SIGKILL);
        waitpid(worker->pid, &worker->status, 0);
    } else if (is_ours(worker)) {
        kill(worker->pid, SIGKILL);
    }
    worker->pid = 0;
}

int launch_restart(struct launch *launch, struct launched *worker) {
    unsetenv("DML_FAILPOINT"); /* what was to go wrong has gone wrong */
    end_one(worker);
    if (worker->output >= 0)
        close(worker->output);
    worker->output = -1;
    int code = start_one(launch, worker);
    if (!code)
        code = await_one(launch, worker, clock_monotonic_ns() + START_TIMEOUT_MS * NS_PER_MS);
    return code;
}

struct launched *launch_reap(struct launch *launch) {
    for (uint32_t i = 0; i < launch->count; i++) {
        struct launched *worker = &launch->workers[i];
        if (worker->pid && !worker->adopted &&
            waitpid(worker->pid, &worker->status, WNOHANG) == worker->pid) {
            worker->pid = 0;
            return worker;
        }
    }
    return NULL;
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

static bool any_running(struct launch *launch) {
    while (launch_reap(launch))
        continue;
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->workers[i].pid && !launch->workers[i].adopted)
            return true;
    return false;
}

static void await_ends(struct launch *launch, int grace_ms) {
    int64_t deadline_ns = clock_monotonic_ns() + grace_ms * NS_PER_MS;
    while (any_running(launch) && clock_monotonic_ns() < deadline_ns)
        poll(NULL, 0, 2);
}

static void signal_all(const struct launch *launch, int number) {
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->workers[i].pid && !launch->workers[i].adopted)
            kill(launch->workers[i].pid, number);
}

void launch_abandon(struct launch *launch) {
    for (uint32_t i = 0; i < launch->count; i++) {
        launch->workers[i].pid = 0;
        free(launch->workers[i].address); /* its socket stays, too */
        launch->workers[i].address = NULL;
    }
}

void launch_release(struct launch *launch, int grace_ms) {
    await_ends(launch, grace_ms);
    signal_all(launch, SIGTERM);
    await_ends(launch, 2000);
    signal_all(launch, SIGKILL);
    await_ends(launch, 2000);
    for (uint32_t i = 0; i < launch->count; i++) {
        struct launched *worker = &launch->workers[i];
        if (worker->output >= 0)
            close(worker->output);
        if (worker->address)
            unlink(worker->address + strlen("unix:"));
        free(worker->address);
    }
    if (launch->folder)
        rmdir(launch->folder);
    free(launch->folder);
    free(launch->workers);
    *launch = (struct launch){0};
}
