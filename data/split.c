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

static void leave_out(struct split *split, uint32_t pack, uint64_t row) {
    if (!split->side[pack])
        split->side[pack] = memory_new(split->packs[pack]->facts->rows, 1); /* all ROW_TRAINED */
    split->side[pack][row] = ROW_LEFT_OUT;
    split->weightless++;
}

/* A row of weight 0 that would be trained on leaves no trace, whatever it holds. */
static void weigh_block(struct split *split, uint32_t p, uint32_t b) {
    struct pack_rows rows = pack_rows(split->packs[p], b);
    for (uint32_t row = 0; rows.weight && row < rows.rows; row++) {
        enum row_side side = split_side(split, p, b, row);
        double weight = rows.weight[row];
        if (side == ROW_TRAINED && weight == 0)
            leave_out(split, p, split->packs[p]->block[b].first_row + row);
        else if (side != ROW_LEFT_OUT && weight != 1) {
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
