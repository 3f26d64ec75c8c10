/* The run that a worker serves: one at a time. */
#ifndef DML_WIRE_TENANCY_H
#define DML_WIRE_TENANCY_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: none. */
struct tenancy {
    char *run;        /* as HELLO names it; owned */
    int64_t until_ns; /* its coordinator is lost, and it ends then; 0: it has one */
};

/* The run goes on if it is that of before. */
void tenancy_begin(struct tenancy *tenancy, const char *run);
void tenancy_end(struct tenancy *tenancy);

/* Why a coordinator of `run` must wait: when the worker may be free. NULL if it need not. Free it.
 */
char *tenancy_objection(const struct tenancy *tenancy, const char *run, int64_t now_ns);

#endif
