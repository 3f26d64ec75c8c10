#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/escape.h"

bool terminal_erases(int descriptor) {
    const char *kind = getenv("TERM");
    return isatty(descriptor) && kind && *kind && strcmp(kind, "dumb") != 0;
}

bool terminal_colors(int descriptor) {
    const char *unwanted = getenv("NO_COLOR");
    return terminal_erases(descriptor) && !(unwanted && *unwanted);
}

void terminal_size(int descriptor, int *rows, int *columns) {
    struct winsize size = {0};
    if (ioctl(descriptor, TIOCGWINSZ, &size))
        size = (struct winsize){0};
    *rows = size.ws_row ? size.ws_row : 24;
    *columns = size.ws_col ? size.ws_col : 80;
}

static void begin_style(FILE *out, bool colors, enum style style) {
    static const char *const codes[] = {"", "\033[1m", "\033[32m", "\033[33m", "\033[31m"};
    if (colors)
        fputs(codes[style], out);
}

static void end_style(FILE *out, bool colors, enum style style) {
    if (colors && style != STYLE_PLAIN)
        fputs("\033[0m", out);
}

void terminal_put(FILE *out, bool colors, enum style style, const char *text) {
    begin_style(out, colors, style);
    escape_put(text, out);
    end_style(out, colors, style);
}

static bool is_continuation(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static int count_characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += !is_continuation(*text);
    return count;
}

/* The bytes of the first `count` characters, at most all. */
static size_t bytes_of(const char *text, int count) {
    size_t length = 0;
    while (text[length] && (count > 0 || is_continuation(text[length]))) {
        count -= !is_continuation(text[length]);
        length++;
    }
    return length;
}

int terminal_put_cut(FILE *out, bool colors, enum style style, const char *text, int columns) {
    char *escaped = escape_copy(text);
    int characters = count_characters(escaped);
    bool cut = characters > columns;
    size_t length = bytes_of(escaped, cut ? columns - 1 : columns);
    begin_style(out, colors, style);
    fprintf(out, "%.*s%s", (int)length, escaped, cut ? "…" : "");
    end_style(out, colors, style);
    free(escaped);
    return cut ? columns : characters;
}

void terminal_put_cell(FILE *out, bool colors, enum style style, const char *text, int columns) {
    int taken = terminal_put_cut(out, colors, style, text, columns);
    fprintf(out, "%*s", columns - taken, "");
}
