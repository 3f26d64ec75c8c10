#include "data/text/json.h"

#include <ctype.h>

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "data/text/letters.h"

struct json_reader json_reader_of(const char *text, const char *end) {
    return (struct json_reader){.first = text, .at = text, .end = end};
}

size_t json_place(const struct json_reader *reader) {
    return (size_t)(reader->at - reader->first) + 1;
}

/* Always false, for `return fail(…)`. */
static bool fail(struct json_reader *reader, const char *at, const char *why) {
    reader->at = at;
    reader->why = why;
    return false;
}

/* What other languages and careless writers have where JSON has something else: what stands there
 * begins so. */
static const struct {
    const char *text, *why;
} unlike_json[] = {
    {"//", "a comment, which JSON does not have: take it out"},
    {"/*", "a comment, which JSON does not have: take it out"},
    {"#", "a comment, which JSON does not have: take it out"},
    {"'", "a single quote, where JSON has double ones"},
    {"}", "a comma before the end of an object: take it out"},
    {"]", "a comma before the end of a list: take it out"},
    {"NaN", "NaN or Infinity, which JSON does not have: write null for a missing number"},
    {"nan", "NaN or Infinity, which JSON does not have: write null for a missing number"},
    {"Inf", "NaN or Infinity, which JSON does not have: write null for a missing number"},
    {"inf", "NaN or Infinity, which JSON does not have: write null for a missing number"},
    {"-Inf", "NaN or Infinity, which JSON does not have: write null for a missing number"},
    {"-inf", "NaN or Infinity, which JSON does not have: write null for a missing number"},
    {"None", "None, as Python has it: write null"},
    {"True", "True, as Python has it: write true"},
    {"False", "False, as Python has it: write false"},
    {"undefined", "undefined, as JavaScript has it: write null"},
    {"+", "a number with a plus before it: take that out"},
    {".", "a number that begins with its point: write 0 before it"},
};

/* Fails where the reader stands: with the likely cause, else as `otherwise` says. */
static bool fail_here(struct json_reader *reader, const char *otherwise) {
    const size_t left = (size_t)(reader->end - reader->at);
    for (size_t i = 0; i < sizeof unlike_json / sizeof *unlike_json; i++) {
        const size_t length = strlen(unlike_json[i].text);
        if (length <= left && !memcmp(reader->at, unlike_json[i].text, length))
            return fail(reader, reader->at, unlike_json[i].why);
    }
    return fail(reader, reader->at, left ? otherwise : "the line ends early");
}

static void skip_blanks(struct json_reader *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' ||
                                        *reader->at == '\r' || *reader->at == '\n'))
        reader->at++;
}

/* The character that comes next; '\0' at the end. */
static char peek(const struct json_reader *reader) {
    return reader->at < reader->end ? *reader->at : '\0';
}

/* ---- strings ---- */

/* The four digits after \u; UINT32_MAX if they are not there. */
static uint32_t hex_unit(const char *at, const char *end) {
    uint32_t unit = 0;
    if (end - at < 4)
        return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return UINT32_MAX;
        unit = 16 * unit + (uint32_t)digit;
    }
    return unit;
}

static bool is_high(uint32_t unit) {
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(uint32_t unit) {
    return unit >= 0xdc00 && unit < 0xe000;
}

/* Checks the escape at a backslash, and moves past it. */
static bool pass_escape(struct json_reader *reader, const char **at) {
    const char *p = *at, *end = reader->end;
    char c = p + 1 < end ? p[1] : '\0';
    *at = p + 2;
    if (c && strchr("\"\\/bfnrt", c))
        return true;
    if (c != 'u')
        return fail(reader, p, "a backslash before what needs none");
    uint32_t unit = hex_unit(p + 2, end);
    *at = p + 6;
    if (unit == UINT32_MAX)
        return fail(reader, p, "\\u without four hexadecimal digits behind it");
    if (unit == 0)
        return fail(reader, p, "\\u0000, a character that no text may have");
    if (is_low(unit))
        return fail(reader, p, "the second half of a pair of surrogates without the first");
    if (!is_high(unit))
        return true;
    bool pair = end - p >= 12 && p[6] == '\\' && p[7] == 'u' &&
                hex_unit(p + 8, end) != UINT32_MAX && is_low(hex_unit(p + 8, end));
    *at = p + 12;
    return pair || fail(reader, p, "the first half of a pair of surrogates without the second");
}

/* `at` is at the opening quote. */
static bool read_string(struct json_reader *reader, struct json_token *token) {
    const char *p = reader->at + 1, *end = reader->end;
    *token = (struct json_token){.kind = CELL_STRING, .text = p};
    for (;;) {
        while (p < end && (unsigned char)*p >= ' ' && (unsigned char)*p < 0x80 && *p != '"' &&
               *p != '\\')
            p++;
        if (p == end)
            return fail(reader, token->text - 1, "a text whose quote is not closed");
        if (*p == '"')
            break;
        if ((unsigned char)*p < ' ')
            return fail(reader, p, "a control character, which must be written as an escape");
        if (*p == '\\') {
            token->escaped = true;
            if (!pass_escape(reader, &p))
                return false;
            continue;
        }
        uint32_t character;
        unsigned bytes = letter_read(p, (size_t)(end - p), &character);
        if (!bytes)
            return fail(reader, p, "bytes that are not UTF-8");
        p += bytes;
    }
    token->length = (size_t)(p - token->text);
    reader->at = p + 1;
    return true;
}

/* The character that an escape means; *at moves from the backslash past it. */
static uint32_t character_of(const char **at, const char *end) {
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *p = *at, *letter = strchr(letters, p[1]);
    *at = p + 2;
    if (p[1] != 'u')
        return (uint32_t)(letter ? meant[letter - letters] : p[1]);
    uint32_t unit = hex_unit(p + 2, end);
    *at = p + 6;
    if (!is_high(unit))
        return unit;
    uint32_t low = hex_unit(p + 8, end);
    *at = p + 12;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

size_t json_write(const struct json_token *token, char quote, char *to) {
    char *first = to;
    assert(token->kind == CELL_STRING);
    if (!token->escaped) {
        memcpy(to, token->text, token->length);
        return token->length;
    }
    for (const char *p = token->text, *end = p + token->length; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        uint32_t character = character_of(&p, end);
        if (quote && character == (unsigned char)quote)
            *to++ = quote;
        to += letter_write(to, character);
    }
    return (size_t)(to - first);
}

/* ---- numbers and words ---- */

static const char *pass_digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

static bool read_number(struct json_reader *reader, struct json_token *token) {
    const char *p = reader->at, *end = reader->end, *whole, *digits;
    *token = (struct json_token){.kind = CELL_NUMBER, .text = p};
    p += *p == '-';
    whole = p;
    p = pass_digits(p, end);
    if (p == whole)
        return fail_here(reader, "a minus without a number behind it");
    if (p > whole + 1 && *whole == '0')
        return fail(reader, token->text, "a number that begins with 0; write it as a text");
    if (p < end && *p == '.') {
        digits = ++p;
        p = pass_digits(p, end);
        if (p == digits)
            return fail(reader, token->text, "a number that ends with its point");
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        digits = p;
        p = pass_digits(p, end);
        if (p == digits)
            return fail(reader, token->text, "a number without its exponent");
    }
    token->length = (size_t)(p - token->text);
    reader->at = p;
    return true;
}

static bool read_word(struct json_reader *reader, struct json_token *token) {
    static const struct {
        const char *text;
        size_t length;
        enum json_kind kind;
    } words[] = {{"null", 4, CELL_NULL}, {"true", 4, CELL_TRUE}, {"false", 5, CELL_FALSE}};
    const char *p = reader->at;
    size_t left = (size_t)(reader->end - p);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (left >= words[i].length && !memcmp(p, words[i].text, words[i].length)) {
            *token = (struct json_token){words[i].kind, false, p, words[i].length};
            reader->at = p + words[i].length;
            return true;
        }
    return fail_here(reader, "something that is no value of JSON");
}

/* ---- what is inside of each other ---- */

/* The lists and objects that are open; bits say which are objects. */
struct nest {
    uint8_t object[JSON_DEPTH_MAX / 8];
    unsigned depth;
};

static bool in_object(const struct nest *nest) {
    unsigned top = nest->depth - 1;
    return nest->object[top / 8] >> top % 8 & 1;
}

static bool open_nest(struct json_reader *reader, struct nest *nest) {
    bool object = *reader->at == '{';
    if (nest->depth == JSON_DEPTH_MAX)
        return fail(reader, reader->at, "lists and objects more than 512 deep");
    unsigned top = nest->depth++;
    nest->object[top / 8] =
        (uint8_t)((nest->object[top / 8] & ~(1u << top % 8)) | (unsigned)object << top % 8);
    reader->at++;
    return true;
}

static bool read_scalar(struct json_reader *reader, struct json_token *token) {
    char c = peek(reader);
    return c == '"'                             ? read_string(reader, token)
           : c == '-' || (c >= '0' && c <= '9') ? read_number(reader, token)
                                                : read_word(reader, token);
}

/* Reads a key and the colon after it. */
static bool read_key(struct json_reader *reader, struct json_token *key) {
    skip_blanks(reader);
    if (peek(reader) != '"')
        return fail_here(reader, isalpha((unsigned char)peek(reader)) || peek(reader) == '_'
                                     ? "a key without its quotes"
                                     : "something else than the quote of a key");
    if (!read_string(reader, key))
        return false;
    skip_blanks(reader);
    if (peek(reader) != ':')
        return fail(reader, reader->at,
                    reader->at == reader->end ? "the line ends early" : "no colon behind a key");
    reader->at++;
    skip_blanks(reader);
    return true;
}

/* Passes what closes after a value, and the comma. */
static bool pass_closed(struct json_reader *reader, struct nest *nest) {
    while (nest->depth) {
        skip_blanks(reader);
        char c = peek(reader);
        if (c == ',') {
            reader->at++;
            return true;
        }
        if (c != (in_object(nest) ? '}' : ']'))
            return fail(reader, reader->at,
                        reader->at == reader->end ? "the line ends early"
                                                  : "no comma between two values");
        reader->at++;
        nest->depth--;
    }
    return true;
}

/* Reads a list or an object, whatever is in it, without recursion. */
static bool read_nested(struct json_reader *reader, struct json_token *token) {
    const char *first = reader->at;
    struct nest nest = {.depth = 0};
    struct json_token inner;
    do {
        skip_blanks(reader);
        if (nest.depth && in_object(&nest) && !read_key(reader, &inner))
            return false;
        char c = peek(reader);
        if (c == '{' || c == '[') {
            if (!open_nest(reader, &nest))
                return false;
            skip_blanks(reader);
            if (peek(reader) != (in_object(&nest) ? '}' : ']'))
                continue;
            reader->at++;
            nest.depth--;
        } else if (!read_scalar(reader, &inner)) {
            return false;
        }
        if (!pass_closed(reader, &nest))
            return false;
    } while (nest.depth);
    *token = (struct json_token){.kind = *first == '{' ? CELL_OBJECT : CELL_LIST,
                                 .text = first,
                                 .length = (size_t)(reader->at - first)};
    return true;
}

/* ---- the object ---- */

static bool begin(struct json_reader *reader) {
    skip_blanks(reader);
    if (peek(reader) != '{')
        return fail_here(reader, "something else than an object, one on each line");
    reader->at++;
    return true;
}

int json_next(struct json_reader *reader, struct json_token *key, struct json_token *value) {
    bool first = !reader->begun;
    reader->begun = true;
    if (first && !begin(reader))
        return -1;
    skip_blanks(reader);
    if (peek(reader) == '}') {
        /* Ends the object: only blanks may follow. */
        reader->at++;
        skip_blanks(reader);
        if (reader->at == reader->end)
            return 0;
        fail_here(reader, "something behind the object");
        return -1;
    }
    if (!first) {
        if (peek(reader) != ',') {
            fail(reader, reader->at,
                 reader->at == reader->end ? "the line ends early" : "no comma between two values");
            return -1;
        }
        reader->at++;
    }
    if (!read_key(reader, key))
        return -1;
    char c = peek(reader);
    bool read = c == '{' || c == '[' ? read_nested(reader, value) : read_scalar(reader, value);
    return read ? 1 : -1;
}
