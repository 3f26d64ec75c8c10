#include "coordinator/job/job_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

struct reader {
    char *at;
    int line;
    int depth;     /* of braces */
    int opened[2]; /* the lines of those that are open: of a section, and of a list in it */
    const char *file;
};

static void step(struct reader *reader) {
    if (*reader->at == '\n')
        reader->line++;
    reader->at++;
}

static void step_braces(struct reader *reader) {
    if (*reader->at == '{' && reader->depth < 2)
        reader->opened[reader->depth] = reader->line;
    reader->depth += *reader->at == '{' ? 1 : *reader->at == '}' && reader->depth ? -1 : 0;
    step(reader);
}

static int unclosed(const struct reader *reader, int line, const char *what) {
    return error_set(ERROR_CONFIG, "%s:%d: the %s that begins here is not closed", reader->file,
                     line, what);
}

static int skip_quoted(struct reader *reader) {
    char quote = *reader->at;
    int line = reader->line;
    step(reader);
    while (*reader->at && *reader->at != quote) {
        if (*reader->at == '\\' && reader->at[1])
            step(reader);
        step(reader);
    }
    if (!*reader->at)
        return unclosed(reader, line, "quoted text");
    step(reader);
    return 0;
}

static void blank_line(struct reader *reader) {
    while (*reader->at && *reader->at != '\n')
        *reader->at++ = ' ';
}

static int blank_block(struct reader *reader) {
    int line = reader->line;
    char *end = strstr(reader->at + 2, "*/");
    if (!end)
        return unclosed(reader, line, "comment /*");
    while (reader->at < end + 2) {
        bool keep = *reader->at == '\n';
        step(reader);
        if (!keep)
            reader->at[-1] = ' ';
    }
    return 0;
}

/* Whether a slash at `at` begins a comment in the middle of a word, such as a path. */
static bool is_inside_word(const char *text, const char *at) {
    return at[0] == '/' && (at[1] == '/' || at[1] == '*') && at > text &&
           !strchr(" \t\r\n{}=,", at[-1]);
}

/* Whether a plus at `at` is that of a number such as 1e+6: to the parser it ends the word. */
static bool is_exponent_sign(const char *text, const char *at) {
    const char *word = at;
    while (word > text && (isdigit((unsigned char)word[-1]) || strchr(".eE-", word[-1])))
        word--;
    bool begins = word == text || strchr(" \t\r\n{=,", word[-1]);
    return *at == '+' && begins && at - word > 1 && (at[-1] == 'e' || at[-1] == 'E') &&
           isdigit((unsigned char)at[1]);
}

/* Settings are stored as JSON, which must be UTF-8. */
static int check_utf8(const char *text, const char *file) {
    int number = 1;
    if (text_is_utf8(text))
        return 0;
    for (;; number++, text = strchr(text, '\n') + 1) {
        char *line = memory_format("%.*s", (int)strcspn(text, "\n"), text);
        bool good = text_is_utf8(line);
        free(line);
        if (!good || !strchr(text, '\n'))
            break;
    }
    return error_set(ERROR_CONFIG,
                     "%s:%d: a character that is not UTF-8; convert the job file to UTF-8, or "
                     "rename the file or folder that it names",
                     file, number);
}

int job_text_prepare(char *text, const char *file) {
    struct reader reader = {.at = text, .line = 1, .file = file};
    int code = 0;
    while (!code && *reader.at) {
        const char *at = reader.at;
        if (*at == '"' || *at == '\'')
            code = skip_quoted(&reader);
        else if (*at == '*' || is_inside_word(text, at))
            code = error_set(ERROR_CONFIG, "%s:%d: a text with * or // in it needs quotes", file,
                             reader.line);
        else if (*at == '#' || (at[0] == '/' && at[1] == '/'))
            blank_line(&reader);
        else if (at[0] == '/' && at[1] == '*')
            code = blank_block(&reader);
        else if (is_exponent_sign(text, at))
            *reader.at++ = '0'; /* 1e06 is the same number */
        else
            step_braces(&reader);
    }
    if (!code && reader.depth)
        code = unclosed(&reader, reader.opened[reader.depth > 1], "{");
    return code ? code : check_utf8(text, file);
}
