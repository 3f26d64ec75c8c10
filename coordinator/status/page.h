/* The page for browsers, coordinator/status/page.html, as a part of the program. */
#ifndef DML_COORDINATOR_STATUS_PAGE_H
#define DML_COORDINATOR_STATUS_PAGE_H

#include <stddef.h>

extern const unsigned char page_html[];
extern const size_t page_html_length;

#endif
