/* Which library it is, as the coordinator tells it to replicas. */
#include <math.h>
#include <string.h>

#include "plugin/plugin.h"

static void put_text(struct bytes *blob, const char *text) {
    bytes_append(blob, text, strlen(text) + 1);
}

void plugin_source_encode(const struct plugin_source *source, struct bytes *blob) {
    put_text(blob, source->library);
    put_text(blob, source->options);
    put_text(blob, source->sha256);
    bytes_put_f64(blob, source->seconds);
}

/* NULL if no text ends within the rest, or it is too long. */
static const char *take_text(struct cursor *cursor) {
    const uint8_t *end = memchr(cursor->at, 0, cursor_left(cursor));
    return end && end - cursor->at < PLUGIN_TEXT_MAX
               ? cursor_take(cursor, (size_t)(end - cursor->at) + 1)
               : NULL;
}

bool plugin_source_decode(const void *blob, size_t length, struct plugin_source *source) {
    struct cursor cursor = cursor_over(blob, length);
    *source = (struct plugin_source){0};
    source->library = take_text(&cursor);
    source->options = source->library ? take_text(&cursor) : NULL;
    source->sha256 = source->options ? take_text(&cursor) : NULL;
    source->seconds = source->sha256 ? cursor_f64(&cursor) : 0;
    return source->sha256 && !cursor.failed && !cursor_left(&cursor) && isfinite(source->seconds) &&
           source->seconds > 0 && source->library[0] == '/';
}
