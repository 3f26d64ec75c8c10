#define _GNU_SOURCE
#include "coordinator/command/ask.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "coordinator/job/job.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/invocations.h"
#include "coordinator/status/figures.h"
#include "base/text.h"
#include "coordinator/status/report.h"

/* ---- state folders ---- */

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* For a state folder the options that are about a job file have no effect, and two folders are one
 * too many. */
static int place_of_operand(const struct options *options, const char *operand, char **state) {
    if (is_folder(operand)) {
        *state = memory_copy_string(operand);
        if (options->state)
            return error_set(ERROR_USAGE,
                             "`--state %s`: names a state folder, and %s is one already; leave "
                             "one of them out",
                             options->state, operand);
        if (options->settings_count)
            log_warning("`--set %s` has no effect: it sets a key of a job file, and %s is a state "
                        "folder",
                        options->settings[0], operand);
        return 0;
    }
    if (access(operand, F_OK) && errno == ENOENT)
        return error_set(ERROR_UNAVAILABLE, "there is no job file or state folder %s: %s%s",
                         operand, strerror(ENOENT), job_suggestion(operand, true));
    return job_read_state(operand, options->settings, options->settings_count, options->state,
                          state);
}

static char **places_here(void) {
    glob_t found;
    size_t count = 0;
    if (glob("*.state", GLOB_ONLYDIR, NULL, &found))
        return memory_new(1, sizeof(char *));
    char **states = memory_new(found.gl_pathc + 1, sizeof *states);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (is_folder(found.gl_pathv[i]))
            states[count++] = memory_copy_string(found.gl_pathv[i]);
    globfree(&found);
    return states;
}

int places_of(const struct options *options, char ***states) {
    int code = 0, count = options->operands_count;
    char **found;
    if (!count && !options->state) {
        found = places_here();
    } else {
        found = memory_new((size_t)count + 2, sizeof *found);
        for (int i = 0; !code && i < count; i++)
            code = place_of_operand(options, options->operands[i], &found[i]);
        if (!count)
            found[0] = memory_copy_string(options->state);
    }
    if (!count && options->settings_count)
        log_warning("`--set %s` has no effect: it sets a key of a job file, and none is named",
                    options->settings[0]);
    for (char **state = found; !code && *state; state++)
        if (!is_folder(*state))
            code = error_set(ERROR_UNAVAILABLE,
                             "%s: there is no such state folder; this job was not run yet", *state);
    if (!code && !found[0])
        code = error_set(ERROR_USAGE, "there is no *.state folder in the current directory; name a "
                                      "job file or a state folder");
    assert(code || names_count(found) > 0);
    if (code)
        names_free(found);
    else
        *states = found;
    return code;
}

int place_of(const struct options *options, char **state) {
    char **states;
    int code = places_of(options, &states);
    if (code)
        return code;
    assert(states[0]);
    if (states[1])
        code = error_set(
            ERROR_USAGE,
            "there are several state folders in the current directory, such as %s and %s; name one",
            states[0], states[1]);
    else
        *state = memory_copy_string(states[0]);
    names_free(states);
    return code;
}

/* ---- the live coordinator ---- */

#define ANSWER_BYTES_MAX (64u << 20)

/* Connects through the folder's descriptor, because an address has no room for a long path. */
static int connect_within(const char *state, int socket_descriptor) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control.sock", folder);
    int result = connect(socket_descriptor, (struct sockaddr *)&address, sizeof address);
    int number = errno;
    close(folder);
    errno = number;
    return result;
}

static int refuse_mute(const char *state) {
    return error_set(ERROR_AGAIN,
                     "%s: the coordinator, %s, has not answered for %d s; the process may be "
                     "stopped",
                     state, state_lock_holder(state).text, CONTROL_ANSWER_MS / 1000);
}

static int receive_answer(const char *state, int descriptor, int64_t deadline_ns,
                          struct bytes *answer) {
    for (;;) {
        char part[4096];
        struct pollfd entry = {.fd = descriptor, .events = POLLIN};
        int64_t left_ms = (deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
        int ready = left_ms > 0 ? poll(&entry, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR) /* this process was stopped, and goes on */
            continue;
        if (ready <= 0 || answer->length > ANSWER_BYTES_MAX)
            return refuse_mute(state);
        ssize_t got = recv(descriptor, part, sizeof part, MSG_DONTWAIT);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return error_set_errno(ERROR_UNAVAILABLE, "%s: the connection to the coordinator broke",
                                   state);
        if (got > 0)
            bytes_append(answer, part, (size_t)got);
    }
}

static int converse(const char *state, int descriptor, const char *question, struct bytes *answer) {
    int64_t deadline_ns = clock_monotonic_ns() + CONTROL_ANSWER_MS * NS_PER_MS;
    if (connect_within(state, descriptor)) {
        if (errno == EAGAIN) /* its queue of connections is full */
            return refuse_mute(state);
        if (errno == EACCES || errno == EPERM)
            return error_set_errno(ERROR_PERMISSION,
                                   "only its owner may ask the coordinator of %s: %s/control.sock",
                                   state, state);
        /* A socket reaches the processes of its host only, even if others see its file. */
        struct state_holder holder = state_lock_holder(state);
        if (!holder.elsewhere)
            return error_set(ERROR_UNAVAILABLE, "%s: no coordinator runs there", state);
        return error_set(
            ERROR_UNAVAILABLE,
            "%s: no coordinator runs there on this host; the last one was %s: ask on that "
            "host",
            state, holder.text);
    }
    if (send(descriptor, question, strlen(question), MSG_NOSIGNAL) != (ssize_t)strlen(question))
        return refuse_mute(state);
    return receive_answer(state, descriptor, deadline_ns, answer);
}

int control_ask(const char *state, const char *question, char **answer) {
    struct bytes bytes;
    assert(strchr(question, '\n') == question + strlen(question) - 1); /* one whole line */
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot open a socket");
    bytes_init(&bytes);
    int code = converse(state, descriptor, question, &bytes);
    close(descriptor);
    if (!code) {
        bytes_put_u8(&bytes, 0);
        *answer = memory_copy_string((const char *)bytes.data);
    }
    bytes_release(&bytes);
    return code;
}

/* ---- the record of a folder ---- */

int record_reader_open(const char *state, struct record_reader *reader) {
    *reader = (struct record_reader){.state = state, .lock = -1};
    if (state_may_write(state)) {
        int code = state_lock_existing(state, STATE_READS, &reader->lock);
        return code ? code : store_open_to_read(state, &reader->store);
    }
    reader->copy = true;
    reader->maybe_live = state_maybe_locked(state);
    return store_read(state, &reader->store);
}

void record_reader_close(struct record_reader *reader) {
    assert(!reader->copy || reader->lock < 0); /* a copy is read without the lock */
    store_close(reader->store);
    state_unlock(reader->lock);
    *reader = (struct record_reader){.lock = -1};
}

void record_reader_mark(const struct record_reader *reader, json_t *answer) {
    static bool warned;
    assert(reader->copy || !reader->maybe_live); /* who has the lock knows that nobody works */
    const json_t *runs = json_object_get(answer, "runs");
    size_t count = json_array_size(runs);
    json_t *run = count ? json_array_get(runs, count - 1) : answer;
    json_t *last = invocations_last(json_object_get(answer, "invocations"));
    if (reader->maybe_live)
        invocation_is_at_work(last ? last : json_object_get(answer, "invocation"), "unknown");
    if (!reader->maybe_live || strcmp(member_text(run, "state"), "interrupted") != 0)
        return;
    json_object_set_new(run, "state", json_string("unknown"));
    if (warned)
        return;
    warned = true; /* `serve` and `status --watch` look again and again */
    struct stat status = {0};
    (void)stat(reader->state, &status);
    const struct passwd *owner = getpwuid(status.st_uid);
    char *name = owner ? memory_copy_string(owner->pw_name)
                       : memory_format("user %u", (unsigned)status.st_uid);
    log_warning("%s: run %lld has not ended; without write access it cannot be known whether its "
                "coordinator still works. This is what was recorded; for the live state ask as %s",
                reader->state, member_count(run, "run"), name);
    free(name);
}

/* ---- either of them ---- */

/* How a question is put to a coordinator, and to a store. */
static const struct {
    const char *control;
    int (*report)(struct store *store, json_t **answer);
} questions[] = {
    [QUESTION_STATUS] = {"status\n", report_status}, [QUESTION_RUNS] = {"runs\n", report_runs}};
static_assert(sizeof questions / sizeof *questions == QUESTION_RUNS + 1, "a row a question");

int ask_live(const char *state, enum question question, json_t **answer) {
    char *text = NULL;
    int code = control_ask(state, questions[question].control, &text);
    if (code)
        return code;
    *answer = json_loads(text, 0, NULL);
    free(text);
    if (!*answer)
        return error_set(ERROR_AGAIN, "%s: the answer of the coordinator, %s, broke off; ask again",
                         state, state_lock_holder(state).text);
    return 0;
}

int ask_name_folder(int code, const char *state) {
    char *text = memory_copy_string(error_text());
    error_clear();
    error_set(code, "%s: %s", state, text);
    free(text);
    return code;
}

static int ask_store(const char *state, enum question question, json_t **answer) {
    struct record_reader reader;
    int code = record_reader_open(state, &reader);
    if (code == ERROR_AGAIN && !reader.copy && reader.lock < 0) {
        /* The lock is held although no coordinator answers. If the holder only reads, the error
         * says so already. */
        struct state_holder holder = state_lock_holder(state);
        if (!holder.reads)
            error_clear();
        if (!holder.reads)
            error_set(ERROR_AGAIN,
                      holder.elsewhere
                          ? "%s: the coordinator is %s; ask there"
                          : "%s: the coordinator, %s, is starting or about to end; ask again",
                      state, holder.text);
    }
    if (!code && (code = questions[question].report(reader.store, answer)) == ERROR_UNAVAILABLE)
        code = ask_name_folder(code, state); /* there is no run yet */
    if (!code)
        record_reader_mark(&reader, *answer);
    record_reader_close(&reader);
    return code;
}

/* Whether the code of ask_live() says that the store is to be read. */
static bool nobody_answers(int code) {
    return code == ERROR_UNAVAILABLE || code == ERROR_PERMISSION;
}

int ask(const char *state, enum question question, json_t **answer) {
    int code = ask_live(state, question, answer);
    if (!nobody_answers(code))
        return code;
    error_clear();
    return ask_store(state, question, answer);
}

/* ---- several folders ---- */

#define ASKED_AT_ONCE 32 /* coordinators; each that is stopped takes CONTROL_ANSWER_MS */

void ask_each(uint32_t count, void (*ask_one)(void *context, uint32_t i), void *context) {
    threads_share(ASKED_AT_ONCE, count, ask_one, context);
}

struct folders {
    char *const *states;
    enum question question;
    struct asked *asked;
};

/* The thread's error becomes what is asked's. */
static void note_asked(struct asked *asked, int code) {
    asked->code = code;
    asked->why = code ? memory_copy_string(error_text()) : NULL;
    error_clear();
}

static void ask_folder(void *context, uint32_t i) {
    const struct folders *folders = context;
    struct asked *asked = &folders->asked[i];
    note_asked(asked, ask_live(folders->states[i], folders->question, &asked->answer));
}

/* Stores are read one by one: that takes no waiting. */
struct asked *ask_folders(char *const *states, enum question question) {
    struct folders folders = {.states = states, .question = question};
    const uint32_t count = names_count(states);
    assert(count > 0);
    folders.asked = memory_new(count, sizeof *folders.asked);
    ask_each(count, ask_folder, &folders);
    for (uint32_t i = 0; i < count; i++) {
        struct asked *asked = &folders.asked[i];
        if (!nobody_answers(asked->code))
            continue;
        free(asked->why);
        note_asked(asked, ask_store(states[i], question, &asked->answer));
    }
    return folders.asked;
}

void asked_free(struct asked *asked, char *const *states) {
    for (size_t i = 0; states[i]; i++) {
        json_decref(asked[i].answer);
        free(asked[i].why);
    }
    free(asked);
}
