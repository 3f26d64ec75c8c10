/* The words of a text, and how often each occurs.
 *
 * A word is two or more letters, digits or underscores in a row, in the sense of Unicode: its
 * general categories L and N. That is what the regular expression \w\w+ finds in Python, and what
 * scikit-learn takes for words. How many there must be, and what else belongs to words, struct
 * table_text may say otherwise. The n-grams of a text are its words, and up to n words that follow
 * each other, joined by a blank. */
#ifndef DML_DATA_TABLE_WORDS_H
#define DML_DATA_TABLE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/table/table.h"

/* An n-gram, and how often it occurs in a text. */
struct word {
    uint64_t id;      /* table_word_feature() */
    const char *text; /* with a 0 after it; NULL if words are hashed */
    uint32_t number;  /* among those of the block, from 0; if words are hashed: the hash */
    uint32_t count;
};

/* What is known of the words of a block of text. All zero: nothing. For one thread. */
struct words {
    struct word *found; /* the different n-grams of the text; `count` of them */
    uint32_t count, found_capacity;

    char *text; /* the words of the text, each with a blank after it; workspace, as what follows */
    size_t text_capacity;
    struct word_place {
        size_t begin, end; /* in `text` */
    } * place;
    uint32_t places, places_capacity;

    struct known_word *known; /* those of the block, by id: open addressing */
    uint64_t known_size, known_count;
    uint32_t block, number;   /* numbers of this block and this text */
    struct word_store *store; /* texts of known words */

    uint8_t ascii[128]; /* what becomes of a byte; 0: it parts words. For this: */
    bool prepared, lowercase;
    char letters[WORD_CHARACTERS_MAX + 1];
    size_t invalid; /* the place of the first byte that is no UTF-8 */
};

void words_release(struct words *words);

/* A new block begins: the texts of words that were found are not valid any more. */
void words_begin_block(struct words *words);

enum words_error {
    WORDS_FOUND,
    WORDS_NO_UTF8, /* words->invalid says where */
    WORDS_COLLIDE, /* two n-grams have the same hash */
};

/* Finds the different n-grams of a text, in the order in which they occur first: words->found. What
 * was found before is forgotten. `column` from 0. */
enum words_error words_find(struct words *words, const struct table *table, uint32_t column,
                            const char *text, size_t length);

#endif
