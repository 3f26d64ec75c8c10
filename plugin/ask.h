/* Inside plugin/ only: a library's process as its parent sees it. */
#ifndef DML_PLUGIN_ASK_H
#define DML_PLUGIN_ASK_H

#include <sys/types.h>

#include "plugin/plugin.h"
#include "plugin/talk.h"

struct plugin {
    struct plugin_source source;
    struct plugin_description description;
    pid_t pid; /* 0: has ended */
    int socket, descriptor;
    char *memory; /* shared with it */
    size_t bytes;
    int code; /* of the first error */
    char *text;
};

/* Sends a request (NULL: none) and waits for the answer. `doing` completes "… while it was"; see
 * plugin_start() for errors. */
int plugin_ask(struct plugin *plugin, const struct plugin_request *request, const char *doing,
               struct plugin_answer *answer);

/* Records an error of the library: "plug-in PATH (NAME): " comes before. */
int plugin_refuse(struct plugin *plugin, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes the shared memory at least so large. What was in it may be lost. */
int plugin_room(struct plugin *plugin, size_t bytes);

#endif
