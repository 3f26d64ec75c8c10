/* The readable trace: one line a message, with all its fields. */
#ifndef DML_TESTS_CLUSTER_TRACE_H
#define DML_TESTS_CLUSTER_TRACE_H

#include "tests/cluster/world.h"

void trace_message(const struct process *from, const struct process *to,
                   const struct message *message);
/* Whether what the roles log is part of the trace, or thrown away. */
void trace_log(bool on);

#endif
