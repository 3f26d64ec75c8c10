/* Where the status server listens, and how many it may serve at once. */
#ifndef DML_COORDINATOR_STATUS_LISTENING_H
#define DML_COORDINATOR_STATUS_LISTENING_H

#include <stdint.h>

#include "coordinator/status/authority.h"

#define LISTENING_PLACES_MAX 256

/* Listens on ADDRESS:PORT: on loopback, elsewhere too if the address says so, but not unnoticed.
 * `bound`, to be freed, names the port that was picked for port 0. ERROR_UNAVAILABLE,
 * ERROR_PERMISSION. */
int listening_open(const char *address, int *descriptor, char **bound);

/* What the server goes by that listens there. */
void listening_own(const char *address, int descriptor, struct authority_own *own);

/* Connections served at once, at most LISTENING_PLACES_MAX: so many that workers, checkpoints and
 * the store never want for descriptors. */
uint32_t listening_places(void);

#endif
