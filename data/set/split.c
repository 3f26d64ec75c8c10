/* Decides for every row whether it is trained on, held out or left out. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/set/holdout.h"
#include "data/set/split.h"

struct side_finder {
    double share;
    const struct holdout_pick *fold; /* NULL: none is left out */
    enum row_side held;              /* what a row that is held out becomes */
    uint8_t *side;                   /* of the pack being read */
    uint64_t row;                    /* of it: the next */
    uint64_t held_out, of_fold;
    struct twins *twins; /* or NULL */
};

static int find_sides(void *context, const struct source_rows *rows) {
    struct side_finder *finder = context;
    assert(finder->side);
    for (uint32_t row = 0; row < rows->count; row++) {
        const struct row_hashes hashes = holdout_hashes(rows, row);
        bool held_out = holdout_has(finder->share, hashes.row);
        bool of_fold = finder->fold && holdout_picks(finder->fold, hashes.row);
        if (finder->twins)
            twins_note(finder->twins, &hashes);
        finder->side[finder->row++] = held_out  ? (uint8_t)finder->held
                                      : of_fold ? ROW_LEFT_OUT
                                                : ROW_TRAINED;
        finder->held_out += held_out;
        finder->of_fold += of_fold;
    }
    return 0;
}

/* From this share on figures are far from those of new rows. */
#define TWINS_TOLD 0.5

static void split_packs(struct split *split, uint32_t count, const struct set_options *options) {
    struct side_finder finder = {.share = options->holdout,
                                 .fold = options->fold.folds ? &options->fold : NULL,
                                 .held = options->keep_holdout ? ROW_HELD : ROW_LEFT_OUT};
    if (options->fold.fold <= 1) /* once for all folds */
        finder.twins = memory_new(1, sizeof *finder.twins);
    for (uint32_t p = 0; p < count; p++) {
        finder.side = split->side[p] = memory_new(split->packs[p]->facts->rows, 1);
        finder.row = 0;
        pack_read(split->packs[p], find_sides, &finder);
        assert(finder.row == split->packs[p]->facts->rows);
    }
    split->held_out = finder.held_out;
    split->of_fold = finder.of_fold;
    if (finder.twins) {
        if (twins_share(finder.twins) >= TWINS_TOLD)
            log_warning(
                "`%s`: all rows have one of %u different values, most of them with several "
                "labels, and rows that are alike stay on one side: the model is evaluated on "
                "labels that it never met with these values, so figures are worse than on new "
                "rows; evaluate on separate files, holdout = { FILE } or test = { FILE }",
                options->fold.folds ? "folds" : "holdout", finder.twins->count);
    }
    free(finder.twins);
}

/* Leaves out training rows of weight 0, whatever they hold, and notes whether others have weights.
 */
static void weigh_block(struct split *split, uint32_t p, uint32_t b) {
    assert(p < split->count && b < split->packs[p]->facts->blocks);
    struct pack_rows rows = pack_rows(split->packs[p], b);
    for (uint32_t row = 0; rows.weight && row < rows.rows; row++) {
        enum row_side side = split_side(split, p, b, row);
        double weight = rows.weight[row];
        if (side == ROW_TRAINED && weight == 0) {
            if (!split->side[p]) /* all are ROW_TRAINED */
                split->side[p] = memory_new(split->packs[p]->facts->rows, 1);
            split->side[p][split->packs[p]->block[b].first_row + row] = ROW_LEFT_OUT;
            split->weightless++;
        } else if (side != ROW_LEFT_OUT && weight != 1) {
            split->weighted = true;
            split->trained_weighted |= side == ROW_TRAINED;
        }
    }
}

static int weigh_rows(struct split *split) {
    uint64_t rows = 0;
    for (uint32_t p = 0; p < split->count; p++) {
        const struct pack_facts *facts = split->packs[p]->facts;
        rows += p < split->trained ? facts->rows : 0;
        for (uint32_t b = 0; facts->weighted && b < facts->blocks; b++)
            weigh_block(split, p, b);
    }
    uint64_t elsewhere = split->held_out + split->of_fold;
    if (split->weightless && split->weightless + elsewhere == rows)
        return error_set(ERROR_DATA, "%s: all rows that are trained on have a weight of 0",
                         pack_source(split->packs[0]));
    return 0;
}

static int check_sides(const struct split *split, uint32_t count,
                       const struct set_options *options) {
    double share = options->holdout;
    uint64_t rows = 0;
    for (uint32_t p = 0; p < count; p++)
        rows += split->packs[p]->facts->rows;
    if (options->fold.folds && (!split->of_fold || split->held_out + split->of_fold == rows))
        return error_set(ERROR_DATA,
                         "fold %u of %u has %s of the %llu rows: take fewer folds, or another seed",
                         options->fold.fold, options->fold.folds, split->of_fold ? "all" : "none",
                         (unsigned long long)(rows - split->held_out));
    if (share == 0 || (split->held_out && split->held_out < rows))
        return 0;
    return error_set(ERROR_DATA,
                     "a holdout of %g has %s of the %llu rows (rows that are alike stay together): "
                     "take another share, files of their own, or none: holdout = { }",
                     share, split->held_out ? "all" : "none", (unsigned long long)rows);
}

int split_make(struct split *split, struct pack *const *packs, uint32_t count,
               const struct set_options *options) {
    uint32_t all = count + options->holdout_count;
    assert(count > 0);
    *split = (struct split){.count = all, .trained = count};
    split->packs = memory_new(all, sizeof *split->packs);
    split->side = memory_new(all, sizeof *split->side);
    memcpy(split->packs, packs, count * sizeof *packs);
    for (uint32_t p = count; p < all; p++) {
        split->packs[p] = options->holdout_packs[p - count];
        split->side[p] = memory_new(split->packs[p]->facts->rows, 1);
        memset(split->side[p], ROW_HELD, split->packs[p]->facts->rows);
    }
    int code = 0;
    if (options->holdout > 0 || options->fold.folds) {
        split_packs(split, count, options);
        code = check_sides(split, count, options);
    }
    return code ? code : weigh_rows(split);
}

void split_release(struct split *split) {
    for (uint32_t p = 0; p < split->count; p++)
        free(split->side[p]);
    free(split->side);
    free(split->packs);
    *split = (struct split){0};
}

uint64_t split_count_trained(const struct split *split, uint32_t p) {
    assert(p < split->count);
    uint64_t rows = split->packs[p]->facts->rows, trained = 0;
    for (uint64_t row = 0; split->side[p] && row < rows; row++)
        trained += split->side[p][row] == ROW_TRAINED;
    return split->side[p] ? trained : rows;
}
