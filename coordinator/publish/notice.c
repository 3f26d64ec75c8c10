#include "coordinator/publish/notice.h"

#include <syslog.h> /* defines LOG_INFO and others, as base/log.h does: no file may include both */

void notice_send(const char *job, bool wrong, const char *text) {
    openlog("dml", LOG_PID, LOG_USER);
    syslog(wrong ? LOG_ERR : LOG_INFO, "%s: %s", job, text);
    closelog();
}
