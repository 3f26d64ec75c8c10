/* The process of a library: loads it, then answers requests until nobody asks any more. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "plugin/dml/objective.h"
#include "plugin/plugin.h"
#include "plugin/talk.h"

struct library {
    const struct dml_objective *objective;
    void *state; /* its own */
    struct dml_form form;
    char sha256[SHA256_TEXT];
};

/* What is larger is no library. */
#define LIBRARY_BYTES_MAX (INT64_C(1) << 30)

static int copy(const char *path, int from, int to, struct sha256 *sha) {
    char piece[65536];
    ssize_t count;
    while ((count = read(from, piece, sizeof piece)) > 0) {
        sha256_add(sha, piece, (size_t)count);
        int code = file_write_all(to, piece, (size_t)count, "the copy of a plug-in");
        if (code)
            return code;
    }
    return count < 0 ? error_set_errno(ERROR_CONFIG, "plug-in %s: cannot be read", path) : 0;
}

static int copy_hashed(const char *path, int to, char text[SHA256_TEXT]) {
    struct stat status;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* nobody waits for a FIFO */
    int code = 0;
    if (from < 0 || fstat(from, &status))
        code = error_set_errno(ERROR_CONFIG, "plug-in %s: cannot be opened", path);
    else if (!S_ISREG(status.st_mode) || status.st_size > LIBRARY_BYTES_MAX)
        code = error_set(ERROR_CONFIG, "plug-in %s: is no file that could be a library", path);
    struct sha256 *sha = sha256_new();
    if (!code)
        code = copy(path, from, to, sha);
    sha256_finish(sha, text);
    if (from >= 0)
        close(from);
    return code;
}

static int check_hash(const char *path, const char *wanted, const char *found) {
    if (!*wanted || strcmp(wanted, found) == 0)
        return 0;
    return error_set(
        ERROR_CONFIG,
        "plug-in %s: is another file than that of the run or model: its SHA-256 is "
        "%s, where %s is expected; put that file there (predict and evaluate also take "
        "--set plugin.library=PATH), or train again",
        path, found, wanted);
}

/* The loader's own text, without the path of the copy, which users do not know. */
static const char *loader_text(const char *copy) {
    const char *text = dlerror();
    if (text && strncmp(text, copy, strlen(copy)) == 0 &&
        strncmp(text + strlen(copy), ": ", 2) == 0)
        return text + strlen(copy) + 2;
    return text ? text : "no reason was given";
}

static int check_sizes(const char *path, const struct dml_objective *objective) {
    static const uint32_t head[] = {DML_OBJECTIVE_HEAD};
    if (objective->version != DML_OBJECTIVE_VERSION)
        return error_set(
            ERROR_CONFIG,
            "plug-in %s: was built with version %u of dml/objective.h, and this dml has "
            "version %d; build it again with this one",
            path, (unsigned)objective->version, DML_OBJECTIVE_VERSION);
    if (memcmp(objective, head, sizeof head) != 0)
        return error_set(ERROR_CONFIG,
                         "plug-in %s: its structs have other sizes than those of dml/objective.h; "
                         "begin dml_objective with DML_OBJECTIVE_HEAD, and build for this machine",
                         path);
    if (!objective->name || !*objective->name || !objective->open || !objective->tensors ||
        !objective->chunk || !objective->predict)
        return error_set(ERROR_CONFIG,
                         "plug-in %s: dml_objective lacks its name or one of its functions", path);
    return 0;
}

/* Loads a copy of the file: so what runs is what was hashed, and it stays what it is when the file
 * is replaced or written to. `sha256`: that it must have, or "". ERROR_CONFIG, with a text that
 * names the library. */
static int library_load(const char *path, const char *sha256, struct library *library) {
    char copy[32];
    *library = (struct library){0};
    int memory = memfd_create("plug-in", MFD_CLOEXEC);
    if (memory < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "plug-in %s: there is no memory for it", path);
    int code = copy_hashed(path, memory, library->sha256);
    if (!code)
        code = check_hash(path, sha256, library->sha256);
    snprintf(copy, sizeof copy, "/proc/self/fd/%d", memory);
    void *handle = code ? NULL : dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    if (!code && !handle)
        code = error_set(ERROR_CONFIG, "plug-in %s: cannot be loaded: %s", path, loader_text(copy));
    close(memory);
    if (code)
        return code;
    library->objective = dlsym(handle, "dml_objective");
    if (!library->objective)
        return error_set(ERROR_CONFIG,
                         "plug-in %s: does not export `dml_objective`; define it as "
                         "dml-objective(3) says",
                         path);
    return check_sizes(path, library->objective);
}

/* Gives it the options. ERROR_CONFIG if it does not take them. */
static int library_open(const char *path, const char *options, struct library *library) {
    char text[DML_ERROR_BYTES] = "";
    int code = library->objective->open(options, &library->form, &library->state, text);
    text[sizeof text - 1] = '\0';
    if (code)
        return error_set(ERROR_CONFIG, "plug-in %s (%s): does not take the options \"%s\": %s",
                         path, library->objective->name, options,
                         *text ? text : "it does not say why");
    return 0;
}

/* ---- the process ---- */

/* On either side of a memory there are so many bytes that cannot be touched. */
#define FENCE_BYTES ((size_t)1 << 20)

static struct served {
    const char *path;
    pid_t pid;
    struct library library;
    struct plugin_request request; /* the one at hand */
    const char *function;          /* that was called for it; NULL: none */
    bool forked;                   /* by the library, in this request */
    pid_t forker;                  /* the process that forked last */
    struct area {
        char *start; /* mapped; NULL: not yet */
        size_t bytes;
    } area[PLUGIN_MEMORIES];
} served;

static void tell(struct plugin_answer *answer, int code) {
    answer->talk = PLUGIN_TALK;
    answer->code = code;
    answer->number = served.request.number;
    snprintf(answer->text, sizeof answer->text, "%s", code ? error_text() : "");
    error_clear();
    if (send(PLUGIN_SOCKET, answer, sizeof *answer, MSG_NOSIGNAL) < 0)
        _exit(errno == EBADF || errno == ENOTSOCK ? PLUGIN_LOST : 0); /* else nobody is there */
    if (getpid() != served.pid)
        _exit(0); /* the library forked it, and must not have two that answer */
}

/* ---- memory ---- */

/* A process that the library forks must not write into what this one computes. */
static int map(enum plugin_shared which, int descriptor, size_t bytes) {
    struct area *area = &served.area[which];
    if (area->start)
        munmap(area->start - FENCE_BYTES, area->bytes + 2 * FENCE_BYTES);
    *area = (struct area){0};
    char *fence = mmap(NULL, bytes + 2 * FENCE_BYTES, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *start = fence == MAP_FAILED
                      ? fence
                      : mmap(fence + FENCE_BYTES, bytes,
                             which == PLUGIN_INPUT ? PROT_READ : PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, descriptor, 0);
    close(descriptor);
    if (start == MAP_FAILED)
        return error_set_errno(ERROR_UNAVAILABLE, "plug-in %s: no memory for rows", served.path);
    if (which != PLUGIN_INPUT)
        madvise(start, bytes, MADV_DONTFORK);
    *area = (struct area){start, bytes};
    return 0;
}

static void *at(enum plugin_shared which, uint64_t offset) {
    return offset ? served.area[which].start + offset : NULL;
}

/* ---- crashes ---- */

/* Which memory it is near; PLUGIN_MEMORIES: none. */
static enum plugin_shared find_area(const char *address) {
    enum plugin_shared which = PLUGIN_INPUT;
    for (; which < PLUGIN_MEMORIES; which++) {
        const struct area *area = &served.area[which];
        if (area->start && address >= area->start - FENCE_BYTES &&
            address < area->start + area->bytes + FENCE_BYTES)
            break;
    }
    return which;
}

/* Says which array a touch was near that the system refused. Any other crash ends the process by
 * its signal. */
static void explain(int number, siginfo_t *info, void *context) {
    static struct plugin_answer answer;
    const char *address = info->si_addr;
    enum plugin_shared which = served.function ? find_area(address) : PLUGIN_MEMORIES;
    (void)context;
    signal(number, SIG_DFL);
    if (getpid() != served.pid)
        _exit(0);
    if (which == PLUGIN_MEMORIES) {
        raise(number);
        return;
    }
    const struct area *area = &served.area[which];
    uint64_t offset = which == PLUGIN_OUT ? served.request.out : served.request.gradient;
    error_clear();
    if (which == PLUGIN_INPUT && address >= area->start && address < area->start + area->bytes)
        error_set(ERROR_PLUGIN,
                  "plug-in %s (%s): %s writes into its rows or parameters, which are to be read "
                  "only",
                  served.path, served.library.objective->name, served.function);
    else if (which == PLUGIN_INPUT)
        error_set(ERROR_PLUGIN, "plug-in %s (%s): %s reaches far beyond its rows or parameters",
                  served.path, served.library.objective->name, served.function);
    else
        error_set(ERROR_PLUGIN,
                  "plug-in %s (%s): %s reaches for element %lld of `%s`, far beyond it",
                  served.path, served.library.objective->name, served.function,
                  (long long)(address - (area->start + offset)) / (long long)sizeof(double),
                  plugin_shared_name(which, served.function));
    tell(&answer, ERROR_PLUGIN);
    _exit(0);
}

/* On a stack of its own, as the other may be what ran out. */
static void explain_crashes(void) {
    static char stack[65536];
    static const int endings[] = {SIGFPE, SIGILL, SIGABRT}, touches[] = {SIGSEGV, SIGBUS};
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = explain, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        signal(endings[i], SIG_DFL);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < sizeof touches / sizeof *touches; i++)
        sigaction(touches[i], &action, NULL);
}

/* ---- requests ---- */

/* Called before a fork. A process that was forked and not waited for may return from the function,
 * too. */
static void note_fork(void) {
    served.forked = true;
    served.forker = getpid();
}

/* A forked process ends with the thread that forked it: when this process is killed nobody else
 * knows of it. */
static void end_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != served.forker)
        _exit(1); /* the parent had ended before */
}

static bool has_children(void) {
    siginfo_t ended;
    return waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT | WNOHANG) == 0;
}

/* The answer of one of its functions. */
static int check_returned(int code, const char *text) {
    const char *function = served.function;
    served.function = NULL;
    if (served.forked && getpid() == served.pid && has_children())
        return error_set(ERROR_PLUGIN,
                         "plug-in %s (%s): forked a process in %s that has not ended when that "
                         "returns; wait for it there",
                         served.path, served.library.objective->name, function);
    if (!code)
        return 0;
    return error_set(ERROR_PLUGIN, "plug-in %s (%s): %.*s", served.path,
                     served.library.objective->name, DML_ERROR_BYTES,
                     *text ? text : "failed without saying why");
}

static int compute(const struct plugin_request *request) {
    const struct dml_objective *objective = served.library.objective;
    char text[DML_ERROR_BYTES + 1] = "";
    const struct dml_rows rows = {.count = request->rows,
                                  .features = request->data.features,
                                  .start = at(PLUGIN_INPUT, request->start),
                                  .column = at(PLUGIN_INPUT, request->column),
                                  .value = at(PLUGIN_INPUT, request->value),
                                  .label = at(PLUGIN_INPUT, request->label),
                                  .weight = at(PLUGIN_INPUT, request->weight)};
    const double *parameters = at(PLUGIN_INPUT, request->parameters);
    double *out = at(PLUGIN_OUT, request->out);
    if (request->operation == PLUGIN_PREDICT) {
        served.function = "predict()";
        return check_returned(
            objective->predict(served.library.state, &request->data, &rows, parameters, out, text),
            text);
    }
    served.function = "chunk()";
    return check_returned(objective->chunk(served.library.state, &request->data, &rows, parameters,
                                           out, at(PLUGIN_GRADIENT, request->gradient), text),
                          text);
}

static int find_tensors(const struct plugin_request *request, struct plugin_answer *answer) {
    char text[DML_ERROR_BYTES + 1] = "";
    served.function = "tensors()";
    int code = served.library.objective->tensors(served.library.state, &request->data,
                                                 answer->tensor, &answer->count, text);
    return check_returned(code, text);
}

/* Rounding is as at the start, whatever the call before has left. */
static void answer_request(void) {
    const struct plugin_request request = served.request;
    struct plugin_answer answer = {0};
    fesetenv(FE_DFL_ENV);
    served.forked = false;
    int code =
        request.operation == PLUGIN_TENSORS ? find_tensors(&request, &answer) : compute(&request);
    tell(&answer, code);
}

static int map_new(const struct msghdr *message) {
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    const int *descriptor = part ? (const int *)(const void *)CMSG_DATA(part) : NULL;
    int code = 0;
    for (enum plugin_shared which = PLUGIN_INPUT; which < PLUGIN_MEMORIES && !code; which++)
        if (served.request.bytes[which])
            code = descriptor ? map(which, *descriptor++, served.request.bytes[which])
                              : error_set(ERROR_UNAVAILABLE,
                                          "plug-in %s: no descriptor for its memory", served.path);
    return code;
}

/* The length of a request; 0 or less: nobody asks any more. */
static ssize_t receive(int *code) {
    union {
        struct cmsghdr header; /* alignment */
        char bytes[CMSG_SPACE(PLUGIN_MEMORIES * sizeof(int))];
    } control;
    struct iovec piece = {&served.request, sizeof served.request};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length;
    while ((length = recvmsg(PLUGIN_SOCKET, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ; /* a signal that the library asked for */
    *code = length == sizeof served.request ? map_new(&message) : 0;
    return length;
}

static int serve(void) {
    ssize_t length;
    int code;
    while ((length = receive(&code)) == sizeof served.request) {
        struct plugin_answer refusal = {0};
        if (code)
            tell(&refusal, code);
        else
            answer_request();
    }
    return length < 0 && (errno == EBADF || errno == ENOTSOCK) ? PLUGIN_LOST : 0;
}

int plugin_process(int argc, char **argv) {
    struct plugin_answer hello = {0};
    if (argc != 3) {
        fprintf(stderr, "dml-replica: %s is for dml's own processes\n", PLUGIN_OPTION);
        return -ERROR_USAGE;
    }
    served.path = argv[0];
    /* It must not outlive whoever asks, whatever the library does; and a crash of it must end it by
     * its signal, also where someone handles or ignores that. What it prints must not come among
     * predictions. It has no descriptor but its own, above all no lock. */
    served.pid = getpid();
    explain_crashes();
    pthread_atfork(note_fork, NULL, end_with_parent);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close_range(PLUGIN_SOCKET + 1, ~0U, 0);
    fcntl(PLUGIN_SOCKET, F_SETFD, FD_CLOEXEC);
    int code = library_load(argv[0], argv[2], &served.library);
    snprintf(hello.sha256, sizeof hello.sha256, "%s", served.library.sha256);
    if (!code)
        code = library_open(argv[0], argv[1], &served.library);
    if (!code)
        snprintf(hello.name, sizeof hello.name, "%s", served.library.objective->name);
    hello.form = served.library.form;
    tell(&hello, code);
    return serve();
}
