#include "base/touched.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { WORD = 64 };

static size_t words_of(const struct touched *touched) {
    return (touched->count + WORD - 1) / WORD;
}

void touched_init(struct touched *touched, size_t count) {
    touched_release(touched);
    touched->count = count;
    touched->words = memory_new(words_of(touched), sizeof *touched->words);
}

void touched_release(struct touched *touched) {
    free(touched->words);
    *touched = (struct touched){0};
}

void touched_all(struct touched *touched) {
    touched->some = false;
}

void touched_none(struct touched *touched) {
    if (!touched->words)
        return;
    memset(touched->words, 0, words_of(touched) * sizeof *touched->words);
    touched->some = true;
}

void touched_swap(struct touched *a, struct touched *b) {
    const struct touched held = *a;
    *a = *b;
    *b = held;
}

void touched_copy(struct touched *touched, const struct touched *from) {
    assert(touched->count == from->count);
    touched->some = from->some;
    if (from->some)
        memcpy(touched->words, from->words, words_of(from) * sizeof *touched->words);
}

size_t touched_total(const struct touched *touched) {
    size_t total = 0;
    if (!touched->some)
        return touched->count;
    for (size_t i = 0; i < words_of(touched); i++)
        total += (size_t)__builtin_popcountll(touched->words[i]);
    return total;
}

/* Some element of a word without bits. */
static uint32_t first_bit(size_t word, uint64_t bits) {
    const uint64_t last = UINT64_C(1) << (WORD - 1);
    return (uint32_t)(word * WORD + (size_t)__builtin_ctzll(bits | last));
}

/* How many bits a word mostly has at most: so many are looked for without a branch, which nobody
 * could foretell. */
enum { MOSTLY = 4 };

size_t touched_next(const struct touched *touched, size_t *at, size_t end, uint32_t *elements,
                    size_t most) {
    size_t found = 0;
    assert(touched->some && end <= touched->count && most >= WORD);
    while (*at < end && found + WORD <= most) {
        const size_t word = *at / WORD;
        const size_t left = end - word * WORD;
        uint64_t bits = touched->words[word] & (~UINT64_C(0) << *at % WORD);
        if (left < WORD)
            bits &= ~(~UINT64_C(0) << left);
        for (int i = 0; i < MOSTLY; i++, bits &= bits - 1) {
            elements[found] = first_bit(word, bits);
            found += bits != 0;
        }
        for (; bits; bits &= bits - 1)
            elements[found++] = first_bit(word, bits);
        *at = (word + 1) * WORD;
    }
    return found;
}

size_t elements_before(const uint32_t *elements, size_t count, uint64_t element) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (elements[middle] < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
