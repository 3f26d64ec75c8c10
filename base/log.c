#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

enum log_level log_level_now = LOG_INFO;

static char program_name[64] = "dml";
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* held while a line is written */
static bool erases; /* standard error is a terminal: a progress line may stand there */

void log_open(const char *program, enum log_level level) {
    snprintf(program_name, sizeof program_name, "%s", program);
    log_level_now = level;
    erases = terminal_erases(STDERR_FILENO);
}

/* One write for each line: several processes share standard error, and lines must not mix. There is
 * nowhere to report a failed write. */
static void write_whole(const char *line, size_t length) {
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

void log_line(enum log_level level, const char *format, ...) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    struct timespec now;
    struct tm utc;
    char line[4096];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = erases ? strlen(strcpy(line, TERMINAL_ERASE)) : 0;
    length += strftime(line + length, sizeof line - length, "%Y-%m-%dT%H:%M:%S", &utc);
    length += (size_t)snprintf(line + length, sizeof line - length,
                               ".%03dZ %s %s: ", (int)(now.tv_nsec / 1000000), program_name,
                               names[level]);
    char message[sizeof line];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    length += escape_controls(line + length, sizeof line - length - 1, message);
    line[length++] = '\n';
    pthread_mutex_lock(&writing);
    write_whole(line, length);
    pthread_mutex_unlock(&writing);
}

void log_last(const char *text) {
    pthread_mutex_lock(&writing); /* for good */
    write_whole(text, strlen(text));
}
