#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/text.h"

static _Thread_local char text[4096];

static void error_describe(const char *format, va_list arguments) {
    char raw[sizeof text];
    vsnprintf(raw, sizeof raw, format, arguments);
    escape_controls(text, sizeof text, raw);
}

int error_set(int code, const char *format, ...) {
    if (text[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        error_describe(format, arguments);
        va_end(arguments);
    }
    return code;
}

static int code_of_errno(int code, int number) {
    switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
        return ERROR_PERMISSION;
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ERROR_IO;
    default:
        return code;
    }
}

int error_set_errno(int code, const char *format, ...) {
    int number = errno;
    if (text[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        error_describe(format, arguments);
        va_end(arguments);
        /* "Too many open files" alone does not say what to do: add the limit and the command. */
        size_t length = strlen(text);
        struct rlimit limit;
        if (number == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
            snprintf(text + length, sizeof text - length,
                     ": %s: %llu are allowed; raise `ulimit -n`", strerror(number),
                     (unsigned long long)limit.rlim_cur);
        else
            snprintf(text + length, sizeof text - length, ": %s", strerror(number));
    }
    return code_of_errno(code, number);
}

int error_set_stream(FILE *stream, const char *name) {
    clearerr(stream);
    if (fputc('\n', stream) == EOF || fflush(stream))
        return error_set_errno(ERROR_IO, "cannot write %s", name);
    return error_set(ERROR_IO, "cannot write %s", name);
}

const char *error_text(void) {
    return text;
}

void error_clear(void) {
    text[0] = '\0';
}

const char *error_name(int code) {
    switch (code) {
#define X(name, status, words)                                                                     \
    case name:                                                                                     \
        return words;
        ERROR_TABLE(X)
#undef X
    default:
        return "unknown error";
    }
}
