/* The addresses that names list, asked for again and again: "dns:NAME:PORT" in replica_addresses.
 *
 * An answer replaces the one before it. While a name cannot be resolved, or lists nobody, its last
 * answer stays: that nobody can tell is no reason to let replicas go, whose connections say whether
 * they are there. */
#ifndef DML_COORDINATOR_RUN_NAME_WATCH_H
#define DML_COORDINATOR_RUN_NAME_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct name_watch; /* opaque */

/* A name has answered, with at least one address. Called from the loop; must not free the watch. */
typedef void name_watch_answered(void *context);

/* Watches those of the addresses, NULL-terminated, that are dns:NAME:PORT. They must outlive it.
 * Names are resolved in threads, at once and then every few seconds. */
struct name_watch *name_watch_new(struct event_base *base, char *const *addresses,
                                  name_watch_answered *answered, void *context);
void name_watch_free(struct name_watch *watch); /* harmless on NULL */

/* The addresses that names list now, each once, as HOST:PORT with a number for a host: item `i`, or
 * NULL after the last. Valid until the next answer. */
const char *name_watch_item(const struct name_watch *watch, uint32_t i);

/* "dns:NAME:PORT (WHY)": the first name, and why it lists nobody. Free it. */
char *name_watch_text(const struct name_watch *watch);

#endif
