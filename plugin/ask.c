/* A library's process: its start, its answers, its end. */
#define _GNU_SOURCE

#include "plugin/ask.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"

/* How long a process that hung up may take to end. */
#define END_MS 2000
#define BEAT_MS 100 /* between two signs of life while it is waited for */

/* ---- errors ---- */

/* Keeps the error that was just set as the first of the plug-in. Returns `code`. */
static int plugin_remember(struct plugin *plugin, int code) {
    if (code && !plugin->code) {
        plugin->code = code;
        plugin->text = memory_copy_string(error_text());
    }
    return code;
}

int plugin_refuse(struct plugin *plugin, const char *format, ...) {
    char what[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    bool named = *plugin->description.name;
    return plugin_remember(plugin, error_set(ERROR_PLUGIN, "plug-in %s%s%s%s: %s",
                                             plugin->source.library, named ? " (" : "",
                                             plugin->description.name, named ? ")" : "", what));
}

/* ---- its end ---- */

/* Waits for the process to end, and returns its status. If it does not end by itself in time it is
 * killed, and in any case whatever its library forked: before waitpid(), after which another
 * process may get its id. What was forked has ended as well when this returns, so that it does not
 * outlive the command. */
static int reap(struct plugin *plugin, long patience_ms) {
    assert(plugin->pid > 0); /* kill(0) would end this process, too */
    int status = 0;
    siginfo_t ended;
    for (long waited = 0; waited < patience_ms; waited++) {
        ended.si_pid = 0;
        if (waitid(P_PID, (id_t)plugin->pid, &ended, WEXITED | WNOWAIT | WNOHANG) || ended.si_pid)
            break;
        const struct timespec pause = {.tv_nsec = NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    kill(-plugin->pid, SIGKILL);
    kill(plugin->pid, SIGKILL); /* the library may have moved it to another group */
    while (waitpid(plugin->pid, &status, 0) < 0 && errno == EINTR)
        ;
    process_group_ended(plugin->pid, END_MS);
    plugin->pid = 0;
    return status;
}

static int name_end(struct plugin *plugin, const char *doing) {
    int status = reap(plugin, END_MS);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return plugin_refuse(plugin, "its process was killed %s; perhaps memory ran out", doing);
    if (WIFSIGNALED(status))
        return plugin_refuse(plugin, "crashed %s: signal %d (%s)", doing, WTERMSIG(status),
                             strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == PLUGIN_LOST)
        return plugin_refuse(plugin, "closed a descriptor %s that is not its own", doing);
    return plugin_refuse(plugin, "ended its process %s, with status %d", doing,
                         WEXITSTATUS(status));
}

/* ---- questions ---- */

/* Waits until the socket can be read, or the process has ended: what it forked may still have the
 * socket. Below 0: neither, in the time that it has. That may be longer than a worker, whose loop
 * does not turn while a library is loaded, may say nothing. */
static int await(struct plugin *plugin) {
    struct pollfd either[] = {{.fd = plugin->socket, .events = POLLIN},
                              {.fd = plugin->ended, .events = POLLIN}};
    int64_t end_ns = clock_monotonic_ns() + (int64_t)(plugin->source.seconds * 1e9);
    for (;;) {
        int64_t left_ms = (end_ns - clock_monotonic_ns() + 999999) / 1000000;
        int ready = poll(either, 2, left_ms > BEAT_MS ? BEAT_MS : left_ms > 0 ? (int)left_ms : 0);
        heartbeat();
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return 0;
        if (ready == 0 && clock_monotonic_ns() >= end_ns)
            return -1;
    }
}

/* Room for what the kernel, or a library, may add to a packet. */
union control {
    struct cmsghdr header; /* alignment */
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(PLUGIN_MEMORIES * sizeof(int))];
};

static int send_request(struct plugin *plugin, struct plugin_request *request) {
    union control control = {0};
    struct iovec piece = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    int descriptors[PLUGIN_MEMORIES];
    unsigned count = 0;
    for (unsigned i = 0; i < PLUGIN_MEMORIES; i++) {
        struct plugin_memory *memory = &plugin->memory[i];
        request->bytes[i] = memory->descriptor >= 0 ? memory->bytes : 0;
        if (memory->descriptor >= 0)
            descriptors[count++] = memory->descriptor;
    }
    if (count) {
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }
    assert(plugin->pid > 0 && plugin->socket >= 0);
    request->number = ++plugin->asked;
    ssize_t sent;
    while ((sent = sendmsg(plugin->socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    for (unsigned i = 0; i < PLUGIN_MEMORIES && sent >= 0; i++)
        if (request->bytes[i]) {
            close(plugin->memory[i].descriptor);
            plugin->memory[i].descriptor = -1;
        }
    return sent < 0 ? -1 : 0;
}

/* The length of a packet, and who sent it. */
static ssize_t receive(struct plugin *plugin, struct plugin_answer *answer, pid_t *sender) {
    union control control;
    struct iovec piece = {answer, sizeof *answer};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length;
    while ((length = recvmsg(plugin->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 &&
           errno == EINTR)
        ;
    *sender = 0;
    struct cmsghdr *part = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    for (; part; part = CMSG_NXTHDR(&message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(part), sizeof who);
            *sender = who.pid;
        }
    return message.msg_flags & MSG_TRUNC ? (ssize_t)sizeof *answer + 1 : length;
}

/* 0 if the packet is the answer of the library's process to this question, and not something that
 * the library sent itself. */
static int check_answer(struct plugin *plugin, const struct plugin_answer *answer, ssize_t length,
                        pid_t sender, const char *doing) {
    if (sender != plugin->pid)
        return plugin_refuse(plugin,
                             "forked a process %s that goes on as if it were dml's own; a process "
                             "that a library forks must end by _exit(2), and not return",
                             doing);
    if (length >= (ssize_t)sizeof answer->talk && answer->talk != PLUGIN_TALK &&
        PLUGIN_TALK_KIND(answer->talk) == PLUGIN_TALK_KIND(PLUGIN_TALK))
        return plugin_remember(plugin, error_set(ERROR_INTERNAL,
                                                 "%s: is of another build than this program",
                                                 plugin->source.program));
    if (length != sizeof *answer || answer->talk != PLUGIN_TALK || answer->number != plugin->asked)
        return plugin_refuse(plugin,
                             "writes into a descriptor that is not its own %s: file descriptor %d "
                             "of its process belongs to dml",
                             doing, PLUGIN_SOCKET);
    return 0;
}

int plugin_ask(struct plugin *plugin, struct plugin_request *request, const char *doing,
               struct plugin_answer *answer) {
    pid_t sender;
    if (plugin->code)
        return error_set(plugin->code, "%s", plugin->text);
    if (request && send_request(plugin, request))
        return name_end(plugin, doing);
    if (await(plugin)) {
        reap(plugin, 0);
        return plugin_refuse(plugin,
                             "gave no answer within %g seconds %s; if it needs longer, raise "
                             "plugin.seconds",
                             plugin->source.seconds, doing);
    }
    ssize_t length = receive(plugin, answer, &sender);
    if (length <= 0)
        return name_end(plugin, doing);
    int code = check_answer(plugin, answer, length, sender, doing);
    if (code)
        return code;
    answer->text[sizeof answer->text - 1] = '\0';
    return answer->code ? plugin_remember(plugin, error_set(answer->code, "%s", answer->text)) : 0;
}

/* ---- its start ---- */

/* The process has a group of its own, so that Ctrl-C at a terminal reaches its parent alone. */
static int spawn(struct plugin *plugin, int socket) {
    const struct plugin_source *source = &plugin->source;
    char *arguments[] = {(char *)source->program, PLUGIN_OPTION,          (char *)source->library,
                         (char *)source->options, (char *)source->sha256, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, socket, PLUGIN_SOCKET);
    int error =
        posix_spawnp(&plugin->pid, source->program, &files, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = error;
    return error ? error_set_errno(ERROR_UNAVAILABLE, "cannot start %s for the plug-in %s",
                                   source->program, source->library)
                 : 0;
}

/* Moves a descriptor above PLUGIN_SOCKET, so that it is not overwritten before it is copied there.
 */
static int raise_descriptor(int descriptor) {
    int raised = fcntl(descriptor, F_DUPFD_CLOEXEC, PLUGIN_SOCKET + 1);
    close(descriptor);
    return raised;
}

static int connect_process(struct plugin *plugin) {
    static const int yes = 1;
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return error_set_errno(ERROR_UNAVAILABLE, "cannot start the plug-in %s",
                               plugin->source.library);
    plugin->socket = raise_descriptor(ends[0]);
    int other = raise_descriptor(ends[1]);
    setsockopt(plugin->socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
    int code = spawn(plugin, other);
    close(other);
    if (!code)
        plugin->ended = (int)syscall(SYS_pidfd_open, plugin->pid, 0);
    return code;
}

static int describe(struct plugin *plugin, const struct plugin_answer *answer) {
    struct plugin_description *description = &plugin->description;
    const struct dml_form *form = &answer->form;
    snprintf(description->name, sizeof description->name, "%.*s", (int)sizeof answer->name,
             answer->name);
    snprintf(description->sha256, sizeof description->sha256, "%.*s",
             (int)sizeof description->sha256 - 1, answer->sha256);
    bool targets = form->labels == DML_LABELS_TARGET;
    if (form->labels < DML_LABELS_TARGET || form->labels > DML_LABELS_CLASSES)
        return plugin_refuse(plugin, "open() sets labels to %d, which is none of enum dml_labels",
                             (int)form->labels);
    if (form->prediction < DML_PREDICTS_VALUE || form->prediction > DML_PREDICTS_MARGIN ||
        targets != (form->prediction == DML_PREDICTS_VALUE))
        return plugin_refuse(plugin,
                             "open() sets prediction to %d, which does not go with its labels; see "
                             "enum dml_prediction",
                             (int)form->prediction);
    description->labels = targets                             ? LABEL_TARGET
                          : form->labels == DML_LABELS_BINARY ? LABEL_BINARY
                                                              : LABEL_CLASSES;
    description->prediction = (enum plugin_prediction)(form->prediction - DML_PREDICTS_VALUE);
    return 0;
}

int plugin_start(const struct plugin_source *source, struct plugin **plugin) {
    struct plugin *new = memory_new(1, sizeof *new);
    struct plugin_answer answer;
    new->source = *source;
    new->socket = new->ended = -1;
    for (unsigned i = 0; i < PLUGIN_MEMORIES; i++)
        new->memory[i].descriptor = -1;
    int code = connect_process(new);
    if (!code)
        code = plugin_ask(new, NULL, "while it was loaded", &answer);
    if (!code)
        code = describe(new, &answer);
    if (code)
        plugin_stop(new);
    else
        *plugin = new;
    return code;
}

void plugin_stop(struct plugin *plugin) {
    if (!plugin)
        return;
    if (plugin->pid)
        reap(plugin, 0);
    if (plugin->socket >= 0)
        close(plugin->socket);
    if (plugin->ended >= 0)
        close(plugin->ended);
    for (unsigned i = 0; i < PLUGIN_MEMORIES; i++)
        plugin_memory_release(&plugin->memory[i]);
    free(plugin->loss);
    free(plugin->gradient);
    free(plugin->keys);
    free(plugin->text);
    free(plugin);
}

const struct plugin_description *plugin_description(const struct plugin *plugin) {
    return &plugin->description;
}

/* ---- the memories that a library's process shares, as its parent sees them ---- */

/* So many bytes before an array that the library writes hold a pattern, and so do those after it
 * up to the end of the memory. Whoever takes the array looks whether they still do. To add a number
 * to the pattern, read as a double, changes it unless the number is tiny. */
#define GUARD_BYTES 4096
#define GUARD_PATTERN 0xa5

static int make(struct plugin_memory *memory, enum plugin_shared which, size_t bytes) {
    memory->descriptor = memfd_create("plug-in's rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->descriptor < 0 || ftruncate(memory->descriptor, (off_t)bytes))
        return -1;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, 0);
    if (start == MAP_FAILED)
        return -1;
    memory->start = start;
    memory->bytes = bytes;
    /* Nobody can shorten a sealed memory: a touch of what is missing would end the parent, too.
     * What the library reads can be written by this process alone, which mapped it before. On a
     * system that does not know that seal, the library's process just maps it for reading. */
    if (which == PLUGIN_INPUT)
        fcntl(memory->descriptor, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    return fcntl(memory->descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

void plugin_memory_release(struct plugin_memory *memory) {
    if (memory->descriptor >= 0)
        close(memory->descriptor);
    if (memory->start)
        munmap(memory->start, memory->bytes);
    *memory = (struct plugin_memory){.descriptor = -1};
}

int plugin_room(struct plugin *plugin, enum plugin_shared which, size_t bytes) {
    struct plugin_memory *memory = &plugin->memory[which];
    if (bytes <= memory->bytes)
        return 0;
    bytes = (bytes + bytes / 4 + 65535) / 65536 * 65536;
    plugin_memory_release(memory);
    if (make(memory, which, bytes) == 0)
        return 0;
    return plugin_remember(
        plugin, error_set_errno(ERROR_UNAVAILABLE,
                                "plug-in %s: there are no %zu bytes of memory for its rows and "
                                "parameters",
                                plugin->source.library, bytes));
}

/* The array ends with the memory, up to the rest of a line of the cache. So a write far beyond it
 * ends the process. */
int plugin_write_room(struct plugin *plugin, enum plugin_shared which, uint64_t count,
                      uint64_t *at) {
    struct plugin_memory *memory = &plugin->memory[which];
    size_t bytes = count * sizeof(double), lines = (bytes + 63) / 64 * 64;
    int code = plugin_room(plugin, which, lines + GUARD_BYTES);
    if (code)
        return code;
    assert(memory->bytes >= lines + GUARD_BYTES);
    *at = memory->bytes - lines;
    memset(memory->start + *at - GUARD_BYTES, GUARD_PATTERN, GUARD_BYTES);
    memset(memory->start + *at, 0, bytes);
    memset(memory->start + *at + bytes, GUARD_PATTERN, lines - bytes);
    return 0;
}

/* The first byte that was written; `end` if none was. */
static const char *first_written(const char *start, const char *end) {
    if (start == end ||
        (*start == (char)GUARD_PATTERN && memcmp(start, start + 1, (size_t)(end - start) - 1) == 0))
        return end;
    while (start < end && (unsigned char)*start == GUARD_PATTERN)
        start++;
    return start;
}

int plugin_take(struct plugin *plugin, enum plugin_shared which, const char *function,
                uint64_t count, double *to) {
    const struct plugin_memory *memory = &plugin->memory[which];
    size_t bytes = count * sizeof(double);
    assert(memory->start && memory->bytes >= bytes + GUARD_BYTES);
    const char *end = memory->start + memory->bytes, *start = end - (bytes + 63) / 64 * 64;
    memcpy(to, start, bytes);
    const char *below = first_written(start - GUARD_BYTES, start);
    const char *above = first_written(start + bytes, end);
    if (below == start && above == end)
        return 0;
    long long element = below < start ? -((start - below + 7) / 8) : (above - start) / 8;
    return plugin_refuse(plugin,
                         "%s writes element %lld of `%s`, which has %llu: it writes where it must "
                         "not",
                         function, element, plugin_shared_name(which, function),
                         (unsigned long long)count);
}
