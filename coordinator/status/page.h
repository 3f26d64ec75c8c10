/* The page for people, coordinator/status/page.html, as it is built into the program. */
#ifndef DML_COORDINATOR_STATUS_PAGE_H
#define DML_COORDINATOR_STATUS_PAGE_H

#include <stddef.h>

extern const unsigned char page_html[];
extern const size_t page_html_length;

#endif
