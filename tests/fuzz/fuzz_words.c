/* Words of arbitrary bytes: the first byte gives the options, a byte 1 ends a text. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* Counts of a text's n-grams add up, and each is known by its own text. */
static void check(const struct words *words, const struct table *table) {
    uint64_t ngrams = 0, most = 0;
    for (uint32_t n = 0; n < table->text.ngrams; n++)
        most += words->places > n ? words->places - n : 0;
    for (uint32_t i = 0; i < words->count; i++) {
        const struct word *word = &words->found[i];
        ngrams += word->count;
        if (!word->count || (word->text == NULL) != (table->hash != 0))
            abort();
        for (uint32_t j = 0; j < i && j < 64; j++)
            if (words->found[j].id == word->id)
                abort();
    }
    if (ngrams != most)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    uint8_t bits = length ? data[0] : 0;
    struct table *table = table_new(1);
    table->text = (struct table_text){.ngrams = 1 + bits % NGRAMS_MAX, .lowercase = bits & 8};
    table->text.least = bits >> 5;
    table->text.letters[0] = bits & 64 ? '-' : '\0';
    table->hash = bits & 16 ? 3 : 0;
    struct words words = {0};
    words_begin_block(&words);
    for (size_t at = 1, end; at < length; at = end + 1) {
        const uint8_t *stop = memchr(data + at, 1, length - at);
        end = stop ? (size_t)(stop - data) : length;
        char *text = memory_new(end - at + 1, 1); /* nothing behind it may be read */
        memcpy(text, data + at, end - at);
        if (!words_find(&words, table, 0, text, end - at))
            check(&words, table);
        free(text);
        if (bits & 32)
            words_begin_block(&words);
    }
    words_release(&words);
    table_free(table);
    return 0;
}
