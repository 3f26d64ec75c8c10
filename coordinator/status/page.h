/* The page for browsers as a part of the program: coordinator/status/page/, put together. */
#ifndef DML_COORDINATOR_STATUS_PAGE_H
#define DML_COORDINATOR_STATUS_PAGE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/status/http_message.h"

/* A field of the answer. The page may use only its own scripts and styles, and may connect only to
 * this server. */
#define PAGE_POLICY                                                                                \
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "                     \
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "             \
    "form-action 'none'; frame-ancestors 'none'\r\n"

extern const unsigned char page_html[];
extern const size_t page_html_length;

/* The page of `serve` that lists several state folders. */

struct index_entry {
    const char *folder;
    const json_t *status; /* of its newest run, or NULL */
    const json_t *runs;   /* report_runs(), or NULL */
    char *trouble;        /* why there is none, or why it may be old; or NULL */
    const double *losses; /* of that run, step by step; they may be NaN */
    size_t steps;
    bool epochs; /* they are means of epochs of minibatches: there are no steps */
};

/* Entry i, from 0, is a link to the page at i + 1 and a slash. */
void index_answer(const struct index_entry *entries, uint32_t count, struct http_answer *answer);

#endif
