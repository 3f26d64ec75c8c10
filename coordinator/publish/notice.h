/* A line in the system's log (syslog, the journal) that says what a command of cron came to: nobody
 * reads its standard error. */
#ifndef DML_COORDINATOR_PUBLISH_NOTICE_H
#define DML_COORDINATOR_PUBLISH_NOTICE_H

#include <stdbool.h>

/* "dml[PID]: JOB: TEXT"; as an error if `wrong`. */
void notice_send(const char *job, bool wrong, const char *text);

#endif
