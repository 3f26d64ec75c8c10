/* Pages of keys: the text up to a byte 1 is the first, the rest the next. */
#include <stdlib.h>
#include <string.h>

#include "data/remote/listing.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void check_page(struct listing *listing, const uint8_t *data, size_t length) {
    char *text = malloc(length ? length : 1); /* of its length, so that reads beyond it are seen */
    if (length)
        memcpy(text, data, length);
    const char *why = listing_add(listing, text, length);
    if ((why && listing->token) || (listing->token && !*listing->token))
        abort();
    for (size_t i = 0; i < listing->count; i++)
        if (!*listing->key[i])
            abort();
    if (listing->count && listing->key[listing->count])
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct listing listing = {0};
    const uint8_t *behind = length ? memchr(data, 1, length) : NULL;
    check_page(&listing, data, behind ? (size_t)(behind - data) : length);
    if (behind)
        check_page(&listing, behind + 1, length - (size_t)(behind - data) - 1);
    listing_release(&listing);
    return 0;
}
