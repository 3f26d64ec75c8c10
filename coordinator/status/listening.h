/* Where the status server listens, and how many connections it may have. */
#ifndef DML_COORDINATOR_STATUS_LISTENING_H
#define DML_COORDINATOR_STATUS_LISTENING_H

#include <stdint.h>

#include "coordinator/status/authority.h"

#define LISTENING_PLACES_MAX 256

/* Listens on ADDRESS:PORT, with a warning if the address is not a loopback address. `bound`, to be
 * freed, is the address with the port that was picked for port 0. ERROR_UNAVAILABLE,
 * ERROR_PERMISSION. */
int listening_open(const char *address, int *descriptor, char **bound);

/* The names and addresses of the server that listens there. */
void listening_own(const char *address, int descriptor, struct authority_own *own);

/* How many connections there may be at once, at most LISTENING_PLACES_MAX. The limit leaves enough
 * descriptors for workers, checkpoints and the store. */
uint32_t listening_places(void);

#endif
