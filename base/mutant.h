/* Deliberate bugs in the protocol, to show that the simulator finds such bugs.
 *
 * Only the simulator's build of the roles (-DMUTANTS, tests/sim) has them, and at most one is on at
 * a time. In every other build mutant() is false and its branch is not compiled. Those from
 * ADAGRAD_TWICE to HOLDOUT_SKIPPED show in jobs with Downpour alone, and are tried on those: they
 * stay together; so do those from MARGINS_NOT_RESTORED on, which show in jobs with common
 * directions, those from SIZES_NOT_FETCHED on in jobs in tiles, from TRIAL_LOSS_FORGOTTEN on in
 * tiles without directions, and from DERIVATIVES_NOT_TAKEN on in networks in tiles
 * (tests/sim/sim.c). */
#ifndef DML_BASE_MUTANT_H
#define DML_BASE_MUTANT_H

#include <stdbool.h>

#define MUTANT_TABLE(X)                                                                            \
    X(FOLD_WITHOUT_VERDICT, "a shard folds a slice as soon as it is staged")                       \
    X(ACCEPT_BEFORE_ALL_STAGED, "a flush is accepted when one shard has staged it")                \
    X(COUNT_TWICE, "a flush with chunks that are counted is accepted")                             \
    X(NO_TERM_CHECK, "workers obey an older coordinator")                                          \
    X(TERM_NOT_RENEWED, "a new coordinator goes on in the term of the last one")                   \
    X(COMMIT_BEFORE_ALL_WRITTEN, "a step is durable when one shard has written it")                \
    X(COMMIT_BEFORE_SYNC, "a checkpoint is acknowledged before it is on disk")                     \
    X(CHECKPOINT_DELETED_EARLY, "files that hold pairs of a durable step are deleted")             \
    X(PAIR_OVERWRITTEN, "a pair is formed in a slot that is still being written")                  \
    X(PROGRAM_TWICE, "a repeated program is run again")                                            \
    X(ROUND_BEFORE_FOLDS, "an evaluation is used before every fold is confirmed")                  \
    X(PROGRAM_BEFORE_FOLDS, "the program that uses the folds of a turn is sent before them")       \
    X(ONE_FOLD_OF_A_LIST, "a shard folds one flush of a list and confirms all")                    \
    X(FOLDS_NOT_REPEATED, "a run that goes on from the journal sends no FOLD again")               \
    X(DROP_OF_ANOTHER, "a shard drops what was staged first, not what a list names")               \
    X(BACKUP_WITH_OTHER_WORK, "a backup copy is accrued with other portions")                      \
    X(INCARNATION_KEPT, "a worker that is started anew keeps its incarnation")                     \
    X(REPEATED_FLUSH_DROPPED, "a flush that was accepted is dropped when reported again")          \
    X(GIVEN_UP_DROPPED, "flushes of an evaluation that was given up are dropped")                  \
    X(DEAD_SHARD_BELIEVED, "what a dead shard acknowledged counts with the next one")              \
    X(ATTEMPT_KEPT, "going back does not take a new attempt")                                      \
    X(ATTEMPT_IGNORED, "shards do not look at the attempt of a slice or a program")                \
    X(REJOIN_UNCHECKED, "a run goes on from the journal whatever the shards hold")                 \
    X(JOURNAL_NOT_COMPARED, "a run goes on though shards folded what the journal lacks")           \
    X(MEMORY_USED_EARLY, "a replica uses the memory of a flush again once it is staged")           \
    X(CHUNKS_LOST, "what a lost replica was handed does not go back")                              \
    X(BOUND_FORGOTTEN, "the bound on derivatives is not part of the durable state")                \
    X(START_FORGOTTEN, "a roll-back to the beginning forgets the start values")                    \
    X(SCALING_FORGOTTEN, "after a roll-back workers are set up without the scaling")               \
    X(LIMITS_FORGOTTEN, "after a roll-back shards are set up without the limits of columns")       \
    X(LIMITS_SHIFTED, "after a roll-back columns have the limits of those beside them")            \
    X(BEST_NOT_RESTORED, "the best point is lost when all go back to a durable step")              \
    X(FACTOR_KEPT, "a shard that goes back restores no preconditioner, but keeps what it has")     \
    X(DIAGONAL_KEPT, "a refresh leaves beyond the block the diagonal of the former factor")        \
    X(DIAGONAL_NOT_RESTORED, "a shard that goes back restores a block without its diagonal")       \
    X(OTHER_BLOCK, "after a roll-back replicas add up the sums of a smaller block")                \
    X(REFRESH_TWICE, "a run that goes on refreshes its preconditioner once more")                  \
    X(POLISHING_FORGOTTEN, "a run that goes back forgets that it was making its last steps")       \
    X(CLOSING_FORGOTTEN, "a run that goes back in its last steps forgets why it ends")             \
    X(PAIRS_KEPT, "pairs are kept over a refresh, with products of the old preconditioner")        \
    X(ORTHANT_FORGOTTEN, "a run that goes on with l1 does not form its pseudo-gradient anew")      \
    X(ADAGRAD_TWICE, "after going back the last step of Adagrad is made once more")                \
    X(ADAGRAD_NOT_RESTORED, "a shard that goes back keeps the sums of Adagrad that it has")        \
    X(DIAGONAL_LEFT_OUT, "checkpoints after Downpour lack its sums, by which L-BFGS scales")       \
    X(DIAGONAL_FORGOTTEN, "a run that goes on forgets that L-BFGS scales by Adagrad's sums")       \
    X(EPOCH_ANEW, "a run that goes back in an epoch of minibatches begins it anew")                \
    X(MINIBATCH_CUT, "a minibatch that goes on at the first chunk ends at the last")               \
    X(WEIGHT_OF_ALL, "the gradient of a minibatch is divided by the weight of all rows")           \
    X(BEST_EPOCH_FORGOTTEN, "a run that goes back forgets which epoch was the best")               \
    X(TOUCHED_FORGOTTEN, "a step of Downpour passes by what a dense slice has touched")            \
    X(HOLDOUT_SKIPPED, "a run that goes back between epochs does not measure the holdout")         \
    X(SUMS_KEPT, "sums of an abandoned evaluation are added to the next one")                      \
    X(HOST_KEPT, "a shard whose host is lost is started there again and again")                    \
    X(COPIES_NOT_AWAITED, "a step is durable before the coordinator has read its files")           \
    X(FIRST_COPY_ENOUGH, "a step is durable when the first of several files was read")             \
    X(EARLIER_FILES_LEFT, "files of checkpoints that failed are not read with the next one")       \
    X(COPIES_REMOVED_EARLY, "the coordinator removes copies that hold pairs of a durable step")    \
    X(EARLIER_FILES_NOT_BROUGHT, "a shard loads a step before all files of it were brought")       \
    X(OWN_DISK_BELIEVED, "a shard whose own files are damaged does not ask for copies")            \
    X(LOCAL_KEPT, "a replica that is not let in within its host goes on trying there")             \
    X(LEFT_INCARNATION_KEPT, "the next replica in a place has the incarnation of the last one")    \
    X(LEFT_PORTIONS_LOST, "what a replica that left had in hand does not go back")                 \
    X(HOME_OF_PLACE, "a replica that joins has the home range of a later evaluation")              \
    X(JOINER_UNPROVEN, "a replica that joins need not compute the bits of the others")             \
    X(REPLICA_AWAITED, "a run does not begin without the replicas of lost hosts")                  \
    X(CHUNK_NOT_VERIFIED, "a replica counts a chunk that came by messages without a look at it")   \
    X(CHUNK_NOT_AWAITED, "a replica computes chunks before they have come by messages")            \
    X(WRONG_CHUNK_AWAITED, "a chunk that came with a wrong checksum is not asked for again")       \
    X(CHUNKS_FORGOTTEN, "in another evaluation a replica asks again for chunks that it has")       \
    X(SET_NOT_ASKED_AGAIN, "what the last coordinator did not answer is not asked for again")      \
    X(SET_ANSWER_AWAITED, "an answer that was lost is waited for")                                 \
    X(SET_ANSWER_OF_ANOTHER, "bytes are taken for those that were asked for first")                \
    X(NEEDS_NOT_LOOKED_AT, "a replica computes chunks with a part of the point for others")        \
    X(MARGINS_NOT_RESTORED, "a shard that goes back restores no margins of its rows")              \
    X(PRODUCTS_NOT_RESTORED, "directions are restored without their products with the rows")       \
    X(DIRECTION_OVERWRITTEN, "a direction is kept in a slot that is still being written")          \
    X(DIRECTIONS_DELETED, "files that hold directions of a durable step are deleted")              \
    X(DIRECTIONS_NUMBERED_ANEW, "a run that goes on gives numbers of directions again")            \
    X(GRAM_FORGOTTEN, "products of the directions with each other are not durable")                \
    X(AGE_FORGOTTEN, "a run that goes on does not know how old its margins are")                   \
    X(LABELS_NOT_FETCHED, "a run that goes back does not fetch the labels of its rows")            \
    X(WEIGHTS_NOT_FETCHED, "a run that goes back does not fetch the weights of its rows")          \
    X(OFFSETS_NOT_FETCHED, "a run that goes back does not fetch the offsets of its rows")          \
    X(ROWS_ADDED_UP, "rows are added to the sums of the evaluation before")                        \
    X(ADVANCED_TWICE, "margins advance once more when a program is repeated")                      \
    X(DERIVATIVES_OF_OTHERS, "a replica takes derivatives of rows of another evaluation")          \
    X(TRANSPOSE_BOUND_FORGOTTEN, "the largest derivative of a trial is not durable")               \
    X(SECOND_FORGOTTEN, "second derivatives that are kept from search to search are not durable")  \
    X(SEARCHES_FORGOTTEN, "a run that goes on does not know how old these are")                    \
    X(DICE_FORGOTTEN, "a run that goes on takes them of other rows")                               \
    X(ROWS_NOT_LOOKED_AT, "a replica computes rows that it has not all numbers of")                \
    X(NEWEST_LEFT_OUT, "checkpoints lack the newest direction of the window")                      \
    X(ENDED_WITHIN_STEP, "a run ends when its margins have advanced and x has not")                \
    X(SIZES_NOT_FETCHED, "a run in tiles that goes back does not fetch the sizes of its rows")     \
    X(BOUND_OF_FORMER_POINT, "a product in tiles has the bound of the point before")               \
    X(PORTION_ACROSS_STRIPS, "a portion of tiles goes on in the next strip")                       \
    X(STRIPS_IN_ONE_FLUSH, "a flush has the sums of two strips")                                   \
    X(STRIP_KEPT, "a replica computes a strip at the point of the strip before")                   \
    X(NEEDS_OF_OTHER_STRIP, "of a strip a replica asks for the columns of its tiles in the first") \
    X(TRIAL_LOSS_FORGOTTEN, "the loss of a trial in tiles is not durable")                         \
    X(DERIVATIVES_NOT_TAKEN, "a trial of a network in tiles has the derivatives of the start")     \
    X(UPPER_KEPT, "a replica keeps the upper layers of the evaluation before")                     \
    X(MARGINS_FOR_DERIVATIVES, "a replica takes margins of rows for their derivatives")            \
    X(HELD_LOSS_OF_START, "a network in tiles has the loss on the holdout that it began with")

enum mutant {
    MUTANT_NONE,
#define X(name, text) MUTANT_##name,
    MUTANT_TABLE(X)
#undef X
        MUTANTS_END,
};

#ifdef MUTANTS
extern enum mutant mutant_now;
#define mutant(name) (mutant_now == MUTANT_##name)
#else
#define mutant(name) false
#endif

#endif
