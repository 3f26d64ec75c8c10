/* The page of `serve` that lists several state folders. */
#ifndef DML_COORDINATOR_STATUS_INDEX_H
#define DML_COORDINATOR_STATUS_INDEX_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/status/response.h"

struct index_entry {
    const char *folder;
    const json_t *status; /* of its newest run, or NULL */
    char *trouble;        /* why there is none, or why it may be old; or NULL */
};

/* Entry i, from 0, is a link to the page at i + 1 and a slash. */
void index_answer(const struct index_entry *entries, uint32_t count, struct http_answer *answer);

#endif
