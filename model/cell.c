#include "model/cell.h"

#include <stdbool.h>
#include <string.h>

#include "data/text/number.h"

void output_write_quoted(const char *text, FILE *file) {
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

void output_write_cell(const char *text, FILE *file) {
    size_t length = strlen(text);
    bool plain =
        !strpbrk(text, ",\"\r\n") && !(length && (is_blank(text[0]) || is_blank(text[length - 1])));
    if (plain)
        fputs(text, file);
    else
        output_write_quoted(text, file);
}
