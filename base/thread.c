#include "base/thread.h"

#include <errno.h>
#include <signal.h>

#include "base/error.h"

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
