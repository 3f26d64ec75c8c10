#include "coordinator/status/page.h"

/* The build makes page.inc from page.html: the bytes as numbers. */
const unsigned char page_html[] = {
#include <coordinator/status/page.inc>
};
const size_t page_html_length = sizeof page_html;
