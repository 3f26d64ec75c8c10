/* A library's process: its start, its answers, its end. */
#define _GNU_SOURCE
#include "plugin/ask.h"

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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

/* How long a process that hung up may take to end. */
#define END_MS 2000

extern char **environ;

/* ---- errors ---- */

static int remember(struct plugin *plugin, int code) {
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
    return remember(plugin,
                    error_set(ERROR_PLUGIN, "plug-in %s%s%s%s: %s", plugin->source.library,
                              named ? " (" : "", plugin->description.name, named ? ")" : "", what));
}

/* ---- its end ---- */

static void pause_ms(long ms) {
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* The status that it ended with. One that does not end by itself is killed. */
static int reap(struct plugin *plugin, long patience_ms) {
    int status = 0;
    pid_t pid = plugin->pid, ended = 0;
    for (long waited = 0; waited < patience_ms && !(ended = waitpid(pid, &status, WNOHANG));
         waited++)
        pause_ms(1);
    if (!ended) {
        kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
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
    return plugin_refuse(plugin, "ended its process %s, with status %d", doing,
                         WEXITSTATUS(status));
}

/* ---- questions ---- */

/* Waits until the socket can be read: its answer, or its end. */
static int await(struct plugin *plugin, const char *doing) {
    struct pollfd socket = {.fd = plugin->socket, .events = POLLIN};
    int64_t end_ns = clock_monotonic_ns() + (int64_t)(plugin->source.seconds * 1e9);
    for (;;) {
        int64_t left_ms = (end_ns - clock_monotonic_ns() + 999999) / 1000000;
        int ready = poll(&socket, 1,
                         left_ms > INT32_MAX ? INT32_MAX
                         : left_ms > 0       ? (int)left_ms
                                             : 0);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return error_set_errno(ERROR_INTERNAL, "cannot wait for a plug-in");
        if (ready == 0 && clock_monotonic_ns() >= end_ns)
            break;
    }
    reap(plugin, 0);
    return plugin_refuse(plugin,
                         "gave no answer within %g seconds %s; if it needs longer, raise "
                         "plugin.seconds",
                         plugin->source.seconds, doing);
}

int plugin_ask(struct plugin *plugin, const struct plugin_request *request, const char *doing,
               struct plugin_answer *answer) {
    if (plugin->code)
        return error_set(plugin->code, "%s", plugin->text);
    if (request && send(plugin->socket, request, sizeof *request, MSG_NOSIGNAL) < 0)
        return name_end(plugin, doing);
    int code = await(plugin, doing);
    if (code)
        return code;
    ssize_t length = recv(plugin->socket, answer, sizeof *answer, 0);
    if (length <= 0)
        return name_end(plugin, doing);
    if (length != sizeof *answer || answer->talk != PLUGIN_TALK)
        return remember(plugin,
                        error_set(ERROR_INTERNAL, "%s: is of another build than this program",
                                  plugin->source.program));
    answer->text[sizeof answer->text - 1] = '\0';
    return answer->code ? remember(plugin, error_set(answer->code, "%s", answer->text)) : 0;
}

int plugin_room(struct plugin *plugin, size_t bytes) {
    if (bytes <= plugin->bytes)
        return 0;
    bytes = (bytes + bytes / 4 + 65535) / 65536 * 65536;
    if (plugin->memory)
        munmap(plugin->memory, plugin->bytes);
    plugin->memory = NULL;
    plugin->bytes = 0;
    void *memory = MAP_FAILED;
    if (ftruncate(plugin->descriptor, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, plugin->descriptor, 0);
    if (memory == MAP_FAILED)
        return remember(plugin, error_set_errno(ERROR_UNAVAILABLE,
                                                "plug-in %s: there are no %zu bytes of memory for "
                                                "its rows and parameters",
                                                plugin->source.library, bytes));
    plugin->memory = memory;
    plugin->bytes = bytes;
    return 0;
}

/* ---- its start ---- */

/* It has a group of its own: what a terminal sends is for its parent. */
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
    posix_spawn_file_actions_adddup2(&files, plugin->descriptor, PLUGIN_MEMORY);
    int error =
        posix_spawnp(&plugin->pid, source->program, &files, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = error;
    return error ? error_set_errno(ERROR_UNAVAILABLE, "cannot start %s for the plug-in %s",
                                   source->program, source->library)
                 : 0;
}

/* Descriptors beyond those that the process will have: so that neither is replaced before it is
 * copied to its place. */
static int raise_descriptor(int descriptor) {
    int raised = fcntl(descriptor, F_DUPFD_CLOEXEC, PLUGIN_MEMORY + 1);
    close(descriptor);
    return raised;
}

static int connect_process(struct plugin *plugin) {
    int ends[2] = {-1, -1};
    int memory = memfd_create("plug-in's rows", MFD_CLOEXEC);
    if (memory < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return error_set_errno(ERROR_UNAVAILABLE, "cannot start the plug-in %s",
                               plugin->source.library);
    plugin->descriptor = raise_descriptor(memory);
    plugin->socket = raise_descriptor(ends[0]);
    int other = raise_descriptor(ends[1]);
    int code = spawn(plugin, other);
    close(other);
    return code;
}

static int describe(struct plugin *plugin, const struct plugin_answer *answer) {
    struct plugin_description *description = &plugin->description;
    const struct dml_form *form = &answer->form;
    snprintf(description->name, sizeof description->name, "%s", answer->name);
    snprintf(description->sha256, sizeof description->sha256, "%s", answer->sha256);
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
    new->socket = new->descriptor = -1;
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
    if (plugin->descriptor >= 0)
        close(plugin->descriptor);
    if (plugin->memory)
        munmap(plugin->memory, plugin->bytes);
    free(plugin->text);
    free(plugin);
}

const struct plugin_description *plugin_description(const struct plugin *plugin) {
    return &plugin->description;
}
