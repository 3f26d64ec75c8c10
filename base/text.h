/* Text from outside: UTF-8, escapes, and misspelt words. Job files and --set must be UTF-8, else
 * they are refused. Names of files and folders, labels and columns may be any bytes: they are kept
 * unchanged, and text_to_json() turns them into JSON. And members of JSON objects, as they are read
 * for printing. */
#ifndef DML_BASE_TEXT_H
#define DML_BASE_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool text_is_utf8(const char *text);

/* A JSON string: the text itself if it is UTF-8, else each of its bytes taken as a character of
 * Latin-1. For every string in JSON that comes from outside: json_string() and the "s" of
 * json_pack() return NULL for what is no UTF-8. Labels and columns are compared in this form. */
json_t *text_to_json(const char *text);

/* The number, or null if it is not finite. A new reference. */
json_t *number_json(double number);

/* A text member; "-" if there is none. */
const char *member_text(const json_t *object, const char *member);

/* A whole number; 0 if there is none. */
long long member_count(const json_t *object, const char *member);

/* A number; NaN if there is none. */
double member_number(const json_t *object, const char *member);

/* ---- escaped for messages and tables: it must not move the cursor, clear the screen, or look like
 * a separate line of a log ---- */

/* Copies `from`, with control characters as \n, \t, \x1b and the like, into `to` of `size` > 0
 * bytes. What does not fit is cut off, but never within an escape. Returns the length. Escaping
 * text twice changes nothing. error_set() and log_line() escape everything they are given. */
size_t escape_controls(char *to, size_t size, const char *from);

/* A copy of the text, escaped. Release with free(). */
char *escape_copy(const char *text);

/* Writes the text to a stream, escaped. */
void escape_put(const char *text, FILE *out);

/* A copy of the text as a word of a command line: as it is, or between single quotes where a shell
 * would take it for something else. Release with free(). */
char *shell_word(const char *text);

/* "Did you mean": the word of a table that is nearest to a misspelt one. Set `text`, zero the rest,
 * offer every word, then ask. */
struct nearest {
    const char *text;
    const char *word; /* the nearest so far, of those offered; NULL if none is near */
    unsigned distance;
};

/* A word is near if the text becomes the word by at most as many changes as a third of its letters
 * (at least one). A change leaves out, inserts or replaces a letter, or swaps two neighbours; a
 * letter of the other case is the same, and a word that differs in the case alone is one change
 * away. Of equally near words the first one offered stays. */
void nearest_offer(struct nearest *nearest, const char *word);

/* What others call a word of the table. */
struct other_word {
    const char *other, *word;
};

/* Where the text is one of `count` other words, whatever the case of its letters, the word that it
 * stands for is the nearest. */
void nearest_offer_others(struct nearest *nearest, const struct other_word *others, size_t count);

/* "; did you mean `WORD`?", the word after `prefix`, or nothing. Valid until the next call
 * in this thread. */
const char *nearest_suggestion(const struct nearest *nearest, const char *prefix);

/* ---- terminals: what may be written to one, and how ---- */

/* Erases the line that the cursor is on. */
#define TERMINAL_ERASE "\r\033[K"

enum style { STYLE_PLAIN, STYLE_HEADING, STYLE_GOOD, STYLE_DOUBTFUL, STYLE_BAD };

/* Whether the descriptor is a terminal on which a line can be erased: TERM is neither unset nor
 * `dumb`. */
bool terminal_erases(int descriptor);

/* Whether it may also be coloured: NO_COLOR is not set, or empty. */
bool terminal_colors(int descriptor);

/* Its size now; 24 rows of 80 columns where that is not known. */
void terminal_size(int descriptor, int *rows, int *columns);

/* How many columns a line may have there: the number in COLUMNS if the environment has one, else
 * the terminal's; 0 if the descriptor is no terminal: any number. */
int terminal_columns(int descriptor);

/* How many columns a text may take there whose line has `others` besides: `least` at least, and
 * INT_MAX where a line may have any number. */
int terminal_room(int descriptor, int least, int others);

/* How many columns a text takes that nothing cuts. */
int terminal_text_columns(const char *text);

/* Writes the text, in its style if `colors`. Control characters in it are escaped, here and below:
 * names from outside must not move the cursor. */
void terminal_put(FILE *out, bool colors, enum style style, const char *text);

/* terminal_put() of a text that is cut to `columns`; the last column of a cut text is "…". A UTF-8
 * character counts as one. Returns how many columns it took. */
int terminal_put_cut(FILE *out, bool colors, enum style style, const char *text, int columns);

/* terminal_put_cut() of a text that is also filled up with blanks to `columns`. */
void terminal_put_cell(FILE *out, bool colors, enum style style, const char *text, int columns);

#endif
