#include "coordinator/publish/notice.h"

#include <syslog.h> /* its names of levels are those of base/log.h: both cannot be had in a file */

void notice_send(const char *job, bool wrong, const char *text) {
    openlog("dml", LOG_PID, LOG_USER);
    syslog(wrong ? LOG_ERR : LOG_INFO, "%s: %s", job, text);
    closelog();
}
