#include "library/calls.h"

#include "base/error.h"
#include "library/dml/model.h"

/* The call that this thread is in, and how it ended too early. */
static _Thread_local struct {
    struct call *call;
    int code;
} now;

void call_begin(struct call *call) {
    error_clear();
    now.call = call;
}

int call_end(int code) {
    now.call = NULL;
    return code;
}

int call_broken(void) {
    return call_end(now.code);
}

_Noreturn void call_break(int code) {
    now.code = code;
    longjmp(now.call->back, 1);
}

const char *dml_error_text(void) {
    return error_text();
}
