/* Reads the members of a JSON object (RFC 8259) where it lies, strictly: numbers keep their text,
 * which a library that makes doubles of them loses. Pure. */
#ifndef DML_DATA_TEXT_JSON_H
#define DML_DATA_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Lists and objects inside of each other. */
#define JSON_DEPTH_MAX 512

enum json_kind {
    CELL_ABSENT,
    CELL_NULL,
    CELL_FALSE,
    CELL_TRUE,
    CELL_NUMBER,
    CELL_STRING,
    CELL_LIST,
    CELL_OBJECT
};

struct json_token {
    enum json_kind kind;
    bool escaped; /* of a string: it has a backslash */
    const char *text;
    size_t length; /* of a string what stands between the quotes, else the value as written */
};

struct json_reader {
    const char *first, *at, *end; /* `at` is where it went wrong, if it did */
    const char *why;
    bool begun;
};

/* Begins to read the object that is all of [text, end). The text must outlive what is read. */
struct json_reader json_reader_of(const char *text, const char *end);

/* Reads the next member. 1: it is there; 0: the object has ended, and only blanks are after it;
 * -1: the text is malformed, and reader->why says in what way. Keys may be repeated. */
int json_next(struct json_reader *reader, struct json_token *key, struct json_token *value);

/* The place of an error in the text, in bytes from 1. */
size_t json_place(const struct json_reader *reader);

/* Writes the characters of a string, with a quote before each one of them that is `quote` itself,
 * as CSV has it; '\0': with none. Returns how many bytes, which are at most token->length where no
 * quote was added or each stood after a backslash. There is no zero byte among them. */
size_t json_write(const struct json_token *token, char quote, char *to);

#endif
