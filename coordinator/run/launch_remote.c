/* A worker on a host: PREFIX dml-ROLE --listen … . The command stays as long as the worker does (it
 * is ssh, srun or the like), in a session of its own, so that it outlives this process. What the
 * worker says on standard error comes into STATE/log. */
#define _GNU_SOURCE
#include "coordinator/run/launch_ways.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/host_list.h"
#include "coordinator/run/loop.h"
#include "wire/key.h"

#define LOG_FOLDER "log"
#define LOG_BYTES_MAX (1 << 20)  /* a longer log begins anew with the next start */
#define LAST_LINE_BYTES 2048     /* of the log that are looked at for a reason */
#define SAID_BYTES_MAX (1 << 20) /* of greetings, before the worker's line */
#define NOT_FOUND 127            /* what a shell, env, nice, … exit with */
#define HELLO_SECONDS "60"

static char *log_path(const struct launch *launch, const struct launched *worker) {
    return memory_format("%s/" LOG_FOLDER "/%s-%u.log", launch->remote.state,
                         role_name(worker->role), worker->index);
}

/* Opens the worker's log, to be written at its end. */
static int open_log(const struct launch *launch, struct launched *worker, int *descriptor) {
    char *folder = path_join(launch->remote.state, LOG_FOLDER), *path = log_path(launch, worker);
    int code = folder_make(folder, 0777);
    *descriptor = code ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (!code && *descriptor < 0)
        code = error_set_errno(ERROR_CREATE, "cannot write %s", path);
    struct stat status;
    worker->log_start = 0;
    if (!code && fstat(*descriptor, &status) == 0) {
        bool long_enough = status.st_size > LOG_BYTES_MAX && ftruncate(*descriptor, 0) == 0;
        worker->log_start = long_enough ? 0 : status.st_size;
    }
    free(path);
    free(folder);
    return code;
}

/* ---- the command ---- */

struct remote_command {
    char **words; /* NULL at the end */
    size_t count;
    bool shell; /* words are read by a shell on the host */
};

static void add_word(struct remote_command *command, const char *word) {
    command->words = memory_resize(command->words, command->count + 2, sizeof *command->words);
    command->words[command->count++] = command->shell ? shell_word(word) : memory_copy_string(word);
    command->words[command->count] = NULL;
}

static struct remote_command command_for(const struct launch *launch,
                                         const struct launched *worker) {
    struct remote_command command = {
        .words = launch_words(launch->remote.prefix, worker->host->name, worker->host->threads)};
    command.count = names_count(command.words);
    /* ssh joins its arguments with blanks, and a shell on the host takes them apart again. */
    const char *program = command.words[0];
    const char *slash = strrchr(program, '/');
    command.shell = strcmp(slash ? slash + 1 : program, "ssh") == 0;
    char *here = launch_program_here(worker->role);
    add_word(&command, worker->by_path ? launch_program(worker->role) : here);
    free(here);
    /* It listens on all addresses of its host: what a host calls itself may be loopback there. The
     * key keeps others out. */
    add_word(&command, "--listen");
    add_word(&command, "any:0");
    add_word(&command, "--key");
    add_word(&command, "-");
    add_word(&command, "--hello-seconds");
    add_word(&command, HELLO_SECONDS);
    if (launch->verbosity)
        add_word(&command, launch->verbosity);
    return command;
}

/* A pipe from which the key can be read, and then its end. Arguments and the environment could be
 * seen by others of the host. The system keeps the few bytes until they are read. */
static int open_key(const struct launch *launch, int *input) {
    struct key key;
    char text[KEY_TEXT_BYTES + 1], *path = key_path(launch->remote.state);
    int ends[2];
    int code = key_read(path, &key);
    free(path);
    if (code)
        return code;
    key_text(&key, text);
    key_forget(&key);
    if (pipe2(ends, O_CLOEXEC)) {
        code = error_set_errno(ERROR_UNAVAILABLE, "cannot make a pipe");
    } else {
        code = file_write_all(ends[1], text, KEY_TEXT_BYTES, "a pipe");
        close(ends[1]);
        *input = ends[0];
    }
    explicit_bzero(text, sizeof text);
    return code;
}

int launch_remote_start(const struct launch *launch, struct launched *worker, int output) {
    struct loop_child how = {.output = output, .session = true};
    assert(worker->host && launch->remote.prefix);
    int code = open_key(launch, &how.input);
    if (!code)
        code = open_log(launch, worker, &how.errors);
    if (code) {
        if (how.input)
            close(how.input);
        return code;
    }
    struct remote_command command = command_for(launch, worker);
    worker->status = 0;
    errno = launch_spawn(launch, command.words, &how, &worker->pid);
    if (errno)
        code = error_set_errno(ERROR_UNAVAILABLE, "cannot run %s (see key `launch`)",
                               command.words[0]);
    close(how.input);
    close(how.errors);
    launch_words_free(command.words);
    return code;
}

/* ---- what came of it ---- */

/* Keeps the last whole line, which may say what is wrong, and what follows it, as far as there is
 * room for more. A line that fills it all is no worker's. */
static void keep_end(struct launched *worker, const char *last, const char *rest) {
    const size_t full = sizeof worker->said - 1;
    const char *end = worker->said + worker->said_length;
    assert(worker->said <= last && last <= rest && rest <= end);
    const char *from = (size_t)(end - last) < full   ? last
                       : (size_t)(end - rest) < full ? rest
                                                     : end;
    worker->said_length = (size_t)(end - from);
    memmove(worker->said, from, worker->said_length + 1);
}

/* "listening tls:HOST:PORT": only the port counts, since the host's name is known here, and what it
 * calls itself may mean nothing here. Other lines are those of a greeting, whose last one may not
 * end. */
bool launch_remote_listens(struct launched *worker) {
    char *line = worker->said, *last = line, *end;
    assert(worker->host && worker->said_length < sizeof worker->said);
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        const char *colon = strstr(line, "listening tls:") ? strrchr(line, ':') : NULL;
        size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
        if (digits && !colon[1 + digits]) {
            const char *name = worker->host->address;
            free(worker->address);
            worker->address =
                memory_format(strchr(name, ':') ? "tls:[%s]:%s" : "tls:%s:%s", name, colon + 1);
            *end = '\n';
            return true;
        }
        *end = '\n';
        last = line;
        line = end + 1;
    }
    keep_end(worker, last, line);
    return false;
}

bool launch_remote_is_endless(const struct launched *worker) {
    return worker->said_bytes > SAID_BYTES_MAX;
}

bool launch_remote_other_path(struct launched *worker) {
    bool other =
        !worker->by_path && WIFEXITED(worker->status) && WEXITSTATUS(worker->status) == NOT_FOUND;
    worker->by_path |= other;
    return other;
}

/* Leaves the last line that is not empty. What a host says may not steer a terminal. */
static void leave_last(char *text, size_t length) {
    while (length && strchr("\r\n ", text[length - 1]))
        length--;
    text[length] = '\0';
    const char *before = strrchr(text, '\n');
    if (before)
        memmove(text, before + 1, strlen(before + 1) + 1);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
}

/* The last line of the log since the worker's start; "" if there is none. */
static void last_logged(const struct launch *launch, const struct launched *worker,
                        char line[LAST_LINE_BYTES]) {
    char *path = log_path(launch, worker);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = descriptor < 0 ? 0 : lseek(descriptor, 0, SEEK_END);
    off_t from = end - (LAST_LINE_BYTES - 1);
    if (from < worker->log_start)
        from = worker->log_start;
    ssize_t length =
        descriptor < 0 || end <= from ? 0 : pread(descriptor, line, (size_t)(end - from), from);
    leave_last(line, length < 0 ? 0 : (size_t)length);
    if (descriptor >= 0)
        close(descriptor);
    free(path);
}

char *launch_remote_why(const struct launch *launch, const struct launched *worker) {
    char line[LAST_LINE_BYTES];
    char **command = launch_words(launch->remote.prefix, worker->host->name, 0);
    last_logged(launch, worker, line);
    if (!*line) {
        /* Its standard output may say more than the log. */
        size_t length =
            worker->said_length < LAST_LINE_BYTES ? worker->said_length : LAST_LINE_BYTES - 1;
        memcpy(line, worker->said + worker->said_length - length, length);
        leave_last(line, length);
    }
    const char *end = !worker->pid ? launch_ending(worker)
                      : launch_remote_is_endless(worker)
                          ? "wrote 1 MiB, but not where the worker listens"
                          : "did not say that the worker listens";
    char *why = *line ? memory_format("%s %s: %s", command[0], end, line)
                      : memory_format("%s %s and wrote nothing", command[0], end);
    launch_words_free(command);
    return why;
}
