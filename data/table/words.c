#include "data/table/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "data/text/letters.h"

/* ---- the texts of words, until the block ends ---- */

#define STORE_BYTES ((size_t)64 << 10)

struct word_store {
    struct word_store *before;
    size_t used, size;
    char text[];
};

/* A copy with a 0 after it. */
static const char *store_text(struct words *words, const char *text, size_t length) {
    struct word_store *store = words->store;
    if (!store || store->size - store->used <= length) {
        size_t size = length < STORE_BYTES ? STORE_BYTES : length + 1;
        store = memory_new(1, sizeof *store + size);
        store->size = size;
        store->before = words->store;
        words->store = store;
    }
    char *copy = store->text + store->used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    store->used += length + 1;
    return copy;
}

/* Keeps the first store for the next block. */
static void clear_stores(struct words *words, bool all) {
    struct word_store *store = words->store;
    while (store && (all || store->before)) {
        struct word_store *before = store->before;
        free(store);
        store = before;
    }
    words->store = store;
    if (store)
        store->used = 0;
}

/* ---- the words of a block ---- */

struct known_word {
    uint64_t id;
    const char *text;
    uint32_t length;
    uint32_t block;         /* an entry of another block is free */
    uint32_t of_block;      /* as `number` of struct word */
    uint32_t number, place; /* of the last text that has it, and its place in words->found there */
};

/* An n-gram of the text. */
struct ngram {
    size_t begin;
    uint32_t length, hash;
    uint64_t id;
};

void words_release(struct words *words) {
    clear_stores(words, true);
    free(words->known);
    free(words->found);
    free(words->place);
    free(words->text);
    *words = (struct words){0};
}

void words_begin_block(struct words *words) {
    clear_stores(words, false);
    words->count = words->places = 0;
    words->known_count = 0;
    words->number = 0;
    if (++words->block == 0) { /* once in 2^32 blocks: entries of long ago must not count */
        memset(words->known, 0, words->known_size * sizeof *words->known);
        words->block = 1;
    }
}

static struct known_word *find_place(const struct words *words, uint64_t id) {
    uint64_t mask = words->known_size - 1, i = id & mask;
    while (words->known[i].block == words->block && words->known[i].id != id)
        i = (i + 1) & mask;
    return &words->known[i];
}

/* ---- where words begin and end ---- */

/* How a text is read: where, and what of it is known. */
struct word_reader {
    struct words *words;
    const char *text;
    size_t length;
    bool lowercase;
    unsigned least;   /* letters of a word */
    char *to;         /* the word that is being read */
    unsigned letters; /* of it */
};

/* A word that ends here, if it is one, is added to the places. */
static void end_word(struct word_reader *reader) {
    struct words *words = reader->words;
    size_t begin = words->places ? words->place[words->places - 1].end + 1 : TABLE_PREFIX_BYTES;
    if (reader->letters < reader->least) {
        reader->to = words->text + begin;
    } else {
        MEMORY_ROOM(words->place, words->places, words->places_capacity);
        words->place[words->places++] =
            (struct word_place){begin, (size_t)(reader->to - words->text)};
        *reader->to++ = ' ';
    }
    reader->letters = 0;
}

/* Takes a character that is no ASCII; returns how many bytes it has, 0 if it is no UTF-8. */
static unsigned take_letter(struct word_reader *reader, size_t at) {
    uint32_t character = 0;
    unsigned size = letter_read(reader->text + at, reader->length - at, &character);
    if (!size || !letter_is_of_word(character)) {
        end_word(reader);
        return size;
    }
    bool dotted = reader->lowercase && character == LETTER_DOTTED_I;
    if (dotted)
        character = 'i';
    else if (reader->lowercase && character == LETTER_SIGMA &&
             letter_sigma_is_final(reader->text, reader->length, at))
        character = LETTER_FINAL_SIGMA;
    else if (reader->lowercase)
        character = letter_lower(character);
    reader->to += letter_write(reader->to, character);
    reader->letters++;
    if (dotted)
        end_word(reader);
    return size;
}

/* Brings the words of a text to words->place. Returns the length, or the place of the first byte
 * that is no UTF-8. */
static size_t split_words(struct words *words, const char *text, size_t length,
                          const struct table_text *as) {
    /* Lower case may take twice the bytes; each word has a blank after it. */
    size_t most = TABLE_PREFIX_BYTES + 2 * length + 2;
    if (words->text_capacity < most) {
        words->text_capacity = most + most / 2;
        words->text = memory_resize(words->text, words->text_capacity, 1);
    }

    /* Notes what becomes of each byte of ASCII in a word; 0: it separates words. */
    bool lowercase = as->lowercase;
    if (!(words->prepared && words->lowercase == lowercase &&
          !strcmp(words->letters, as->letters))) {
        for (uint32_t c = 0; c < sizeof words->ascii; c++)
            words->ascii[c] = (uint8_t)(!letter_is_of_word(c) ? 0
                                        : lowercase           ? letter_lower(c)
                                                              : c);
        for (const char *at = as->letters; *at; at++)
            words->ascii[(unsigned char)*at & 0x7f] = (uint8_t)*at;
        words->prepared = true;
        words->lowercase = lowercase;
        memcpy(words->letters, as->letters, sizeof words->letters);
    }

    words->places = 0;
    struct word_reader reader = {
        words, text, length, as->lowercase, table_text_least(as), words->text + TABLE_PREFIX_BYTES,
        0};
    const uint8_t *ascii = words->ascii;
    size_t i = 0;
    while (i < length) {
        uint8_t byte = (uint8_t)text[i], letter = byte < 0x80 ? ascii[byte] : 0;
        if (letter) {
            *reader.to++ = (char)letter;
            reader.letters++;
            i++;
        } else if (byte < 0x80) {
            end_word(&reader);
            i++;
        } else {
            unsigned size = take_letter(&reader, i);
            if (!size)
                return i;
            i += size;
        }
    }
    end_word(&reader);
    return length;
}

/* ---- n-grams ---- */

/* Counts an n-gram, of which `text` is kept: none if words are hashed. */
static bool count_word(struct words *words, struct word word, uint32_t length) {
    struct known_word *known = find_place(words, word.id);
    if (known->block != words->block) {
        *known = (struct known_word){.id = word.id, .length = length, .block = words->block};
        known->of_block = (uint32_t)words->known_count;
        known->text = word.text ? store_text(words, word.text, length) : NULL;
        words->known_count++;
    } else if (word.text && (known->length != length || memcmp(known->text, word.text, length))) {
        return false;
    }
    if (known->number == words->number) {
        words->found[known->place].count++;
        return true;
    }
    known->number = words->number;
    known->place = words->count;
    if (word.text)
        word.number = known->of_block;
    word.text = known->text;
    word.count = 1;
    MEMORY_ROOM(words->found, words->count, words->found_capacity);
    words->found[words->count++] = word;
    return true;
}

/* So many n-grams are identified before they are counted: the words of a block miss the nearest
 * cache, and are on their way meanwhile. */
#define AT_ONCE 64

static bool count_ngrams(struct words *words, const struct table *table, uint32_t column,
                         struct ngram *ngram, uint32_t count) {
    while (2 * (words->known_count + count) > words->known_size) {
        struct known_word *old = words->known;
        uint64_t size = words->known_size;
        words->known_size = size ? 2 * size : 4096;
        words->known = memory_new(words->known_size, sizeof *words->known);
        for (uint64_t i = 0; i < size; i++)
            if (old[i].block == words->block)
                *find_place(words, old[i].id) = old[i];
        free(old);
    }
    for (uint32_t i = 0; i < count; i++) {
        /* Finds the id of an n-gram, of which the text is known, and asks for its place in the
         * cache. What stands before the text, and its id is a hash of besides, is put back. */
        char *text = words->text + ngram[i].begin;
        if (table->hash) {
            ngram[i].hash = table_hash(table, column, text, ngram[i].length);
            ngram[i].id = table_hashed_feature(column, ngram[i].hash);
        } else {
            char before[TABLE_PREFIX_BYTES];
            memcpy(before, text - TABLE_PREFIX_BYTES, sizeof before);
            ngram[i].id = table_word_feature(column, text - TABLE_PREFIX_BYTES, ngram[i].length);
            memcpy(text - TABLE_PREFIX_BYTES, before, sizeof before);
        }
        __builtin_prefetch(&words->known[ngram[i].id & (words->known_size - 1)], 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *text = table->hash ? NULL : words->text + ngram[i].begin;
        struct word word = {.id = ngram[i].id, .text = text, .number = ngram[i].hash};
        if (!count_word(words, word, ngram[i].length))
            return false;
    }
    return true;
}

enum words_error words_find(struct words *words, const struct table *table, uint32_t column,
                            const char *text, size_t length) {
    assert(length <= LINE_BYTES_MAX && words->block);
    struct ngram ngram[AT_ONCE];
    uint32_t most = table->text.ngrams, count = 0;
    bool differ = true;
    words->count = 0;
    words->number++;
    size_t read = split_words(words, text, length, &table->text);
    if (read < length) {
        words->invalid = read;
        return WORDS_NO_UTF8;
    }
    for (uint32_t i = 0; i < words->places; i++)
        for (uint32_t n = 0; n < most && i + n < words->places && differ; n++) {
            size_t begin = words->place[i].begin, end = words->place[i + n].end;
            ngram[count++] = (struct ngram){.begin = begin, .length = (uint32_t)(end - begin)};
            if (count < AT_ONCE)
                continue;
            differ = count_ngrams(words, table, column, ngram, count);
            count = 0;
        }
    differ = differ && count_ngrams(words, table, column, ngram, count);
    return differ ? WORDS_FOUND : WORDS_COLLIDE;
}
