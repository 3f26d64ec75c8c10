#include "data/list.h"

#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

bool list_next(const char **at, char separator, struct bytes *part) {
    const char separators[] = {separator, '\0'};
    while (**at) {
        const char *first = *at, *end = first + strcspn(first, separators);
        *at = *end ? end + 1 : end;
        while (first < end && is_blank(*first))
            first++;
        while (end > first && is_blank(end[-1]))
            end--;
        if (first == end)
            continue;
        bytes_clear(part);
        bytes_append(part, first, (size_t)(end - first));
        bytes_put_u8(part, 0);
        return true;
    }
    return false;
}
