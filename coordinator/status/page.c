#include "coordinator/status/page.h"

/* Made from page.html when this is built: its bytes as numbers. */
const unsigned char page_html[] = {
#include <coordinator/status/page.inc>
};
const size_t page_html_length = sizeof page_html;
