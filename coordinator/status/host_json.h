/* Hosts as the status and the result show them. */
#ifndef DML_COORDINATOR_STATUS_HOST_JSON_H
#define DML_COORDINATOR_STATUS_HOST_JSON_H

#include <jansson.h>

#include "coordinator/hosts.h"
#include "store/store.h"

/* What is recorded of a host, by its number; valid as long as the hosts are. */
struct store_host host_row(const struct hosts *hosts, uint32_t number);

/* {name, state, why (or null), workers, failures, threads (null: all that it has)}. A new
 * reference. */
json_t *host_json(const struct store_host *host);

/* A list of all; empty if `hosts` is NULL. A new reference. */
json_t *hosts_json(const struct hosts *hosts);

#endif
