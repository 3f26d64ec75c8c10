#include "base/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ESCAPE_BYTES 5 /* "\x1b" and a 0 */

/* Bytes of the UTF-8 character at `text`; 0 if there is none. */
static size_t utf8_length(const char *text) {
    unsigned char first = (unsigned char)*text;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (first > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* ASCII's control characters; and those from 0x80 to 0x9f, which some terminals obey as bytes and
 * others as characters of UTF-8. */
static bool is_control(const char *text, size_t length) {
    unsigned char c = (unsigned char)*text;
    if (length > 1)
        return c == 0xc2 && (unsigned char)text[1] < 0xa0;
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

static void escape_byte(char to[ESCAPE_BYTES], char byte) {
    static const char short_form[] = "\nn\tt\rr";
    const char *found = byte ? strchr(short_form, byte) : NULL;
    if (found && byte < ' ')
        snprintf(to, ESCAPE_BYTES, "\\%c", found[1]);
    else
        snprintf(to, ESCAPE_BYTES, "\\x%02x", (unsigned)(unsigned char)byte);
}

size_t escape_controls(char *to, size_t size, const char *from) {
    size_t used = 0;
    while (*from) {
        char piece[2 * ESCAPE_BYTES] = "";
        size_t length = utf8_length(from);
        if (!length)
            length = 1;
        if (is_control(from, length))
            for (size_t i = 0; i < length; i++)
                escape_byte(piece + strlen(piece), from[i]);
        else
            memcpy(piece, from, length);
        size_t bytes = strlen(piece);
        if (used + bytes >= size)
            break;
        memcpy(to + used, piece, bytes);
        used += bytes;
        from += length;
    }
    to[used] = '\0';
    return used;
}

char *escape_copy(const char *text) {
    size_t size = (ESCAPE_BYTES - 1) * strlen(text) + 1; /* if every byte is escaped */
    char *escaped = memory_new(size, 1);
    escape_controls(escaped, size, text);
    return escaped;
}

void escape_put(const char *text, FILE *out) {
    char *escaped = escape_copy(text);
    fputs(escaped, out);
    free(escaped);
}
