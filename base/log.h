/* The log: one line an event on standard error,
 *
 *     2026-01-31T23:59:59.123Z coordinator info: step 12: loss 0.3244 gradient 1.2e-05
 *
 * A line whose level is off costs one comparison. Safe from any thread. On a terminal a log line
 * first erases the line it is written on, which may be the progress line of any of the programs. */
#ifndef DML_BASE_LOG_H
#define DML_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

extern enum log_level log_level_now;

/* `program` names the process in every line ("shard 2"); it is copied. */
void log_open(const char *program, enum log_level level);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes `text`, whole lines, as the last of this process, which ends now: a thread that would log
 * waits from here on. So what a command says of its end stands last, whatever is at work beside. */
void log_last(const char *text);

#define log_at(level, ...)                                                                         \
    do {                                                                                           \
        if ((level) <= log_level_now)                                                              \
            log_line((level), __VA_ARGS__);                                                        \
    } while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
