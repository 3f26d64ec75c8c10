#include "wire/wanted.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

enum { WORD = 64 };

/* Elements [first, end) that are all wanted. */
struct run {
    uint64_t first, end;
};

/* The next column from `column` on whose bit is set; behind the last if there is none. */
static uint64_t next_column(const struct wanted *wanted, uint64_t column) {
    uint64_t last = wanted->column + wanted->columns;
    while (column < last) {
        uint64_t bit = column - wanted->column;
        uint64_t word = wanted->words[bit / WORD] >> bit % WORD;
        column += word ? (uint64_t)__builtin_ctzll(word) : WORD - bit % WORD;
        if (word)
            break;
    }
    return column < last ? column : last;
}

/* The first run at element `at` or behind it; an empty one at `end` if there is none before. */
static struct run next_run(const struct wanted *wanted, uint64_t at, uint64_t end) {
    uint64_t bits_end = (wanted->column + wanted->columns) * wanted->width;
    if (!wanted->columns || at >= bits_end)
        return (struct run){at, end};
    uint64_t column = at / wanted->width;
    column = next_column(wanted, column > wanted->column ? column : wanted->column);
    uint64_t first = column * wanted->width;
    struct run run = {first > at ? first : at, first < bits_end ? first + wanted->width : end};
    run.first = run.first < end ? run.first : end;
    run.end = run.end < end ? run.end : end;
    return run;
}

struct wanted_key wanted_key_of(const struct wanted *wanted) {
    if (!wanted->columns)
        return (struct wanted_key){0};
    return (struct wanted_key){.column = wanted->column,
                               .columns = wanted->columns,
                               .hash = hash64(wanted->words, wanted_bytes(wanted->columns)),
                               .width = wanted->width};
}

bool wanted_key_equal(const struct wanted_key *a, const struct wanted_key *b) {
    return a->column == b->column && a->columns == b->columns && a->hash == b->hash &&
           a->width == b->width;
}

/* ---- what is done with the elements that are wanted ---- */

enum way { COUNT, GATHER, SCATTER };

/* Each function is made three times, with a loop that knows its way. */
#define PER_WAY static inline __attribute__((always_inline))

/* The bits of `count` columns, up to 64, from `column` on. */
static uint64_t bits_at(const struct wanted *wanted, uint64_t column, uint64_t count) {
    uint64_t bit = column - wanted->column, low = bit % WORD;
    const uint64_t *word = wanted->words + bit / WORD;
    assert(count && count <= WORD && bit + count <= wanted->columns);
    uint64_t bits = *word >> low;
    if (low + count > WORD)
        bits |= word[1] << (WORD - low);
    return count < WORD ? bits & ((UINT64_C(1) << count) - 1) : bits;
}

/* Copies those of up to 64 elements that have a bit. */
PER_WAY uint64_t some_of_word(enum way way, uint64_t bits, const double *from, double *into) {
    uint64_t total = (uint64_t)__builtin_popcountll(bits);
    if (way != COUNT && total == WORD)
        memcpy(into, from, WORD * sizeof *into);
    else if (way == GATHER)
        for (; bits; bits &= bits - 1)
            *into++ = from[__builtin_ctzll(bits)];
    else if (way == SCATTER)
        for (; bits; bits &= bits - 1)
            into[__builtin_ctzll(bits)] = *from++;
    return total;
}

/* `from` and `into` begin at element `first` or at the first that is wanted, as the way goes. How
 * many are wanted. */
PER_WAY uint64_t walk(enum way way, const struct wanted *wanted, uint64_t first, uint64_t count,
                      const double *from, double *into) {
    uint64_t total = 0, at = first, end = first + count, ones_end = 0;
    if (wanted->columns && wanted->width == 1) {
        at = wanted->column > at ? wanted->column : at;
        ones_end = wanted->column + wanted->columns;
        ones_end = ones_end < end ? ones_end : end;
    }
    for (uint64_t here; at < ones_end; at += here) {
        here = ones_end - at < WORD ? ones_end - at : WORD;
        uint64_t bits = bits_at(wanted, at, here);
        if (way == COUNT)
            total += some_of_word(way, bits, NULL, NULL);
        else
            total += some_of_word(way, bits, from + (way == GATHER ? at - first : total),
                                  into + (way == GATHER ? total : at - first));
    }
    while (at < end) {
        struct run run = next_run(wanted, at, end);
        if (way != COUNT)
            memcpy(into + (way == GATHER ? total : run.first - first),
                   from + (way == GATHER ? run.first - first : total),
                   (run.end - run.first) * sizeof *into);
        total += run.end - run.first;
        at = run.end;
    }
    return total;
}

uint64_t wanted_total(const struct wanted *wanted, uint64_t first, uint64_t count) {
    return walk(COUNT, wanted, first, count, NULL, NULL);
}

void wanted_gather(const struct wanted *wanted, uint64_t first, uint64_t count, const double *from,
                   double *into) {
    (void)walk(GATHER, wanted, first, count, from, into);
}

void wanted_scatter(const struct wanted *wanted, uint64_t first, uint64_t count, const double *from,
                    double *into) {
    (void)walk(SCATTER, wanted, first, count, from, into);
}
