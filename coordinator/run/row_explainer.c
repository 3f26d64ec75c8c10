#define _GNU_SOURCE
#include "coordinator/run/row_explainer.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "coordinator/run/loop.h"
#include "coordinator/status/history.h"
#include "coordinator/status/run_folder.h"

#define DEADLINE_SECONDS 8         /* the process also ends by its own limit of processor time */
#define ANSWER_BYTES_MAX (4 << 20) /* of what it writes */

extern char **environ;

/* The process reads the row from a file in memory and writes to two others, so that nobody waits
 * for a pipe. */
enum stream { INPUT, OUTPUT, ERRORS, STREAMS };

struct row_explainer {
    struct http *http;
    struct event *ended, *deadline;
    pid_t process; /* 0: none */
    uint64_t ticket;
    int64_t run;          /* whose model it is */
    bool late;            /* it was killed at the deadline */
    int streams[STREAMS]; /* of the process */
};

/* Gives up the reference to `value`. */
static void fill(struct http_answer *answer, int status, json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    assert(text);
    *answer = (struct http_answer){.status = status,
                                   .type = "application/json",
                                   .body = text,
                                   .length = strlen(text),
                                   .owned = text};
}

/* A row or a model that does not do is a usual answer, with 200: for another status, browsers write
 * an error to their console. */
static bool refuse(struct http_answer *answer, int status, const char *why) {
    fill(answer, status, json_pack("{s:o}", "error", text_to_json(why)));
    return true;
}

/* ---- the process ---- */

static void close_streams(struct row_explainer *explainer) {
    for (int i = 0; i < STREAMS; i++) {
        if (explainer->streams[i] > 0)
            close(explainer->streams[i]);
        explainer->streams[i] = 0;
    }
}

/* Makes the files; the first has the row. */
static bool open_streams(struct row_explainer *explainer, const struct request *request) {
    for (int i = 0; i < STREAMS; i++)
        explainer->streams[i] = memfd_create("row", MFD_CLOEXEC);
    bool good = explainer->streams[OUTPUT] > 0 && explainer->streams[ERRORS] > 0 &&
                explainer->streams[INPUT] > 0 &&
                pwrite(explainer->streams[INPUT], request->body, request->body_length, 0) ==
                    (ssize_t)request->body_length;
    if (!good)
        close_streams(explainer);
    return good;
}

/* What is in one of the files. Free it. */
static char *read_stream(const struct row_explainer *explainer, enum stream stream) {
    struct stat status = {0};
    (void)fstat(explainer->streams[stream], &status);
    const size_t length = status.st_size < ANSWER_BYTES_MAX ? (size_t)status.st_size : 0;
    char *text = memory_new(length + 1, 1);
    if (pread(explainer->streams[stream], text, length, 0) != (ssize_t)length)
        text[0] = '\0';
    return text;
}

/* Failpoints are for this process. The child ends with it. */
static bool start(struct row_explainer *explainer, const char *model) {
    char parent[32], *program = process_beside("dml-coordinator");
    char *arguments[] = {program, (char *)(uintptr_t) "explain-row", (char *)(uintptr_t) "--",
                         (char *)(uintptr_t)model, NULL};
    char **variables = memory_new(names_count(environ) + 2, sizeof *variables);
    size_t kept = 0;
    for (char **each = environ; *each; each++)
        if (strncmp(*each, "DML_FAILPOINT", 13) != 0)
            variables[kept++] = *each;
    snprintf(parent, sizeof parent, "DML_PARENT=%d", (int)getpid());
    variables[kept] = parent;
    const struct loop_child how = {.input = explainer->streams[INPUT],
                                   .output = explainer->streams[OUTPUT],
                                   .errors = explainer->streams[ERRORS]};
    int failed = loop_spawn(program, arguments, variables, &how, &explainer->process);
    if (failed)
        explainer->process = 0;
    free(variables);
    free(program);
    return !failed;
}

/* ---- the answer ---- */

/* Takes what the process said aside: each line of the log as a note, and the reason of its end,
 * which comes last. Free *why. */
static json_t *read_notes(char *errors, char **why) {
    static const char program[] = "dml-coordinator: ", *const levels[] = {" info: ", " warning: "};
    json_t *notes = json_array();
    *why = NULL;
    for (char *rest = errors, *line; (line = strsep(&rest, "\n"));) {
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
            const char *note = strstr(line, levels[i]);
            if (note)
                json_array_append_new(notes, text_to_json(note + strlen(levels[i])));
        }
        if (strncmp(line, program, strlen(program)) == 0) {
            free(*why);
            *why = memory_copy_string(line + strlen(program));
        }
    }
    return notes;
}

static void fill_by_end(struct row_explainer *explainer, int status, struct http_answer *answer) {
    char *output = read_stream(explainer, OUTPUT), *errors = read_stream(explainer, ERRORS), *why;
    json_t *notes = read_notes(errors, &why), *found = json_loads(output, 0, NULL);
    const bool by_limit = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (WIFEXITED(status) && !WEXITSTATUS(status) && json_is_object(found)) {
        json_object_set(found, "notes", notes);
        json_object_set_new(found, "run", json_integer(explainer->run));
        fill(answer, 200, json_incref(found));
    } else if (explainer->late || by_limit) {
        refuse(answer, 200,
               "this model takes too long for an explanation here; `dml-coordinator predict "
               "--explain` has no limit");
    } else {
        refuse(answer, 200, why ? why : "the row could not be explained: its process ended early");
    }
    json_decref(found);
    json_decref(notes);
    free(why);
    free(output);
    free(errors);
}

/* SIGCHLD, of any child. */
static void on_child(evutil_socket_t number, short what, void *context) {
    (void)number, (void)what;
    struct row_explainer *explainer = context;
    struct http_answer answer;
    int status = 0;
    if (!explainer->process || waitpid(explainer->process, &status, WNOHANG) != explainer->process)
        return;
    explainer->process = 0;
    event_del(explainer->ended);
    event_del(explainer->deadline);
    fill_by_end(explainer, status, &answer);
    close_streams(explainer);
    http_answer_later(explainer->http, explainer->ticket, &answer);
}

static void on_deadline(evutil_socket_t number, short what, void *context) {
    (void)number, (void)what;
    struct row_explainer *explainer = context;
    explainer->late = true;
    kill(explainer->process, SIGKILL); /* SIGCHLD follows */
}

/* The folder of a run's model; 0: *run becomes the live one. NULL with the answer. Free it. */
static char *find_model(const char *state, int64_t *run, struct http_answer *answer) {
    char why[160];
    if (!*run)
        *run = history_current(state);
    if (!*run) {
        refuse(answer, 200, "no model is live yet: publish one, or choose a run");
        return NULL;
    }
    char *folder = run_model_folder(state, *run);
    if (access(folder, F_OK) == 0)
        return folder;
    free(folder);
    snprintf(why, sizeof why, "run %lld has no model: it has not ended, or its model was removed",
             (long long)*run);
    refuse(answer, 200, why);
    return NULL;
}

bool row_explainer_post(struct row_explainer *explainer, const char *state,
                        const struct request *request, uint64_t ticket,
                        struct http_answer *answer) {
    static const char *const parameters[] = {"run", NULL};
    const struct timeval deadline = {.tv_sec = DEADLINE_SECONDS};
    int64_t run;
    if (strcmp(request->path, REQUEST_POSTED) != 0)
        return refuse(answer, 404, "no such path; dml-status(7) lists the paths");
    if (!request_has_only(request, parameters) || !request_number(request, "run", 0, &run))
        return refuse(answer, 400, "the query may have run=N with a whole number");
    if (explainer->process)
        return refuse(answer, 503, "another row is being explained; try again");
    char *model = find_model(state, &run, answer);
    if (!model)
        return true;
    /* The handler comes first: the process may end at once. */
    event_add(explainer->ended, NULL);
    const bool started = open_streams(explainer, request) && start(explainer, model);
    free(model);
    if (!started) {
        event_del(explainer->ended);
        close_streams(explainer);
        return refuse(answer, 503, "the system has no process or no memory for this now");
    }
    explainer->ticket = ticket;
    explainer->run = run;
    explainer->late = false;
    event_add(explainer->deadline, &deadline);
    return false;
}

/* ---- life ---- */

struct row_explainer *row_explainer_new(struct event_base *base, struct http *http) {
    struct row_explainer *explainer = memory_new(1, sizeof *explainer);
    explainer->http = http;
    explainer->ended = evsignal_new(base, SIGCHLD, on_child, explainer);
    explainer->deadline = evtimer_new(base, on_deadline, explainer);
    return explainer;
}

void row_explainer_free(struct row_explainer *explainer) {
    if (!explainer)
        return;
    if (explainer->process) {
        kill(explainer->process, SIGKILL);
        while (waitpid(explainer->process, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    close_streams(explainer);
    event_free(explainer->ended);
    event_free(explainer->deadline);
    free(explainer);
}
