#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

const char *member_text(const json_t *object, const char *member) {
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "-";
}

long long member_count(const json_t *object, const char *member) {
    return (long long)json_integer_value(json_object_get(object, member));
}

double member_number(const json_t *object, const char *member) {
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- escapes ---- */

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

/* Escapes ASCII's control characters; and those from 0x80 to 0x9f, which some terminals obey as
 * bytes and others as characters of UTF-8. */
size_t escape_controls(char *to, size_t size, const char *from) {
    static const char short_form[] = "\nn\tt\rr";
    size_t used = 0;
    assert(size > 0);
    while (*from) {
        char piece[2 * ESCAPE_BYTES] = "";
        size_t length = utf8_length(from);
        if (!length)
            length = 1;
        const unsigned char first = (unsigned char)*from, second = (unsigned char)from[1];
        bool control = length > 1 ? first == 0xc2 && second < 0xa0
                                  : first < 0x20 || (first >= 0x7f && first < 0xa0);
        const char *found = first < ' ' ? strchr(short_form, *from) : NULL;
        if (control && found)
            snprintf(piece, sizeof piece, "\\%c", found[1]);
        for (size_t i = 0; control && !found && i < length; i++)
            snprintf(piece + strlen(piece), ESCAPE_BYTES, "\\x%02x",
                     (unsigned)(unsigned char)from[i]);
        if (!control)
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

char *shell_word(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./,:=@+%";
    if (*text && !text[strspn(text, plain)])
        return memory_copy_string(text);
    char *word = memory_new(4 * strlen(text) + 3, 1), *to = word;
    *to++ = '\'';
    for (; *text; text++)
        if (*text == '\'')
            to = stpcpy(to, "'\\''"); /* closes the quotes, adds one, and opens them again */
        else
            *to++ = *text;
    *to = '\'';
    return word;
}

/* ---- misspelt words ---- */

#define LENGTH_MAX 40 /* no word of ours is longer */

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static bool is_same_letter(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The number of changes, where no letter is changed twice: the restricted distance of Damerau and
 * Levenshtein, by its usual table of prefixes. */
static unsigned distance_of(const char *a, size_t length_a, const char *b, size_t length_b) {
    unsigned table[LENGTH_MAX + 1][LENGTH_MAX + 1];
    for (unsigned i = 0; i <= length_a; i++)
        table[i][0] = i;
    for (unsigned j = 0; j <= length_b; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= length_a; i++)
        for (size_t j = 1; j <= length_b; j++) {
            unsigned changed = table[i - 1][j - 1] + !is_same_letter(a[i - 1], b[j - 1]);
            table[i][j] = least(changed, least(table[i - 1][j], table[i][j - 1]) + 1);
            if (i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) &&
                is_same_letter(a[i - 2], b[j - 1]))
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[length_a][length_b];
}

void nearest_offer(struct nearest *nearest, const char *word) {
    size_t length = strlen(nearest->text), of_word = strlen(word);
    unsigned most = length < 6 ? 1 : (unsigned)(length / 3);
    if (length > LENGTH_MAX || of_word > LENGTH_MAX)
        return;
    unsigned distance = distance_of(nearest->text, length, word, of_word);
    if (distance > most || distance >= length)
        return;
    distance += !distance && strcmp(nearest->text, word) != 0; /* letters of the other case */
    if (nearest->word && distance >= nearest->distance)
        return;
    nearest->word = word;
    nearest->distance = distance;
}

void nearest_offer_others(struct nearest *nearest, const struct other_word *others, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(nearest->text, others[i].other)) {
            nearest->word = others[i].word;
            nearest->distance = 0;
        }
}

const char *nearest_suggestion(const struct nearest *nearest, const char *prefix) {
    static _Thread_local char text[PATH_MAX + NAME_MAX + 32]; /* the prefix may be of a path */
    text[0] = '\0';
    if (nearest->word)
        snprintf(text, sizeof text, "; did you mean `%s%s`?", prefix, nearest->word);
    return text;
}

/* ---- terminals ---- */

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

int terminal_columns(int descriptor) {
    const char *wanted = getenv("COLUMNS");
    long given = wanted ? strtol(wanted, NULL, 10) : 0;
    int rows, columns = 0;
    if (given > 0 && given <= INT_MAX)
        return (int)given;
    if (isatty(descriptor))
        terminal_size(descriptor, &rows, &columns);
    return columns;
}

int terminal_room(int descriptor, int least, int others) {
    const int columns = terminal_columns(descriptor);
    assert(least > 0 && others >= 0);
    if (!columns)
        return INT_MAX;
    return columns > others && columns - others > least ? columns - others : least;
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

static int characters_of(const char *escaped) {
    int characters = 0;
    for (; *escaped; escaped++)
        characters += !is_continuation(*escaped);
    return characters;
}

int terminal_text_columns(const char *text) {
    char *escaped = escape_copy(text);
    const int characters = characters_of(escaped);
    free(escaped);
    return characters;
}

int terminal_put_cut(FILE *out, bool colors, enum style style, const char *text, int columns) {
    char *escaped = escape_copy(text);
    const int characters = characters_of(escaped);
    bool cut = characters > columns;
    size_t length = 0; /* the bytes of the characters that are put */
    for (int left = cut ? columns - 1 : columns;
         escaped[length] && (left > 0 || is_continuation(escaped[length])); length++)
        left -= !is_continuation(escaped[length]);
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
