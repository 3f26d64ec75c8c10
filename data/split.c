/* Decides for every row whether it is trained on, held out or left out. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/holdout.h"
#include "data/merge.h"

struct splitting {
    double share;
    const struct holdout_pick *fold; /* NULL: none is left out */
    enum row_side held;              /* what a row that is held out becomes */
    uint8_t *side;                   /* of the pack being read */
    uint64_t row;                    /* of it: the next */
    uint64_t held_out, of_fold;
};

static int take_rows(void *context, const struct source_rows *rows) {
    struct splitting *splitting = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        uint64_t hash = holdout_hash(rows, row);
        bool held_out = holdout_has(splitting->share, hash);
        bool of_fold = splitting->fold && holdout_picks(splitting->fold, hash);
        splitting->side[splitting->row++] = held_out  ? (uint8_t)splitting->held
                                            : of_fold ? ROW_LEFT_OUT
                                                      : ROW_TRAINED;
        splitting->held_out += held_out;
        splitting->of_fold += of_fold;
    }
    return 0;
}

static void split_packs(struct split *split, uint32_t count, const struct set_options *options) {
    struct splitting splitting = {.share = options->holdout,
                                  .fold = options->fold.folds ? &options->fold : NULL,
                                  .held = options->keep_holdout ? ROW_HELD : ROW_LEFT_OUT};
    for (uint32_t p = 0; p < count; p++) {
        splitting.side = split->side[p] = memory_new(split->packs[p]->facts->rows, 1);
        splitting.row = 0;
        pack_read(split->packs[p], take_rows, &splitting);
    }
    split->held_out = splitting.held_out;
    split->of_fold = splitting.of_fold;
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
                     "a holdout of %g has %s of the %llu rows: take another share, files of "
                     "their own, or none: holdout = { }",
                     share, split->held_out ? "all" : "none", (unsigned long long)rows);
}

int split_make(struct split *split, struct pack *const *packs, uint32_t count,
               const struct set_options *options) {
    uint32_t all = count + options->holdout_count;
    *split = (struct split){.count = all, .trained = count};
    split->packs = memory_new(all, sizeof *split->packs);
    split->side = memory_new(all, sizeof *split->side);
    memcpy(split->packs, packs, count * sizeof *packs);
    for (uint32_t p = count; p < all; p++) {
        split->packs[p] = options->holdout_packs[p - count];
        split->side[p] = memory_new(split->packs[p]->facts->rows, 1);
        memset(split->side[p], ROW_HELD, split->packs[p]->facts->rows);
    }
    if (options->holdout == 0 && !options->fold.folds)
        return 0;
    split_packs(split, count, options);
    return check_sides(split, count, options);
}

void split_release(struct split *split) {
    for (uint32_t p = 0; p < split->count; p++)
        free(split->side[p]);
    free(split->side);
    free(split->packs);
    *split = (struct split){0};
}
