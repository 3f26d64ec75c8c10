/* Errors: one list of codes, one text per thread.
 *
 * A function that can fail returns 0, or one of the negative codes below after describing the
 * failure with error_set(). A code is the negated exit status (those of sysexits.h, and 1), so
 * a command ends with `return -code`. The text says what failed, where, and what to do about it.
 *
 * The first error wins: error_set() keeps the text that is there until error_clear(). A thread
 * that works for another hands its code and text over (error_text() there, error_set() here). */
#ifndef DML_BASE_ERROR_H
#define DML_BASE_ERROR_H

#include <stdio.h>

/*        name          exit  meaning */
#define ERROR_TABLE(X)                                                                             \
    X(ERROR_NOT_CONVERGED, 1, "not converged")                                                     \
    X(ERROR_USAGE, 64, "usage")                                                                    \
    X(ERROR_DATA, 65, "bad data")                                                                  \
    X(ERROR_UNAVAILABLE, 69, "unavailable")                                                        \
    X(ERROR_INTERNAL, 70, "internal error")                                                        \
    X(ERROR_CREATE, 73, "cannot create")                                                           \
    X(ERROR_IO, 74, "input/output error")                                                          \
    X(ERROR_AGAIN, 75, "try again")                                                                \
    X(ERROR_PLUGIN, 76, "plug-in failed")                                                          \
    X(ERROR_PERMISSION, 77, "permission denied")                                                   \
    X(ERROR_CONFIG, 78, "bad job file")

enum error_code {
#define X(name, status, text) name = -(status),
    ERROR_TABLE(X)
#undef X
};

/* Records the text unless one is recorded already. Returns `code`, for `return error_set(…)`. */
int error_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As error_set(), with ": " and the text of errno after it; the code follows from errno where
 * that says more (EACCES and EPERM are ERROR_PERMISSION, ENOSPC and EIO are ERROR_IO). */
int error_set_errno(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As error_set_errno() for a stream into which something could not be written: the reason is the
 * one that the system gives when one more byte is written. `name` is what the stream leads to. */
int error_set_stream(FILE *stream, const char *name);

/* The text of this thread's first error; "" when there is none. Valid until error_clear(). */
const char *error_text(void);

void error_clear(void);

/* The short name of a code: "bad data". */
const char *error_name(int code);

#endif
