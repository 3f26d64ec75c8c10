/* What a server answers to ListObjectsV2: a page of keys, as XML. Pure. */
#ifndef DML_DATA_REMOTE_LISTING_H
#define DML_DATA_REMOTE_LISTING_H

#include <stdbool.h>
#include <stddef.h>

struct listing {
    char **key; /* `count`, as they are in the bucket, and a NULL; owned */
    size_t count, capacity;
    char *token; /* that the next page is asked for with; NULL: this is the last; owned */
};

/* Adds the keys of a page to the listing, and replaces the token. NULL, or why the page is none:
 * not the XML that is expected, with a document type, nested too deep, a key that is no text. Keys
 * must be percent-encoded (encoding-type=url). */
const char *listing_add(struct listing *listing, const char *xml, size_t length);
void listing_release(struct listing *listing);

#endif
