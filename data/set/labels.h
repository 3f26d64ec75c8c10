/* The labels of a set: classes, or targets and what they are like. */
#ifndef DML_DATA_SET_LABELS_H
#define DML_DATA_SET_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set_file.h"
#include "data/set/split.h"
#include "data/source/dictionary.h"

/* A target less the offset of its row, and how far rounding may have moved it. */
struct weighed_residual {
    double residual, weight, rounding;
};

/* Sums up targets one by one. Zeroed memory is empty. */
struct targets {
    double least, sum, weights;
    struct weighed_residual *sample; /* of every stride-th target */
    uint32_t sampled;
    uint64_t stride, seen;
};

void targets_finish(struct targets *targets, struct label_summary *summary);

struct labels {
    enum label_kind kind;
    const char *const *order;  /* as in struct set_options */
    char separator;            /* as in struct set_options */
    uint64_t distinct;         /* labels met so far */
    struct dictionary numbers; /* the bits of a double as id */
    struct text_dictionary texts;
    uint32_t *class_of_number, *class_of_text;
    uint32_t **text_of_pack; /* for each pack: its label texts in `texts`; of LABEL_LISTS in: */
    struct text_dictionary lists; /* whole lists as texts; `numbers` and `texts` are their parts */
    uint32_t *list_start, *list_class; /* as in struct label_lists, for each of `lists`; owned */
    uint32_t packs;
    uint32_t classes;
    char **class_name; /* owned */
    double max_abs;    /* of targets, where the row's weight is not 0 */
    struct targets targets;
};

/* Looks at the labels of the rows that are trained on. */
int labels_find(struct labels *labels, const struct split *split,
                const struct set_options *options);
void labels_release(struct labels *labels);

/* The label of a row as the set stores it; NaN if no row that is trained on has it. Safe from many
 * threads. */
double label_of_row(const struct labels *labels, uint32_t pack, const struct pack_rows *rows,
                    uint32_t row);

/* Leaves out the held-out rows whose label no training row has; returns how many. */
uint64_t labels_leave_out(const struct labels *labels, struct split *split);

/* Whether a text of a label means that class. */
bool label_means(const struct labels *labels, uint32_t class, const char *text);

#endif
