#include "replica/needs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { WORD = 64 };

/* It pays below this share: the bits go to the shards, and the elements are found one by one. */
#define NEEDS_SHARE 0.875

static size_t words_of(uint32_t bits) {
    return bits / WORD + (bits % WORD != 0);
}

static size_t column_words(const struct needs *needs) {
    return words_of(needs->column_count) * needs->strip_count;
}

void needs_init(struct needs *needs, uint32_t columns, uint32_t strips, uint32_t chunks) {
    needs_release(needs);
    *needs = (struct needs){.column_count = columns,
                            .strip_count = strips,
                            .chunk_count = chunks,
                            .chunks = memory_new(words_of(chunks), sizeof *needs->chunks)};
    needs->columns = memory_new(column_words(needs), sizeof *needs->columns);
    needs->computed = memory_new(strips, sizeof *needs->computed);
}

void needs_release(struct needs *needs) {
    free(needs->columns);
    free(needs->chunks);
    free(needs->computed);
    *needs = (struct needs){0};
}

void needs_clear(struct needs *needs) {
    memset(needs->columns, 0, column_words(needs) * sizeof *needs->columns);
    memset(needs->chunks, 0, words_of(needs->chunk_count) * sizeof *needs->chunks);
}

/* A column is mostly there already: a plain look is cheaper than an exchange between threads. */
void needs_note(const struct rows *rows, uint64_t *columns) {
    assert(!rows->dense);
    for (uint32_t i = rows->start[0]; i < rows->start[rows->count]; i++) {
        uint64_t *word = &columns[rows->feature[i] / WORD];
        uint64_t bit = UINT64_C(1) << rows->feature[i] % WORD;
        if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
            __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    }
}

uint64_t *needs_strip(const struct needs *needs, uint32_t strip) {
    assert(strip < needs->strip_count);
    return needs->columns + words_of(needs->column_count) * strip;
}

void needs_add_column(struct needs *needs, uint32_t column) {
    assert(column < needs->column_count && needs->strip_count == 1);
    needs->columns[column / WORD] |= UINT64_C(1) << column % WORD;
}

void needs_learn(struct needs *needs, uint32_t first, uint32_t count) {
    assert(first <= needs->chunk_count && count <= needs->chunk_count - first);
    for (uint32_t i = first; i < first + count; i++)
        needs->chunks[i / WORD] |= UINT64_C(1) << i % WORD;
}

uint32_t needs_known(const struct needs *needs, uint32_t first, uint32_t count) {
    uint32_t known = 0;
    for (uint32_t i = first; i < needs->chunk_count && i - first < count; i++)
        known += needs->chunks[i / WORD] >> i % WORD & 1;
    return known;
}

bool needs_knows(const struct needs *needs, uint32_t first, uint32_t count) {
    return needs_known(needs, first, count) == count;
}

void needs_count(struct needs *needs, uint32_t strip, uint32_t chunks) {
    if (strip < needs->strip_count)
        needs->computed[strip] += chunks;
}

void needs_count_anew(struct needs *needs) {
    if (needs->strip_count)
        memset(needs->computed, 0, needs->strip_count * sizeof *needs->computed);
}

void needs_forget(struct needs *needs, uint32_t strip) {
    uint32_t chunks = needs->chunk_count / needs->strip_count;
    memset(needs_strip(needs, strip), 0, words_of(needs->column_count) * sizeof *needs->columns);
    for (uint32_t i = strip * chunks; i < (strip + 1) * chunks; i++)
        needs->chunks[i / WORD] &= ~(UINT64_C(1) << i % WORD);
}

bool needs_are_few(const struct needs *needs, uint32_t strip) {
    const uint64_t *of_strip = needs_strip(needs, strip);
    uint64_t columns = 0, chunks = 0;
    for (size_t i = 0; i < words_of(needs->column_count); i++)
        columns += (uint64_t)__builtin_popcountll(of_strip[i]);
    for (size_t i = 0; i < words_of(needs->chunk_count); i++)
        chunks |= needs->chunks[i];
    return chunks && (double)columns < NEEDS_SHARE * needs->column_count;
}
