/* Downpour: minibatch Adagrad on the shards, before L-BFGS or in its place.
 *
 *     A_j += g_j²     x_j −= rate·g_j/(√A_j + β)
 *
 * g is the gradient at x of the mean loss over a minibatch, with L2; with l1 the step is followed
 * by its proximal step. (Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning
 * and stochastic optimization", JMLR 2011; Dean et al., "Large scale distributed deep networks",
 * NIPS 2012.) It is synchronous: one minibatch at a time, which all replicas share, so the model is
 * the same whatever the number of workers.
 *
 * The rows of the set are shuffled, and its chunks have the same number of rows (data/set/set.h).
 * With C chunks, k of them in a minibatch and the key of an epoch, minibatch j begins at position
 * k·permutation_at(j, ⌈C/k⌉, key) and ends before C; position p is chunk (p + offset) mod C, with
 * offset = permutation_key(key, 1) mod C. So it is a run of chunks, or two, and each row is in one
 * minibatch of the epoch.
 *
 * A step and the minibatch that follows it are one program. Nothing is journalled: a lost
 * coordinator or shard costs the steps since the last checkpoint, which are made again. A
 * checkpoint of it has the registers x and a, and best. */
#ifndef DML_OPTIMIZER_DOWNPOUR_H
#define DML_OPTIMIZER_DOWNPOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "optimizer/row.h"
#include "wire/evaluation.h"

#define DOWNPOUR_FLOOR_LEAST 1e-10 /* as torch.optim.Adagrad */

struct downpour_settings {
    uint32_t epochs; /* 0: no Downpour */
    uint32_t
        batch; /* rows of a minibatch, a multiple of those of a chunk; 0: DOWNPOUR_BATCH, halved
                  down to DOWNPOUR_BATCH_MIN while an epoch has fewer than steps_least */
    uint32_t steps_least;
    uint64_t seed; /* of the order of minibatches */
    /* By epoch; the last of a list is for all later ones. Outlive the optimizer. */
    const double *rates;
    uint32_t rate_count;
    const uint32_t *multiples; /* of `batch` */
    uint32_t multiple_count;
    double row_floor; /* this by the rows of a minibatch is added to the roots of Adagrad's sums:
                         a share of the largest derivative of a row; 0: DOWNPOUR_FLOOR_LEAST is */
    /* What rates are multiples of, and what DOWNPOUR_FLOOR_LEAST is; 0: 1. */
    double weight_unit, gradient_unit;
    bool alone;    /* no L-BFGS follows */
    bool scales;   /* its sums are H0 of L-BFGS */
    bool measures; /* the loss on the holdout after each epoch; the set has one */
};

enum downpour_stage {
    DOWNPOUR_MINIBATCH, /* the minibatch is evaluated */
    DOWNPOUR_HOLDOUT,   /* the epoch is through, and the holdout is evaluated */
    DOWNPOUR_ENDED,     /* all epochs are through */
    DOWNPOUR_OVER,      /* L-BFGS runs, or there was no Downpour */
    DOWNPOUR_STAGES,
};

struct downpour {
    struct downpour_settings settings;
    struct optimizer_data data;
    double l1, l2;
    uint32_t patience; /* epochs without a better loss on the holdout before the end; 0: none */
    enum downpour_stage stage;
    bool closing;        /* L-BFGS runs, but only to measure where Downpour stopped */
    uint64_t epoch;      /* that are through */
    uint64_t minibatch;  /* steps made of the epoch under way */
    uint64_t done;       /* steps in all */
    uint64_t redone;     /* evaluations made again, because a bound was exceeded */
    uint64_t rows;       /* of the minibatches of this epoch, or of the last one if none is done */
    double loss_sum;     /* Σ loss over them, each before its step */
    struct held holdout; /* after the last epoch that is through */
    uint64_t best_epoch; /* with patience: x after it is in register best; 0: there is none */
    struct held best;
    bool at_best; /* x and best have changed places, for the end */

    /* For reports alone. */
    int64_t epoch_began_ns;     /* the epoch under way, or when it was taken up in its middle */
    uint64_t epoch_minibatches; /* that it had then */
};

extern const struct optimizer_row downpour_row; /* of a struct downpour */

/* l1, l2 and patience are those of the settings of L-BFGS. */
void downpour_init(struct downpour *downpour, const struct downpour_settings *settings,
                   const struct optimizer_settings *penalties, const struct optimizer_data *data);

/* Whether x may still be moved by Downpour: in any stage but the last, and not while it closes. */
bool downpour_runs(const struct downpour *downpour);

/* How far it is. Without Downpour all of it is 0. */
struct downpour_view {
    bool running;                    /* L-BFGS has not taken over yet */
    bool alone;                      /* it will not but to measure the end */
    uint64_t epochs, epoch;          /* that there are to be at most; that are through */
    uint64_t minibatches, minibatch; /* of the epoch under way; that are done of it */
    uint64_t done;                   /* minibatches of all epochs */
    uint64_t redone;                 /* evaluations made again, as a bound was exceeded */
    double rate;                     /* of the steps of the epoch under way */
    double loss;         /* mean over the minibatches done of it, or of the last epoch if none is;
                            NaN: none is yet */
    bool measures;       /* epochs have a loss on the holdout */
    struct held holdout; /* after the last epoch; NaN: none is through */
    uint64_t best_epoch; /* with patience; 0: none yet */
    bool stopped_early;  /* there were fewer epochs, as the holdout got no better */
};
struct downpour_view downpour_view(const struct downpour *downpour);

/* ---- for the row and its tests ---- */

/* The rows of a minibatch, without its multiple. */
uint32_t downpour_batch(const struct downpour *downpour);

/* In the epoch after `epoch` ones: how many minibatches, and the rate of its steps. */
uint32_t downpour_minibatches(const struct downpour *downpour, uint64_t epoch);
double downpour_rate(const struct downpour *downpour, uint64_t epoch);

/* The minibatch that comes next, as parts of an evaluation of the gradient; rows of such parts. */
struct evaluation_parts downpour_parts(const struct downpour *downpour);
uint64_t downpour_rows(const struct downpour *downpour, const struct evaluation_parts *parts);

/* The mean loss over the minibatches of the epoch under way; NaN before the first. */
double downpour_loss(const struct downpour *downpour);

/* The step of a minibatch with this Σ loss: appended to the program, with t = x at its end. */
void downpour_step(struct downpour *downpour, double loss_sum, struct bytes *program);

/* The holdout was evaluated: with patience x becomes the best point if it is that. */
void downpour_measured(struct downpour *downpour, struct held held, struct bytes *program);

/* Whether it has ended before its last epoch, as the holdout got no better. */
bool downpour_stopped_early(const struct downpour *downpour);

/* Its end, also one in the middle of an epoch: x becomes the best point, if that is another. */
void downpour_finish(struct downpour *downpour, struct bytes *program);

/* Takes up one that was stored, also one that was closing, or makes the very beginning: t = x. The
 * settings may allow more epochs than before, or fewer. */
void downpour_take_up(struct downpour *downpour, struct bytes *program);

#endif
