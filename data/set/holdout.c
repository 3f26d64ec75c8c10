#include "data/set/holdout.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/pack/pack_file.h"
#include "data/source/dictionary.h"
#include "data/text/number.h"

/* Odd constants that keep the kinds of hashed things apart: an id, a numeric label, a text label.
 */
#define OF_ID UINT64_C(0x9e3779b97f4a7c15)
#define OF_NUMBER UINT64_C(0xd1b54a32d192ed03)
#define OF_TEXT UINT64_C(0x8cb92ba72f3d8dd7)
#define OF_SEED UINT64_C(0xe7037ed1a0b428db)

/* The output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, 2014, with the constants of Stafford's variant 13). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct row_hashes holdout_hashes(const struct source_rows *rows, uint32_t row) {
    const char *text = rows->label_text ? rows->label_text[row] : NULL;
    uint64_t values = rows->start[row + 1] - rows->start[row], sum = 0, label = 0;
    const uint64_t *id = source_row_ids(rows, row);
    const double *value = rows->value + rows->start[row];
    if (text)
        label = mix(hash64(text, strlen(text)) + OF_TEXT);
    else if (!isnan(rows->label[row]))
        label = mix(number_bits(rows->label[row]) + OF_NUMBER);
    for (uint64_t i = 0; i < values; i++)
        if (value[i] != 0)
            sum += mix(mix(id[i] + OF_ID) ^ number_bits(value[i]));
    return (struct row_hashes){.row = holdout_hash(rows, row), .label = label, .values = mix(sum)};
}

uint64_t holdout_hash(const struct source_rows *rows, uint32_t row) {
    assert(rows->hash && row < rows->count);
    return rows->hash[row];
}

/* ---- rows of the same values ---- */

/* The first twin whose hash is not below that of the values. */
static uint32_t twin_place(const struct twins *twins, uint64_t values) {
    uint32_t from = 0, to = twins->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (twins->twin[middle].values < values)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Raw rows that differ in what is not read are not kept together: only one of them is counted. */
static void note_label(struct twin *twin, const struct row_hashes *hashes) {
    twin->rows++;
    for (uint32_t i = 0; i < 2; i++) {
        if (!twin->of_label[i]) {
            twin->label[i] = hashes->label;
            twin->row[i] = hashes->row;
        }
        if (twin->label[i] == hashes->label) {
            twin->of_label[i] += twin->row[i] == hashes->row;
            return;
        }
    }
}

void twins_note(struct twins *twins, const struct row_hashes *hashes) {
    if (twins->many)
        return;
    const uint32_t at = twin_place(twins, hashes->values);
    if (at == twins->count || twins->twin[at].values != hashes->values) {
        twins->many = twins->count == TWINS_MAX;
        if (twins->many)
            return;
        memmove(twins->twin + at + 1, twins->twin + at, (twins->count - at) * sizeof *twins->twin);
        twins->twin[at] = (struct twin){.values = hashes->values};
        twins->count++;
    }
    note_label(&twins->twin[at], hashes);
}

double twins_share(const struct twins *twins) {
    uint64_t rows = 0, apart = 0;
    for (uint32_t i = 0; i < twins->count; i++) {
        const struct twin *twin = &twins->twin[i];
        const bool recur = twin->of_label[0] > 1 || twin->of_label[1] > 1;
        rows += twin->rows;
        apart += twin->of_label[1] && recur ? twin->rows : 0;
    }
    return rows && !twins->many ? (double)apart / (double)rows : 0;
}

bool holdout_has(double share, uint64_t hash) {
    assert(share >= 0 && share < 1);
    return hash < (uint64_t)ldexp(share, 64);
}

/* The hash is mixed anew, so that folds do not depend on the share: that goes by the size of the
 * hash itself. */
uint32_t holdout_fold(uint64_t hash, uint64_t seed, uint32_t folds) {
    assert(folds > 0);
    uint64_t place = mix(hash ^ mix(seed + OF_SEED));
    return 1 + (uint32_t)(((place >> 32) * folds) >> 32);
}

bool holdout_picks(const struct holdout_pick *pick, uint64_t hash) {
    bool held_out = holdout_has(pick->share, hash);
    return pick->folds ? !held_out && holdout_fold(hash, pick->seed, pick->folds) == pick->fold
                       : held_out;
}

/* ---- which rows these are ---- */

uint64_t holdout_rows_id(struct pack *const *packs, uint32_t count,
                         const struct holdout_pick *pick) {
    uint64_t sum = 0;
    for (uint32_t p = 0; p < count; p++)
        for (uint32_t b = 0; b < packs[p]->facts->blocks; b++) {
            const struct pack_rows rows = pack_rows(packs[p], b);
            for (uint32_t row = 0; rows.hash && row < rows.rows; row++)
                if (!pick || holdout_picks(pick, rows.hash[row]))
                    sum += mix(rows.hash[row] + OF_SEED) | 1; /* a row more always counts */
        }
    return mix(sum);
}

/* ---- folds that have a class alone ---- */

/* Where the rows of a class are. */
struct class_place {
    uint64_t rows;
    uint32_t fold; /* of the first of them; 0: others are in another fold */
};

struct fold_search {
    const struct holdout_pick *pick;
    struct dictionary numbers; /* the bits of a double as id */
    struct text_dictionary texts;
    struct bytes of_number, of_text; /* struct class_place of each */
};

static void count_in_fold(struct bytes *places, uint32_t number, uint32_t fold) {
    if (number == places->length / sizeof(struct class_place))
        *(struct class_place *)bytes_extend(places, sizeof(struct class_place)) =
            (struct class_place){.fold = fold};
    assert(number < places->length / sizeof(struct class_place));
    struct class_place *place = (struct class_place *)(void *)places->data + number;
    place->rows++;
    if (place->fold != fold)
        place->fold = 0;
}

static int look_at_rows(void *context, const struct source_rows *rows) {
    struct fold_search *search = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        uint64_t hash = holdout_hash(rows, row);
        const char *text = rows->label_text ? rows->label_text[row] : NULL;
        if (holdout_has(search->pick->share, hash) || (!text && isnan(rows->label[row])))
            continue;
        uint32_t fold = holdout_fold(hash, search->pick->seed, search->pick->folds);
        if (text)
            count_in_fold(&search->of_text, text_dictionary_add(&search->texts, text), fold);
        else
            count_in_fold(&search->of_number,
                          dictionary_add(&search->numbers, number_bits(rows->label[row])), fold);
    }
    return 0;
}

#define NAMES_MOST 5

/* Gathers the classes that one fold has alone. */
struct lone_classes {
    const struct holdout_pick *pick;
    bool two_classes;
    uint32_t count;
    char *names; /* of the first; owned */
};

static int look_at_class(struct lone_classes *lone, const struct class_place *place,
                         const char *class) {
    if (!place->fold)
        return 0;
    if (lone->two_classes)
        return error_set(
            ERROR_DATA,
            "`folds`: all rows of class \"%.100s\", %llu, are in fold %u of %u, so the rest "
            "has one class alone: take another `seed` or other `folds`, or choose by "
            "`holdout`",
            class, (unsigned long long)place->rows, place->fold, lone->pick->folds);
    if (lone->count++ < NAMES_MOST) {
        char *before = lone->names;
        lone->names = memory_format("%s%s\"%.100s\" in fold %u", before ? before : "",
                                    before ? ", " : "", class, place->fold);
        free(before);
    }
    return 0;
}

static int look_at_classes(const struct fold_search *search, struct lone_classes *lone) {
    const struct class_place *of_number = (const void *)search->of_number.data;
    const struct class_place *of_text = (const void *)search->of_text.data;
    int code = 0;
    for (uint32_t i = 0; i < search->numbers.count && !code; i++) {
        char digits[NUMBER_TEXT];
        double number;
        memcpy(&number, &search->numbers.id[i], sizeof number);
        number_format(number, digits);
        code = look_at_class(lone, &of_number[i], digits);
    }
    for (uint32_t i = 0; i < search->texts.count && !code; i++)
        code = look_at_class(lone, &of_text[i], text_dictionary_get(&search->texts, i));
    return code;
}

int folds_check(struct pack *const *packs, uint32_t count, const struct holdout_pick *pick,
                bool two_classes) {
    struct fold_search search = {.pick = pick};
    struct lone_classes lone = {.pick = pick, .two_classes = two_classes};
    dictionary_init(&search.numbers);
    text_dictionary_init(&search.texts);
    bytes_init(&search.of_number);
    bytes_init(&search.of_text);
    int code = 0;
    for (uint32_t i = 0; i < count && !code; i++)
        code = pack_read(packs[i], look_at_rows, &search);
    if (!code)
        code = look_at_classes(&search, &lone);
    if (!code && lone.count)
        log_warning("`folds`: %u class%s all rows in one fold: %s%s; the model without it never "
                    "sees them: there they count as wrong, and not in the loss",
                    lone.count, lone.count == 1 ? " has" : "es have", lone.names,
                    lone.count > NAMES_MOST ? ", ..." : "");
    free(lone.names);
    bytes_release(&search.of_number);
    bytes_release(&search.of_text);
    dictionary_release(&search.numbers);
    text_dictionary_release(&search.texts);
    return code;
}
