/* Inside plugin/ only: a library's process as its parent sees it. */
#ifndef DML_PLUGIN_ASK_H
#define DML_PLUGIN_ASK_H

#include <sys/types.h>

#include "plugin/plugin.h"
#include "plugin/talk.h"

struct plugin_memory {
    char *start; /* mapped, or NULL */
    size_t bytes;
    int descriptor; /* not sent to the library's process yet; −1: it was sent */
};

struct plugin {
    struct plugin_source source;
    struct plugin_description description;
    pid_t pid; /* 0: has ended */
    int socket;
    int ended;      /* a pidfd: it can be read when the process has ended; or −1 */
    uint64_t asked; /* requests */
    struct plugin_memory memory[PLUGIN_MEMORIES];
    double *loss, *gradient;    /* of the last chunk, as they were taken; owned */
    uint64_t losses, gradients; /* that these have room for */
    uint64_t *keys;             /* of the values of a row, to sort them; owned */
    uint64_t keys_room;
    int code; /* of the first error */
    char *text;
};

/* Sends a request, with its number and the memories that are new (NULL: none), and waits for the
 * answer. `doing` completes "… while it was"; see plugin_start() for errors. */
int plugin_ask(struct plugin *plugin, struct plugin_request *request, const char *doing,
               struct plugin_answer *answer);

/* Records an error of the library: "plug-in PATH (NAME): " comes before. */
int plugin_refuse(struct plugin *plugin, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes a memory at least so large. What was in it may be lost. */
int plugin_room(struct plugin *plugin, enum plugin_shared which, size_t bytes);

/* Makes room for `count` doubles that the library writes: they are 0, and lie at `at`. */
int plugin_write_room(struct plugin *plugin, enum plugin_shared which, uint64_t count,
                      uint64_t *at);

/* Copies these doubles out, as the library may change them at any time. ERROR_PLUGIN if something
 * was written before or after them; `function` names the one to blame. */
int plugin_take(struct plugin *plugin, enum plugin_shared which, const char *function,
                uint64_t count, double *to);

void plugin_memory_release(struct plugin_memory *memory);

#endif
