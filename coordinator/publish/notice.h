/* A line in the system's log (syslog, the journal): what became of a night's work, where nobody
 * reads standard error. */
#ifndef DML_COORDINATOR_PUBLISH_NOTICE_H
#define DML_COORDINATOR_PUBLISH_NOTICE_H

#include <stdbool.h>

/* "dml[PID]: JOB: TEXT"; as an error if `wrong`. */
void notice_send(const char *job, bool wrong, const char *text);

#endif
