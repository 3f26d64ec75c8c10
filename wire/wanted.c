#include "wire/wanted.h"

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

uint64_t wanted_total(const struct wanted *wanted, uint64_t first, uint64_t count) {
    uint64_t total = 0, end = first + count;
    for (uint64_t at = first; at < end;) {
        struct run run = next_run(wanted, at, end);
        total += run.end - run.first;
        at = run.end;
    }
    return total;
}

void wanted_gather(const struct wanted *wanted, uint64_t first, uint64_t count, const double *from,
                   double *into) {
    uint64_t end = first + count;
    for (uint64_t at = first; at < end;) {
        struct run run = next_run(wanted, at, end);
        memcpy(into, from + (run.first - first), (run.end - run.first) * sizeof *into);
        into += run.end - run.first;
        at = run.end;
    }
}

void wanted_scatter(const struct wanted *wanted, uint64_t first, uint64_t count, const double *from,
                    double *into) {
    uint64_t end = first + count;
    for (uint64_t at = first; at < end;) {
        struct run run = next_run(wanted, at, end);
        memcpy(into + (run.first - first), from, (run.end - run.first) * sizeof *into);
        from += run.end - run.first;
        at = run.end;
    }
}
