#define _GNU_SOURCE
#include "base/process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void open_standard_descriptors(void) {
    int descriptor;
    do
        descriptor = open("/dev/null", O_RDWR); /* takes the lowest number that is free */
    while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor > STDERR_FILENO)
        close(descriptor);
}

/* OpenBLAS starts a thread a processor when it is loaded, before main(), unless its variable in the
 * environment forbids it. We compute with threads of our own; and where memory is limited
 * (ulimit -v) its threads lack theirs, and the process hangs when it ends or starts another. So the
 * program begins once more with that variable set. What it was is then restored, for programs that
 * this one starts. */
#define THREADS "OPENBLAS_NUM_THREADS"
#define THREADS_BEFORE "DML_OPENBLAS_NUM_THREADS"
#define UNSET "unset"

static void restore_threads(const char *before) {
    if (strcmp(before, UNSET) != 0)
        setenv(THREADS, before, 1);
    else
        unsetenv(THREADS);
    unsetenv(THREADS_BEFORE);
}

/* If it cannot begin once more, it goes on: memory is seldom limited. */
static void begin_without_blas_threads(char **argv) {
    char path[PATH_MAX];
    const char *threads = getenv(THREADS), *before = getenv(THREADS_BEFORE);
    if (before) {
        restore_threads(before);
        return;
    }
    /* The link's own name would become that of the process. */
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0 || (threads && !strcmp(threads, "1")))
        return;
    path[length] = '\0';
    setenv(THREADS_BEFORE, threads ? threads : UNSET, 1);
    setenv(THREADS, "1", 1);
    execv(path, argv);
    restore_threads(getenv(THREADS_BEFORE));
}

void process_begin(char **argv) {
    open_standard_descriptors();
    signal(SIGXFSZ, SIG_IGN);
    begin_without_blas_threads(argv);
}

int process_end(int code) {
    /* An earlier write may have failed and this one not. */
    bool written = !fflush(stdout) && !ferror(stdout);
    if (code || written)
        return code;
    return error_set(ERROR_IO, "cannot write to standard output");
}
