#include "base/text.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool text_is_utf8(const char *text) {
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

json_t *text_to_json(const char *text) {
    json_t *string = json_string(text);
    if (string)
        return string;
    char *utf8 = memory_new(2 * strlen(text) + 1, 1), *at = utf8;
    for (; *text; text++) {
        uint8_t byte = (uint8_t)*text;
        if (byte >= 0x80) {
            *at++ = (char)(0xc0 | (byte >> 6));
            byte = 0x80 | (byte & 0x3f);
        }
        *at++ = (char)byte;
    }
    string = json_string(utf8);
    free(utf8);
    return string;
}

json_t *number_json(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}
