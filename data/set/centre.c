/* Which columns of a set are far from 0, and what is taken off their values. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/set/centre.h"

/* A column is far from 0 if its mean is so many deviations away. The squares of a nearer column
 * lose less than ten of their 53 bits to what all rows have in common. */
#define FAR_DEVIATIONS 32.0

/* So many rows are looked at, evenly spread over those that are trained on: they follow from the
 * rows alone, and not from the files that these are in. */
#define ROWS_LOOKED_AT 128

/* No value of a far column is that many times another one. */
#define RATIO_MOST 2.0

struct candidate {
    uint64_t column;
    double first;       /* its value in the first row */
    double sum, square; /* of the differences of the values from that */
    uint32_t rows;      /* that have a value */
    bool bytes;         /* all values could be those of an image, which stay what they are */
};

/* A value of a row. */
struct part {
    uint64_t column;
    double value;
};

struct centring {
    const struct columns *columns;
    struct candidate *candidate; /* by rising columns */
    size_t count;
    struct part *part; /* the values of a row; `parts` of them, owned */
    size_t parts, capacity;
    struct bytes made; /* workspace */
};

static void add_part(struct centring *centring, uint64_t column, double value) {
    MEMORY_ROOM(centring->part, centring->parts, centring->capacity);
    centring->part[centring->parts++] = (struct part){column, value};
}

/* Collects what a row has, except words, whose values are counts. */
static void collect_row(struct centring *centring, const struct row_walk *walk) {
    const struct columns *columns = centring->columns;
    const struct pack *pack = walk->split->packs[walk->pack];
    bool words = columns_has_words(columns, walk->pack);
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    centring->parts = 0;
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = pack_feature(&walk->rows, first, i);
        if (columns_has(columns, walk->pack, feature) &&
            !(words && columns_is_word(columns, pack, feature)))
            add_part(centring, column_number(&columns->of_pack[walk->pack], feature),
                     pack_value(&walk->rows, i));
    }
    if (!columns_makes(columns, walk->pack))
        return;
    uint32_t count;
    const struct derived *made =
        columns_make(columns, walk->pack, &walk->rows, walk->row, &centring->made, &count);
    for (uint32_t i = 0; i < count; i++)
        add_part(centring, made[i].column, made[i].value);
}

static int by_column(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

/* Whatever the first row has is a candidate. */
static void begin_candidates(struct centring *centring) {
    centring->candidate = memory_new(centring->parts, sizeof *centring->candidate);
    for (size_t i = 0; i < centring->parts; i++)
        if (centring->part[i].value != 0)
            centring->candidate[centring->count++] =
                (struct candidate){.column = centring->part[i].column,
                                   .first = centring->part[i].value,
                                   .bytes = true};
    qsort(centring->candidate, centring->count, sizeof *centring->candidate, by_column);
}

static void see_value(struct candidate *candidate, double value) {
    double ratio = value / candidate->first, difference = value - candidate->first;
    if (!(ratio * RATIO_MOST >= 1 && ratio <= RATIO_MOST)) /* or no number */
        return;
    candidate->sum += difference;
    candidate->square += difference * difference;
    candidate->bytes &= value >= 0 && value <= UINT8_MAX && value == floor(value);
    candidate->rows++;
}

/* Leaves the candidates that have a value in each of the first `rows` rows. */
static void see_row(struct centring *centring, uint32_t rows) {
    size_t left = 0;
    for (size_t i = 0; i < centring->parts; i++) {
        struct candidate wanted = {.column = centring->part[i].column};
        struct candidate *found = bsearch(&wanted, centring->candidate, centring->count,
                                          sizeof *centring->candidate, by_column);
        if (found)
            see_value(found, centring->part[i].value);
    }
    for (size_t i = 0; i < centring->count; i++)
        if (centring->candidate[i].rows == rows)
            centring->candidate[left++] = centring->candidate[i];
    centring->count = left;
}

/* The mean to the last place above half a deviation: with so few digits the same number is taken
 * off when rows are added, and differences have no more digits than values had. 0: the column is
 * not far. */
static double centre_of(const struct candidate *candidate) {
    double shift = candidate->sum / candidate->rows, mean = candidate->first + shift;
    double variance = candidate->square / candidate->rows - shift * shift;
    if (candidate->bytes || !(variance > 0) || !isfinite(variance) ||
        !(fabs(mean) >= FAR_DEVIATIONS * sqrt(variance)))
        return 0;
    int exponent = ilogb(sqrt(variance));
    double units = ldexp(mean, -exponent);
    return isfinite(units) ? ldexp(nearbyint(units), exponent) : mean;
}

static void take_centres(const struct centring *centring, struct columns *columns) {
    for (size_t i = 0; i < centring->count; i++) {
        double centre = centre_of(&centring->candidate[i]);
        if (centre == 0)
            continue;
        if (!columns->centre)
            columns->centre = memory_new(columns->count, sizeof *columns->centre);
        columns->centre[centring->candidate[i].column] = centre;
        columns->far = memory_resize(columns->far, columns->far_count + 1, sizeof *columns->far);
        columns->far[columns->far_count++] = centring->candidate[i].column;
    }
}

void columns_find_centres(struct columns *columns, const struct split *split,
                          const struct plan_part *trained) {
    struct centring centring = {.columns = columns};
    uint64_t rows = trained->rows < ROWS_LOOKED_AT ? trained->rows : ROWS_LOOKED_AT;
    assert(!columns->centre);
    bytes_init(&centring.made);
    for (uint32_t k = 0; k < rows && (k == 0 || centring.count); k++) {
        struct row_walk walk = row_walk_from(split, trained, trained->rows * k / rows);
        collect_row(&centring, &walk);
        if (k == 0)
            begin_candidates(&centring);
        see_row(&centring, k + 1);
    }
    take_centres(&centring, columns);
    free(centring.candidate);
    free(centring.part);
    bytes_release(&centring.made);
}

/* How many of the far columns a row of a pack has. */
static uint32_t count_far(const struct columns *columns, uint32_t p, const struct pack_rows *rows,
                          uint32_t row) {
    uint64_t first, end = pack_row(rows, row, &first);
    uint32_t far = 0;
    for (uint64_t i = first; i < end; i++) {
        uint64_t column = column_number(&columns->of_pack[p], pack_feature(rows, first, i));
        far += column != COLUMN_NONE && columns->centre[column] != 0;
    }
    return far;
}

uint32_t columns_lacking(const struct columns *columns, uint32_t p, const struct pack_rows *rows,
                         uint32_t row, struct bytes *workspace) {
    if (!columns->centre)
        return 0;
    uint32_t there = count_far(columns, p, rows, row), count = 0;
    if (there < columns->far_count && columns_makes(columns, p)) {
        const struct derived *made = columns_make(columns, p, rows, row, workspace, &count);
        for (uint32_t i = 0; i < count; i++)
            there += columns->centre[made[i].column] != 0;
    }
    assert(there <= columns->far_count);
    return (uint32_t)columns->far_count - there;
}
