/* What each function of dml/model.h begins and ends with, so that nothing below it can end the
 * process of its caller.
 *
 * The code below ends a process that is out of memory (base/memory.h), or whose state is not what
 * an assertion says. In the library both come back here, and are answers of the call. What the call
 * had taken by then is not given back: a scorer that it used can only be freed. */
#ifndef DML_LIBRARY_CALLS_H
#define DML_LIBRARY_CALLS_H

#include <setjmp.h>

struct call {
    jmp_buf back;
};

/* Begins a call of this thread: forgets its last error. */
void call_begin(struct call *call);

/* Does `work`, an expression that answers an error, and answers the call with it; or with what made
 * it end too early. The local variables of the function may not change. */
#define CALL(work)                                                                                 \
    do {                                                                                           \
        struct call call;                                                                          \
        call_begin(&call);                                                                         \
        if (setjmp(call.back))                                                                     \
            return call_broken();                                                                  \
        return call_end(work);                                                                     \
    } while (0)

int call_end(int code);
int call_broken(void);

/* Ends the call of this thread too early, with an error that is set. */
_Noreturn void call_break(int code);

#endif
