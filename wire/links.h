/* The connections of a host, by number: for wire/host.c. */
#ifndef DML_WIRE_LINKS_H
#define DML_WIRE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;
struct peer;

struct link {
    struct host *host;
    uint32_t number;            /* from 1 up, never used again */
    uint32_t reconnect_seconds; /* as its HELLO said, */
    char *run;                  /* as is this; owned; NULL before */
    struct peer *peer;          /* the host's to free */
    bool stranger;              /* neither WELCOMEd nor GREETed yet */
    int64_t opened_ns;
};

/* All zero: no links. */
struct links {
    struct link **items; /* by rising number, so the first is the oldest; owned */
    size_t count, capacity;
    uint32_t last_number;
};

/* Adds a link with the next number; the rest of it is zero. It is valid until links_forget(). */
struct link *links_add(struct links *links);

/* NULL if there is no link of that number (any more). */
struct link *links_find(const struct links *links, uint32_t number);

/* The stranger that has been connected for longest, or NULL. */
struct link *links_first_stranger(const struct links *links);

/* Takes a link out and frees it, but not its peer. */
void links_forget(struct links *links, struct link *link);

/* Frees the list, which must be empty. */
void links_release(struct links *links);

#endif
