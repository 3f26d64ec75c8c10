/* The page for browsers, coordinator/status/page.html, as a part of the program. */
#ifndef DML_COORDINATOR_STATUS_PAGE_H
#define DML_COORDINATOR_STATUS_PAGE_H

#include <stddef.h>

/* A field of the answer. The page may use only its own scripts and styles, and may connect only to
 * this server. */
#define PAGE_POLICY                                                                                \
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "                     \
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "             \
    "form-action 'none'; frame-ancestors 'none'\r\n"

extern const unsigned char page_html[];
extern const size_t page_html_length;

#endif
