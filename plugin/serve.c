/* The process of a library: loads it, then answers requests until nobody asks any more. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "plugin/library.h"
#include "plugin/plugin.h"
#include "plugin/talk.h"

struct served {
    const char *path;
    struct library library;
    char *memory; /* mapped; NULL: not yet */
    size_t bytes;
};

static void tell(struct plugin_answer *answer, int code) {
    answer->talk = PLUGIN_TALK;
    answer->code = code;
    snprintf(answer->text, sizeof answer->text, "%s", code ? error_text() : "");
    error_clear();
    if (send(PLUGIN_SOCKET, answer, sizeof *answer, MSG_NOSIGNAL) < 0)
        _exit(0); /* nobody is there any more */
}

static int map(struct served *served, size_t bytes) {
    if (served->bytes == bytes)
        return 0;
    if (served->memory)
        munmap(served->memory, served->bytes);
    served->bytes = bytes;
    served->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, PLUGIN_MEMORY, 0);
    if (served->memory != MAP_FAILED)
        return 0;
    served->memory = NULL;
    served->bytes = 0;
    return error_set_errno(ERROR_UNAVAILABLE, "plug-in %s: no memory for rows", served->path);
}

static void *at(const struct served *served, uint64_t offset) {
    return offset ? served->memory + offset : NULL;
}

/* The answer of one of its functions. */
static int judge(const struct served *served, int code, const char *text) {
    if (!code)
        return 0;
    return error_set(ERROR_PLUGIN, "plug-in %s (%s): %.*s", served->path,
                     served->library.objective->name, DML_ERROR_BYTES,
                     *text ? text : "failed without saying why");
}

static int compute(struct served *served, const struct plugin_request *request) {
    const struct dml_objective *objective = served->library.objective;
    char text[DML_ERROR_BYTES + 1] = "";
    int code = map(served, request->bytes);
    if (code)
        return code;
    const struct dml_rows rows = {.count = request->rows,
                                  .features = request->data.features,
                                  .start = at(served, request->start),
                                  .column = at(served, request->column),
                                  .value = at(served, request->value),
                                  .label = at(served, request->label),
                                  .weight = at(served, request->weight)};
    const double *parameters = at(served, request->parameters);
    if (request->operation == PLUGIN_PREDICT)
        code = objective->predict(served->library.state, &request->data, &rows, parameters,
                                  at(served, request->out), text);
    else
        code = objective->chunk(served->library.state, &request->data, &rows, parameters,
                                at(served, request->out), at(served, request->gradient), text);
    return judge(served, code, text);
}

static int find_tensors(struct served *served, const struct plugin_request *request,
                        struct plugin_answer *answer) {
    char text[DML_ERROR_BYTES + 1] = "";
    int code = served->library.objective->tensors(served->library.state, &request->data,
                                                  answer->tensor, &answer->count, text);
    return judge(served, code, text);
}

static void answer_request(struct served *served, const struct plugin_request *request) {
    struct plugin_answer answer = {0};
    int code = request->operation == PLUGIN_TENSORS ? find_tensors(served, request, &answer)
                                                    : compute(served, request);
    tell(&answer, code);
}

/* It must not outlive whoever asks, whatever the library does; and a crash of it must end it by its
 * signal, also where someone handles or ignores that. What it prints must not come among
 * predictions. It has no descriptor but its own, above all no lock. */
static void settle(void) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close_range(PLUGIN_MEMORY + 1, ~0U, 0);
    fcntl(PLUGIN_SOCKET, F_SETFD, FD_CLOEXEC);
    fcntl(PLUGIN_MEMORY, F_SETFD, FD_CLOEXEC);
}

int plugin_process(int argc, char **argv) {
    struct plugin_request request;
    struct plugin_answer hello = {0};
    if (argc != 3) {
        fprintf(stderr, "dml-replica: %s is for dml's own processes\n", PLUGIN_OPTION);
        return -ERROR_USAGE;
    }
    struct served served = {.path = argv[0]};
    settle();
    int code = library_load(argv[0], argv[2], &served.library);
    snprintf(hello.sha256, sizeof hello.sha256, "%s", served.library.sha256);
    if (!code)
        code = library_open(argv[0], argv[1], &served.library);
    if (!code)
        snprintf(hello.name, sizeof hello.name, "%s", served.library.objective->name);
    hello.form = served.library.form;
    tell(&hello, code);
    while (recv(PLUGIN_SOCKET, &request, sizeof request, 0) == sizeof request)
        answer_request(&served, &request);
    return 0;
}
