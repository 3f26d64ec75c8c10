#include "coordinator/status/response.h"

#include <stdio.h>

static const char *status_text(int status) {
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {414, "URI Too Long"},
        {421, "Misdirected Request"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "Internal Server Error";
}

/* Caches must not store an answer: it is about one instant. */
size_t response_head(const struct http_answer *answer, bool keep_alive, time_t now,
                     char head[RESPONSE_HEAD_MAX]) {
    char date[64];
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    return (size_t)snprintf(head, RESPONSE_HEAD_MAX,
                            "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n"
                            "Content-Length: %zu\r\nCache-Control: no-store\r\n"
                            "X-Content-Type-Options: nosniff\r\n%sConnection: %s\r\n\r\n",
                            answer->status, status_text(answer->status), date, answer->type,
                            answer->length, answer->fields ? answer->fields : "",
                            keep_alive ? "keep-alive" : "close");
}
