#define _GNU_SOURCE
#include "base/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"

/* What the deepest calls need of it; frames of 0.2 MB are among them. */
#define STACK_BYTES (8u << 20)
#define STACK_BYTES_LEAST (1u << 20)

static int provide_stacks(void) {
    struct rlimit limit;
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (!pthread_getattr_default_np(&attributes)) {
        if (!pthread_attr_getstacksize(&attributes, &bytes) && bytes < STACK_BYTES &&
            !pthread_attr_setstacksize(&attributes, STACK_BYTES))
            pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
    }
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_BYTES)
        return 0;
    limit.rlim_cur = limit.rlim_max < STACK_BYTES ? limit.rlim_max : STACK_BYTES;
    (void)setrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur >= STACK_BYTES_LEAST)
        return 0;
    return error_set(ERROR_UNAVAILABLE,
                     "the stack may have %llu KiB only, and at least %u are needed; raise "
                     "`ulimit -s`",
                     (unsigned long long)limit.rlim_cur / 1024, STACK_BYTES_LEAST / 1024);
}

static void *allocate(size_t bytes) {
    return memory_new(1, bytes);
}

void process_end_first(void) {
    int descriptor = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char now[16] = "";
    if (descriptor < 0)
        return;
    if (read(descriptor, now, sizeof now - 1) > 0 && atoi(now) < 500)
        (void)!pwrite(descriptor, "500", 3, 0);
    close(descriptor);
}

int process_begin(void) {
    int descriptor;
    do
        descriptor = open("/dev/null", O_RDWR); /* takes the lowest number that is free */
    while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor > STDERR_FILENO)
        close(descriptor);
    signal(SIGXFSZ, SIG_IGN);
    json_set_alloc_funcs(allocate, free);
    return provide_stacks();
}

unsigned long long process_number(void) {
    static _Atomic unsigned long long number;
    unsigned long long drawn = 0, none = 0;
    if (number)
        return number;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
        drawn = (unsigned long long)clock_wall_ms() << 22;
    drawn = drawn >> 23 << 22 | (unsigned)getpid(); /* ids are below 2^22 */
    atomic_compare_exchange_strong(&number, &none, drawn);
    return number;
}

char *process_beside(const char *name) {
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0)
        return memory_copy_string(name);
    own[length] = '\0';
    char *beside = memory_format("%.*s/%s", (int)(strrchr(own, '/') - own), own, name);
    if (access(beside, X_OK) == 0)
        return beside;
    free(beside);
    return memory_copy_string(name);
}

void process_raise_descriptors(unsigned wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool process_ignores(int number) {
    struct sigaction now;
    return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

bool process_group_ended(pid_t group, int patience_ms) {
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    assert(group > 1); /* kill(-1) means all processes, and kill(0) the group of this one */
    for (int waited = 0; kill(-group, 0) == 0 || errno == EPERM; waited++) {
        if (waited >= patience_ms)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

int process_end(int code) {
    /* ferror(), too: an earlier write may have failed, and the last one not. */
    bool flushed = !fflush(stdout);
    if (code || (flushed && !ferror(stdout)))
        return code;
    return error_set_stream(stdout, "standard output");
}

int thread_start(pthread_t *thread, void *(*work)(void *context), void *context) {
    sigset_t all, before;
    sigfillset(&all);
    /* Blocked here and not in the new thread, which inherits the mask: a signal could otherwise
     * reach the thread before its first statement. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(thread, NULL, work, context);
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return failed ? error_set_errno(ERROR_UNAVAILABLE, "cannot start a thread") : 0;
}

void threads_run(unsigned threads, void *(*work)(void *context), void *context) {
    pthread_t others[THREADS_MAX];
    unsigned started = 0;
    while (started + 1 < threads && started < THREADS_MAX &&
           !pthread_create(&others[started], NULL, work, context))
        started++;
    work(context);
    for (unsigned i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

struct shared {
    void (*work)(void *context, unsigned part);
    void *context;
    unsigned parts;
    atomic_uint begun;
};

static void *take_parts(void *argument) {
    struct shared *shared = argument;
    for (;;) {
        unsigned part = atomic_fetch_add(&shared->begun, 1);
        if (part >= shared->parts)
            return NULL;
        shared->work(shared->context, part);
    }
}

void threads_share(unsigned threads, unsigned parts, void (*work)(void *context, unsigned part),
                   void *context) {
    struct shared shared = {.work = work, .context = context, .parts = parts};
    threads_run(threads < parts ? threads : parts, take_parts, &shared);
}

struct attempt {
    int (*work)(void *context, unsigned part);
    void *context;

    pthread_mutex_t mutex; /* guards what follows */
    int code;              /* of the first failure */
    char *text;
};

/* After a failure the other parts are left out. An error belongs to the thread that records it:
 * that of the caller is told of it later. */
static void try_part(void *context, unsigned part) {
    struct attempt *attempt = context;
    pthread_mutex_lock(&attempt->mutex);
    const bool failed = attempt->code;
    pthread_mutex_unlock(&attempt->mutex);
    int code = failed ? 0 : attempt->work(attempt->context, part);
    if (!code)
        return;
    pthread_mutex_lock(&attempt->mutex);
    if (!attempt->code) {
        attempt->code = code;
        attempt->text = memory_copy_string(error_text());
    }
    pthread_mutex_unlock(&attempt->mutex);
    error_clear();
}

int threads_try(unsigned threads, unsigned parts, int (*work)(void *context, unsigned part),
                void *context) {
    struct attempt attempt = {.work = work, .context = context, .mutex = PTHREAD_MUTEX_INITIALIZER};
    threads_share(threads, parts, try_part, &attempt);
    int code = attempt.code ? error_set(attempt.code, "%s", attempt.text) : 0;
    free(attempt.text);
    return code;
}
