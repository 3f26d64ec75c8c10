/* Letters of Unicode, as words are made of: what is one, and what it is in lower case. */
#ifndef DML_DATA_TEXT_LETTERS_H
#define DML_DATA_TEXT_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes in UTF-8 that one character may have, and that its lower case may have. */
#define LETTER_BYTES_MAX 4

/* Reads the character at `text`, which has `length` bytes, at least one. Returns how many bytes it
 * has; 0: they are no UTF-8 (RFC 3629: nothing overlong, no surrogate). */
unsigned letter_read(const char *text, size_t length, uint32_t *character);

/* Writes a character; returns how many bytes. */
unsigned letter_write(char *to, uint32_t character);

/* The value of a hexadecimal digit; -1: the character is none. */
int hex_digit(char c);

/* Whether a character may stand in a word: it is of the general categories L or N, or an
 * underscore. */
bool letter_is_of_word(uint32_t character);

/* The lower case of a character, by itself. Two depend on more and are the caller's:
 * LETTER_SIGMA, and LETTER_DOTTED_I, which becomes an i and a mark that is no letter. */
uint32_t letter_lower(uint32_t character);

#define LETTER_SIGMA 0x3a3u
#define LETTER_FINAL_SIGMA 0x3c2u
#define LETTER_DOTTED_I 0x130u

/* Whether a LETTER_SIGMA at `at` ends a word, and so is a LETTER_FINAL_SIGMA in lower case: after
 * a cased letter and not before one, with what is of no case left out (Unicode, section 3.13). The
 * text of `length` bytes is UTF-8 as far as `at`. */
bool letter_sigma_is_final(const char *text, size_t length, size_t at);

#endif
