#include "model/ranking.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/exact.h"

/* The first bits of a double, its sign, exponent and eight more, in the order of numbers. */
#define BIN_BITS 20
#define BIN_SHIFT (64 - BIN_BITS)
#define BINS (UINT32_C(1) << BIN_BITS)

struct score_bin {
    struct weight_sum positive, negative;
};

struct ranking {
    uint32_t outputs;
    uint64_t count, bytes_max;
    bool overflowed;
    struct score_bin *bin;      /* BINS, of one output that overflowed; else NULL */
    struct ranked_score *entry; /* one output */
    uint64_t capacity;
    double *score; /* several: `outputs` an example */
    uint32_t *class;
    bool *has; /* in place of `class`: `outputs` an example; or NULL */
    double *weight;
    uint64_t score_capacity, class_capacity, has_capacity, weight_capacity;
};

struct ranking *ranking_new(uint32_t outputs, uint64_t bytes_max) {
    assert(outputs > 0);
    struct ranking *ranking = memory_new(1, sizeof *ranking);
    ranking->outputs = outputs;
    ranking->bytes_max = bytes_max;
    return ranking;
}

static void release_scores(struct ranking *ranking) {
    free(ranking->entry);
    free(ranking->score);
    free(ranking->class);
    free(ranking->has);
    free(ranking->weight);
}

void ranking_free(struct ranking *ranking) {
    if (!ranking)
        return;
    release_scores(ranking);
    for (uint32_t i = 0; ranking->bin && i < BINS; i++) {
        weight_sum_release(&ranking->bin[i].positive);
        weight_sum_release(&ranking->bin[i].negative);
    }
    free(ranking->bin);
    free(ranking);
}

bool ranking_overflowed(const struct ranking *ranking) {
    return ranking->overflowed;
}

bool ranking_is_binned(const struct ranking *ranking) {
    return ranking->bin != NULL;
}

/* ---- bins ---- */

#define SIGN (UINT64_C(1) << 63)

static uint32_t bin_of(double score) {
    uint64_t bits;
    score += 0.0; /* −0 becomes 0 */
    memcpy(&bits, &score, sizeof bits);
    return (uint32_t)((bits & SIGN ? ~bits : bits | SIGN) >> BIN_SHIFT);
}

/* The least score of a bin. */
static double bin_edge(uint32_t bin) {
    uint64_t ordered = (uint64_t)bin << BIN_SHIFT,
             bits = ordered & SIGN ? ordered ^ SIGN : ~ordered;
    double edge;
    memcpy(&edge, &bits, sizeof edge);
    return edge;
}

static void add_to_bin(struct ranking *ranking, const struct ranked_score *entry) {
    assert(ranking->bin && ranking->outputs == 1);
    struct score_bin *bin = &ranking->bin[bin_of(entry->score)];
    weight_sum_add(entry->weight > 0 ? &bin->positive : &bin->negative, fabs(entry->weight));
}

static struct ranked_score *scores_of_bins(const struct ranking *ranking, uint64_t *count) {
    struct ranked_score *scores = NULL;
    uint64_t capacity = 0;
    *count = 0;
    for (uint32_t i = 0; i < BINS; i++) {
        const double weights[] = {weight_sum_value(&ranking->bin[i].positive),
                                  -weight_sum_value(&ranking->bin[i].negative)};
        for (size_t k = 0; k < 2; k++) {
            MEMORY_ROOM(scores, *count, capacity);
            if (fabs(weights[k]) > 0)
                scores[(*count)++] = (struct ranked_score){bin_edge(i), weights[k]};
        }
    }
    return scores;
}

/* ---- examples ---- */

static void add_scores(struct ranking *ranking, const double *scores, double weight) {
    uint64_t first = ranking->count * ranking->outputs;
    for (uint32_t k = 0; k < ranking->outputs; k++) {
        MEMORY_ROOM(ranking->score, first + k, ranking->score_capacity);
        ranking->score[first + k] = scores[k];
    }
    MEMORY_ROOM(ranking->weight, ranking->count, ranking->weight_capacity);
    ranking->weight[ranking->count++] = weight;
}

/* Whether one more example, of `each` bytes, can be held and counts. If memory is full, all scores
 * are given up, or put into bins. */
static bool has_room(struct ranking *ranking, uint64_t each, double weight) {
    if (!ranking->overflowed && weight > 0 && (ranking->count + 1) * each > ranking->bytes_max) {
        if (ranking->outputs == 1) {
            ranking->bin = memory_new(BINS, sizeof *ranking->bin);
            for (uint64_t i = 0; i < ranking->count; i++)
                add_to_bin(ranking, &ranking->entry[i]);
        }
        release_scores(ranking);
        *ranking =
            (struct ranking){.outputs = ranking->outputs, .overflowed = true, .bin = ranking->bin};
    }
    return !ranking->overflowed && weight > 0;
}

void ranking_add_listed(struct ranking *ranking, const double *scores, const double *has,
                        double weight) {
    assert(ranking->outputs > 1 && !ranking->class && weight >= 0);
    if (!has_room(ranking, ranking->outputs * (sizeof(double) + 1) + sizeof(double), weight))
        return;
    uint64_t first = ranking->count * ranking->outputs;
    for (uint32_t k = 0; k < ranking->outputs; k++) {
        MEMORY_ROOM(ranking->has, first + k, ranking->has_capacity);
        ranking->has[first + k] = has[k] != 0;
    }
    add_scores(ranking, scores, weight);
}

void ranking_add(struct ranking *ranking, const double *scores, uint32_t class, double weight) {
    assert(!ranking->has && class < (ranking->outputs > 1 ? ranking->outputs : 2) && weight >= 0);
    uint64_t each = ranking->outputs == 1
                        ? sizeof(struct ranked_score)
                        : (ranking->outputs + 1) * sizeof(double) + sizeof(uint32_t);
    const struct ranked_score entry = {scores[0], class ? weight : -weight};
    bool room = has_room(ranking, each, weight);
    if (ranking->bin && weight > 0)
        add_to_bin(ranking, &entry);
    if (!room)
        return;
    if (ranking->outputs == 1) {
        MEMORY_ROOM(ranking->entry, ranking->count, ranking->capacity);
        ranking->entry[ranking->count++] = entry;
    } else {
        MEMORY_ROOM(ranking->class, ranking->count, ranking->class_capacity);
        ranking->class[ranking->count] = class;
        add_scores(ranking, scores, weight);
    }
}

/* From the highest score down; the weights decide between equal scores, so that sums over them have
 * one order. */
static int compare_scores(const void *a, const void *b) {
    const struct ranked_score *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

void ranking_sort(struct ranked_score *scores, uint64_t count) {
    qsort(scores, count, sizeof *scores, compare_scores);
}

bool ranking_walk_next(struct ranking_walk *walk, struct ranking_point *point) {
    assert(walk->next <= walk->count);
    if (walk->next == walk->count)
        return false;
    double score = walk->scores[walk->next].score;
    for (; walk->next < walk->count && walk->scores[walk->next].score == score; walk->next++) {
        double weight = walk->scores[walk->next].weight;
        weight_sum_add(&walk->predicted, fabs(weight));
        if (weight > 0)
            weight_sum_add(&walk->positives, weight);
    }
    *point = (struct ranking_point){score, weight_sum_value(&walk->positives),
                                    weight_sum_value(&walk->predicted)};
    return true;
}

void ranking_walk_release(struct ranking_walk *walk) {
    weight_sum_release(&walk->positives);
    weight_sum_release(&walk->predicted);
}

struct ranking_point ranking_all(const struct ranked_score *scores, uint64_t count) {
    struct ranking_walk walk = {0};
    for (uint64_t i = 0; i < count; i++) {
        weight_sum_add(&walk.predicted, fabs(scores[i].weight));
        if (scores[i].weight > 0)
            weight_sum_add(&walk.positives, scores[i].weight);
    }
    struct ranking_point all = {count ? scores[count - 1].score : 0,
                                weight_sum_value(&walk.positives),
                                weight_sum_value(&walk.predicted)};
    ranking_walk_release(&walk);
    return all;
}

/* A sum of two doubles (Neumaier, 1974): exact for whole numbers, and nearly so for others. */
struct twofold {
    double high, low;
};

static void twofold_add(struct twofold *sum, double term) {
    double high = sum->high + term;
    sum->low += fabs(sum->high) >= fabs(term) ? sum->high - high + term : term - high + sum->high;
    sum->high = high;
}

static double twofold_value(const struct twofold *sum) {
    return sum->high + sum->low;
}

/* The weights of the positives and negatives with scores down to some threshold. */
struct weight_pair {
    struct twofold positive, negative;
};

/* Adds all entries with the score of the first. Returns how many there are. */
static uint64_t add_equals(struct weight_pair *weights, const struct ranked_score *first,
                           uint64_t count) {
    uint64_t i = 0;
    for (; i < count && first[i].score == first->score; i++)
        if (first[i].weight > 0)
            twofold_add(&weights->positive, first[i].weight);
        else
            twofold_add(&weights->negative, -first[i].weight);
    return i;
}

/* d positives of one score, with negatives of weight a above it and b down to it, win against all
 * negatives below them and half of those of their score: d·(2·all − a − b) halves. */
static struct ranked rank(struct ranked_score *entries, uint64_t count) {
    struct weight_pair all = {0}, now = {0};
    struct exact halves, precision;
    exact_init(&halves);
    exact_init(&precision);
    ranking_sort(entries, count);
    for (uint64_t i = 0; i < count;)
        i += add_equals(&all, entries + i, count - i);
    double positives = twofold_value(&all.positive), negatives = twofold_value(&all.negative);
    for (uint64_t i = 0; i < count;) {
        double from = twofold_value(&now.positive), a = twofold_value(&now.negative);
        i += add_equals(&now, entries + i, count - i);
        double to = twofold_value(&now.positive), b = twofold_value(&now.negative);
        if (to == from)
            continue;
        exact_add(&halves, (to - from) * ((negatives - a) + (negatives - b)));
        exact_add(&precision, (to - from) * (to / (to + b)));
    }
    bool any = positives > 0;
    return (struct ranked){
        .auc = any && negatives > 0 ? exact_value(&halves) / (2 * positives * negatives) : NAN,
        .average_precision = any ? exact_value(&precision) / positives : NAN};
}

struct ranked_score *ranking_scores(const struct ranking *ranking, uint32_t class,
                                    uint64_t *count) {
    if (ranking->bin)
        return scores_of_bins(ranking, count);
    assert(!ranking->overflowed && class < ranking->outputs);
    struct ranked_score *entries = memory_new(ranking->count, sizeof *entries);
    if (ranking->outputs > 1) {
        for (uint64_t i = 0; i < ranking->count; i++) {
            double weight = ranking->weight[i];
            uint64_t at = i * ranking->outputs + class;
            bool own = ranking->has ? ranking->has[at] : ranking->class[i] == class;
            entries[i] = (struct ranked_score){ranking->score[at], own ? weight : -weight};
        }
    } else if (ranking->count)
        memcpy(entries, ranking->entry, ranking->count * sizeof *entries);
    *count = ranking->count;
    return entries;
}

bool ranking_row(const struct ranking *ranking, uint64_t i, struct ranking_row *row) {
    if (i >= ranking->count)
        return false;
    assert(ranking->outputs > 1 && ranking->class);
    *row = (struct ranking_row){ranking->outputs, ranking->class[i],
                                ranking -> score + i * ranking -> outputs, ranking -> weight[i]};
    return true;
}

struct ranked ranking_of(const struct ranking *ranking, uint32_t class) {
    uint64_t count;
    assert(!ranking->overflowed);
    struct ranked_score *entries = ranking_scores(ranking, class, &count);
    struct ranked ranked = rank(entries, count);
    free(entries);
    return ranked;
}
