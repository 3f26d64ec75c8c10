/* What clocks show in a zone, from the system's database of zones (TZif, RFC 8536). */
#ifndef DML_DATA_TEXT_ZONE_H
#define DML_DATA_TEXT_ZONE_H

#include <stdint.h>

struct zone; /* opaque */

/* A zone by its name in the database, "Europe/Rome", or as a distance from UTC, "+02:00". NULL: the
 * machine does not know it. */
struct zone *zone_open(const char *name);
void zone_free(struct zone *zone); /* harmless on NULL */

/* How many minutes clocks are ahead of UTC, so many seconds after the year 1970 began there.
 * Seconds, which some zones had before 1972, are left out. */
int32_t zone_minutes(const struct zone *zone, int64_t seconds);

#endif
