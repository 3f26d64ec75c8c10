/* Finds the classes, or the largest target, of a set. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/set/labels.h"
#include "data/set/offsets.h"
#include "data/text/number.h"

/* ---- what targets are like: the least, the mean, and quantiles of a sample of residuals ---- */

/* A full sample drops every other target, and takes half as many from then on. */
#define SAMPLE_MAX 65536

static void sample_residual(struct targets *targets, struct weighed_residual residual) {
    if (!targets->sample) {
        targets->sample = memory_new(SAMPLE_MAX, sizeof *targets->sample);
        targets->stride = 1;
    }
    if (targets->seen++ % targets->stride)
        return;
    if (targets->sampled == SAMPLE_MAX) {
        targets->sampled /= 2;
        targets->stride *= 2;
        for (uint32_t i = 0; i < targets->sampled; i++)
            targets->sample[i] = targets->sample[2 * (size_t)i];
    }
    assert(targets->sampled < SAMPLE_MAX);
    targets->sample[targets->sampled++] = residual;
}

/* Target and offset are each rounded when they are read, and maybe when they were made. */
#define ROUNDINGS 8

static struct weighed_residual residual_of(double target, double offset, double weight) {
    double size = offset != 0 ? fabs(target) + fabs(offset) : 0;
    return (struct weighed_residual){target - offset, weight, ROUNDINGS * DBL_EPSILON * size};
}

/* Weights are scaled so that their sum cannot overflow; with huge targets `sum` can. */
static void add_target(struct targets *targets, double target, double offset, double weight) {
    if (!targets->sampled || target < targets->least)
        targets->least = target;
    targets->sum += weight * target;
    targets->weights += weight;
    sample_residual(targets, residual_of(target, offset, weight));
}

/* Residuals of one size are in the order of their weights, so that the sums of these are always the
 * same, and then of their rounding. */
static int compare_residuals(const void *a, const void *b) {
    const struct weighed_residual *x = a, *y = b;
    int order = (x->residual > y->residual) - (x->residual < y->residual);
    if (!order)
        order = (x->weight > y->weight) - (x->weight < y->weight);
    return order ? order : (x->rounding > y->rounding) - (x->rounding < y->rounding);
}

/* Quantiles that differ from the median by rounding only become the median: else the labels would
 * seem to have a spread, and a tiny one. */
static void drop_rounding(struct label_summary *summary, const double *rounding) {
    const uint32_t middle = LABEL_QUANTILES / 2;
    const double median = summary->quantile[middle];
    for (uint32_t k = 0; k < LABEL_QUANTILES; k++)
        if (fabs(summary->quantile[k] - median) <= rounding[k] + rounding[middle])
            summary->quantile[k] = median;
}

/* A row of weight 3 counts as three rows do, of which the lightest has weight 1. */
static void find_quantiles(const struct targets *targets, struct label_summary *summary) {
    double total = 0, lightest = INFINITY, before = 0, rounding[LABEL_QUANTILES];
    uint32_t at = 0;
    for (uint32_t i = 0; i < targets->sampled; i++) {
        total += targets->sample[i].weight;
        lightest = fmin(lightest, targets->sample[i].weight);
    }
    for (uint32_t k = 0; k < LABEL_QUANTILES; k++) {
        double share = (total - lightest) * k / (LABEL_QUANTILES - 1);
        while (at + 1 < targets->sampled && before + targets->sample[at].weight <= share)
            before += targets->sample[at++].weight;
        summary->quantile[k] = targets->sample[at].residual;
        assert(!k || summary->quantile[k - 1] <= summary->quantile[k]);
        rounding[k] = targets->sample[at].rounding;
    }
    drop_rounding(summary, rounding);
}

void targets_finish(struct targets *targets, struct label_summary *summary) {
    *summary = (struct label_summary){0};
    if (!targets->sampled)
        return;
    assert(targets->sampled <= SAMPLE_MAX && targets->weights > 0);
    qsort(targets->sample, targets->sampled, sizeof *targets->sample, compare_residuals);
    summary->least = targets->least;
    summary->mean = targets->sum / targets->weights;
    find_quantiles(targets, summary);
}

/* ---- labels one by one ---- */

/* A distinct label of the data: a number or a text. */
struct distinct_label {
    char *name; /* owned until it becomes a class name */
    double number;
    uint32_t index; /* in `numbers` or `texts` */
    uint32_t rank;  /* in the order that is given */
    bool text;
};

/* The class of a label: of the text, or if that is DICTIONARY_NONE of the number; DICTIONARY_NONE
 * if no row has it. */
static uint32_t class_of_label(const struct labels *labels, uint32_t text, double number) {
    bool is_text = text != DICTIONARY_NONE;
    uint32_t index = is_text ? text : dictionary_find(&labels->numbers, number_bits(number));
    if (index == DICTIONARY_NONE)
        return DICTIONARY_NONE;
    return (is_text ? labels->class_of_text : labels->class_of_number)[index];
}

/* The text of a row's label: its number in the pack, and 1; 0: it is the number. Numbers that are
 * codes beside are numbers where they are measured or ordered. */
static uint32_t text_of_row(const struct labels *labels, const struct pack_rows *rows,
                            uint32_t row) {
    const bool as_number = labels->kind == LABEL_TARGET || labels->kind == LABEL_ORDERED;
    if (!rows->label_text || (as_number && !isnan(rows->label[row])))
        return 0;
    return rows->label_text[row];
}

double label_of_row(const struct labels *labels, uint32_t pack, const struct pack_rows *rows,
                    uint32_t row) {
    assert(pack < labels->packs);
    if (labels->kind == LABEL_TARGET)
        return rows->label[row];
    uint32_t after = text_of_row(labels, rows, row);
    uint32_t text = after ? labels->text_of_pack[pack][after - 1] : DICTIONARY_NONE;
    if (after && text == DICTIONARY_NONE)
        return NAN;
    uint32_t index =
        labels->kind == LABEL_LISTS ? text : class_of_label(labels, text, rows->label[row]);
    return index == DICTIONARY_NONE ? (double)NAN : index;
}

uint64_t labels_leave_out(const struct labels *labels, struct split *split) {
    uint64_t left_out = 0;
    for (uint32_t p = 0; p < split->count; p++) {
        const struct pack *pack = split->packs[p];
        for (uint32_t b = 0; split->side[p] && b < pack->facts->blocks; b++) {
            struct pack_rows rows = pack_rows(pack, b);
            for (uint32_t row = 0; row < rows.rows; row++)
                if (split_side(split, p, b, row) == ROW_HELD &&
                    isnan(label_of_row(labels, p, &rows, row))) {
                    split->side[p][pack->block[b].first_row + row] = ROW_LEFT_OUT;
                    left_out++;
                }
        }
    }
    return left_out;
}

/* The column of a table from which the labels are: another column may be meant. In the file the
 * column may stand elsewhere than in the table, which all files have in common. The caller frees
 * the text. */
static char *label_origin(const struct pack *pack) {
    char column[COLUMN_TEXT];
    uint32_t at = pack->table ? table_find_kind(pack->table, COLUMN_LABEL) : 0;
    if (!pack->table || at == pack->table->columns)
        return memory_copy_string("");
    return memory_format("; the labels are those of %s: csv.label takes another",
                         table_describe(pack->table, at, column));
}

static int refuse_label(const struct pack *pack, uint64_t row, const char *name, const char *why) {
    char *origin = label_origin(pack);
    error_set(ERROR_DATA, "%s: row %llu: the label \"%s\" %s%s", pack_source(pack),
              (unsigned long long)row + 1, name, why, origin);
    free(origin);
    return ERROR_DATA;
}

static int check_target(struct labels *labels, const struct pack *pack, uint64_t row, uint32_t text,
                        double number, double offset, double weight) {
    if (text != DICTIONARY_NONE)
        return refuse_label(pack, row, text_dictionary_get(&labels->texts, text),
                            "is a text; a target must be a number; for classes, use objective = "
                            "logistic or softmax");
    if (weight > 0 && fabs(number) > labels->max_abs)
        labels->max_abs = fabs(number);
    if (weight > 0)
        add_target(&labels->targets, number, offset, weight);
    return 0;
}

/* Numbers of which there are more, or fractions, are values to predict and not classes. */
#define CLASSES_LIKELY 100

/* For a message: which objective fits a pack with more than two labels. */
static const char *fitting_objective(const struct pack *pack) {
    struct dictionary numbers;
    dictionary_init(&numbers);
    bool values = false;
    for (uint32_t b = 0; b < pack->facts->blocks && !values && !pack->facts->label_texts; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        for (uint32_t row = 0; row < rows.rows && !values; row++) {
            double label = rows.label[row];
            dictionary_add(&numbers, number_bits(label));
            values = numbers.count > CLASSES_LIKELY || label != floor(label);
        }
    }
    dictionary_release(&numbers);
    return values ? "as these are values to predict, use objective = squared"
                  : "for more classes, use objective = softmax";
}

/* Whether `text` is the label of that name, or the same number written in another way. */
static bool same_label(const char *name, bool is_text, const char *text) {
    double number, other;
    return !strcmp(name, text) || (!is_text && number_of_text(text, &number) &&
                                   number_of_text(name, &other) && number == other);
}

/* The place of a label in the given order; the length of that order if it is not listed. */
static uint32_t order_of(const struct labels *labels, const char *name, bool is_text) {
    uint32_t rank = 0;
    while (labels->order && labels->order[rank] && !same_label(name, is_text, labels->order[rank]))
        rank++;
    return rank;
}

static int check_order(const struct labels *labels, const struct pack *pack, uint64_t row,
                       uint32_t text, const char *name) {
    bool is_text = text != DICTIONARY_NONE;
    if (!labels->order && !is_text)
        return 0;
    if (!labels->order)
        return refuse_label(pack, row, name,
                            "is a text, and texts have no order; list the labels from low to high: "
                            "ordinal { order = { \"LOW\", \"HIGH\" } }");
    if (labels->order[order_of(labels, name, is_text)])
        return 0;
    /* Where all columns hold texts, nothing shows that the first line names them. */
    bool may_be_name = row == 0 && is_text && pack->table && !pack->table->column[0].name;
    char *why = memory_format(
        "is not listed in `ordinal.order`, which begins with \"%s\"%s", labels->order[0],
        may_be_name ? "; if it is the name of the column, set csv.header = yes" : "");
    int code = refuse_label(pack, row, name, why);
    free(why);
    return code;
}

static int compare_numbers(const void *a, const void *b) {
    const struct distinct_label *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int compare_names(const void *a, const void *b) {
    const struct distinct_label *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int compare_ranks(const void *a, const void *b) {
    const struct distinct_label *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static struct distinct_label *list_seen(const struct labels *labels, uint32_t count) {
    struct distinct_label *seen = memory_new(count, sizeof *seen);
    uint32_t numbers = labels->numbers.count;
    assert(count <= numbers + (uint64_t)labels->texts.count);
    for (uint32_t i = 0; i < count; i++) {
        seen[i] =
            (struct distinct_label){.text = i >= numbers, .index = i >= numbers ? i - numbers : i};
        if (seen[i].text) {
            seen[i].name = memory_copy_string(text_dictionary_get(&labels->texts, seen[i].index));
        } else {
            char name[NUMBER_TEXT];
            memcpy(&seen[i].number, &labels->numbers.id[i], sizeof seen[i].number);
            number_format(seen[i].number, name);
            seen[i].name = memory_copy_string(name);
        }
        seen[i].rank = order_of(labels, seen[i].name, seen[i].text);
    }
    qsort(seen, count, sizeof *seen,
          labels->order         ? compare_ranks
          : labels->texts.count ? compare_names
                                : compare_numbers);
    return seen;
}

/* Whether labels are numbers from 0 to 1 which are not both. */
static bool are_shares(const struct labels *labels, const struct distinct_label *seen) {
    bool between = false;
    for (int i = 0; i < 3; i++) {
        double number;
        if (labels->texts.count || !number_of_text(seen[i].name, &number) || number < 0 ||
            number > 1)
            return false;
        between |= number > 0 && number < 1;
    }
    return between;
}

/* Refuses the label that was met last. A header line that was taken for a row is one of the three.
 */
static int third_label_error(const struct labels *labels, const struct pack *pack, uint64_t row,
                             const char *name) {
    assert(labels->distinct == 3);
    struct distinct_label *seen = list_seen(labels, 3);
    bool first_is_it = strcmp(seen[0].name, name) == 0,
         last_is_it = strcmp(seen[2].name, name) == 0;
    bool maybe_header =
        pack->facts->format == FORMAT_CSV && !pack->facts->header && labels->texts.count;
    char *origin = label_origin(pack);
    const char *one = seen[first_is_it].name, *other = seen[last_is_it ? 1 : 2].name;
    bool cases = !strcasecmp(name, one) || !strcasecmp(name, other) || !strcasecmp(one, other);
    bool shares = are_shares(labels, seen);
    error_set(
        ERROR_DATA,
        "%s: row %llu: \"%s\" is a third label, beside \"%s\" and \"%s\", where only two "
        "classes are possible; %s%s%s%s",
        pack_source(pack), (unsigned long long)row + 1, name, one, other,
        cases    ? "two of them differ in upper and lower case alone: write them alike; or "
        : shares ? "a share of trials is two rows, of labels 1 and 0, whose weights are how many "
                   "succeeded and failed (csv.weight); or "
                 : "",
        fitting_objective(pack),
        maybe_header ? "; if the first line names the columns, set csv.header = yes" : "", origin);
    free(origin);
    for (int i = 0; i < 3; i++)
        free(seen[i].name);
    free(seen);
    return ERROR_DATA;
}

static int check_class(struct labels *labels, const struct pack *pack, uint64_t row, uint32_t text,
                       double number) {
    char digits[NUMBER_TEXT];
    if (text == DICTIONARY_NONE)
        dictionary_add(&labels->numbers, number_bits(number));
    uint64_t distinct = (uint64_t)labels->numbers.count + labels->texts.count;
    if (distinct == labels->distinct)
        return 0;
    labels->distinct = distinct;
    const char *name = digits;
    if (text != DICTIONARY_NONE)
        name = text_dictionary_get(&labels->texts, text);
    else
        number_format(number, digits);
    if (labels->kind == LABEL_BINARY && distinct > 2)
        return third_label_error(labels, pack, row, name);
    if (distinct > CLASSES_MAX)
        return error_set(ERROR_DATA,
                         "%s: row %llu: more than %u different labels; for numbers to be "
                         "predicted, use objective = squared",
                         pack_source(pack), (unsigned long long)row + 1, CLASSES_MAX);
    return labels->kind == LABEL_ORDERED ? check_order(labels, pack, row, text, name) : 0;
}

/* Numbers label texts row by row, so that the message about a third label can name the row. */
static uint32_t number_text(struct labels *labels, const struct pack *pack, uint32_t p,
                            const struct pack_rows *rows, uint32_t row) {
    uint32_t after = text_of_row(labels, rows, row);
    if (!after)
        return DICTIONARY_NONE;
    uint32_t *text = &labels->text_of_pack[p][after - 1];
    if (*text == DICTIONARY_NONE)
        *text = text_dictionary_add(&labels->texts, pack->label_text[after - 1]);
    return *text;
}

/* Checks a part of a list, which is a label as that of a row with one label is. */
static int check_part(struct labels *labels, const struct pack *pack, uint64_t row,
                      const char *part) {
    double number = NAN;
    bool is_number = number_of_text(part, &number) && !number_is_code(part, strlen(part));
    uint32_t text = is_number ? DICTIONARY_NONE : text_dictionary_add(&labels->texts, part);
    return check_class(labels, pack, row, text, number + 0.0); /* −0 is 0 */
}

static int look_at_list(struct labels *labels, const struct pack *pack, uint32_t p,
                        uint64_t row_of_pack, uint32_t after) {
    uint32_t *list = &labels->text_of_pack[p][after - 1];
    if (*list != DICTIONARY_NONE)
        return 0;
    *list = text_dictionary_add(&labels->lists, pack->label_text[after - 1]);
    const char *at = pack->label_text[after - 1];
    struct bytes part;
    bytes_init(&part);
    int code = 0;
    while (!code && list_next(&at, labels->separator, &part))
        code = check_part(labels, pack, row_of_pack, (const char *)part.data);
    bytes_release(&part);
    return code;
}

static int look_at_row(struct labels *labels, const struct pack *pack, uint32_t p,
                       const struct pack_rows *rows, uint32_t row, uint64_t row_of_pack) {
    uint32_t after = text_of_row(labels, rows, row);
    if (labels->kind == LABEL_LISTS && after)
        return look_at_list(labels, pack, p, row_of_pack, after);
    uint32_t text = number_text(labels, pack, p, rows, row);
    if (text == DICTIONARY_NONE && isnan(rows->label[row]))
        return error_set(ERROR_DATA, "%s: row %llu has no label", pack_source(pack),
                         (unsigned long long)row_of_pack + 1);
    if (labels->kind == LABEL_TARGET)
        return check_target(labels, pack, row_of_pack, text, rows->label[row],
                            row_offset_of(rows, row), rows->weight ? rows->weight[row] : 1);
    return check_class(labels, pack, row_of_pack, text, rows->label[row]);
}

static int look_at_pack(struct labels *labels, const struct split *split, uint32_t p) {
    assert(p < split->count);
    const struct pack *pack = split->packs[p];
    uint32_t *of_pack = memory_new(pack->facts->label_texts, sizeof *of_pack);
    for (uint32_t i = 0; i < pack->facts->label_texts; i++)
        of_pack[i] = DICTIONARY_NONE;
    labels->text_of_pack[p] = of_pack;
    int code = 0;
    for (uint32_t b = 0; b < pack->facts->blocks && !code; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        for (uint32_t row = 0; row < rows.rows && !code; row++)
            if (split_side(split, p, b, row) == ROW_TRAINED)
                code = look_at_row(labels, pack, p, &rows, row, pack->block[b].first_row + row);
    }
    return code;
}

/* A text that only held-out rows of one pack have may be a label because of rows of another. */
static void find_other_texts(struct labels *labels, const struct split *split) {
    for (uint32_t p = 0; p < split->count; p++)
        for (uint32_t i = 0; i < split->packs[p]->facts->label_texts; i++)
            if (labels->text_of_pack[p][i] == DICTIONARY_NONE)
                labels->text_of_pack[p][i] =
                    text_dictionary_find(&labels->texts, split->packs[p]->label_text[i]);
}

bool label_means(const struct labels *labels, uint32_t class, const char *text) {
    assert(class < labels->classes);
    const char *name = labels->class_name[class];
    return same_label(name, text_dictionary_find(&labels->texts, name) != DICTIONARY_NONE, text);
}

/* Puts the positive one of two classes last. */
static int order_binary(struct distinct_label *seen, const char *positive) {
    if (!positive || same_label(seen[1].name, seen[1].text, positive))
        return 0;
    if (!same_label(seen[0].name, seen[0].text, positive))
        return error_set(ERROR_DATA,
                         "no row has the positive label \"%s\": the labels are \"%s\" "
                         "and \"%s\"",
                         positive, seen[0].name, seen[1].name);
    struct distinct_label first = seen[0];
    seen[0] = seen[1];
    seen[1] = first;
    return 0;
}

static int make_classes(struct labels *labels, const struct split *split, const char *positive) {
    const struct pack *first = split->packs[0];
    uint32_t count = labels->classes = labels->numbers.count + labels->texts.count;
    struct distinct_label *seen = list_seen(labels, count);
    int code = 0;
    if (!count)
        code = error_set(ERROR_DATA, "%s: no row has a label: two classes at least are needed",
                         pack_source(first));
    else if (count == 1)
        code = error_set(ERROR_DATA,
                         "%s: all rows%s have the same label, \"%s\": two classes at "
                         "least are needed",
                         pack_source(first), split->held_out ? " that are trained on" : "",
                         seen[0].name);
    else if (labels->kind == LABEL_BINARY)
        code = order_binary(seen, positive);
    labels->class_name = memory_new(count, sizeof *labels->class_name);
    labels->class_of_number = memory_new(labels->numbers.count, sizeof(uint32_t));
    labels->class_of_text = memory_new(labels->texts.count, sizeof(uint32_t));
    assert(code || labels->kind != LABEL_BINARY || count == 2);
    for (uint32_t i = 0; i < count; i++) {
        (seen[i].text ? labels->class_of_text : labels->class_of_number)[seen[i].index] = i;
        labels->class_name[i] = seen[i].name;
    }
    free(seen);
    return code;
}

/* ---- the classes of labels that are lists ---- */

/* The class of a part of a list, or DICTIONARY_NONE. */
static uint32_t class_of_part(const struct labels *labels, const char *part) {
    double number = 0;
    bool is_number = number_of_text(part, &number) && !number_is_code(part, strlen(part));
    uint32_t text = is_number ? DICTIONARY_NONE : text_dictionary_find(&labels->texts, part);
    if (!is_number && text == DICTIONARY_NONE)
        return DICTIONARY_NONE;
    return class_of_label(labels, text, number + 0.0); /* −0 is 0 */
}

/* Whether all classes of a list are known. */
static bool is_known(const struct labels *labels, const char *list, struct bytes *part) {
    while (list_next(&list, labels->separator, part))
        if (class_of_part(labels, (const char *)part->data) == DICTIONARY_NONE)
            return false;
    return true;
}

static int compare_classes(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts classes[first … count) and takes out repeated ones; how many there are then. */
static uint32_t sort_list(uint32_t *classes, uint32_t first, uint32_t count) {
    uint32_t kept = first;
    assert(first <= count);
    qsort(classes + first, count - first, sizeof *classes, compare_classes);
    for (uint32_t i = first; i < count; i++)
        if (i == first || classes[i] != classes[i - 1])
            classes[kept++] = classes[i];
    return kept;
}

/* Finds lists that only held-out rows have, and the classes of all. */
static void find_lists(struct labels *labels, const struct split *split) {
    assert(labels->kind == LABEL_LISTS);
    struct bytes part;
    uint64_t capacity = 0;
    uint32_t count = 0;
    bytes_init(&part);
    /* A list that only held-out rows have may be one of known classes. */
    for (uint32_t p = 0; p < split->count; p++)
        for (uint32_t i = 0; i < split->packs[p]->facts->label_texts; i++) {
            uint32_t *list = &labels->text_of_pack[p][i];
            const char *text = split->packs[p]->label_text[i];
            if (*list == DICTIONARY_NONE && is_known(labels, text, &part))
                *list = text_dictionary_add(&labels->lists, text);
        }
    labels->list_start = memory_new(labels->lists.count + (size_t)1, sizeof *labels->list_start);
    for (uint32_t i = 0; i < labels->lists.count; i++) {
        const char *at = text_dictionary_get(&labels->lists, i);
        while (list_next(&at, labels->separator, &part)) {
            MEMORY_ROOM(labels->list_class, count, capacity);
            labels->list_class[count++] = class_of_part(labels, (const char *)part.data);
        }
        if (labels->list_class)
            count = sort_list(labels->list_class, labels->list_start[i], count);
        assert(labels->list_start[i] <= count); /* lists follow one another */
        labels->list_start[i + 1] = count;
    }
    bytes_release(&part);
}

/* ---- all labels ---- */

int labels_find(struct labels *labels, const struct split *split,
                const struct set_options *options) {
    *labels = (struct labels){.kind = options->labels,
                              .order = options->order,
                              .separator = options->separator,
                              .packs = split->count};
    labels->text_of_pack = memory_new(split->count, sizeof *labels->text_of_pack);
    dictionary_init(&labels->numbers);
    text_dictionary_init(&labels->texts);
    text_dictionary_init(&labels->lists);
    int code = 0;
    for (uint32_t p = 0; p < split->count && !code; p++)
        code = look_at_pack(labels, split, p);
    if (!code && labels->kind != LABEL_LISTS)
        find_other_texts(labels, split);
    if (!code && labels->kind != LABEL_TARGET)
        code = make_classes(labels, split, options->positive);
    if (!code && labels->kind == LABEL_LISTS)
        find_lists(labels, split);
    return code;
}

void labels_release(struct labels *labels) {
    for (uint32_t p = 0; p < labels->packs; p++)
        free(labels->text_of_pack[p]);
    free(labels->text_of_pack);
    for (uint32_t i = 0; labels->class_name && i < labels->classes; i++)
        free(labels->class_name[i]);
    free(labels->class_name);
    free(labels->class_of_number);
    free(labels->class_of_text);
    dictionary_release(&labels->numbers);
    text_dictionary_release(&labels->texts);
    text_dictionary_release(&labels->lists);
    free(labels->list_start);
    free(labels->list_class);
    free(labels->targets.sample);
    *labels = (struct labels){0};
}
