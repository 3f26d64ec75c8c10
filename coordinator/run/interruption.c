#include "coordinator/run/interruption.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "coordinator/run/progress.h"

static _Atomic pid_t waited_for;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "the handler reads it");

/* Only async-signal-safe calls. Nobody can be told if the message cannot be written. */
static void end_interrupted(int number) {
    const char *text = number == SIGINT
                           ? "dml-coordinator: interrupted; the same command goes on from here\n"
                           : "dml-coordinator: terminated; the same command goes on from here\n";
    pid_t child = waited_for;
    progress_close();
    if (child)
        kill(child, number);
    _exit(write(STDERR_FILENO, text, strlen(text)) < 0 ? -ERROR_IO : -ERROR_AGAIN);
}

void interruption_open(void) {
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = end_interrupted};
    struct sigaction old;
    sigfillset(&action.sa_mask);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}

void interruption_pass_to(pid_t child) {
    waited_for = child;
}
